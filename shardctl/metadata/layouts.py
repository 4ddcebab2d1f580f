"""Layout files: a dataset in a few lines of YAML, the document of `layout`, or that of `index`.

name: toy
version: 1.0.0
splits:
  train: {num_examples: 1281167, num_shards: 1024, num_bytes: 146999114192}
  test: {shard_lengths: [500, 500, 321]}
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import repeat
from typing import Any, NamedTuple, cast

from shardctl.base.arguments import Name
from shardctl.base.text import counted, printable, quoted
from shardctl.base.tfds_rules import DEFAULT_FILE_FORMAT, DEFAULT_TEMPLATE
from shardctl.dataset.dataset import COUNTED_LAYOUT, Dataset, FileFinding, FindingKind, Split
from shardctl.dataset.shard_files import PackedInts, ShardFiles
from shardctl.errors import DatasetError
from shardctl.files import fields
from shardctl.files.documents import FORMAT_VERSION, Document
from shardctl.files.fields import files_field, files_of_field
from shardctl.files.parse import read_document
from shardctl.saved.head import read_head
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import AnyPath, RemotePath, absolute, is_remote, path_of

ORIGIN = "layout file"
MAX_NUM_SHARDS = 10_000_000


def read_layout_file(path: AnyPath) -> Dataset:
    """Return the dataset that a layout file of any form describes; `.json` is read as JSON.

    Raises:
        DatasetError: the file cannot be read, or breaks a rule of its form.
    """
    document = read_document(path)
    # Documents of ours say their kind; a layout written by hand says none.
    kind = document.get("kind") if isinstance(document, Mapping) else None
    with fields.said_about(printable(str(path))):
        if kind == "layout":
            dataset = _of_layout_document(document, path.parent)
        elif kind == "index":
            layout = fields.mapping(document, "a layout")
            dataset = _of_index_document(layout, path.parent).dataset
        else:
            dataset = dataset_from_layout(document, stem=path.stem, folder=path.parent)
        remote = isinstance(path, RemotePath)
        return replace(dataset, reference=str(path) if remote else absolute(str(path)))


def data_dir_of(value: object, folder: AnyPath) -> str | None:
    """Return the data_dir that a layout file in a folder states, as a whole path or a URL."""
    if value is None:
        return None
    path = path_of(os.path.expanduser(_path_text(value, "data_dir")), folder)
    return str(path) if isinstance(path, RemotePath) else absolute(path)


def _path_text(value: object, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise DatasetError(f"{what} must be text, not {fields.shown(value)}")
    if not value.isprintable():
        raise DatasetError(f"{what} {quoted(value)} holds characters that cannot be printed")
    return value


def _check_totals(
    record: Mapping[str, object], lengths: PackedInts, of: str = "shard_lengths", hint: str = ""
) -> None:
    """Raise where a split states another number of examples or shards than its lengths have."""
    for key, actual in (("num_examples", lengths.total()), ("num_shards", len(lengths))):
        if record.get(key, actual) != actual:
            stated = fields.shown(record[key])
            raise DatasetError(f"{key} {stated} is not that of {of}, {actual}{hint}")


# The documents of `layout` and `index`.


def _stated_dataset(
    document: object,
    folder: AnyPath,
    read_split: Callable[[Mapping[str, object], str | None], Split],
) -> tuple[Mapping[str, object], Dataset]:
    """Return a document of `layout` or `index`, and the dataset that it states."""
    layout = fields.mapping(document, "a layout")
    if layout.get("format_version") != FORMAT_VERSION:
        version = fields.shown(layout.get("format_version"))
        raise DatasetError(f"format_version {version}; this shardctl reads {FORMAT_VERSION}")
    head = read_head(layout)
    data_dir = data_dir_of(head.data_dir, folder)
    splits = []
    for item in fields.items(layout.get("splits"), "splits"):
        split = fields.mapping(item, "a split")
        with fields.said_about(f"split {quoted(fields.split_name(split.get('name')))}"):
            splits.append(read_split(split, data_dir))
    return layout, Dataset(
        name=head.name,
        config=head.config,
        version=head.version,
        file_format=fields.file_format(head.file_format),
        data_dir=data_dir,
        ordered=fields.flag(layout.get("ordered", False), "ordered"),
        compression=fields.compression(layout.get("compression")),
        splits=tuple(splits),
    )


@dataclass(frozen=True)
class _Part:
    """What a folder has of a split: the next shards of it, and the next parts of its files."""

    name: str
    num_shards: int
    num_parts: int
    metadata_bytes: int | None


@dataclass(frozen=True)
class _Folder:
    """One of several folders that are read as one dataset."""

    name: Name
    config: Name | None
    version: Name | None
    ordered: bool
    data_dir: str | None
    splits: tuple[_Part, ...]


def dataset_fields(dataset: Dataset, splits: Sequence[Split]) -> Document:
    """Return what the document of `layout` has besides its head and its splits."""
    names = {split.name for split in splits}

    def parts_of(folder: Dataset) -> tuple[_Part, ...]:
        return tuple(
            _Part(split.name, split.num_shards, len(split.files), split.num_bytes)
            for split in folder.splits
            if split.name in names
        )

    folders = [
        _Folder(one.name, one.config, one.version, one.ordered, one.data_dir, parts_of(one))
        for one in dataset.folders
    ]
    read = [asdict(folder) for folder in folders if folder.splits]
    return {
        "ordered": dataset.ordered,
        **({} if dataset.compression is None else {"compression": dataset.compression}),
        **({"counted": True} if dataset.is_counted else {}),
        **({"folders": read} if read else {}),
    }


def split_fields(split: Split, dataset: Dataset) -> Document:
    """Return what a split of the document has besides its shards and their sizes."""
    return {"metadata_bytes": split.num_bytes, "files": files_field(split.files, dataset.data_dir)}


def _of_layout_document(document: object, folder: AnyPath) -> Dataset:
    """Return the dataset of the splits that a document of `layout` lists, as it was.

    Sizes of single files are not kept: they are those of the files, wherever these are.
    """
    layout, dataset = _stated_dataset(document, folder, _listed_split)
    counted_then = fields.flag(layout.get("counted", False), "counted")
    dataset = replace(dataset, origin=COUNTED_LAYOUT if counted_then else ORIGIN)
    return replace(dataset, folders=tuple(_folders(layout.get("folders", []), dataset, folder)))


def _listed_split(record: Mapping[str, object], folder: str | None) -> Split:
    items = fields.items(record.get("shards"), "shards")
    shards = [fields.mapping(item, "a shard") for item in items]
    lengths = fields.counts([one.get("num_examples") for one in shards], "num_examples")
    _check_totals(record, lengths, "its shards")
    filenames = [fields.text(shard.get("filename"), "filename") for shard in shards]
    # Documents without `files` state the names of the shards alone.
    files = record.get("files", [{"names": [os.path.basename(one) for one in filenames]}])
    # Documents without `metadata_bytes` state only one size.
    num_bytes = record.get("metadata_bytes", record.get("num_bytes"))
    split = Split(
        name=fields.split_name(record.get("name")),
        shard_lengths=lengths,
        files=tuple(files_of_field(files, len(lengths), folder)),
        num_bytes=None if num_bytes is None else fields.count(num_bytes, "metadata_bytes"),
    )
    if len(lengths) and not split.files:
        raise DatasetError("files must be a template of file names or a list, not empty")
    # Names are stated twice, as a pattern and for each shard: a file edited by hand may differ.
    for stated, meant in zip(filenames, split.filenames, strict=True):
        if stated != meant:
            raise DatasetError(f"file {quoted(stated)} is {quoted(meant)} by its files")
    return split


def _folders(value: object, dataset: Dataset, folder: AnyPath) -> Iterator[Dataset]:
    """Yield the folders, each with the next shards of the splits that it has a part of."""
    shards, parts = Counter[str](), Counter[str]()
    for index, item in enumerate(fields.items(value, "folders")):
        one = fields.record(_Folder, item, f"folders[{index}]")
        splits = []
        for part in one.splits:
            whole = dataset.split(part.name)
            # Folders are in order, so each has the next shards of a split.
            first, first_part = shards[whole.name], parts[whole.name]
            shards[whole.name] += part.num_shards
            parts[whole.name] += part.num_parts
            splits.append(
                Split(
                    name=whole.name,
                    shard_lengths=whole.shard_lengths[first : shards[whole.name]],
                    files=whole.files[first_part : parts[whole.name]],
                    num_bytes=part.metadata_bytes,
                )
            )
        yield Dataset(
            name=one.name,
            config=one.config,
            version=one.version,
            file_format=dataset.file_format,
            ordered=one.ordered,
            data_dir=data_dir_of(one.data_dir, folder),
            splits=tuple(splits),
            origin=ORIGIN,
        )


# What `index` wrote, read back: each file as it was when it was counted.


@dataclass(frozen=True)
class BrokenFile:
    """A file that is not counted, with what is wrong first; `path` is relative to the root."""

    path: str
    split: str | None
    kind: str
    reason: str | None
    record: int | None
    byte: int | None
    num_bytes: int
    version: str
    found: int | None = None  # whole records before the damage, which a layout does not say

    @property
    def finding(self) -> FileFinding:
        """What is wrong with the file."""
        return FileFinding(
            filename=self.path.rpartition("/")[2],
            found=self.found,
            reason=self.reason,
            kind=cast(FindingKind, self.kind),
            split=self.split,
            record=self.record,
            byte=self.byte,
        )


class IndexedFile(NamedTuple):
    """A file of a layout as it was when it was counted; `num_records` is None of a broken one."""

    file: StoredFile
    split: str | None
    num_records: int | None
    digest: str | None = None


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
        """Yield the whole files of all splits, in shard order, and those that were broken."""
        for split, sizes, versions in zip(
            self.dataset.splits, self.sizes, self.versions, strict=True
        ):
            paths = (_joined(part.data_dir, name) for part in split.files for name in part)
            counts = zip(paths, sizes, versions, split.shard_lengths, strict=True)
            digests = split.shard_digests or repeat(None)
            for (path, size, version, length), digest in zip(counts, digests, strict=False):
                file = StoredFile(path=path, num_bytes=size, version=version)
                yield IndexedFile(file, split.name, length, digest)
        for one in self.broken:
            path = _joined(self.dataset.data_dir or "", one.path)
            file = StoredFile(path=path, num_bytes=one.num_bytes, version=one.version)
            yield IndexedFile(file, one.split, None)

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
        if not isinstance(document, Mapping) or document.get("kind") != "index":
            raise DatasetError("it is not a layout that shardctl index wrote")
        return _of_index_document(document, path.parent)


def _of_index_document(document: Mapping[str, object], folder: AnyPath) -> IndexedLayout:
    sizes, versions = list[PackedInts](), list[Sequence[str]]()

    def split(record: Mapping[str, object], data_dir: str | None) -> Split:
        lengths = _counts(record, "shard_lengths")
        _check_totals(record, lengths)
        sizes.append(_counts(record, "shard_bytes"))
        versions.append(tuple(map(str, fields.items(record.get("versions"), "versions"))))
        if not len(sizes[-1]) == len(versions[-1]) == len(lengths):
            raise DatasetError("not one length, size and version a shard")
        # Of layouts that were written without --digest there are none.
        digests = fields.texts(record.get("digests", []), "digests")
        if not all(re.fullmatch("sha256:[0-9a-f]{64}", digest) for digest in digests):
            raise DatasetError("digests must be sha256: and 64 hex digits each")
        return Split(
            name=fields.split_name(record.get("name")),
            shard_lengths=lengths,
            files=tuple(files_of_field(record.get("files"), len(lengths), data_dir)),
            num_bytes=sizes[-1].total(),
            shard_digests=digests or None,
        )

    if "check" in document:
        raise DatasetError("it is what index --check said of a layout, and no layout itself")
    layout, dataset = _stated_dataset(document, folder, split)
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


def _counts(record: Mapping[str, object], key: str) -> PackedInts:
    return fields.counts(fields.items(record.get(key), key), f"{key} of shard {{}}")


# A dataset in a few lines, as people and the catalog write it.

LAYOUT_KEYS = (
    "name", "config", "version", "file_format", "ordered", "disable_shuffling",
    "filepath_template", "data_dir", "splits",
)  # fmt: skip
SPLIT_KEYS = (
    "shard_lengths", "num_examples", "num_shards", "num_bytes", "filepath_template", "filenames",
)  # fmt: skip


def dataset_from_layout(document: object, *, stem: str, folder: AnyPath) -> Dataset:
    """Return the dataset a parsed layout describes.

    `name` is the file's stem where it is not given; `data_dir` is relative to the file's folder;
    `ordered` may also be called `disable_shuffling`, as in TFDS.

    Raises:
        DatasetError: an unknown key, a missing or an ill-formed one.
    """
    layout = _without_nulls(fields.mapping(document, "a layout"))
    fields.only_keys(layout, LAYOUT_KEYS, "a layout")
    if "ordered" in layout and "disable_shuffling" in layout:
        raise DatasetError("ordered and disable_shuffling are one setting; give one of them")
    dataset: dict[str, Any] = {
        "name": fields.name(layout.get("name", stem), "name"),
        "config": fields.optional_name(layout.get("config"), "config"),
        "version": fields.optional_name(layout.get("version"), "version"),
        "file_format": fields.file_format(layout.get("file_format", DEFAULT_FILE_FORMAT)),
        "data_dir": data_dir_of(layout.get("data_dir"), folder),
        "ordered": any(
            fields.flag(layout.get(key, False), key) for key in ("ordered", "disable_shuffling")
        ),
    }
    template = layout.get("filepath_template", DEFAULT_TEMPLATE)
    splits = tuple(_short_splits(layout.get("splits"), dataset, template))
    return Dataset(**dataset, splits=splits, origin=ORIGIN)


def _without_nulls(value: Mapping[str, object]) -> Mapping[str, object]:
    """Return a mapping without the keys that have no value: those are as if they were not there."""
    return {key: item for key, item in value.items() if item is not None}


def _short_splits(value: object, dataset: Mapping[str, Any], template: object) -> Iterator[Split]:
    if isinstance(value, list):
        # Both forms are read: a list of splits with names, or a mapping by name.
        items = [(fields.mapping(item, "a split").get("name"), item) for item in value]
    elif isinstance(value, Mapping):
        items = list(value.items())
    else:
        raise DatasetError(
            f"splits must be a mapping of split names, not {fields.shown(value)}; "
            "as in: splits: {train: {shard_lengths: [10, 10]}}"
        )
    known = ("name", *SPLIT_KEYS) if isinstance(value, list) else SPLIT_KEYS
    for key, item in items:
        name = fields.split_name(key)
        with fields.said_about(f"split {quoted(name)}"):
            split = _without_nulls(fields.mapping(item, "its value"))
            fields.only_keys(split, known, "a split")
            # The template of a split counts before that of the layout.
            yield _short_split(name, {"filepath_template": template, **split}, dataset)


def _short_split(name: str, split: Mapping[str, object], dataset: Mapping[str, Any]) -> Split:
    stated = {
        key: fields.count(split[key], key)
        for key in ("num_examples", "num_shards", "num_bytes")
        if key in split
    }
    num_bytes = stated.get("num_bytes")
    if "shard_lengths" in split:
        items = fields.items(split["shard_lengths"], "shard_lengths")
        if len(items) > MAX_NUM_SHARDS:
            raise DatasetError(f"{len(items)} shard_lengths; at most {MAX_NUM_SHARDS} are read")
        lengths = fields.counts(items, "length of shard {}")
        _check_totals(stated, lengths, hint="; give one of them")
        files = _short_files(name, split, dataset, len(lengths))
        return Split(name=name, shard_lengths=lengths, files=(files,), num_bytes=num_bytes)
    missing = [key for key in ("num_examples", "num_shards") if key not in stated]
    if missing:
        raise DatasetError(
            f"no {' and no '.join(missing)}; give shard_lengths, or num_examples and num_shards"
        )
    num_examples, num_shards = stated["num_examples"], stated["num_shards"]
    if not 1 <= num_shards <= MAX_NUM_SHARDS:
        raise DatasetError(f"num_shards {num_shards} is not between 1 and {MAX_NUM_SHARDS}")
    # The last boundary of TFDS's formula: beyond 2**53 floats may miss the number itself.
    if round(num_examples * num_shards / num_shards) != num_examples:
        raise DatasetError(
            f"num_examples {num_examples} is too large for TFDS's boundaries, which are floats; "
            "give shard_lengths"
        )
    return Split.even(
        name=name,
        num_examples=num_examples,
        num_shards=num_shards,
        files=(_short_files(name, split, dataset, num_shards),),
        num_bytes=num_bytes,
    )


def _short_files(
    name: str, split: Mapping[str, object], dataset: Mapping[str, Any], num_shards: int
) -> ShardFiles:
    """Return the shards' files: named one by one, or from the split's or layout's template."""
    if "filenames" in split:
        names = tuple(map(_filename, fields.items(split["filenames"], "filenames")))
        return ShardFiles(data_dir=dataset["data_dir"], num_shards=num_shards, names=names)
    return ShardFiles.from_template(
        _path_text(split["filepath_template"], "filepath_template"),
        dataset=dataset["name"],
        split=name,
        file_format=dataset["file_format"],
        num_shards=num_shards,
        data_dir=dataset["data_dir"],
    )


def _filename(value: object) -> str:
    path = _path_text(value, "a file name")
    parts = path.replace("\\", "/").split("/")
    # Backslashes count as slashes, which they are on Windows.
    if os.path.isabs(path) or ".." in parts or parts[-1] in ("", "."):
        raise DatasetError(f"file name {quoted(path)} leaves the dataset's folder")
    return path
