"""Splits and shard order of record files by their names alone.

Where several numbers vary and none of them tells the files apart, they are in the order of their
names. What names do not tell for certain is refused, with the way out: `--split NAME=GLOB`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise

from shardctl.base.text import choices, counted, printable, quoted, shell_line
from shardctl.errors import DatasetError, UsageError
from shardctl.metadata.index import name_words
from shardctl.metadata.index.listing import Listing
from shardctl.metadata.index.shard_sets import COMPRESSED, ShardSet, glob_of, path_key, shard_sets
from shardctl.records.read_file import format_of_name
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import as_bytes, is_remote

DEFAULT_SPLIT = "train"  # as Hugging Face calls files that name none
_FIRST = ("tr", "va", "de", "te")  # what names of splits begin with, in the order of answers
_SHOWN = 5  # numbers or names in a message
_REGULAR = 4  # so many numbers at equal distances are meant so
_NAME = re.compile(r"\w[\w.-]*")  # of a split, as specs name it


@dataclass(frozen=True, kw_only=True, slots=True)
class NameProblem:
    """Shards that are missing between others, or there twice; `text` is one line."""

    kind: str  # "gap", "duplicate", "wrong-count", "sidecar"
    split: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrangement:
    """Files as splits, in shard order.

    root: the folder that all paths are below; it is the layout's data_dir.
    file_format: as `FORMATS` names it, None where the names do not tell.
    sidecars: files that are no record files and say something of them (`index.json`, `x.index`).
    notes: what a reader of the answer should know.
    """

    root: str
    splits: Sequence[SplitOrder]
    name: str | None = None
    version: str | None = None
    file_format: str | None = None
    problems: tuple[NameProblem, ...] = ()
    sidecars: Sequence[StoredFile] = ()
    notes: tuple[str, ...] = ()


def arrange(
    listing: Listing, *, splits: Mapping[str, str] | None = None, name: str | None = None
) -> Arrangement:
    """Return files as splits, each in shard order, by their names alone.

    splits: the files of each split as a glob, which chooses and names them; else the names tell.
    name: the dataset's, else it is what TFDS's template says, or the folder is called.

    Raises:
        DatasetError: the names do not tell which split files are of, or tell of several datasets
            or formats; a glob matches nothing, or a file twice.
        UsageError: what cannot be the name of a split.
    """
    if not listing.files:
        raise DatasetError("there are no record files")
    notes, stated = listing.notes, None
    if splits:
        chosen, said = _splits_by_hand(listing, splits)
        notes += said
    else:
        chosen, stated = _splits_by_names(listing)
    file_format = _file_format(listing, chain.from_iterable(chosen.values()))
    by_folder, version = name_words.dataset_of_folder(listing.root)
    orders = [SplitOrder(listing.root, *one) for one in chosen.items()]
    return Arrangement(
        root=listing.root,
        splits=orders,
        name=name or stated or by_folder,
        version=version,
        file_format=file_format,
        problems=tuple(problem for one in orders for problem in one.problems),
        sidecars=listing.sidecars,
        notes=notes + tuple(note for one in orders for note in one.notes),
    )


def _file_format(listing: Listing, sets: Iterable[ShardSet]) -> str | None:
    """Return the format that all names tell, None where some do not; refuse several."""
    globs: dict[str | None, str] = {}
    for found in sets:
        for text in sorted(found.texts):
            known = format_of_name(re.sub(f"[{name_words.NUMBER}{name_words.RANDOM}]", "0", text))
            globs.setdefault(known, found.folder + glob_of(text))
    formats = sorted(known for known in globs if known is not None)
    if len(formats) > 1:
        each = choices((f"{known} ({globs[known]})" for known in formats), 4)
        raise DatasetError(
            f"{_where(listing)} has files of {len(formats)} formats: {each}; "
            "give those of one as a glob, or choose by --split"
        )
    return formats[0] if len(globs) == 1 and formats else None


def _where(listing: Listing) -> str:
    return quoted(listing.root or "/", 200)


def _listed(sets: Iterable[ShardSet]) -> str:
    """Return sets as messages list them."""
    return choices((f"{found.glob} ({counted(len(found.files), 'file')})" for found in sets), 4)


def _way_out(sets: Iterable[ShardSet]) -> str:
    """Return how to say by hand which files are which split."""
    globs = zip(("NAME", "OTHER"), (shell_line(found.glob) for found in sets), strict=False)
    options = " ".join(f"--split {name}={glob}" for name, glob in globs)
    return f"say which files are which split: {options}"


# Which sets are which split.


# Splits, and the sets of shards that each is made of; several only by --split.
_Splits = dict[str, Sequence[ShardSet]]


def _splits_by_names(listing: Listing) -> tuple[_Splits, str | None]:
    """Return the splits of files, and the name of the dataset where TFDS's template says it.

    Raises:
        DatasetError: files of several kinds and nothing that tells which split they are; two
            datasets, versions or formats.
    """
    sets = shard_sets(listing.root, listing.files)
    named = [name_words.named_split(found.folder, found.text) for found in sets]
    # No name speaks of a split: all files are one, named after the folder or by default.
    if not any(named):
        (found,) = _joined(listing, sets)
        if name_words.speaks_of_several(found.folder, found.text):
            several = f"names speak of several splits: {_listed(sets)}"
            raise DatasetError(f"{_where(listing)}: {several}; {_way_out(sets)}")
        name = name_words.split_word(listing.root.rpartition("/")[2]) or DEFAULT_SPLIT
        return {name: (found,)}, None
    splits: dict[str, list[tuple[ShardSet, name_words.NamedSplit]]] = {}
    for found, spoken in zip(sets, named, strict=True):
        if spoken is not None:
            splits.setdefault(spoken.split, []).append((found, spoken))
    in_order = sorted(splits, key=_use)
    unknown = [found for found, spoken in zip(sets, named, strict=True) if spoken is None]
    if unknown:
        raise DatasetError(
            f"{_where(listing)}: beside {choices(in_order, 5)} there are files of no split that "
            f"the names tell: {_listed(unknown)}; {_way_out(unknown)}"
        )
    _check_one_dataset(listing, [member for members in splits.values() for member in members])
    stated = (splits[name][0][1].dataset for name in in_order)
    return {
        name: _joined(listing, [found for found, _ in splits[name]], name) for name in in_order
    }, next(filter(None, stated), None)


def _use(split: str) -> tuple[int, str]:
    """Return what splits are sorted by: train, validation, test, others."""
    begin = split[:2].lower()
    return _FIRST.index(begin) if begin in _FIRST else len(_FIRST), split


def _check_one_dataset(
    listing: Listing, members: Sequence[tuple[ShardSet, name_words.NamedSplit]]
) -> None:
    """Raise where TFDS's template names two datasets, or a dataset in two folders."""
    first: dict[tuple[str, str], ShardSet] = {}
    for found, named in members:
        if named.dataset is not None:
            first.setdefault((named.dataset, found.folder), found)
    if len(first) > 1:
        several = choices([folder + dataset for dataset, folder in first], 6)
        raise DatasetError(
            f"{_where(listing)} has files of {len(first)} datasets: {several}; give the files of "
            f"one, or {_way_out(first.values())}"
        )


