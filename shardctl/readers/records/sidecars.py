"""All sidecars of some record files: what they say of each, and where it is not so."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

from shardctl.core.dataset.dataset import Dataset, Split, shard_named
from shardctl.core.text import quoted
from shardctl.core.tfds_rules import DATASET_INFO_FILENAME
from shardctl.errors import DatasetError
from shardctl.files import fields
from shardctl.files.fields import said_about
from shardctl.files.json_text import parse_json
from shardctl.files.stores.store import StoredFile
from shardctl.files.stores.stores import store_of
from shardctl.files.stores.transfer.concurrently import concurrently
from shardctl.readers.records.contents import Told, untold
from shardctl.readers.tfds_metadata import dataset_from_info, is_hugging_face_info

_MOST_BYTES = 1 << 30
_MOST_NAMES, _MOST_PROBLEMS = 3, 20
_NOT_UNPACKED = ("br", "snappy")  # streaming/base/compression.py, of what no file says by itself
_STATE = "state.json"  # what `save_to_disk` writes beside dataset_info.json


class Sidecars:
    """What is said of record files by other files beside them.

    problems: sidecars that cannot be read, a line each; nothing is compared with them.
    num_agreed: files that were compared and are as is said of them; said_by: the names of the
        sidecars that said it, a few of them where there are many.
    """

    def __init__(self, sidecars: Iterable[StoredFile]) -> None:
        self.problems: list[str] = []
        self.num_agreed = 0
        self.said_by: set[str] = set()
        self._of_folder: dict[str, list[Sidecar]] = {}
        for file in sidecars:
            folder, name = _folder_and_name(file.path)
            if name in _READERS:
                self._read(file, folder, _READERS[name])

    def __bool__(self) -> bool:
        """Return whether there is anything to compare with."""
        return bool(self._of_folder)

    def _read(
        self, file: StoredFile, folder: str, read: Callable[[StoredFile, str], Sidecar | None]
    ) -> None:
        try:
            found = read(file, folder)
        except DatasetError as error:
            self._note(str(error))
        else:
            if found is not None:
                self._of_folder.setdefault(folder, []).append(found)

    def _known(self, path: str) -> Iterator[Sidecar]:
        """Yield the sidecars that may say something of a path: those of its folders."""
        folder = path
        while folder and self._of_folder:
            folder = _folder_and_name(folder[:-1])[0]
            yield from self._of_folder.get(folder, ())

    def expected(self, path: str) -> list[ExpectedCount]:
        """Return all that is said of a record file."""
        said = (sidecar.expected(path) for sidecar in self._known(path))
        return [expected for expected in said if expected is not None]

    def disagreement(self, file: StoredFile, num_examples: int) -> str | None:
        """Return in which way a file is not as its sidecars say, None where it is, or none does."""
        said = self.expected(file.path)
        for expected in said:
            if len(self.said_by) < _MOST_NAMES:
                self.said_by.add(expected.said_by)
            text = disagreement(file, num_examples, expected)
            if text is not None:
                return text
        self.num_agreed += bool(said)
        return None

    def count_instead(self, file: StoredFile) -> int | None:
        """Return the count of a file that is packed in a way that nothing here unpacks.

        None where it is not, where nobody says a count, or where the file is not as long as is
        said.
        """
        for expected in self.expected(file.path):
            packing = (expected.compression or "").partition(":")[0]
            is_closed = packing in _NOT_UNPACKED or (
                packing == "zstd" and find_spec("zstandard") is None
            )
            if is_closed and expected.num_bytes == file.num_bytes:
                return expected.num_examples
        return None

    def hash_problems(
        self, files: Iterable[StoredFile], *, told: Told = untold
    ) -> Iterator[tuple[StoredFile, str]]:
        """Yield the files that have another hash than is said; each is read to its end for it."""
        stated = (
            (file, hashes)
            for file in files
            for expected in self.expected(file.path)
            if (hashes := self._known_hashes(expected))
        )
        for file, text in hash_differences(stated, told=told):
            if text is not None:
                yield file, text

    def _note(self, problem: str) -> None:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(problem)
        elif len(self.problems) == _MOST_PROBLEMS:
            self.problems.append("more files beside the record files cannot be read")

    def _known_hashes(self, expected: ExpectedCount) -> tuple[tuple[str, str], ...]:
        unknown = unknown_hashes(name for name, _ in expected.hashes)
        for name in unknown:
            said = f"{expected.said_by} states hashes of {name}, which cannot be compared here"
            hint = ": pip install 'shardctl[files]'" if name.startswith("xxh") else ""
            if said + hint not in self.problems:
                self._note(said + hint)
        return tuple((name, value) for name, value in expected.hashes if name not in unknown)

    def absent(self, listed: Iterable[str]) -> list[str]:
        """Return the paths that sidecars name and that are not among those listed."""
        if not self._of_folder:
            return []
        paths = {*listed}
        known = (sidecar for sidecars in self._of_folder.values() for sidecar in sidecars)
        return [path for sidecar in known for path in sidecar.absent(paths)]


def expected_counts(
    sidecars: Iterable[StoredFile], paths: Iterable[str]
) -> Mapping[str, ExpectedCount]:
    """Return the first of what sidecars say of each path, of which something is said."""
    known = Sidecars(sidecars)
    return {path: found[0] for path in paths if (found := known.expected(path))}


def _folder_and_name(path: str) -> tuple[str, str]:
    """Return the folder of a path with its separator, and the name in it."""
    name = re.split(r"[/\\]", path)[-1]
    return path[: len(path) - len(name)], name


def _parsed(file: StoredFile) -> object:
    data = store_of(file.path).read(file.path, max_num_bytes=_MOST_BYTES)
    return parse_json(data, source=quoted(file.path, 200))


def _shard_index(file: StoredFile, folder: str) -> Sidecar | None:
    document = _parsed(file)
    if not isinstance(document, Mapping) or "shards" not in document:
        return None  # an index of something else
    with said_about(quoted(file.path, 200)):
        return ShardIndex(document, folder=folder, said_by=_folder_and_name(file.path)[1])


def _dataset_info(file: StoredFile, folder: str) -> Sidecar | None:
    document = _parsed(file)
    with said_about(quoted(file.path, 200)):
        if not is_hugging_face_info(document):
            return TfdsInfo(document, folder=folder)
        if store_of(file.path).status(folder + _STATE) is not None:
            return None
        return HuggingFaceInfo(document, folder=folder)


_READERS: dict[str, Callable[[StoredFile, str], Sidecar | None]] = {
    "index.json": _shard_index,
    DATASET_INFO_FILENAME: _dataset_info,
}


# The metadata of TFDS and of Hugging Face Datasets beside the files, which have one name.
#
# Source: datasets 5.2, info.py, naming.py and arrow_dataset.py (`save_to_disk`).

# datasets/naming.py, camelcase_to_snakecase.
_TWO_CAPITALS, _ONE_CAPITAL = re.compile("([A-Z]+)([A-Z][a-z])"), re.compile(r"([a-z\d])([A-Z])")
_HUGGING_FACE_ENDINGS = ("arrow", "parquet")


class TfdsInfo:
    """What TFDS's metadata say of the files beside them."""

    def __init__(self, document: object, *, folder: str) -> None:
        """Read a parsed dataset_info.json.

        Raises:
            DatasetError: a field that is needed is missing or of the wrong kind.
        """
        self._dataset: Dataset = dataset_from_info(document, data_dir=folder)
        self._folder = folder
        self._by_name: dict[str, tuple[Split, int]] = {}

    def expected(self, path: str) -> ExpectedCount | None:
        """Return what is said of a file, see `Sidecar.expected`."""
        if not path.startswith(self._folder):
            return None
        found = self._shard(path[len(self._folder) :])
        if found is None:
            return None
        split, shard = found
        return ExpectedCount(num_examples=split.shard_lengths[shard], said_by=DATASET_INFO_FILENAME)

    def absent(self, listed: Set[str]) -> list[str]:
        """Return nothing: gaps show in the names, and a split that is not here is none."""
        return []

    def _shard(self, name: str) -> tuple[Split, int] | None:
        for split in self._dataset.splits:
            try:
                shard = shard_named(split, name)
            except ValueError:  # a template that leaves no number out
                return self._named().get(name)
            if shard is not None:
                return split, shard
        return None

    def _named(self) -> dict[str, tuple[Split, int]]:
        if not self._by_name:
            for split in self._dataset.splits:
                for shard in range(split.num_shards):
                    self._by_name[split.location(shard)[1]] = split, shard
        return self._by_name


