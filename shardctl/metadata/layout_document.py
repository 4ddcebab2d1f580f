"""The document of `layout` as a layout file: what it says besides its shards, and reading it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from shardctl.base.arguments import Name
from shardctl.base.text import quoted
from shardctl.base.tfds_rules import DEFAULT_FILE_FORMAT, DEFAULT_TEMPLATE
from shardctl.dataset.dataset import COUNTED_LAYOUT, Dataset, Split
from shardctl.dataset.shard_files import PackedInts, ShardFiles
from shardctl.errors import DatasetError
from shardctl.files import fields
from shardctl.files.documents import FORMAT_VERSION, Document
from shardctl.files.shard_files import files_field, files_of_field
from shardctl.saved.head import read_head
from shardctl.stores.file_text import absolute
from shardctl.stores.remote_path import AnyPath, RemotePath, path_of

KIND = "layout"
ORIGIN = "layout file"


def path_text(value: object, what: str) -> str:
    """Return text that may be a path, or raise."""
    if not isinstance(value, str) or not value:
        raise DatasetError(f"{what} must be text, not {fields.shown(value)}")
    if not value.isprintable():
        raise DatasetError(f"{what} {quoted(value)} holds characters that cannot be printed")
    return value


def folder_of_layout(value: object, folder: AnyPath) -> str | None:
    """Return the data_dir that a layout file in a folder says, as a whole path or a URL.

    Raises:
        DatasetError: it is no text, or cannot be printed.
    """
    if value is None:
        return None
    path = path_of(os.path.expanduser(path_text(value, "data_dir")), folder)
    return str(path) if isinstance(path, RemotePath) else absolute(path)


def is_layout_document(document: object) -> bool:
    """Return whether a layout file is the document of `layout`."""
    return isinstance(document, Mapping) and document.get("kind") == KIND


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
    """Return what the document has besides its head and its splits: what else tells the dataset."""
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


def dataset_of_document(document: object, data_dir: Callable[[object], str | None]) -> Dataset:
    """Return the dataset of the splits that a document of `layout` lists, as it was.

    `data_dir` makes the path of a folder absolute. Sizes of single files are not kept: they are
    those of the files, wherever these are.

    Raises:
        DatasetError: another format version; a field that is missing, ill-formed or contradicts
            another one.
    """
    layout, dataset = stated_dataset(document, data_dir, _split)
    counted = fields.flag(layout.get("counted", False), "counted")
    dataset = replace(dataset, origin=COUNTED_LAYOUT if counted else ORIGIN)
    folders = tuple(_folders(layout.get("folders", []), dataset, data_dir))
    return replace(dataset, folders=folders)


def stated_dataset(
    document: object,
    data_dir: Callable[[object], str | None],
    read_split: Callable[[Mapping[str, object], str | None], Split],
) -> tuple[Mapping[str, object], Dataset]:
    """Return a document of `layout` or `index`, and the dataset that it states.

    Raises:
        DatasetError: another format version; a field that is missing or ill-formed.
    """
    layout = fields.mapping(document, "a layout")
    if layout.get("format_version") != FORMAT_VERSION:
        version = fields.shown(layout.get("format_version"))
        raise DatasetError(f"format_version {version}; this shardctl reads {FORMAT_VERSION}")
    head = read_head(layout)
    folder = data_dir(head.data_dir)
    dataset = Dataset(
        name=head.name,
        config=head.config,
        version=head.version,
        file_format=fields.file_format(head.file_format),
        data_dir=folder,
        ordered=fields.flag(layout.get("ordered", False), "ordered"),
        compression=fields.compression(layout.get("compression")),
        splits=tuple(
            read_split(fields.mapping(item, "a split"), folder)
            for item in fields.items(layout.get("splits"), "splits")
        ),
    )
    return layout, dataset


def check_totals(
    record: Mapping[str, object], lengths: PackedInts, of: str = "shard_lengths", hint: str = ""
) -> None:
    """Raise where a split states another number of examples or shards than its lengths have."""
    for key, actual in (("num_examples", lengths.total()), ("num_shards", len(lengths))):
        if record.get(key, actual) != actual:
            said = fields.shown(record[key])
            raise DatasetError(f"{key} {said} is not that of {of}, {actual}{hint}")


def _split(record: Mapping[str, object], folder: str | None) -> Split:
    name = fields.split_name(record.get("name"))
    with fields.said_about(f"split {quoted(name)}"):
        shards = [
            fields.mapping(item, "a shard") for item in fields.items(record.get("shards"), "shards")
        ]
        lengths = fields.counts([one.get("num_examples") for one in shards], "num_examples")
        check_totals(record, lengths, "its shards")
        filenames = [fields.text(shard.get("filename"), "filename") for shard in shards]
        files = record.get("files", [{"names": [os.path.basename(one) for one in filenames]}])
        num_bytes = record.get("metadata_bytes", record.get("num_bytes"))
        split = Split(
            name=name,
            shard_lengths=lengths,
            files=tuple(files_of_field(files, len(lengths), folder)),
            num_bytes=None if num_bytes is None else fields.count(num_bytes, "metadata_bytes"),
        )
        if len(lengths) and not split.files:
            raise DatasetError("files must be a template of file names or a list, not empty")
        for stated, meant in zip(filenames, split.filenames, strict=True):
            if stated != meant:
                raise DatasetError(f"file {quoted(stated)} is {quoted(meant)} by its files")
        return split


def _folders(
    value: object, dataset: Dataset, data_dir: Callable[[object], str | None]
) -> Iterator[Dataset]:
    """Yield the folders, each with the next shards of the splits that it has a part of."""
    shards, parts = Counter[str](), Counter[str]()
    for index, item in enumerate(fields.items(value, "folders")):
        folder = fields.record(_Folder, item, f"folders[{index}]")
        splits = []
        for part in folder.splits:
            whole = dataset.split(part.name)
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
            name=folder.name,
            config=folder.config,
            version=folder.version,
            file_format=dataset.file_format,
            ordered=folder.ordered,
            data_dir=data_dir(folder.data_dir),
            splits=tuple(splits),
            origin=ORIGIN,
        )


# A dataset in a few lines, as people and the catalog write it.

MAX_NUM_SHARDS = 10_000_000
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
    layout = fields.mapping(document, "a layout")
    fields.only_keys(layout, LAYOUT_KEYS, "a layout")
    if "ordered" in layout and "disable_shuffling" in layout:
        raise DatasetError("ordered and disable_shuffling are one setting; give one of them")
    naming = _Naming(
        dataset=fields.name(_given(layout, "name", stem), "name"),
        file_format=fields.file_format(_given(layout, "file_format", DEFAULT_FILE_FORMAT)),
        data_dir=folder_of_layout(layout.get("data_dir"), folder),
        template=_given(layout, "filepath_template", DEFAULT_TEMPLATE),
    )
    return Dataset(
        name=naming.dataset,
        config=fields.optional_name(layout.get("config"), "config"),
        version=fields.optional_name(layout.get("version"), "version"),
        file_format=naming.file_format,
        data_dir=naming.data_dir,
        ordered=any(
            fields.flag(_given(layout, key, False), key) for key in ("ordered", "disable_shuffling")
        ),
        splits=tuple(_splits(_given(layout, "splits", None), naming)),
        origin=ORIGIN,
    )


@dataclass(frozen=True, kw_only=True)
class _Naming:
    """What the file names of every split are made of."""

    dataset: str
    file_format: str
    data_dir: str | None
    template: object

    def files(self, split: Mapping[str, object], name: str, num_shards: int) -> ShardFiles:
        """Return the shards' files: named one by one, or from the split's or layout's template."""
        filenames = _given(split, "filenames", None)
        if filenames is not None:
            names = tuple(_filenames(filenames))
            return ShardFiles(data_dir=self.data_dir, num_shards=num_shards, names=names)
        return ShardFiles.from_template(
            path_text(_given(split, "filepath_template", self.template), "filepath_template"),
            dataset=self.dataset,
            split=name,
            file_format=self.file_format,
            num_shards=num_shards,
            data_dir=self.data_dir,
        )


