"""What files beside record files say of them, and where it is not so.

MosaicML's index.json (mosaicml-streaming 0.13, streaming/base/format/base/writer.py and reader.py,
hashing.py), and the dataset_info.json of TFDS and of Hugging Face Datasets (datasets 5.2, info.py,
naming.py and arrow_dataset.py), which have one name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shardctl.base.text import counted, quoted
from shardctl.base.tfds_rules import DATASET_INFO_FILENAME
from shardctl.errors import DatasetError
from shardctl.files import fields
from shardctl.files.fields import said_about
from shardctl.files.parse import parse_json
from shardctl.metadata.tfds_metadata import dataset_from_info, is_hugging_face_info
from shardctl.stores.concurrently import concurrently
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import store_of

_MOST_BYTES = 1 << 30
_MOST_NAMES, _MOST_PROBLEMS = 3, 20
_PIECE, _AT_ONCE = 1 << 22, 8  # of files whose hashes are computed
_VERSION = 2  # of an index of shards
_STATE = "state.json"  # what `save_to_disk` writes beside dataset_info.json
# datasets/naming.py, camelcase_to_snakecase.
_TWO_CAPITALS, _ONE_CAPITAL = re.compile("([A-Z]+)([A-Z][a-z])"), re.compile(r"([a-z\d])([A-Z])")


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectedCount:
    """How many examples a file holds, and how long it is, as `said_by`, a file beside it, says.

    hashes: algorithms with the hash that the bytes of the file have.
    """

    num_examples: int
    said_by: str
    num_bytes: int | None = None
    hashes: tuple[tuple[str, str], ...] = ()


# What is said of a shard, by the names of the files that it may be in.
_Shard = Mapping[str, ExpectedCount]


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
        self.said: dict[str, list[ExpectedCount]] = {}
        self._indices: list[list[list[str]]] = []  # of each the paths that each shard may have
        for file in sidecars:
            name = re.split(r"[/\\]", file.path)[-1]
            if name in _READERS:
                self._read(file, file.path[: len(file.path) - len(name)], name)

    def _read(self, file: StoredFile, folder: str, name: str) -> None:
        try:
            shards = list(_READERS[name](file, folder))
        except DatasetError as error:
            self._note(str(error))
            return
        for shard in shards:
            for basename, expected in shard.items():
                self.said.setdefault(folder + basename, []).append(expected)
        if name != DATASET_INFO_FILENAME:  # where gaps show in the names
            self._indices.append([[folder + basename for basename in shard] for shard in shards])

    def __bool__(self) -> bool:
        """Return whether there is anything to compare with."""
        return bool(self.said)

    def disagreement(self, file: StoredFile, num_examples: int) -> str | None:
        """Return in which way a file is not as its sidecars say, None where it is, or none does."""
        said = self.said.get(file.path, [])
        for expected in said:
            by = expected.said_by
            if len(self.said_by) < _MOST_NAMES:
                self.said_by.add(by)
            if num_examples != expected.num_examples:
                held = counted(num_examples, "example")
                return f"holds {held}, and {by} says {expected.num_examples}"
            if expected.num_bytes not in (None, file.num_bytes):
                return f"has {file.num_bytes} bytes, and {by} says {expected.num_bytes}"
        self.num_agreed += bool(said)
        return None

    def hash_problems(self, files: Iterable[StoredFile]) -> Iterator[tuple[StoredFile, str]]:
        """Yield the files that have another hash than is said; each is read to its end for it.

        A file that cannot be read is yielded too; several are read at once.
        """
        stated = [
            (file, name, value)
            for file in files
            for expected in self.said.get(file.path, [])
            for name, value in expected.hashes
        ]
        for name in dict.fromkeys(name for _, name, _ in stated if _hash(name) is None):
            hint = ": pip install 'shardctl[files]'" if name.startswith("xxh") else ""
            said = f"index.json states hashes of {name}, which cannot be compared here"
            self._note(said + hint)
        known = (one for one in stated if _hash(one[1]) is not None)
        for file, text in concurrently(_hash_difference, known, at_once=_AT_ONCE):
            if text is not None:
                yield file, text

    def _note(self, problem: str) -> None:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(problem)
        elif len(self.problems) == _MOST_PROBLEMS:
            self.problems.append("more files beside the record files cannot be read")

    def absent(self, listed: Iterable[str]) -> list[str]:
        """Return the first path of each shard of an index of which no file is listed.

        Of an index of which none is, other files were asked for.
        """
        paths = {*listed} if self._indices else set()
        return [
            shard[0]
            for shards in self._indices
            if any(not paths.isdisjoint(shard) for shard in shards)
            for shard in shards
            if paths.isdisjoint(shard)
        ]


def _hash_difference(stated: tuple[StoredFile, str, str]) -> tuple[StoredFile, str | None]:
    file, name, value = stated
    made = _hash(name)
    hashed: Any = made() if made is not None else None
    try:
        with store_of(file.path).open(file) as source:
            for start in range(0, source.num_bytes, _PIECE):
                hashed.update(source.read(start, min(start + _PIECE, source.num_bytes)))
    except (DatasetError, OSError) as error:
        return file, f"cannot be read: {error}"
    found = hashed.hexdigest()
    return file, None if found == value else f"has {name} {found}, not {quoted(value, 80)}"


def _hash(name: str) -> Callable[[], Any] | None:
    """Return what makes a hash of hashlib, or of xxhash where it is installed; None of others."""
    if name in hashlib.algorithms_available and not name.startswith("shake_"):
        made: Callable[[], Any] | None = getattr(hashlib, name, None)
        return made
    if not name.startswith("xxh"):
        return None
    try:
        import xxhash
    except ImportError:
        return None
    return getattr(xxhash, name, None)


# The readers of sidecars.


def _parsed(file: StoredFile) -> object:
    data = store_of(file.path).read(file.path, max_num_bytes=_MOST_BYTES)
    return parse_json(data, source=quoted(file.path, 200))


def _of_index(file: StoredFile, folder: str) -> Iterator[_Shard]:
    """Yield what MosaicML's index says of shards, each of which may be there packed or not."""
    document = _parsed(file)
    if not isinstance(document, Mapping) or "shards" not in document:
        return  # an index of something else
    with said_about(quoted(file.path, 200)):
        if document.get("version") != _VERSION:
            version = fields.shown(document.get("version"))
            raise DatasetError(f"an index of shards of version {version}, not {_VERSION}")
        for item in fields.items(document.get("shards"), "shards"):
            shard = fields.mapping(item, "a shard")
            found = {
                fields.text(data.get("basename"), "basename"): _expected(shard, data)
                for key in ("zip_data", "raw_data")
                if shard.get(key) is not None
                for data in (fields.mapping(shard[key], key),)
            }
            if not found:
                raise DatasetError("a shard has neither raw_data nor zip_data")
            yield found