class HuggingFaceInfo:
    """What the metadata in a cache folder of Hugging Face Datasets say of the files there.

    Those in a folder of `save_to_disk` are of the dataset that was prepared, not of the rows that
    were chosen since and saved: they say nothing of the files beside them.
    """

    def __init__(self, document: object, *, folder: str) -> None:
        """Read a parsed dataset_info.json.

        Raises:
            DatasetError: a field is of the wrong kind.
        """
        info = fields.mapping(document, "the metadata")
        self._folder = folder
        self._counts: dict[str, int] = {}
        name = info.get("dataset_name") or info.get("builder_name")
        splits = info.get("splits")
        if not isinstance(name, str) or not isinstance(splits, Mapping):
            return
        prefix = _ONE_CAPITAL.sub(r"\1_\2", _TWO_CAPITALS.sub(r"\1_\2", name)).lower()
        for split, described in splits.items():
            self._add(f"{prefix}-{split}", fields.mapping(described, f"split {quoted(split)}"))

    def _add(self, prefix: str, split: Mapping[str, object]) -> None:
        total = fields.count(split.get("num_examples", 0), "num_examples")
        lengths = split.get("shard_lengths")
        if lengths is None:
            names, counts = [prefix], [total]
        else:
            counts = [fields.count(n, "a shard length") for n in fields.items(lengths, "lengths")]
            names = [f"{prefix}-{i:05d}-of-{len(counts):05d}" for i in range(len(counts))]
        for name, count in zip(names, counts, strict=True):
            for ending in _HUGGING_FACE_ENDINGS:
                self._counts[f"{name}.{ending}"] = count

    def expected(self, path: str) -> ExpectedCount | None:
        """Return what is said of a file, see `Sidecar.expected`."""
        if not path.startswith(self._folder):
            return None
        count = self._counts.get(path[len(self._folder) :])
        if count is None:
            return None
        return ExpectedCount(num_examples=count, said_by=DATASET_INFO_FILENAME)

    def absent(self, listed: Set[str]) -> list[str]:
        """Return nothing: gaps show in the names, and a split that is not here is none."""
        return []


