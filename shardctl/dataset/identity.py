"""What tells one dataset from another, and what two of them differ in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from shardctl.base.arguments.kinds import Name
from shardctl.dataset.folder_order import FolderIdentity, folder_order


def dataset_title(name: str, config: str | None, version: str | None) -> str:
    """Return name, config and version as TFDS writes them.

    >>> dataset_title("coco", "2017", "1.1.0"), dataset_title("mnist", None, None)
    ('coco/2017:1.1.0', 'mnist')
    """
    title = name if config is None else f"{name}/{config}"
    return title if version is None else f"{title}:{version}"


@dataclass(frozen=True, kw_only=True, slots=True)
class SplitSize:
    """How large a split is; `template` is how its files are named, None where that is not known.

    The template has the dataset's and the split's name in it, and `{SHARD_INDEX}`, `{NUM_SHARDS}`.
    """

    name: str
    num_examples: int
    num_shards: int
    template: str | None = None


@dataclass(frozen=True, kw_only=True)
class DatasetHead:
    """What the head of every document says of its dataset.

    `data_dir` is None where the files are not there, and where the folder does not matter.
    `folders` is empty where all files lie in one, and in what older versions wrote.
    """

    name: Name
    config: Name | None
    version: Name | None
    file_format: Name
    data_dir: str | None
    fingerprint: Name
    folders: tuple[FolderIdentity, ...] = ()

    @property
    def title(self) -> str:
        """Name, config and version as TFDS writes them, `coco/2017:1.1.0`; of all that it is of."""
        own = dataset_title(self.name, self.config, self.version)
        return " + ".join(dict.fromkeys(folder.title or own for folder in self.folders)) or own

    def record(self) -> dict[str, Any]:
        """Return the head alone as a mapping, without what a whole identity knows besides.

        The folders are there if they are several.
        """
        record = {field.name: getattr(self, field.name) for field in fields(DatasetHead)}
        folders = [{**asdict(f), "splits": list(f.splits)} for f in record.pop("folders")]
        return {**record, "folders": folders} if folders else record

    def without_folder(self) -> DatasetHead:
        """Return the head alone, for what is the same wherever the files lie."""
        head = {field.name: getattr(self, field.name) for field in fields(DatasetHead)}
        return DatasetHead(**{**head, "data_dir": None})

    def folders_by_split(self) -> dict[str, tuple[FolderIdentity, ...]]:
        """Return the folders that each split is read from, in order, where they are several."""
        found: dict[str, list[FolderIdentity]] = {}
        for folder in self.folders:
            for split in folder.splits:
                found.setdefault(split, []).append(folder)
        return {split: tuple(several) for split, several in found.items() if len(several) > 1}


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

    A split is a SplitSize, None where there is none of its name. `folders` are those of a split,
    where they are read in another order or where nothing tells; none where one side does not know.
    `folder_titles` are the datasets in them.
    """

    field: str
    then: Any
    now: Any
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
        if field.name != "folders":
            yield from _field(field.name, then, now)
    yield from _folders(then, now)
    if isinstance(then, DatasetIdentity) and isinstance(now, DatasetIdentity):
        yield from _field("ordered", then, now)
        yield from _splits(then.splits, now.splits)


def _field(name: str, then: DatasetHead, now: DatasetHead) -> Iterator[Difference]:
    old, new = getattr(then, name), getattr(now, name)
    if old != new:
        yield Difference(field=name, then=old, now=new)


def _folders(then: DatasetHead, now: DatasetHead) -> Iterator[Difference]:
    old_folders, new_folders = then.folders_by_split(), now.folders_by_split()
    for split in dict.fromkeys((*old_folders, *new_folders)):
        before, after = old_folders.get(split, ()), new_folders.get(split, ())
        if folder_order(before, after) != "same":
            yield Difference(field="folders", split=split, then=before, now=after)
    old, new = ([folder.title for folder in side.folders] for side in (then, now))
    known = len(old) == len(new) and None not in (*old, *new)
    same = all(getattr(then, name) == getattr(now, name) for name in ("name", "config", "version"))
    if known and same and Counter(old) != Counter(new):
        yield Difference(field="folder_titles", then=tuple(old), now=tuple(new))


def _splits(then: tuple[SplitSize, ...], now: tuple[SplitSize, ...]) -> Iterator[Difference]:
    before = {split.name: split for split in then}
    after = {split.name: split for split in now}
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if _size(old) != _size(new):
            yield Difference(field="splits", split=name, then=old, now=new)
        elif old and new and _other(old.template, new.template):
            yield Difference(field="template", split=name, then=old.template, now=new.template)
    names = [tuple(split.name for split in side) for side in (then, now)]
    if before.keys() == after.keys() and names[0] != names[1]:  # of which one may be there twice
        yield Difference(field="splits", then=names[0], now=names[1])


def _other(then: str | None, now: str | None) -> bool:
    return None not in (then, now) and then != now


def _size(split: SplitSize | None) -> SplitSize | None:
    return None if split is None else replace(split, template=None)
