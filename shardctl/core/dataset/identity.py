"""What tells one dataset from another, and what two of them differ in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any


def dataset_title(name: str, config: str | None, version: str | None) -> str:
    """Return name, config and version as TFDS writes them.

    >>> dataset_title("coco", "2017", "1.1.0"), dataset_title("mnist", None, None)
    ('coco/2017:1.1.0', 'mnist')
    """
    title = name if config is None else f"{name}/{config}"
    return title if version is None else f"{title}:{version}"


@dataclass(frozen=True, kw_only=True, slots=True)
class SplitSize:
    """How large a split is."""

    name: str
    num_examples: int
    num_shards: int


@dataclass(frozen=True, kw_only=True)
class DatasetHead:
    """What the head of every document says of its dataset.

    `data_dir` is None where the files are not there, and where the folder does not matter.
    """

    name: str
    config: str | None
    version: str | None
    file_format: str
    data_dir: str | None
    fingerprint: str

    @property
    def title(self) -> str:
        """Name, config and version as TFDS writes them: `coco/2017:1.1.0`."""
        return dataset_title(self.name, self.config, self.version)

    def record(self) -> dict[str, Any]:
        """Return the head alone as a mapping, without what a whole identity knows besides."""
        return {field.name: getattr(self, field.name) for field in fields(DatasetHead)}

    def without_folder(self) -> DatasetHead:
        """Return the head alone, for what is the same wherever the files lie."""
        return DatasetHead(**{**self.record(), "data_dir": None})


@dataclass(frozen=True, kw_only=True)
class DatasetIdentity(DatasetHead):
    """Enough of a dataset to know it again, and to say what changed.

    `ordered` is TFDS's `disable_shuffling`. A snapshot knows the splits that its spec reads; plans
    and positions know all.
    """

    ordered: bool
    splits: tuple[SplitSize, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A field in which two identities differ; of `splits` that of `split`, where it is named.

    A split is a SplitSize, None where there is none of its name.
    """

    field: str
    then: object
    now: object
    split: str | None = None


def differences(then: DatasetHead, now: DatasetHead) -> Iterator[Difference]:
    """Yield everything that both sides know and that differs, in the order of the fields.

    >>> then = DatasetHead(name="mnist", config=None, version="3.0.0", file_format="tfrecord",
    ...                    data_dir=None, fingerprint="a")
    >>> from dataclasses import replace
    >>> [(d.field, d.then, d.now) for d in differences(then, replace(then, version="3.0.1"))]
    [('version', '3.0.0', '3.0.1')]
    """
    for field in fields(DatasetHead):
        yield from _field(field.name, then, now)
    if isinstance(then, DatasetIdentity) and isinstance(now, DatasetIdentity):
        yield from _field("ordered", then, now)
        yield from _splits(then.splits, now.splits)


def _field(name: str, then: DatasetHead, now: DatasetHead) -> Iterator[Difference]:
    old, new = getattr(then, name), getattr(now, name)
    if old != new:
        yield Difference(field=name, then=old, now=new)


def _splits(then: tuple[SplitSize, ...], now: tuple[SplitSize, ...]) -> Iterator[Difference]:
    before = {split.name: split for split in then}
    after = {split.name: split for split in now}
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if old != new:
            yield Difference(field="splits", split=name, then=old, now=new)
    if before.keys() == after.keys() and [*before] != [*after]:
        yield Difference(field="splits", then=tuple(before), now=tuple(after))