# The hashes of whole files that a sidecar states, computed and compared.
#
# Source: mosaicml-streaming 0.13, streaming/base/hashing.py: those of hashlib, and of xxhash where
# it is installed.

_PIECE = 1 << 22
_AT_ONCE = 8
_XXHASH = "xxh"


def hash_difference(
    file: StoredFile, stated: Iterable[tuple[str, str]], *, told: Told = untold
) -> str | None:
    """Return which hash of a file is not as stated, None where all that are known here are.

    Raises:
        DatasetError: the file cannot be read.
    """
    known = [(name, value, made()) for name, value in stated if (made := _hash(name)) is not None]
    if not known:
        return None
    with store_of(file.path).open(file) as source:
        for start in range(0, source.num_bytes, _PIECE):
            piece = source.read(start, min(start + _PIECE, source.num_bytes))
            for _, _, hashed in known:
                hashed.update(piece)
            told(len(piece))
    for name, value, hashed in known:
        found = hashed.hexdigest()
        if found != value:
            return f"has {name} {found}, not {quoted(value, 80)}"
    return None


def hash_differences(
    files: Iterable[tuple[StoredFile, tuple[tuple[str, str], ...]]], *, told: Told = untold
) -> Iterator[tuple[StoredFile, str | None]]:
    """Yield the files with what `hash_difference` says of each, in their order, several at once.

    A file that cannot be read is said too, as the way in which it differs. An end of the asking, or
    an interrupt, ends the reading at the next pieces.
    """
    stopped = threading.Event()

    def noting(count: int) -> None:
        if stopped.is_set():
            raise DatasetError("nobody asks any more")
        told(count)

    def looked_at(
        asked: tuple[StoredFile, tuple[tuple[str, str], ...]],
    ) -> tuple[StoredFile, str | None]:
        return asked[0], _difference(*asked, noting)

    try:
        yield from concurrently(looked_at, files, at_once=_AT_ONCE)
    finally:
        stopped.set()


def _difference(file: StoredFile, stated: tuple[tuple[str, str], ...], told: Told) -> str | None:
    try:
        return hash_difference(file, stated, told=told)
    except (DatasetError, OSError) as error:
        return f"cannot be read: {error}"


def unknown_hashes(names: Iterable[str]) -> list[str]:
    """Return the algorithms that are not known here, sorted.

    >>> unknown_hashes(["sha1", "crc0"])
    ['crc0']
    """
    return sorted({name for name in names if _hash(name) is None})


