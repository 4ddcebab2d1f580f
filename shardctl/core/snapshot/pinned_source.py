"""What a snapshot keeps of the datasets that the readers of stages name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from shardctl.core.dataset.dataset import Dataset


@dataclass(frozen=True, kw_only=True)
class PinnedSource:
    """A dataset as readers name it: `data` as in `read(data=..)`, None for that of the command.

    label: what its splits are called by, `label/split`; "" where all readers read one dataset.
    title: its name, config and version.
    """

    data: str | None
    label: str
    title: str
    ordered: bool


def datasets_of(pinned: Dataset, sources: Sequence[PinnedSource]) -> Mapping[str | None, Dataset]:
    """Return the datasets that were pinned as one, by the names that readers have for them.

    >>> from shardctl.core.dataset.dataset import Split
    >>> both = Dataset(name="a + b", splits=(
    ...     Split(name="a/train", shard_lengths=(4,)), Split(name="b/train", shard_lengths=(5,))))
    >>> found = datasets_of(both, [PinnedSource(data="b", label="b", title="b", ordered=False)])
    >>> found["b"].name, found["b"].splits[0].name, found["b"].splits[0].num_examples
    ('b', 'train', 5)
    """
    by_label = {source.label: _part(pinned, source) for source in sources}
    return {source.data: by_label[source.label] for source in sources}


def _part(pinned: Dataset, source: PinnedSource) -> Dataset:
    if not source.label:
        return replace(pinned, ordered=source.ordered)
    prefix = f"{source.label}/"
    return Dataset(
        name=source.label,
        file_format=pinned.file_format,
        ordered=source.ordered,
        splits=tuple(
            replace(split, name=split.name.removeprefix(prefix))
            for split in pinned.splits
            if split.name.startswith(prefix)
        ),
    )