def _joined(
    listing: Listing, sets: Sequence[ShardSet], split: str | None = None
) -> tuple[ShardSet, ...]:
    """Return the one set that sets make up, or raise: files without numbers are one of a folder."""
    alike = len({found.folder for found in sets}) == 1
    if len(sets) > 1 and not (alike and all(found.numbers is None for found in sets)):
        which = "their names tell no splits" if split is None else f"all of split {quoted(split)}"
        there = f"{len(sets)} kinds of files, {which}: {_listed(sets)}"
        raise DatasetError(f"{_where(listing)} has {there}; {_way_out(sets)}")
    return (_as_one(sets),)


def _as_one(sets: Sequence[ShardSet]) -> ShardSet:
    whole, *others = sets
    for other in others:
        whole.join(other)
    return whole


def _splits_by_hand(listing: Listing, globs: Mapping[str, str]) -> tuple[_Splits, tuple[str, ...]]:
    """Return splits by the user's globs, and what is to be said of files that are in none.

    A glob is held against the end of each path, whole names of folders and files: `train-*`,
    `train/*`, `**/train/**`; one from the root against the whole path. A folder means what is in
    it. `prefix@N` is taken too.

    Raises:
        UsageError: what cannot be the name of a split.
        DatasetError: a glob that matches nothing; a file that two of them match.
    """
    for name, glob in globs.items():
        if not _NAME.fullmatch(name):
            rule = "is no name of a split, which has letters, digits, _, - and ."
            raise UsageError(f"--split: {quoted(name)} {rule}")
        if not glob:
            raise UsageError(f"--split: split {quoted(name)} has no glob")
    matchers = {name: chosen_by({name: glob}, listing.root) for name, glob in globs.items()}
    chosen: dict[str, list[StoredFile]] = {name: [] for name in globs}
    left: list[StoredFile] = []
    for file in listing.files:
        found = [name for name, matches in matchers.items() if matches(file.path)]
        if len(found) > 1:
            both = f"{quoted(found[0])} and {quoted(found[1])}, by the globs of --split"
            raise DatasetError(
                f"{quoted(file.path, 200)} is in two splits, {both}; a file is in one"
            )
        (chosen[found[0]] if found else left).append(file)
    splits: _Splits = {}
    for name, files in chosen.items():
        if not files:
            some = choices(sorted(file.path for file in left[:1000]), 3)
            glob = f"{quoted(globs[name], 200)} of --split"
            raise DatasetError(f"no file of split {quoted(name)} matches {glob}; files are {some}")
        splits[name] = shard_sets(listing.root, files)
    if not left:
        return splits, ()
    others = "" if len(left) == 1 else " and others"
    said = f"{counted(len(left), 'file')} in no split, left out: {quoted(left[0].path, 200)}"
    return splits, (said + others,)


