"""Splits and shard order of record files by their names alone.

Names that are alike but for their numbers are one kind of files. Where a name says `3-of-8` that is
the number of the shard; elsewhere it is the one that varies: a year or a resolution that all names
share counts nothing. Where several numbers vary and none of them tells the files apart, nobody can
say. Words that are drawn at random (UUIDs, hashes) neither make files unlike nor are taken for
numbers. What the names do not say for certain is refused, with the way out: `--split NAME=GLOB`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, pairwise
from operator import itemgetter

from shardctl.base.text import choices, counted, printable, quoted
from shardctl.errors import DatasetError, UsageError
from shardctl.metadata.index.answer import ArrangedSplit, Arrangement, NameProblem
from shardctl.metadata.index.listing import Listing
from shardctl.metadata.index.naming.folders import dataset_of_folder
from shardctl.metadata.index.naming.globs import expanded, path_regex, shard_matcher, sharded_regex
from shardctl.metadata.index.naming.split_words import (
    NUMBER,
    RANDOM,
    NamedSplit,
    named_split,
    speaks_of_several,
    split_in_place,
    split_word,
)
from shardctl.records.read_file import format_of_name
from shardctl.stores.paths import as_bytes, is_remote, split_path
from shardctl.stores.store import StoredFile

DEFAULT_SPLIT = "train"  # as Hugging Face calls files that name none
MOST_SHAPES = 10_000  # that are looked at; names of more follow no convention
_FIRST = ("tr", "va", "de", "te")  # what names of splits begin with, in the order of answers
_SHOWN = 5  # ranges or names in a message
_REGULAR = 4  # so many numbers at equal distances are meant so
_NAME = re.compile(r"\w[\w.-]*")  # of a split, as specs name it
_NUMBER = re.compile("[0-9]+")
_RANDOM = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
    r"|(?=[0-9]*[a-fA-F])(?=[a-fA-F]*[0-9])[0-9a-fA-F]{8,64})(?![0-9A-Za-z])"
    r"|(?<=-of-[0-9]{5}-)[0-9a-f]{16}(?![0-9A-Za-z])"
    r"|[0-9]{19,}"  # more than an int64 takes
)
# Behind a shard's file when it was compressed; the same shard with and without is there twice.
_COMPRESSED = re.compile(r"\.(?:gz|gzip|zlib|zz|zst|zstd|bz2|xz|snappy)$", re.IGNORECASE)
_PAIR = re.compile(f"{NUMBER}[-_]of[-_]{NUMBER}")


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
    notes: tuple[str, ...] = listing.notes
    if splits:
        chosen, said = _splits_by_hand(listing, splits)
        notes += said
    else:
        chosen = _splits_by_names(listing)
    file_format = _file_format(listing, [found for one in chosen for found in one.sets])
    by_folder, version = dataset_of_folder(listing.root)
    dataset = name or next((one.dataset for one in chosen if one.dataset), None) or by_folder
    orders = [_SplitOrder(listing.root, one.name, one.sets) for one in chosen]
    return Arrangement(
        root=listing.root,
        splits=tuple(ArrangedSplit(name=one.split, files=one.files) for one in orders),
        name=dataset,
        version=version,
        file_format=file_format,
        problems=tuple(problem for one in orders for problem in one.problems),
        sidecars=listing.sidecars,
        notes=notes + tuple(note for one in orders for note in one.notes),
    )


def _file_format(listing: Listing, sets: Iterable[_ShardSet]) -> str | None:
    """Return the format that all names tell, None where some do not; refuse several."""
    globs: dict[str | None, str] = {}
    for found in sets:
        for text in sorted(found.texts):
            known = format_of_name(re.sub(f"[{NUMBER}{RANDOM}]", "0", text))
            globs.setdefault(known, found.folder + _glob(text))
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


# Kinds of files, and the sets of shards that they are.


@dataclass(kw_only=True)
class _ShardSet:
    """The files of a folder that are numbered as one, in shard order.

    folder: below the root. text: their name, with a mark for the number, and for the number of
    shards where it is said. numbers: the number of each, None where nothing is counted; totals: how
    many there are, by each name. random: the random words, None where they differ. unclear: several
    numbers vary, and none of them counts the files. texts: how the names are written, those of a
    compressed copy too.
    """

    folder: str
    text: str
    files: list[StoredFile]
    numbers: list[int] | None = None
    totals: list[int] | None = None
    widths: tuple[int, int] = (0, 0)
    total_width: int = 0
    random: list[str] | None = None
    unclear: bool = False
    texts: set[str] = field(default_factory=set)

    def join(self, other: _ShardSet) -> None:
        """Take the files of another set that nothing counts either."""
        self.files = sorted(self.files + other.files, key=_path)
        self.random = self.random if self.random == other.random else None
        self.texts |= other.texts
        self.unclear |= other.unclear

    @property
    def glob(self) -> str:
        """A glob of the files, below the root."""
        return self.folder + _glob(min(self.texts, key=len))


def _path(file: StoredFile) -> bytes:
    return as_bytes(file.path)


def _glob(text: str) -> str:
    """Return the glob of names: what a glob would take for something else is in brackets."""
    return re.sub(f"[{NUMBER}{RANDOM}]", "*", re.sub(r"[*?\[]", r"[\g<0>]", text))


def _said(sets: Iterable[_ShardSet]) -> str:
    """Return sets as messages list them."""
    return choices((f"{found.glob} ({counted(len(found.files), 'file')})" for found in sets), 4)


def _way_out(sets: Iterable[_ShardSet]) -> str:
    """Return how to say by hand which files are which split."""
    globs = zip(("NAME", "OTHER"), (quoted(found.glob, 200) for found in sets), strict=False)
    options = " ".join(f"--split {name}={glob}" for name, glob in globs)
    return f"say which files are which split: {options}"


@dataclass(kw_only=True)
class _Shape:
    """The files of a folder whose names have one text with marks for numbers and random words."""

    folder: str
    text: str
    files: list[StoredFile] = field(default_factory=list)
    digits: list[list[str]] = field(default_factory=list)
    random: list[list[str]] = field(default_factory=list)
    endings: set[str] = field(default_factory=set)

    @cached_property
    def columns(self) -> list[list[int]]:
        """The numbers of all files, a list a mark."""
        return [list(map(int, column)) for column in zip(*self.digits, strict=True)]

    def widths(self, at: int) -> tuple[int, int]:
        """Return the fewest and the most digits of a number."""
        lengths = {len(digits[at]) for digits in self.digits}
        return min(lengths), max(lengths)

    def part(
        self,
        rows: Sequence[int],
        index: int | None,
        *,
        marks: Sequence[int],
        total: int | None = None,
        unclear: bool = False,
    ) -> _ShardSet:
        """Return some of the files as a set that one number counts; `marks` stay in its text."""
        columns = self.columns
        first, *pieces = self.text.split(NUMBER)
        for at, piece in enumerate(pieces):
            number = f"{columns[at][rows[0]]:0{self.widths(at)[0]}d}"
            first += (NUMBER if at in marks else number) + piece
        rows = sorted(rows, key=lambda row: _path(self.files[row]))
        if index is not None:
            rows.sort(key=columns[index].__getitem__)
        return _ShardSet(
            folder=self.folder,
            text=first,
            files=[self.files[row] for row in rows],
            numbers=None if index is None else [columns[index][row] for row in rows],
            totals=None if total is None else [columns[total][row] for row in rows],
            widths=(0, 0) if index is None else self.widths(index),
            total_width=0 if total is None else self.widths(total)[0],
            random=None if any(map(self.random[0].__ne__, self.random)) else self.random[0],
            unclear=unclear,
            texts={first + ending for ending in self.endings},
        )


def _shapes_of(root: str, files: Iterable[StoredFile]) -> list[_Shape] | None:
    """Return the shapes of names, in the order in which they are met; None where they are many."""
    shapes: dict[tuple[str, str], _Shape] = {}
    for file in files:
        folder, name = split_path(file.path)
        plain = _COMPRESSED.sub("", name)
        bare = _RANDOM.sub(RANDOM, plain)
        key = folder, _NUMBER.sub(NUMBER, bare)
        if key not in shapes:
            if len(shapes) == MOST_SHAPES:
                return None
            below = folder.removeprefix(root.rstrip("/") + "/")
            shapes[key] = _Shape(folder=below, text=key[1])
        shapes[key].files.append(file)
        shapes[key].digits.append(_NUMBER.findall(bare))
        shapes[key].random.append(_RANDOM.findall(plain))
        shapes[key].endings.add(name[len(plain) :])
    _join_words_without_letters(shapes)
    return list(shapes.values())


def _join_words_without_letters(shapes: dict[tuple[str, str], _Shape]) -> None:
    """Take numbers for random words where others in their place are: of 43 hashes, 1 in 8 digits.

    Of files that mostly have a number there, a word is no sign of that.
    """
    for (folder, text), shape in list(shapes.items()):
        for number, found in enumerate(re.finditer(NUMBER, text)):
            at, word = found.start(), text.count(RANDOM, 0, found.start())
            other = shapes.get((folder, f"{text[:at]}{RANDOM}{text[at + 1 :]}"))
            if other is None or len(shape.files) > 2 * len(other.files):
                continue
            lengths = {len(words[word]) for words in other.random}
            if len(lengths | set(shape.widths(number))) == 1:
                other.files += shape.files
                for digits, words in zip(shape.digits, shape.random, strict=True):
                    other.digits.append(digits[:number] + digits[number + 1 :])
                    other.random.append([*words[:word], digits[number], *words[word:]])
                other.endings |= shape.endings
                del shapes[folder, text]
                break


def _sets(shape: _Shape) -> Iterator[_ShardSet]:
    """Yield the sets of shards that the files of a shape make up."""
    columns, rows = shape.columns, range(len(shape.files))
    # Without columns that repeat an earlier one, as in `256x256`.
    varying = [
        at
        for at, column in enumerate(columns)
        if any(map(column[0].__ne__, column)) and column not in columns[:at]
    ]
    pairs = list(_PAIR.finditer(shape.text))
    if pairs:
        index = shape.text.count(NUMBER, 0, pairs[-1].start())
        rest = [at for at in varying if at not in (index, index + 1)]
        # What follows the pair and is another in every file, as a time, tells no sets apart.
        noise = [at for at in rest if at > index and len(set(columns[at])) == len(rows)]
        apart = [columns[at] for at in rest if at not in noise]
        for group in _groups(apart, len(rows)):
            yield shape.part(group, index, marks=(index, index + 1, *noise), total=index + 1)
        return
    if not varying:
        wide = [at for at in range(len(columns)) if len(set(shape.widths(at))) > 1]
        yield shape.part(rows, wide[-1] if wide else None, marks=wide)
        return
    counting = varying[0] if len(varying) == 1 else _counting(columns, varying)
    if counting is None:
        # Sequences, as those of `img-256-0`, `img-256-1`, `img-512-0`: the last number begins anew.
        groups = _groups([columns[at] for at in varying[:-1]], len(rows))
        last = columns[varying[-1]]
        runs = (g for g in groups if len(g) > 1 and _is_consecutive([last[row] for row in g]))
        if 2 * sum(map(len, runs)) >= len(rows):
            for group in groups:
                yield shape.part(group, varying[-1], marks=varying[-1:])
            return
    yield shape.part(rows, counting, marks=varying, unclear=counting is None)


def _groups(columns: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """Return the rows that have the same numbers in some columns."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for row in range(count):
        groups.setdefault(tuple(column[row] for column in columns), []).append(row)
    return list(groups.values())