def _hash(name: str) -> Callable[[], Any] | None:
    if name in hashlib.algorithms_available and not name.startswith("shake_"):
        made: Callable[[], Any] | None = getattr(hashlib, name, None)
        return made
    if not name.startswith(_XXHASH):
        return None
    try:
        import xxhash
    except ImportError:
        return None
    return getattr(xxhash, name, None)


# MosaicML's index.json: shards with their samples, sizes and hashes, packed and unpacked.
#
# Source: mosaicml-streaming 0.13, streaming/base/format/base/writer.py and reader.py.

_VERSION = 2


class ShardIndex:
    """What an index says of the shards beside it, each of which may be there packed or not."""

    def __init__(self, document: object, *, folder: str, said_by: str) -> None:
        """Read a parsed index.

        Raises:
            DatasetError: it is none, or a field is missing or of the wrong kind.
        """
        index = fields.mapping(document, "an index of shards")
        self._folder = folder
        self._found: dict[str, ExpectedCount] = {}
        self._shards: list[tuple[str, ...]] = []
        for files in _shards(index, said_by):
            self._shards.append(tuple(files))
            self._found |= files

    def expected(self, path: str) -> ExpectedCount | None:
        """Return what is said of a file, see `Sidecar.expected`."""
        if not path.startswith(self._folder):
            return None
        return self._found.get(path[len(self._folder) :])

    def absent(self, listed: Set[str]) -> list[str]:
        """Return the first name of each shard of which no file is there, see `Sidecar.absent`."""
        if not any(self._folder + name in listed for name in self._found):
            return []  # other files were asked for
        return [
            self._folder + names[0]
            for names in self._shards
            if not any(self._folder + name in listed for name in names)
        ]


def _shards(index: Mapping[str, object], said_by: str) -> Iterator[dict[str, ExpectedCount]]:
    """Yield what is said of the files of each shard, by their names."""
    version = index.get("version")
    if version != _VERSION:
        raise DatasetError(f"an index of shards of version {fields.shown(version)}, not {_VERSION}")
    for item in fields.items(index.get("shards"), "shards"):
        shard = fields.mapping(item, "a shard")
        samples = fields.count(shard.get("samples"), "samples")
        found: dict[str, ExpectedCount] = {}
        for key in ("zip_data", "raw_data"):
            if shard.get(key) is None:
                continue
            file = fields.mapping(shard[key], key)
            packed = shard.get("compression") if key == "zip_data" else None
            found[fields.text(file.get("basename"), "basename")] = ExpectedCount(
                num_examples=samples,
                num_bytes=fields.count(file.get("bytes"), "bytes"),
                said_by=said_by,
                compression=None if packed is None else fields.text(packed, "compression"),
                hashes=tuple(_hashes(file.get("hashes") or {})),
            )
        if not found:
            raise DatasetError("a shard has neither raw_data nor zip_data")
        yield found


def _hashes(value: object) -> Iterator[tuple[str, str]]:
    for name, stated in sorted(fields.mapping(value, "hashes").items()):
        yield name, fields.text(stated, "a hash").lower()


# What a sidecar says of one record file.


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectedCount:
    """How many examples a file holds, and how long it is, as `said_by`, a file beside it, says.

    compression: how the file is packed as a whole, as MosaicML names it, None for not.
    hashes: algorithms with the hash that the bytes of the file have.
    """

    num_examples: int
    said_by: str
    num_bytes: int | None = None
    compression: str | None = None
    hashes: tuple[tuple[str, str], ...] = ()


class Sidecar(Protocol):
    """One sidecar, or several of a kind, once they are read."""

    def expected(self, path: str) -> ExpectedCount | None:
        """Return what is said of the record file at a path, None where nothing is."""

    def absent(self, listed: Set[str]) -> list[str]:
        """Return the paths of files that should be there, of which none of `listed` is one."""


def disagreement(file: StoredFile, num_examples: int, expected: ExpectedCount) -> str | None:
    """Return in which way a file is not as its sidecar says, None where it is.

    >>> file = StoredFile(path="a/b.mds", num_bytes=9)
    >>> disagreement(file, 3, ExpectedCount(num_examples=4, said_by="index.json"))
    'holds 3 examples, and index.json says 4'
    """
    said = expected.said_by
    if num_examples != expected.num_examples:
        examples = "example" if num_examples == 1 else "examples"
        return f"holds {num_examples} {examples}, and {said} says {expected.num_examples}"
    if expected.num_bytes not in (None, file.num_bytes):
        return f"has {file.num_bytes} bytes, and {said} says {expected.num_bytes}"
    return None