def chosen_by(globs: Mapping[str, str], root: str) -> Callable[[str], bool]:
    """Return whether a path below a root is of one of the splits; all are, where none is named.

    >>> is_chosen = chosen_by({"train": "train-*"}, "/data/toy")
    >>> is_chosen("/data/toy/train-00000"), is_chosen("/data/toy/extra-00000")
    (True, False)
    """
    # The names of folders above the root, /tmp/test, are nothing that a relative glob is about.
    above = len(root.rpartition("/")[0]) + 1
    matchers = [
        _matcher(one, above) for glob in globs.values() for one in name_words.expanded(glob)
    ]
    return lambda path: not matchers or any(matches(path) for matches in matchers)


def _matcher(glob: str, above: int) -> Callable[[str], bool]:
    glob = re.sub(r"^(?:\./)+", "", glob).rstrip("/") or "/"
    folder, _, name = glob.rpartition("/")
    sharded = name_words.sharded_regex(name)
    whole = glob.startswith("/") or is_remote(glob)
    # A relative glob may begin at any folder below the root; `skip` leaves out what is above.
    start, skip = ("", 0) if whole else ("(?:.*/)?", above)
    if sharded is None:
        # What is inside a folder that matches belongs to it.
        pattern, total = f"{start}{name_words.path_regex(glob).pattern}(?:/.*)?", None
    else:
        before = f"{name_words.path_regex(folder).pattern}/" if folder else ""
        pattern, total = f"{start}{before}{sharded[0].pattern}", sharded[1]
    return name_words.shard_matcher(re.compile(pattern, re.DOTALL), total, skip)


# The files of a split in shard order, how that differs from the order of their names, and shards
# that are missing between others, there twice, or of another number of shards.