def _counting(columns: Sequence[list[int]], varying: Sequence[int]) -> int | None:
    """Return which of several varying numbers counts the files, None where that is not certain."""
    # A shard and its compressed copy have the same numbers.
    num_shards = len(set(zip(*(columns[at] for at in varying), strict=True)))
    found = [
        at for at in varying if len(set(columns[at])) == num_shards and _is_consecutive(columns[at])
    ]
    for at in found[1:]:
        others = [other for _, other in sorted(zip(columns[found[0]], columns[at], strict=True))]
        if others != sorted(others):
            return None
    return found[0] if found else None


def _is_consecutive(numbers: Sequence[int]) -> bool:
    return max(numbers) - min(numbers) + 1 == len(set(numbers))


# Which sets are which split.


@dataclass(frozen=True, kw_only=True)
class _SplitSets:
    """A split, and the sets of shards that it is made of; more than one where the user says so.

    dataset: the dataset's name as TFDS's template says it, None elsewhere.
    """

    name: str
    sets: tuple[_ShardSet, ...]
    dataset: str | None = None


def _splits_by_names(listing: Listing) -> list[_SplitSets]:
    """Return the splits of files.

    Raises:
        DatasetError: files of several kinds and nothing that tells which split they are; two
            datasets, versions or formats.
    """
    shapes = _shapes_of(listing.root, listing.files)
    if shapes is None:
        many = f"{_where(listing)} has more than {MOST_SHAPES:,} kinds of names"
        raise DatasetError(f"{many}; say which split they are by --split")
    sets = [found for shape in shapes for found in _sets(shape)]
    named = [named_split(found.folder, found.text) for found in sets]
    if not any(named):
        (found,) = _joined(listing, sets)
        if speaks_of_several(found.folder, found.text):
            several = f"names speak of several splits: {_said(sets)}"
            raise DatasetError(f"{_where(listing)}: {several}; {_way_out(sets)}")
        name = split_word(listing.root.rpartition("/")[2]) or DEFAULT_SPLIT
        return [_SplitSets(name=name, sets=(found,))]
    rests = list(dict.fromkeys(one.rest for one in named if one is not None))
    splits: dict[str, list[tuple[_ShardSet, NamedSplit]]] = {}
    unknown = []
    for found, spoken in zip(sets, named, strict=True):
        one = spoken or _alike(rests, found.folder, found.text)
        if one is None:
            unknown.append(found)
        else:
            splits.setdefault(one.split, []).append((found, one))
    in_order = sorted(splits, key=_use)
    if unknown:
        raise DatasetError(
            f"{_where(listing)}: beside {choices(in_order, 5)} there are files of no split that "
            f"the names tell: {_said(unknown)}; {_way_out(unknown)}"
        )
    _check_one_dataset(listing, [member for members in splits.values() for member in members])
    return [
        _SplitSets(
            name=name,
            sets=_joined(listing, [found for found, _ in splits[name]], name),
            dataset=splits[name][0][1].dataset,
        )
        for name in in_order
    ]


