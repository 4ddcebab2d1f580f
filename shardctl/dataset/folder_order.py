"""In which order a dataset reads its folders, and whether another one reads them in the same."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from shardctl.base.arguments.kinds import Name
from shardctl.base.text import choices, printable

FolderOrder = Literal["same", "other", "unknown", "number"]


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderIdentity:
    """What tells one folder from the others that are read together with it.

    `title` is None where the version is not known, `num_bytes` where no split states any, `path`
    (what is left of it after the part that all folders have in common) where there are no files.
    `fingerprint` is that of the folder alone, with its splits in the order of their names.
    """

    path: str | None
    title: str | None
    fingerprint: Name
    num_bytes: int | None
    splits: tuple[str, ...]

    @property
    def shown(self) -> str:
        """What people know the folder by."""
        return printable(self.path or self.title or self.fingerprint, 80)


def paths_left(paths: Sequence[str]) -> list[str]:
    """Return what is left of paths after the folders that they have in common.

    >>> paths_left(["/data/monday/toy", "/data/tuesday/toy"])
    ['monday/toy', 'tuesday/toy']
    >>> paths_left(["/data", "/data"])
    ['.', '.']
    """
    parts = [path.replace(os.sep, "/").rstrip("/").split("/") for path in paths]
    common = 0
    for names in zip(*parts, strict=False):
        if len(set(names)) > 1:
            break
        common += 1
    return ["/".join(part[common:]) or "." for part in parts]


def folder_order(then: Sequence[FolderIdentity], now: Sequence[FolderIdentity]) -> FolderOrder:
    """Return whether folders are read in the order in which they were: "same" or "other".

    What the metadata says of them decides, so that they may be moved; folders of which it says the
    same are told apart by what is left of their paths after the common part. "unknown" where
    neither tells, and "number" where there are more folders, or fewer.

    >>> a, b = (FolderIdentity(path=path, title="toy:1.0.0", fingerprint="f", num_bytes=8,
    ...                        splits=("train",)) for path in "ab")
    >>> folder_order([a, b], [a, b]), folder_order([a, b], [b, a])
    ('same', 'other')
    """
    if len(then) != len(now):
        return "number"
    known = [name for name in ("fingerprint", "title", "num_bytes") if _tells(name, then, now)]
    before, after = ([tuple(getattr(f, n) for n in known) for f in side] for side in (then, now))
    if Counter(before) != Counter(after):
        return "unknown"  # one fact says the one, another the other
    if before != after:
        return "other"
    several: dict[tuple[object, ...], list[int]] = {}
    for index, facts in enumerate(before):
        several.setdefault(facts, []).append(index)
    for alike in several.values():
        order = _order_of_paths(*([side[i].path for i in alike] for side in (then, now)))
        if order != "same":
            return order
    return "same"


def _tells(name: str, then: Sequence[FolderIdentity], now: Sequence[FolderIdentity]) -> bool:
    """Return whether both sides know a fact and hold the same values of it, in whatever order."""
    before, after = (Counter(getattr(folder, name) for folder in side) for side in (then, now))
    return before == after and None not in before


def _order_of_paths(then: Sequence[str | None], now: Sequence[str | None]) -> FolderOrder:
    if len(then) == 1:
        return "same"
    before, after = ([p for p in side if p is not None] for side in (then, now))
    if len(before) < len(then) or len(after) < len(now):
        return "unknown"
    before, after = paths_left(before), paths_left(after)
    if before == after:
        return "same"
    return "other" if sorted(before) == sorted(after) else "unknown"


def fingerprints_tell_order(folders: Sequence[FolderIdentity]) -> bool:
    """Return whether the fingerprint of all folders together shows their order.

    It does where each has its own of the same splits, since each begins with its shard 0.
    """
    distinct = len({folder.fingerprint for folder in folders}) == len(folders)
    return distinct and len({folder.splits for folder in folders}) == 1


def first_of_two(data_dir: str | None, folders: Sequence[FolderIdentity]) -> bool:
    """Return whether a data dir is the first of two folders, and not the second.

    It is all that older files know of an order: the folder that gave the dataset its name.

    >>> a, b = (FolderIdentity(path=path, title=None, fingerprint="f", num_bytes=None,
    ...                        splits=("train",)) for path in "ab")
    >>> first_of_two("/data/a", [a, b]), first_of_two("/data/b", [a, b])
    (True, False)
    """
    if data_dir is None or len(folders) != 2:
        return False
    parts = data_dir.replace(os.sep, "/").rstrip("/").split("/")
    ends = [(folder.path or "").split("/") for folder in folders]
    return [parts[-len(end) :] == end for end in ends] == [True, False]


def order_in_words(then: Sequence[FolderIdentity], now: Sequence[FolderIdentity]) -> str:
    """Return what is to be said of two orders of folders that are not the same.

    >>> a, b = (FolderIdentity(path=path, title="toy:1.0.0", fingerprint="f", num_bytes=8,
    ...                        splits=("train",)) for path in "ab")
    >>> order_in_words([a, b], [b, a])
    'folders a and b are read in the other order: they were a, b, now b, a'
    """
    order = folder_order(then, now)
    before, after = ([folder.shown for folder in side] for side in (then, now))
    if not before:
        return (
            f"in which order folders {_listed(after, ' and ')} were read is not known, and their "
            "layouts do not show it"
        )
    if order == "number":
        return f"its folders were {_listed(before)}, now {_listed(after)}"
    if order == "unknown":
        return (
            f"its folders were {_listed(before)}, now {_listed(after)}, which are alike but for "
            "their paths: whether they are read in the same order cannot be told"
        )
    both = _listed(before, " and ")
    other = "the other" if len(then) == 2 else "another"
    return (
        f"folders {both} are read in {other} order: "
        f"they were {_listed(before)}, now {_listed(after)}"
    )


def _listed(names: Sequence[str], last: str = ", ") -> str:
    if not names:
        return "one or not known"
    return last.join(names) if len(names) == 2 else choices(names, 8)