def _given(value: Mapping[str, object], key: str, default: object) -> object:
    """Return the value of a key; nothing (null) is the same as no key."""
    found = value.get(key)
    return default if found is None else found


def _filenames(value: object) -> Iterator[str]:
    for item in fields.items(value, "filenames"):
        path = path_text(item, "a file name")
        parts = path.replace("\\", "/").split("/")
        if os.path.isabs(path) or ".." in parts or parts[-1] in ("", "."):
            raise DatasetError(f"file name {quoted(path)} leaves the dataset's folder")
        yield path


def _splits(value: object, naming: _Naming) -> Iterator[Split]:
    if isinstance(value, list):
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
            split = fields.mapping(item, "its value")
            fields.only_keys(split, known, "a split")
            yield _short_split(name, split, naming)


def _short_split(name: str, split: Mapping[str, object], naming: _Naming) -> Split:
    stated = {
        key: fields.count(split[key], key)
        for key in ("num_examples", "num_shards", "num_bytes")
        if split.get(key) is not None
    }
    num_bytes = stated.get("num_bytes")
    if split.get("shard_lengths") is not None:
        lengths = _shard_lengths(split["shard_lengths"])
        check_totals(stated, lengths, hint="; give one of them")
        files = naming.files(split, name, len(lengths))
        return Split(name=name, shard_lengths=lengths, files=(files,), num_bytes=num_bytes)
    missing = [key for key in ("num_examples", "num_shards") if key not in stated]
    if missing:
        raise DatasetError(
            f"no {' and no '.join(missing)}; give shard_lengths, or num_examples and num_shards"
        )
    num_examples, num_shards = stated["num_examples"], stated["num_shards"]
    if not 1 <= num_shards <= MAX_NUM_SHARDS:
        raise DatasetError(f"num_shards {num_shards} is not between 1 and {MAX_NUM_SHARDS}")
    if round(num_examples * num_shards / num_shards) != num_examples:
        raise DatasetError(
            f"num_examples {num_examples} is too large for TFDS's boundaries, which are floats; "
            "give shard_lengths"
        )
    return Split.even(
        name=name,
        num_examples=num_examples,
        num_shards=num_shards,
        files=(naming.files(split, name, num_shards),),
        num_bytes=num_bytes,
    )


def _shard_lengths(value: object) -> PackedInts:
    lengths = fields.items(value, "shard_lengths")
    if len(lengths) > MAX_NUM_SHARDS:
        raise DatasetError(f"{len(lengths)} shard_lengths; at most {MAX_NUM_SHARDS} are read")
    return fields.counts(lengths, "length of shard {}")