def _use(split: str) -> tuple[int, str]:
    """Return what splits are sorted by: train, validation, test, others."""
    begin = split[:2].lower()
    return _FIRST.index(begin) if begin in _FIRST else len(_FIRST), split


def _alike(rests: Sequence[str], folder: str, text: str) -> NamedSplit | None:
    """Return the split of a name that is like those that say theirs: `extra-0` beside `train-0`."""
    found = [
        NamedSplit(split=split, rest=rest)
        for rest in rests
        if (split := split_in_place(rest, folder, text)) is not None
    ]
    return found[0] if len(found) == 1 else None


def _check_one_dataset(listing: Listing, members: Sequence[tuple[_ShardSet, NamedSplit]]) -> None:
    """Raise where TFDS's template names two datasets, or a dataset in two folders."""
    first: dict[tuple[str, str], _ShardSet] = {}
    for found, named in members:
        if named.dataset is not None:
            first.setdefault((named.dataset, found.folder), found)
    if len(first) > 1:
        datasets = list(dict.fromkeys(dataset for dataset, _ in first))
        what = "datasets" if len(datasets) > 1 else "folders of one dataset"
        several = datasets if len(datasets) > 1 else [folder for _, folder in first]
        there = f"files of {len(first)} {what}: {choices(several, 6)}"
        way_out = _way_out(first.values())
        raise DatasetError(f"{_where(listing)} has {there}; give the files of one, or {way_out}")


