"""Is a dataset the one that a plan or a position was made for, and if not, what is another?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.dataset.folder_order import first_of_two, folder_order, order_in_words
from shardctl.core.dataset.folders import layout_tells_order, with_folders
from shardctl.core.dataset.identity import DatasetIdentity, Difference, SplitSize, differences
from shardctl.core.phrase import phrase
from shardctl.core.text import choices, printable, quoted
from shardctl.errors import DatasetError

_OF_VERSION = ("config", "version", "folder_titles")
_CALLED = {
    "name": "its name was",
    "config": "its config was",
    "version": "its version was",
    "ordered": "its ordered flag (disable_shuffling) was",
    "file_format": "its file format was",
    "folder_titles": "its folders held",
}
_OF = {"plan": "the plan was made for", "position": "the position is one in"}
_WAY_OUT = {
    "plan": phrase("make the plan anew, with {consumed=N}"),
    "position": phrase("if it is the same order, begin with the count that it holds, {consumed=N}"),
}


def check_same_dataset(
    then: DatasetIdentity,
    dataset: Dataset,
    what: Literal["plan", "position"],
    *,
    allow_version: bool = False,
) -> None:
    """Refuse another dataset than that of a plan or a position; where it lies does not matter.

    What only one of the two knows is not compared, except the order of the folders: where it is not
    known and does not show in the layout either, the dataset is refused as well. `allow_version`
    takes another version or config of the same layout.

    Raises:
        DatasetError: it is another; the text says everything in which, then and now.
    """
    dataset = with_folders(dataset)
    now = dataset.identity
    found = [d for d in differences(then, now) if _counts(d, then, dataset)]
    if allow_version:
        found = [d for d in found if d.field not in _OF_VERSION]
    if not found:
        return
    changes = "; ".join(what_changed(found))
    text = phrase("{} another state of {}: {}", _OF[what], then.title, changes)
    if all(d.field in _OF_VERSION for d in found):
        text = phrase("{}; {allow_version=True} takes it all the same", text)
    elif any(_cannot_be_told(d) for d in found):
        text = phrase("{}; {}", text, _WAY_OUT[what])
    raise DatasetError(text)


def _counts(found: Difference, then: DatasetIdentity, dataset: Dataset) -> bool:
    if found.field == "data_dir":
        return False
    if found.field == "version":
        return None not in (found.then, found.now)
    if found.field == "config" and None in (found.then, found.now):
        return None not in (then.version, dataset.version)  # else nothing says that it has none
    if found.field == "folders" and not then.folders and found.split is not None:
        # Of an older file; to read one folder twice has one order.
        paths = {folder.path for folder in found.now}
        twice = len(paths) == 1 and None not in paths
        told = layout_tells_order(dataset.split(found.split))
        return not (twice or told or first_of_two(then.data_dir, dataset.identity.folders))
    return True


def _cannot_be_told(found: Difference) -> bool:
    return found.field == "folders" and (
        not (found.then and found.now) or folder_order(found.then, found.now) == "unknown"
    )


def what_changed(found: Sequence[Difference]) -> list[str]:
    """Return in words in what two datasets differ, then and now.

    >>> train = SplitSize(name="train", num_examples=60000, num_shards=1)
    >>> grown = SplitSize(name="train", num_examples=60000, num_shards=2)
    >>> what_changed([Difference(field="splits", split="train", then=train, now=grown)])
    ['train had 60,000 examples in 1 shard, now 60,000 in 2']
    """
    changes = [
        f"{_CALLED[d.field]} {_value(d.then)}, now {_value(d.now)}"
        for d in found
        if d.field in _CALLED
    ]
    sizes = [d for d in found if d.field == "splits"]
    changes += _splits(sizes)
    if not any(d.field in ("name", "file_format") for d in found):  # they are part of the names
        changes += [
            f"the file name template of {printable(str(d.split))} was {quoted(d.then, 200)}, "
            f"now {quoted(d.now, 200)}"
            for d in found
            if d.field == "template"
        ]
    changes += dict.fromkeys(
        order_in_words(d.then, d.now)
        for d in found
        if d.field == "folders"
        and not (_cannot_be_told(d) and sizes)  # what is in them has changed
    )
    return changes or ["the lengths or names of its files changed, the totals did not"]


def _splits(found: Sequence[Difference]) -> Iterator[str]:
    if gone := [d.split for d in found if d.split is not None and d.now is None]:
        yield f"split {choices(gone, 3)} is gone"
    if added := [d.split for d in found if d.split is not None and d.then is None]:
        yield f"split {choices(added, 3)} is new"
    for d in found:
        if isinstance(old := d.then, SplitSize) and isinstance(new := d.now, SplitSize):
            yield (
                f"{printable(old.name)} had {_size(old)}, "
                f"now {new.num_examples:,} in {new.num_shards:,}"
            )
    if len(found) == 1 and found[0].split is None:
        yield "its splits are in another order"


def _size(split: SplitSize) -> str:
    shards = "1 shard" if split.num_shards == 1 else f"{split.num_shards:,} shards"
    return f"{split.num_examples:,} examples in {shards}"


def _value(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return choices(value, 8) if isinstance(value, tuple) else printable(str(value))
