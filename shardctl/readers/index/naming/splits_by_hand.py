"""Splits as the user says them: a name, and a glob of files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from shardctl.core.phrase import phrase
from shardctl.core.text import choices, counted, quoted
from shardctl.errors import DatasetError, UsageError
from shardctl.files.stores.stores import is_remote
from shardctl.readers.index.naming.globs import expanded, path_regex, sharded_regex
from shardctl.readers.index.naming.shapes import shapes_of
from shardctl.readers.index.naming.shard_sets import (
    Folders,
    ShardSet,
    SplitSets,
    sets_of,
    unnumbered,
)

_NAME = re.compile(r"\w[\w.-]*")  # of a split, as specs name it


def splits_by_hand(
    folders: Folders, globs: Mapping[str, str]
) -> tuple[list[SplitSets], tuple[str, ...]]:
    """Return splits by the user's globs, and what is to be said of files that are in none.

    A glob is held against the end of each path, whole names of folders and files: `train-*`,
    `train/*`, `**/train/**`; one from the root against the whole path. A folder means what is in
    it. `prefix@N` is taken too.

    Raises:
        UsageError: what cannot be the name of a split.
        DatasetError: a glob that matches nothing; a file that two of them match.
    """
    # The names of folders above the root, /tmp/test, are nothing that a relative glob is about.
    above = _above(folders.root)
    matchers = {name: _matcher(glob, above) for name, glob in globs.items() if _checked(name, glob)}
    chosen: dict[str, list[int]] = {name: [] for name in globs}
    left: list[int] = []
    for place, path in enumerate(folders.files.paths()):
        found = [name for name, matches in matchers.items() if matches(path)]
        if len(found) > 1:
            raise DatasetError(
                phrase(
                    "{} is in two splits, {} and {}, by the globs of {split}; a file is in one",
                    quoted(path, 200), quoted(found[0]), quoted(found[1]),
                )
            )  # fmt: skip
        (chosen[found[0]] if found else left).append(place)
    for name, places in chosen.items():
        if not places:
            some = choices(sorted(folders.files.path(place) for place in left[:1000]), 3)
            raise DatasetError(
                phrase(
                    "no file of split {} matches {} of {split}; files are {}",
                    quoted(name), quoted(globs[name], 200), some,
                )
            )  # fmt: skip
    splits = [
        SplitSets(name=name, sets=tuple(_sets(folders, places))) for name, places in chosen.items()
    ]
    if not left:
        return splits, ()
    first = folders.files.path(left[0])
    said = f"{counted(len(left), 'file')} in no split, left out: {quoted(first, 200)}"
    return splits, (said if len(left) == 1 else f"{said} and others",)


def chosen_by(globs: Mapping[str, str], root: str) -> Callable[[str], bool]:
    """Return whether a path below a root is of one of the splits; all are, where none is named.

    >>> is_chosen = chosen_by({"train": "train-*"}, "/data/toy")
    >>> is_chosen("/data/toy/train-00000"), is_chosen("/data/toy/extra-00000")
    (True, False)
    """
    matchers = [_matcher(glob, _above(root)) for glob in globs.values()]
    return lambda path: not matchers or any(matches(path) for matches in matchers)


def _above(root: str) -> int:
    """Return where the name of the root begins, before which no relative glob looks."""
    return len(root.rpartition("/")[0]) + 1


def _sets(folders: Folders, places: list[int]) -> Iterable[ShardSet]:
    shapes = shapes_of(folders.files, places)
    return [unnumbered(folders.files, places)] if shapes is None else sets_of(shapes)


def _checked(name: str, glob: str) -> bool:
    if not _NAME.fullmatch(name):
        raise UsageError(
            phrase("{split}: {} is no name of a split, which has letters, digits, _, - and .",
                   quoted(name))
        )  # fmt: skip
    if not glob:
        raise UsageError(phrase("{split}: split {} has no glob", quoted(name)))
    return True


def _matcher(glob: str, above: int) -> Callable[[str], bool]:
    matchers = [_one_matcher(text, above) for text in expanded(glob)]
    return lambda path: any(matches(path) for matches in matchers)


def _one_matcher(glob: str, above: int) -> Callable[[str], bool]:
    glob = re.sub(r"^(?:\./)+", "", glob).rstrip("/") or "/"
    folder, _, name = glob.rpartition("/")
    sharded = sharded_regex(name)
    whole = glob.startswith("/") or is_remote(glob)
    start, skip = ("", 0) if whole else ("(?:.*/)?", above)
    if sharded is None:
        regex = re.compile(f"{start}{path_regex(glob).pattern}(?:/.*)?", re.DOTALL)
        return lambda path: regex.fullmatch(path, skip) is not None
    numbered, total = sharded
    before = f"{path_regex(folder).pattern}/" if folder else ""
    regex = re.compile(f"{start}{before}{numbered.pattern}", re.DOTALL)

    def is_shard(path: str) -> bool:
        found = regex.fullmatch(path, skip)
        return found is not None and (total is None or int(found["total"]) == total)

    return is_shard