def _joined(
    listing: Listing, sets: Sequence[_ShardSet], split: str | None = None
) -> tuple[_ShardSet, ...]:
    """Return the one set that sets make up, or raise: files without numbers are one of a folder."""
    alike = len({found.folder for found in sets}) == 1
    if len(sets) > 1 and not (alike and all(found.numbers is None for found in sets)):
        which = "their names tell no splits" if split is None else f"all of split {quoted(split)}"
        there = f"{len(sets)} kinds of files, {which}: {_said(sets)}"
        raise DatasetError(f"{_where(listing)} has {there}; {_way_out(sets)}")
    return (_as_one(sets),)


def _as_one(sets: Sequence[_ShardSet]) -> _ShardSet:
    whole, *others = sets
    for other in others:
        whole.join(other)
    return whole


def _splits_by_hand(
    listing: Listing, globs: Mapping[str, str]
) -> tuple[list[_SplitSets], tuple[str, ...]]:
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
    splits = []
    for name, files in chosen.items():
        if not files:
            some = choices(sorted(file.path for file in left[:1000]), 3)
            glob = f"{quoted(globs[name], 200)} of --split"
            raise DatasetError(f"no file of split {quoted(name)} matches {glob}; files are {some}")
        shapes = _shapes_of(listing.root, files)
        if shapes is None:  # nothing counts, whatever their names are
            texts = {
                RANDOM + re.sub(r"^[^.]*(?:\.(?!\w+$)[^.]*)*", "", file.path) for file in files
            }
            files.sort(key=_path)
            sets = [_ShardSet(folder="", text=RANDOM, files=files, texts=texts)]
        else:
            sets = [found for shape in shapes for found in _sets(shape)]
        splits.append(_SplitSets(name=name, sets=tuple(sets)))
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
    matchers = [_matcher(one, above) for glob in globs.values() for one in expanded(glob)]
    return lambda path: not matchers or any(matches(path) for matches in matchers)


