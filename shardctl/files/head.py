"""The head that every document of ours begins with: its kind, and which dataset it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from shardctl.core.dataset.folder_order import FolderIdentity
from shardctl.core.dataset.identity import DatasetHead, DatasetIdentity, SplitSize
from shardctl.core.text import quoted
from shardctl.errors import DatasetError
from shardctl.files import fields
from shardctl.files.documents import FORMAT_VERSION, Document


def kind_head(kind: str, *, format_version: int = FORMAT_VERSION) -> Document:
    """Return the fields every document begins with; those of no one dataset have no others."""
    return {"format_version": format_version, "kind": kind}


def head(kind: str, dataset: DatasetHead, *, assumptions: Iterable[str] = ()) -> Document:
    """Return the fields that a document about a dataset begins with.

    assumptions: what an answer about an order takes for granted, see `assumed`.
    """
    return {**kind_head(kind), "dataset": dataset.record(), **assumed(assumptions)}


def assumed(assumptions: Iterable[str]) -> Document:
    """Return the field of what an order takes for granted, and none where that is nothing."""
    texts = list(assumptions)
    return {"assumptions": texts} if texts else {}


def identity_head(kind: str, dataset: DatasetIdentity, *, format_version: int) -> Document:
    """Return the fields that a plan or a position begins with: the whole identity of its dataset.

    So a file that is applied to a dataset later can say what changed.
    """
    return {**kind_head(kind, format_version=format_version), **identity_fields(dataset)}


def identity_fields(dataset: DatasetIdentity) -> Document:
    """Return the whole identity of a dataset as the fields that `read_identity` reads."""
    return {
        "dataset": dataset.record(),
        "ordered": dataset.ordered,
        "splits": [
            {key: value for key, value in asdict(split).items() if value is not None}
            for split in dataset.splits
        ],
    }


def read_head(document: Mapping[str, object]) -> DatasetHead:
    """Return what the head of a document says of its dataset.

    Raises:
        DatasetError: a field is missing or ill-formed.
    """
    dataset = fields.mapping(document.get("dataset"), "dataset")
    return DatasetHead(
        name=fields.name(dataset.get("name"), "the dataset's name"),
        config=_optional(dataset.get("config"), "config"),
        version=_optional(dataset.get("version"), "version"),
        file_format=fields.name(dataset.get("file_format"), "file_format"),
        data_dir=_text(dataset.get("data_dir"), "data_dir"),
        fingerprint=fields.name(dataset.get("fingerprint"), "fingerprint"),
        folders=tuple(map(_folder, fields.items(dataset.get("folders", []), "folders"))),
    )


def read_identity(document: Mapping[str, object]) -> DatasetIdentity:
    """Return the whole identity of a dataset, from what `identity_head` makes of it.

    Raises:
        DatasetError: a field is missing or ill-formed.
    """
    return DatasetIdentity(
        **vars(read_head(document)),
        ordered=fields.flag(document.get("ordered"), "ordered"),
        splits=read_split_sizes(document.get("splits")),
    )


def read_refs(document: Mapping[str, object]) -> tuple[str, ...]:
    """Return how the dataset was named when the file was written, or raise; older ones say nothing.

    Paths are relative to the file's own folder.
    """
    refs = fields.items(document.get("refs", []), "refs")
    return tuple(fields.text(ref, "a ref") for ref in refs)


def read_assumptions(document: Mapping[str, object]) -> tuple[str, ...]:
    """Return what the order of a document takes for granted, or raise; mostly nothing."""
    found = fields.items(document.get("assumptions", []), "assumptions")
    return tuple(fields.text(text, "an assumption") for text in found)


def read_split_sizes(value: object) -> tuple[SplitSize, ...]:
    """Return the sizes of splits from the list of them, each split there once, or raise."""
    sizes: dict[str, SplitSize] = {}
    for item in fields.items(value, "splits"):
        size = _split_size(item)
        if size.name in sizes:
            raise DatasetError(f"split {quoted(size.name)} is there twice")
        sizes[size.name] = size
    return tuple(sizes.values())


def _folder(value: object) -> FolderIdentity:
    what = "a folder of the dataset"
    folder = fields.mapping(value, what)
    num_bytes = folder.get("num_bytes")
    splits = fields.items(folder.get("splits"), f"splits of {what}")
    return FolderIdentity(
        path=_text(folder.get("path"), f"path of {what}"),
        title=_text(folder.get("title"), f"title of {what}"),
        fingerprint=fields.name(folder.get("fingerprint"), f"fingerprint of {what}"),
        num_bytes=None if num_bytes is None else fields.count(num_bytes, f"num_bytes of {what}"),
        splits=tuple(fields.text(split, f"a split of {what}") for split in splits),
    )


def _text(value: object, what: str) -> str | None:
    return None if value is None else fields.text(value, what)


def _optional(value: object, what: str) -> str | None:
    return None if value is None else fields.name(value, what)


def _split_size(value: object) -> SplitSize:
    split = fields.mapping(value, "a split")
    return SplitSize(
        name=fields.text(split.get("name"), "the name of a split"),
        num_examples=fields.count(split.get("num_examples"), "num_examples of a split"),
        num_shards=fields.count(split.get("num_shards"), "num_shards of a split"),
        template=_text(split.get("template"), "template of a split"),
    )


def own_version() -> str:
    """Return the version of shardctl, which stands where the package begins.

    >>> own_version().count(".")
    2
    """
    from shardctl import __version__

    return __version__
