"""Names that are alike but for their numbers, and which of the numbers counts shards.

A million names have few shapes: texts with a mark wherever a number stands. The numbers are columns
beside the places of the files. Words that are drawn at random (UUIDs, hashes) are marks as well, so
that they neither make files unlike nor are taken for numbers.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

from shardctl.files.stores.stored_files import StoredFiles
from shardctl.readers.records.read_file import format_of_name

NUMBER = "\0"  # refused in every path, as is the next, which no writer of record files uses
RANDOM = "\1"
_NUMBER = re.compile("[0-9]+")
_LONGEST = 18  # digits that an int64 takes whatever they are
_RANDOM = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
    r"|(?=[0-9]*[a-fA-F])(?=[a-fA-F]*[0-9])[0-9a-fA-F]{8,64})(?![0-9A-Za-z])"
    r"|(?<=-of-[0-9]{5}-)[0-9a-f]{16}(?![0-9A-Za-z])"
    rf"|[0-9]{{{_LONGEST + 1},}}"
)
# Behind a shard's file when it was compressed; the same shard with and without is there twice.
_COMPRESSED = re.compile(r"\.(?:gz|gzip|zlib|zz|zst|zstd|bz2|xz|snappy)$", re.IGNORECASE)
_PAIR = re.compile(f"{NUMBER}[-_]of[-_]{NUMBER}")


@dataclass(kw_only=True)
class Shape:
    """The files of a folder whose names have one shape.

    text: the name with marks, without what compressed copies have behind it; endings: all that they
    have. folder: the number of the folder. places: of the files, and numbers: a column a mark, with
    the fewest and most digits that it is written with. random: the random words, None where they
    are not the same in all names; lengths: those of the words, 0 where they are not the same.
    """

    folder: int
    text: str
    places: array[int] = field(default_factory=lambda: array("q"))
    numbers: list[array[int]] = field(default_factory=list)
    widths: list[tuple[int, int]] = field(default_factory=list)
    random: list[str] | None = None
    lengths: list[int] = field(default_factory=list)
    endings: set[str] = field(default_factory=set)

    def add(self, place: int, digits: Sequence[str], random: list[str]) -> None:
        """Put a file behind the others."""
        if not self.places:
            self.random, self.lengths = random, list(map(len, random))
            self.numbers = [array("q") for _ in digits]
            self.widths = [(len(number), len(number)) for number in digits]
        self.places.append(place)
        if random != self.random:
            self.random = None
            lengths = zip(self.lengths, map(len, random), strict=True)
            self.lengths = [one if one == other else 0 for one, other in lengths]
        for at, number in enumerate(digits):
            self.numbers[at].append(int(number))
            least, most = self.widths[at]
            if not least <= len(number) <= most:
                self.widths[at] = min(least, len(number)), max(most, len(number))

    def join(self, other: Shape, but: int) -> None:
        """Take the files of another shape, of which one number is a random word without letters."""
        self.places.extend(other.places)
        self.random = None
        self.endings |= other.endings
        rest = [at for at in range(len(other.numbers)) if at != but]
        for at, theirs in enumerate(rest):
            self.numbers[at].extend(other.numbers[theirs])
            (least, most), (fewest, longest) = self.widths[at], other.widths[theirs]
            self.widths[at] = min(least, fewest), max(most, longest)

    @property
    def pair(self) -> tuple[int, int] | None:
        """Which numbers are `X-of-Y`, the last that are; None where none are."""
        found = list(_PAIR.finditer(self.text))
        if not found:
            return None
        first = self.text.count(NUMBER, 0, found[-1].start())
        return first, first + 1

    def varying(self) -> list[int]:
        """Return which numbers are not the same in all files."""
        return [at for at, column in enumerate(self.numbers) if any(map(column[0].__ne__, column))]

    def text_of(self, row: int, but: Collection[int]) -> str:
        """Return the text with the numbers of a file in it, but for some that stay marks.

        They are written with the fewest digits that they have anywhere.
        """
        pieces = self.text.split(NUMBER)
        filled = [pieces[0]]
        for at, piece in enumerate(pieces[1:]):
            number = f"{self.numbers[at][row]:0{self.widths[at][0]}d}"
            filled += (NUMBER if at in but else number, piece)
        return "".join(filled)


MOST_SHAPES = 10_000  # that are looked at; names of more follow no convention


def shapes_of(files: StoredFiles, places: Sequence[int] | None = None) -> list[Shape] | None:
    """Return the shapes of names, in the order in which they are met; None where they are too many.

    >>> from shardctl.files.stores.store import StoredFile
    >>> names = ["/d/a-7.tar", "/d/a-10.tar", "/d/b.tar"]
    >>> found = shapes_of(StoredFiles.of(StoredFile(path=n, num_bytes=0) for n in names))
    >>> [(shape.text.replace(NUMBER, "#"), list(shape.places)) for shape in found]
    [('a-#.tar', [0, 1]), ('b.tar', [2])]
    """
    shapes: dict[tuple[int, str], Shape] = {}
    chosen = files if places is None else files.chosen(places)
    numbers = range(len(files)) if places is None else places
    for place, (folder, name) in zip(numbers, chosen.folders_and_names(), strict=True):
        plain = uncompressed(name)
        random = _RANDOM.findall(plain)
        bare = _RANDOM.sub(RANDOM, plain) if random else plain
        text = _NUMBER.sub(NUMBER, bare)
        shape = shapes.get((folder, text))
        if shape is None:
            if len(shapes) == MOST_SHAPES:
                return None
            shape = shapes[folder, text] = Shape(folder=folder, text=text)
        shape.add(place, _NUMBER.findall(bare), random)
        shape.endings.add(name[len(plain) :])
    _join_words_without_letters(shapes)
    return list(shapes.values())


def _join_words_without_letters(shapes: dict[tuple[int, str], Shape]) -> None:
    """Take numbers for random words where others in their place are: of 43 hashes, 1 in 8 digits.

    Of files that mostly have a number there, a word is no sign of that.
    """
    for key, shape in list(shapes.items()):
        folder, text = key
        marks = [at for at, char in enumerate(text) if char == NUMBER]
        for number, at in enumerate(marks):
            other = shapes.get((folder, f"{text[:at]}{RANDOM}{text[at + 1 :]}"))
            if (
                other is not None
                and shape.widths[number] == (other.lengths[text.count(RANDOM, 0, at)],) * 2
                and len(shape.places) <= 2 * len(other.places)
            ):
                other.join(shape, number)
                del shapes[key]
                break


def uncompressed(text: str) -> str:
    """Return the name of what was compressed.

    >>> uncompressed("a.tfrecord.gz"), uncompressed("a.tfrecord")
    ('a.tfrecord', 'a.tfrecord')
    """
    return _COMPRESSED.sub("", text)


# What is a file, by its name: of records, about records, or something else?


class FileKind(Enum):
    """What the name of a file says of it; see the members."""

    RECORDS = "records"  # in one of the formats that are counted here
    SHARD = "shard"  # named as shards are, without a word of the format: `train-00000-of-01024`
    UNKNOWN = "unknown"  # the name does not tell
    SIDECAR = "sidecar"  # says something of the record files beside it
    OTHER = "other"  # of another kind
    UNFINISHED = "unfinished"  # hidden, or not written to its end


# Of names in lower case whose numbers are 0.
_UNFINISHED = re.compile(
    r"[._].*|.*~|.*\.(?:crc|te?mp|part|partial|incomplete[^.]*|crdownload|lock|sw[op]|bak)"
    r"|cache-[0-9a-f]+(?:_.*)?\.arrow"  # what `Dataset.map` of Hugging Face keeps
)
_SIDECAR = re.compile(r"index\.json|dataset_info\.json")
_SHARD = re.compile(r"(?:.*[^0])?0[-_]of[-_]0(?:\.(?:gz|gzip|zlib|zz))?|part-(?:[mr]-)?0")
_OTHER = re.compile(
    r".+\.(?:json|jsonl|ndjson|ya?ml|toml|ini|cfg|md|rst|txt|log|csv|tsv|py|ipynb|sh|html?|xml|pdf"
    r"|idx|index|zip|0z|rar|whl|jpe?g|png|gif|bmp|webp|tiff?|mp0|wav|flac|ogg|avi|npy|npz|pkl|pickle|pb|pbtxt"
    r"|h0|hdf0|ckpt|pth?|safetensors|sqlite0?|db|so|exe|md0|sha0?|sum|license)(?:\.gz)?"
    r"|readme|license|licence|makefile|dockerfile",
)


def file_kind(name: str) -> FileKind:
    """Return what the name of a file says of it; numbers in it make no difference.

    >>> file_kind("mnist-train.tfrecord-00000-of-00001"), file_kind("train-00000-of-01024")
    (<FileKind.RECORDS: 'records'>, <FileKind.SHARD: 'shard'>)
    >>> file_kind("_SUCCESS"), file_kind("index.json"), file_kind("README.md")
    (<FileKind.UNFINISHED: 'unfinished'>, <FileKind.SIDECAR: 'sidecar'>, <FileKind.OTHER: 'other'>)
    """
    return _kind_of_shape(_DIGITS.sub("0", name))


_DIGITS = re.compile("[0-9]+")


@lru_cache(maxsize=1 << 12)
def _kind_of_shape(name: str) -> FileKind:
    name = name.lower()
    if _UNFINISHED.fullmatch(name):
        return FileKind.UNFINISHED
    if _SIDECAR.fullmatch(name):
        return FileKind.SIDECAR
    if _OTHER.fullmatch(name):
        return FileKind.OTHER
    if format_of_name(name) is not None:
        return FileKind.RECORDS
    return FileKind.SHARD if _SHARD.fullmatch(name) else FileKind.UNKNOWN


def is_passed_over(folder: str) -> bool:
    """Return whether a folder of this name is never looked into for files of a dataset.

    >>> is_passed_over("_temporary"), is_passed_over("3.0.1.incompleteA1B2C3"), is_passed_over("a")
    (True, True, False)
    """
    return folder.startswith((".", "_")) or ".incomplete" in folder
