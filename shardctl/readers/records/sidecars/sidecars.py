"""All sidecars of some record files: what they say of each, and where it is not so."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec

from shardctl.core.text import quoted
from shardctl.core.tfds_rules import DATASET_INFO_FILENAME
from shardctl.errors import DatasetError
from shardctl.files.fields import said_about
from shardctl.files.json_text import parse_json
from shardctl.files.stores.store import StoredFile
from shardctl.files.stores.stores import store_of
from shardctl.readers.records.contents import Told, untold
from shardctl.readers.records.sidecars.dataset_info import HuggingFaceInfo, TfdsInfo
from shardctl.readers.records.sidecars.expected import ExpectedCount, Sidecar, disagreement
from shardctl.readers.records.sidecars.hashes import hash_differences, unknown_hashes
from shardctl.readers.records.sidecars.mds_index import ShardIndex
from shardctl.readers.records.sidecars.record_index import RecordIndices, is_record_index
from shardctl.readers.tfds_metadata import is_hugging_face_info

_MOST_BYTES = 1 << 30
_MOST_NAMES, _MOST_PROBLEMS = 3, 20
_NOT_UNPACKED = ("br", "snappy")  # streaming/base/compression.py, of what no file says by itself
_UNPACKED_LENGTHS = ("shardLengths", "shard_lengths")
_STATE = "state.json"  # what `save_to_disk` writes beside dataset_info.json


class Sidecars:
    """What is said of record files by other files beside them.

    problems: sidecars that cannot be read, a line each; nothing is compared with them.
    num_agreed: files that were compared and are as is said of them; said_by: the names of the
        sidecars that said it, a few of them where there are many.
    """

    def __init__(self, sidecars: Iterable[StoredFile]) -> None:
        """Read them, but for indices of records, which are read when their file is asked for."""
        self.problems: list[str] = []
        self.num_agreed = 0
        self.said_by: set[str] = set()
        self._of_folder: dict[str, list[Sidecar]] = {}
        indices: list[StoredFile] = []
        for file in sidecars:
            folder, name = _folder_and_name(file.path)
            if name in _READERS:
                self._read(file, folder, _READERS[name])
            elif is_record_index(name):
                indices.append(file)
        self._indices: Sidecar | None = RecordIndices(indices) if indices else None

    def __bool__(self) -> bool:
        """Return whether there is anything to compare with."""
        return bool(self._of_folder) or self._indices is not None

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
        if self._indices is not None:
            yield self._indices

    def expected(self, path: str) -> list[ExpectedCount]:
        """Return all that is said of a record file; what cannot be read is in `problems`."""
        found = []
        for sidecar in self._known(path):
            try:
                said = sidecar.expected(path)
            except DatasetError as error:
                self._note(str(error))
            else:
                if said is not None:
                    found.append(said)
        return found

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


def _parsed(file: StoredFile, *, packed: tuple[str, ...] = ()) -> object:
    data = store_of(file.path).read(file.path, max_num_bytes=_MOST_BYTES)
    return parse_json(data, source=quoted(file.path, 200), packed=packed, in_quotes=True)


def _shard_index(file: StoredFile, folder: str) -> Sidecar | None:
    document = _parsed(file)
    if not isinstance(document, Mapping) or "shards" not in document:
        return None  # an index of something else
    with said_about(quoted(file.path, 200)):
        return ShardIndex(document, folder=folder, said_by=_folder_and_name(file.path)[1])


def _dataset_info(file: StoredFile, folder: str) -> Sidecar | None:
    document = _parsed(file, packed=_UNPACKED_LENGTHS)
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