class SplitOrder:
    """The files of a split in shard order: sets by their names, each by its numbers.

    Files that nothing counts are in the order of their names by bytes, as are those that several
    numbers tell apart.
    """

    def __init__(self, root: str, name: str, sets: Sequence[ShardSet]) -> None:
        self.name = name
        self.problems: list[NameProblem] = []
        self.notes: list[str] = []
        self.files: list[StoredFile] = []
        self._root = root.rstrip("/") + "/"
        numbered = any(found.numbers is not None for found in sets)
        sets = sorted(sets, key=_by_numbers_in_names) if numbered else [_as_one(sets)]
        for found in sets:
            self._look_at(found)
            self.files += found.files
        if len(sets) > 1:
            self._note(f"{len(sets)} kinds of files, one after the other: {_listed(sets)}")

    def _look_at(self, found: ShardSet) -> None:
        numbers, totals = found.numbers, found.totals
        uncounted = _is_uncounted(found)
        # Nothing counts these files, so only a copy beside its compressed form can be told.
        if numbers is None:
            self._twice(found, [COMPRESSED.sub("", self._shown(file)) for file in found.files])
        # Two preparations in one folder: neither is known to be whole.
        elif totals is not None and len(set(totals)) > 1:
            each = [
                f"{counted(count, 'file')} of {total:,} shards "
                f"({self._shown(found.files[totals.index(total)])})"
                for total, count in Counter(totals).most_common()
            ]
            self._problem("wrong-count", f"names of several numbers of shards: {choices(each, 4)}")
        else:
            repeats = _several_writes(found)
            if not repeats:
                self._twice(found, [f"shard {number}" for number in numbers])
            if not uncounted:
                self._gaps(found, numbers)
            # Spark counts from 0 in each write: numbers alone would mix the writes.
            if repeats and len(set(numbers)) < len(numbers):
                self._note("numbers repeat, each write has a random word: in the order of names")
                found.files.sort(key=path_key)
        if found.unclear:
            self._note("several numbers vary in the names: in the order of the names")
        elif uncounted:
            text = "their numbers do not follow each other, so that nothing tells whether a file"
            self._note(f"{text} is missing")
        elif numbers is not None and totals is None and numbers[0] > 1:
            self._note(f"the first number is {numbers[0]:,}")

    def _note(self, text: str) -> None:
        self.notes.append(f"{printable(self.name, 60)}: {text}")

    def _problem(self, kind: str, text: str) -> None:
        text = f"{printable(self.name, 60)}: {text}"
        self.problems.append(NameProblem(kind=kind, split=self.name, text=text))

    def _shown(self, file: StoredFile) -> str:
        return printable(file.path.removeprefix(self._root), 200)

    def _twice(self, found: ShardSet, shards: Sequence[str]) -> None:
        """Note what is there more than once; `shards` say which shard each file is."""
        files: dict[str, list[str]] = {}
        for shard, file in zip(shards, found.files, strict=True):
            files.setdefault(shard, []).append(self._shown(file))
        several = [(shard, names) for shard, names in files.items() if len(names) > 1]
        if several:
            shard, names = several[0]
            often = "twice" if len(names) == 2 else f"{len(names)} times"
            more = "" if len(several) == 1 else f"; so are {len(several) - 1:,} more"
            self._problem("duplicate", f"{shard} is there {often}: {choices(names, 3)}{more}")

    def _gaps(self, found: ShardSet, numbers: Sequence[int]) -> None:
        """Note the numbers that no file has, and those beyond what the names say."""
        total = None if found.totals is None else found.totals[0]
        start, stop = numbers[0], numbers[-1] + 1
        if total is not None:
            start = 1 if start > 0 and stop == total + 1 else 0  # some count from 1
            stop = start + total
        beyond = [at for at, number in enumerate(numbers) if number >= stop]
        if beyond:
            shards = counted(len(beyond), "shard")
            names = choices((self._shown(found.files[at]) for at in beyond), _SHOWN)
            text = f"{shards} beyond the {total:,} that the names say: {names}"
            self._problem("wrong-count", text)
        known = {number for number in numbers if number < stop}
        count = stop - start - len(known)
        if not count:
            return
        # Only as many as are shown: gaps may be millions of numbers wide.
        missing = [*islice((at for at in range(start, stop) if at not in known), _SHOWN)]
        of = "" if total is None else f" of {total:,}"
        if count == 1:
            text = f"shard {missing[0]}{of} is missing ({found.glob})"
        else:
            shown = ", ".join(map(str, missing)) + (", .." if count > _SHOWN else "")
            text = f"{count:,}{of} shards are missing: {shown} ({found.glob})"
        self._problem("gap", text)


def _by_numbers_in_names(found: ShardSet) -> list[tuple[int, int, bytes]]:
    """Return what sets are sorted by: their names, in which 10 comes after 9."""
    return [
        (1, int(piece), b"") if at % 2 else (0, 0, as_bytes(piece))
        for at, piece in enumerate(re.split("([0-9]+)", found.folder + found.text))
    ]


def _is_uncounted(found: ShardSet) -> bool:
    """Return whether numbers without `-of-` need not follow each other.

    The numbers of examples, of bytes or of seconds may be in names as well.
    """
    if found.numbers is None or found.totals is not None:
        return False
    values = list(dict.fromkeys(found.numbers))
    span = values[-1] - values[0] + 1
    regular = len(values) >= _REGULAR and len({b - a for a, b in pairwise(values)}) == 1
    # Gaps everywhere, or equal steps: counts of something else, not of the files.
    return span > len(values) and (regular or 2 * len(values) < span)


def _several_writes(found: ShardSet) -> bool:
    """Return whether numbers may repeat: each file, or each write, has a random word of its own.

    As where Spark appends to a folder.
    """
    return found.words_differ and name_words.RANDOM in found.text and found.totals is None
