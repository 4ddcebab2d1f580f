"""The head that every document of ours begins with: its kind, and which dataset it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from shardctl.base.text import quoted
from shardctl.dataset.identity import DatasetHead, DatasetIdentity, SplitSize
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
            # Fields that are None are left out, as a file of an older version has none of them.
            {key: value for key, value in asdict(split).items() if value is not None}
            for split in dataset.splits
        ],
    }


def read_head(document: Mapping[str, object]) -> DatasetHead:
    """Return what the head of a document says of its dataset.

    Raises:
        DatasetError: a field is missing or ill-formed.
    """
    return fields.record(DatasetHead, document.get("dataset"), "dataset")


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


def read_split_sizes(value: object) -> tuple[SplitSize, ...]:
    """Return the sizes of splits from the list of them, each split there once, or raise."""
    sizes: dict[str, SplitSize] = {}
    for index, item in enumerate(fields.items(value, "splits")):
        size = fields.record(SplitSize, item, f"splits[{index}]")
        if size.name in sizes:
            raise DatasetError(f"split {quoted(size.name)} is there twice")
        sizes[size.name] = size
    return tuple(sizes.values())


def own_version() -> str:
    """Return the version of shardctl, which stands where the package begins.

    >>> own_version().count(".")
    2
    """
    from shardctl import __version__

    return __version__
