"""The layout file that `index` writes: a dataset, and the size and version of each of its files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import NamedTuple

from shardctl.base.text import counted, printable, quoted
from shardctl.dataset.dataset import COUNTED_LAYOUT, Dataset, Split
from shardctl.dataset.shard_files import PackedInts
from shardctl.errors import DatasetError, UsageError
from shardctl.files import fields
from shardctl.files.documents import Document
from shardctl.files.shard_files import files_field, files_of_field
from shardctl.files.yaml_text import read_document
from shardctl.metadata.index.answer import BrokenFile, Index, IndexedSplit
from shardctl.metadata.layout_document import check_totals, folder_of_layout, stated_dataset
from shardctl.saved.head import head, read_head
from shardctl.stores.file_text import absolute
from shardctl.stores.remote_path import AnyPath
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import is_remote

KIND = "index"


def is_index_document(document: object) -> bool:
    """Return whether a layout file is the document of `index`."""
    return isinstance(document, Mapping) and document.get("kind") == KIND


def index_document(index: Index, beside: str | None = None) -> Document:
    """Return the document of an index; of a file in the folder `beside` its data_dir is relative.

    It is the same whoever counted: nothing in it tells of the run.
    """
    dataset = index.dataset
    document = head(KIND, dataset.identity)
    document["dataset"]["data_dir"] = _relative(index.data_dir, beside)
    document["ordered"] = dataset.ordered
    if index.compression is not None:
        document["compression"] = index.compression
    document["paths"] = [_inside(path, index.data_dir, beside) for path in index.paths]
    if index.globs:
        globs = {name: _inside_glob(glob, index.data_dir) for name, glob in index.globs}
        document["globs"] = globs
    document["splits"] = [_split(split, index.data_dir) for split in index.splits]
    if index.keep_going:
        document["problems"] = [
            {"kind": problem.kind, "split": problem.split, "reason": problem.text}
            for problem in index.problems
        ]
        document["broken"] = [asdict(file) for file in index.broken]
        for file in document["broken"]:
            del file["found"]
    return document


def check_yaml(index: Index) -> None:
    """Refuse names that YAML cannot say: JSON has an escape for bytes that are no UTF-8.

    Raises:
        UsageError: the name of a file, or of the folder, is no UTF-8.
    """
    parts = (part for indexed in index.splits for part in indexed.split.files)
    names = chain.from_iterable(part.names or part[:1] for part in parts)
    for name in chain((index.data_dir,), names, (file.path for file in index.broken)):
        if not name.isascii() and re.search("[\ud800-\udfff]", name):
            raise UsageError(
                f"{quoted(name, 200)} is no UTF-8, so that YAML cannot say it; JSON can: write a "
                "file that ends in .json"
            )


def _inside(path: str, root: str, beside: str | None) -> str:
    """Return a path as it is said from a folder: relative where it lies in there.

    So it is too where both lie in the folder `beside`, which may move with all that is in it.
    """
    whole = path if is_remote(path) else absolute(path)
    if whole == root:
        return "."
    if beside is not None and not any(map(is_remote, (whole, root, beside))):
        places = (os.path.relpath(place, os.path.abspath(beside)) for place in (whole, root))
        if all(place.split(os.sep)[0] != ".." for place in places):
            return os.path.relpath(whole, root)
    return whole.removeprefix(f"{root.rstrip('/')}/")


def _inside_glob(glob: str, root: str) -> str:
    """Return a glob of a split as it is held against the end of paths, where it is from the root.

    So it goes along with files that move.
    """
    return glob.removeprefix(f"{root.rstrip('/')}/")


def _relative(data_dir: str, beside: str | None) -> str:
    """Return a folder as a file in another says it: relative where it lies in there."""
    if beside is None or is_remote(data_dir) or is_remote(beside):
        return data_dir
    inside = os.path.relpath(data_dir, os.path.abspath(beside))
    return data_dir if inside.split(os.sep)[0] == ".." else inside


def _split(indexed: IndexedSplit, folder: str) -> Document:
    split = indexed.split
    return {
        "name": split.name,
        "num_examples": split.num_examples,
        "num_shards": split.num_shards,
        "num_bytes": split.num_bytes,
        "shard_lengths": list(split.shard_lengths),
        "files": files_field(split.files, folder),
        "shard_bytes": list(split.shard_bytes or ()),
        "versions": indexed.versions,
    }


class IndexedFile(NamedTuple):
    """A file of a layout as it was when it was counted."""

    file: StoredFile
    split: str
    num_records: int


@dataclass(frozen=True, kw_only=True)
class IndexedLayout:
    """A layout that `index` wrote, read back: its dataset, and what its files were.

    sizes, versions: of the files of each split. broken: those that were left out. paths: those that
    were given. globs: of splits that were named by hand.
    """

    dataset: Dataset
    sizes: Sequence[Sequence[int]]
    versions: Sequence[Sequence[str]]
    broken: Sequence[BrokenFile]
    paths: Sequence[str]
    globs: Mapping[str, str]

    def files(self) -> Iterator[IndexedFile]:
        """Yield the whole files of all splits, in shard order."""
        for split, sizes, versions in zip(
            self.dataset.splits, self.sizes, self.versions, strict=True
        ):
            paths = (_joined(part.data_dir, name) for part in split.files for name in part)
            counts = zip(paths, sizes, versions, split.shard_lengths, strict=True)
            for path, size, version, length in counts:
                file = StoredFile(path=path, num_bytes=size, version=version)
                yield IndexedFile(file, split.name, length)

    def wanted(self) -> Iterator[str]:
        """Yield the whole paths that were given to `index`."""
        root = self.dataset.data_dir or ""
        for path in self.paths or ["."]:
            whole = is_remote(path) or os.path.isabs(path)
            yield path if whole else root if path == "." else _joined(root, path)


def _joined(folder: str | None, name: str) -> str:
    return name if folder is None else f"{folder.rstrip('/')}/{name}"


def read_index_file(path: AnyPath) -> IndexedLayout:
    """Return the layout of a file that `index` wrote.

    Raises:
        DatasetError: it cannot be read, or is something else.
    """
    document = read_document(path)
    with fields.said_about(printable(str(path))):
        if not is_index_document(document):
            raise DatasetError("it is not a layout that shardctl index wrote")
        return read_index_document(document, lambda value: folder_of_layout(value, path.parent))


def read_index_document(
    document: object, data_dir: Callable[[object], str | None]
) -> IndexedLayout:
    """Return the layout that a document of `index` is; `data_dir` makes its folder absolute.

    Raises:
        DatasetError: another format version; a field that is missing, ill-formed or contradicts
            another one.
    """
    sizes, versions = list[Sequence[int]](), list[Sequence[str]]()

    def split(record: Mapping[str, object], folder: str | None) -> Split:
        found, of_shards, said = _read_split(record, folder)
        sizes.append(of_shards)
        versions.append(said)
        return found

    if isinstance(document, Mapping) and "check" in document:
        raise DatasetError("it is what index --check said of a layout, and no layout itself")
    layout, dataset = stated_dataset(document, data_dir, split)
    broken = [
        fields.record(BrokenFile, item, f"broken[{index}]")
        for index, item in enumerate(fields.items(layout.get("broken", []), "broken"))
    ]
    if dataset.fingerprint != read_head(layout).fingerprint:
        raise DatasetError("its splits are not those of its fingerprint; it was changed by hand")
    globs = fields.mapping(layout.get("globs", {}), "globs").items()
    return IndexedLayout(
        dataset=replace(dataset, notes=tuple(_left_out(layout, broken)), origin=COUNTED_LAYOUT),
        sizes=sizes,
        versions=versions,
        broken=broken,
        paths=fields.texts(layout.get("paths", []), "paths"),
        globs={fields.split_name(name): fields.text(glob, "a glob") for name, glob in globs},
    )


def _left_out(layout: Mapping[str, object], broken: Sequence[BrokenFile]) -> Iterator[str]:
    """Yield what is not in a layout that was written though not all was whole."""
    for index, item in enumerate(fields.items(layout.get("problems", []), "problems")):
        problem = fields.mapping(item, f"problems[{index}]")
        yield fields.text(problem.get("reason"), f"problems[{index}].reason")
    if broken:
        others = " and others" if len(broken) > 1 else ""
        first = quoted(broken[0].path, 200)
        yield f"{counted(len(broken), 'broken file')} left out: {first}{others}"


def _read_split(
    record: Mapping[str, object], folder: str | None
) -> tuple[Split, Sequence[int], Sequence[str]]:
    name = fields.split_name(record.get("name"))
    with fields.said_about(f"split {quoted(name)}"):
        lengths = _counts(record, "shard_lengths")
        check_totals(record, lengths)
        sizes = _counts(record, "shard_bytes")
        versions = tuple(map(str, fields.items(record.get("versions"), "versions")))
        if not len(sizes) == len(versions) == len(lengths):
            raise DatasetError("not one length, size and version a shard")
        split = Split(
            name=name,
            shard_lengths=lengths,
            files=tuple(files_of_field(record.get("files"), len(lengths), folder)),
            num_bytes=sizes.total(),
        )
        return split, sizes, versions


def _counts(record: Mapping[str, object], key: str) -> PackedInts:
    return fields.counts(fields.items(record.get(key), key), f"{key} of shard {{}}")