def _expected(shard: Mapping[str, object], data: Mapping[str, object]) -> ExpectedCount:
    hashes = fields.mapping(data.get("hashes") or {}, "hashes")
    return ExpectedCount(
        num_examples=fields.count(shard.get("samples"), "samples"),
        num_bytes=fields.count(data.get("bytes"), "bytes"),
        said_by="index.json",
        hashes=tuple(
            (name, fields.text(hashes[name], "a hash").lower()) for name in sorted(hashes)
        ),
    )


def _of_dataset_info(file: StoredFile, folder: str) -> Iterator[_Shard]:
    """Yield what the metadata of TFDS, or of a cache folder of Hugging Face Datasets, say.

    Those in a folder of `save_to_disk` are of the dataset that was prepared, not of the rows that
    were chosen since and saved: they say nothing of the files beside them.
    """
    document = _parsed(file)
    with said_about(quoted(file.path, 200)):
        if not is_hugging_face_info(document):
            for split in dataset_from_info(document, data_dir=folder).splits:
                for shard, length in enumerate(split.shard_lengths):
                    yield _counts([split.location(shard)[1]], length)
        elif store_of(file.path).status(folder + _STATE) is None:
            yield from _of_cache(fields.mapping(document, "the metadata"))


def _of_cache(info: Mapping[str, object]) -> Iterator[_Shard]:
    name, splits = info.get("dataset_name") or info.get("builder_name"), info.get("splits")
    if not isinstance(name, str) or not isinstance(splits, Mapping):
        return
    begin = _ONE_CAPITAL.sub(r"\1_\2", _TWO_CAPITALS.sub(r"\1_\2", name)).lower()
    for key, item in splits.items():
        split, prefix = fields.mapping(item, f"split {quoted(key)}"), f"{begin}-{key}"
        lengths = split.get("shard_lengths")
        if lengths is None:
            total = fields.count(split.get("num_examples", 0), "num_examples")
            yield _counts([f"{prefix}.arrow", f"{prefix}.parquet"], total)
            continue
        counts = fields.counts(fields.items(lengths, "lengths"), "a shard length")
        for shard, count in enumerate(counts):
            stem = f"{prefix}-{shard:05d}-of-{len(counts):05d}"
            yield _counts([f"{stem}.arrow", f"{stem}.parquet"], count)


def _counts(names: list[str], num_examples: int) -> _Shard:
    said = ExpectedCount(num_examples=num_examples, said_by=DATASET_INFO_FILENAME)
    return dict.fromkeys(names, said)


_READERS: dict[str, Callable[[StoredFile, str], Iterator[_Shard]]] = {
    "index.json": _of_index,
    DATASET_INFO_FILENAME: _of_dataset_info,
}