def _matcher(glob: str, above: int) -> Callable[[str], bool]:
    glob = re.sub(r"^(?:\./)+", "", glob).rstrip("/") or "/"
    folder, _, name = glob.rpartition("/")
    sharded = sharded_regex(name)
    whole = glob.startswith("/") or is_remote(glob)
    start, skip = ("", 0) if whole else ("(?:.*/)?", above)
    if sharded is None:
        pattern, total = f"{start}{path_regex(glob).pattern}(?:/.*)?", None
    else:
        before = f"{path_regex(folder).pattern}/" if folder else ""
        pattern, total = f"{start}{before}{sharded[0].pattern}", sharded[1]
    return shard_matcher(re.compile(pattern, re.DOTALL), total, skip)


# The files of a split in shard order, how that differs from the order of their names, and shards
# that are missing between others, there twice, or of another number of shards.


class _SplitOrder:
    """The files of a split in shard order: sets by their names, each by its numbers.

    Files that nothing counts are in the order of their names by bytes, as are those that several
    numbers tell apart.
    """

    def __init__(self, root: str, split: str, sets: Sequence[_ShardSet]) -> None:
        self.split = split
        self.problems: list[NameProblem] = []
        self.notes: list[str] = []
        self.files: list[StoredFile] = []
        self._root = root.rstrip("/") + "/"
        numbered = any(found.numbers is not None for found in sets)
        sets = sorted(sets, key=_place) if numbered else [_as_one(sets)]
        for found in sets:
            self._look_at(found)
            self.files += found.files
        self._compare_with_names(sets)
        if len(sets) > 1:
            self._note(f"{len(sets)} kinds of files, one after the other: {_said(sets)}")

    def _look_at(self, found: _ShardSet) -> None:
        numbers, several = found.numbers, _several_writes(found)
        if numbers is None:
            self._copies(found)
        elif found.totals is not None and len(set(found.totals)) > 1:
            self._several_totals(found.totals, found.files)
        else:
            if not several:
                self._twice(found, numbers)
            self._gaps(found, numbers)
        if several and numbers is not None and len(set(numbers)) < len(numbers):
            self._note("numbers repeat, as each write has a random word: in the order of the names")
            found.files.sort(key=_path)
        if found.unclear:
            self._note("several numbers vary in the names: in the order of the names")
        elif (why := _why_uncounted(found)) is not None:
            self._note(f"{why}, so that nothing tells whether a file is missing")
        elif numbers is not None and found.totals is None and numbers[0] > 1:
            self._note(f"the first number is {numbers[0]:,}")

    def _compare_with_names(self, sets: Sequence[_ShardSet]) -> None:
        """Note where tf.data, which sorts names by their bytes, has another order."""
        first = sets[0]
        same_widths = len(first.texts) == 1 and len(set(first.widths)) == 1 and not first.unclear
        if len(sets) == 1 and same_widths:
            return
        for before, after in pairwise(self.files):
            if _path(before) > _path(after):
                names = [quoted(split_path(file.path)[1], 100) for file in (before, after)]
                self._note(
                    f"{names[0]} comes before {names[1]}, by their numbers; tf.data's list_files "
                    "and tf.io.gfile.glob sort names as text, the other way round"
                )
                return

    def _note(self, text: str) -> None:
        self.notes.append(f"{printable(self.split, 60)}: {text}")

    def _problem(self, kind: str, text: str) -> None:
        text = f"{printable(self.split, 60)}: {text}"
        self.problems.append(NameProblem(kind=kind, split=self.split, text=text))

    def _name(self, file: StoredFile) -> str:
        return printable(file.path.removeprefix(self._root), 200)

    def _several_totals(self, totals: Sequence[int], files: Sequence[StoredFile]) -> None:
        first = dict(zip(reversed(totals), reversed(files), strict=True))
        said = [
            f"{counted(count, 'file')} of {total:,} shards ({self._name(first[total])})"
            for total, count in Counter(totals).most_common()
        ]
        text = f"names of several numbers of shards: {choices(said, 4)}"
        self._problem("wrong-count", text)

    def _twice(self, found: _ShardSet, numbers: Sequence[int]) -> None:
        several = {number for number, count in Counter(numbers).items() if count > 1}
        shown = [
            (number, [self._name(file) for _, file in pairs])
            for number, pairs in groupby(zip(numbers, found.files, strict=True), itemgetter(0))
            if number in several
        ]
        if len(several) == 1:
            ((number, names),) = shown
            often = "twice" if len(names) == 2 else f"{len(names)} times"
            self._problem("duplicate", f"shard {number} is there {often}: {choices(names, 3)}")
        elif several:
            said = choices((f"{number} ({choices(names, 3)})" for number, names in shown), _SHOWN)
            text = f"{len(several):,} shards are there more than once: {said}"
            self._problem("duplicate", text)

    def _copies(self, found: _ShardSet) -> None:
        """Note what is there compressed and not, of files that nothing counts."""
        names: dict[str, list[str]] = {}
        for file in found.files:
            name = self._name(file)
            names.setdefault(_COMPRESSED.sub("", name), []).append(name)
        twice = [choices(copies, 3) for copies in names.values() if len(copies) > 1]
        if twice:
            are = "is" if len(twice) == 1 else "are"
            text = f"{counted(len(twice), 'file')} {are} there more than once: {twice[0]}"
            self._problem("duplicate", text)

    def _gaps(self, found: _ShardSet, numbers: Sequence[int]) -> None:
        """Note the numbers that no file has, and those beyond what the names say."""
        if found.totals is None:
            if not _why_uncounted(found):
                self._missing(found, numbers, numbers[0], numbers[-1] + 1, None)
            return
        total = found.totals[0]
        start = 1 if numbers[0] > 0 and numbers[-1] == total else 0  # some count from 1
        beyond = [self._name(f) for n, f in zip(numbers, found.files, strict=True)
                  if n >= start + total]  # fmt: skip
        if beyond:
            shards = counted(len(beyond), "shard")
            text = f"{shards} beyond the {total:,} that the names say: {choices(beyond, _SHOWN)}"
            self._problem("wrong-count", text)
        self._missing(found, numbers, start, start + total, total)

    def _missing(
        self, found: _ShardSet, numbers: Sequence[int], start: int, stop: int, total: int | None
    ) -> None:
        """Note all numbers of [start, stop) that no file has."""
        ranges: list[tuple[int, int]] = []
        expected = start
        for number in (*(min(number, stop) for number in numbers), stop):
            if number > expected:
                ranges.append((expected, number - 1))
            expected = max(expected, number + 1)
        if not ranges:
            return
        count = sum(last - first + 1 for first, last in ranges)
        folder = split_path(found.files[0].path)[0].removeprefix(self._root)
        name = printable(folder + _name_of(found, ranges[0][0]), 200)
        of = "" if total is None else f"of {total:,} "
        between = "" if total is not None else f" between {start} and {stop - 1}"
        if count == 1:
            text = f"shard {ranges[0][0]} {of}is missing{between} ({name})"
        else:
            shown = ", ".join(
                str(first) if first == last else f"{first}-{last}"
                for first, last in ranges[:_SHOWN]
            )
            more = ", .." if len(ranges) > _SHOWN else ""
            text = f"{count:,} {of}shards are missing{between}: {shown}{more} (the first is {name})"
        self._problem("gap", text)


def _place(found: _ShardSet) -> list[tuple[int, int, bytes]]:
    """Return what sets are sorted by: their names, in which 10 comes after 9."""
    return [
        (1, int(piece), b"") if at % 2 else (0, 0, as_bytes(piece))
        for at, piece in enumerate(re.split("([0-9]+)", found.folder + found.text))
    ]


def _why_uncounted(found: _ShardSet) -> str | None:
    """Return why numbers without `-of-` need not follow each other, None where they should.

    The numbers of examples, of bytes or of seconds may be in names as well.
    """
    if found.numbers is None or found.totals is not None:
        return None
    values = list(dict.fromkeys(found.numbers))
    span = values[-1] - values[0] + 1
    if span == len(values):
        return None
    steps = {b - a for a, b in pairwise(values)}
    if len(values) >= _REGULAR and len(steps) == 1:
        return f"their numbers are {steps.pop():,} apart"
    if 2 * len(values) < span:
        return f"their numbers, {values[0]} to {values[-1]}, do not follow each other"
    return None


def _several_writes(found: _ShardSet) -> bool:
    """Return whether numbers may repeat: each file, or each write, has a random word of its own.

    As where Spark appends to a folder.
    """
    return found.random is None and RANDOM in found.text and found.totals is None


def _name_of(found: _ShardSet, number: int) -> str:
    """Return how the file of a number would be called."""
    name = min(found.texts).replace(NUMBER, f"{number:0{found.widths[0]}d}", 1)
    if found.totals is not None:
        name = name.replace(NUMBER, f"{found.totals[0]:0{found.total_width}d}", 1)
    words = iter(found.random or ())
    name = "".join(next(words, "*") if char == RANDOM else char for char in name)
    return name.replace(NUMBER, "*")
