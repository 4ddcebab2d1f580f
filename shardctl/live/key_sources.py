"""Is a data source that of the dataset and spec whose order it is read in?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from os.path import basename
from typing import Annotated, Any

from shardctl.base.arguments import Kind
from shardctl.base.text import counted, printable
from shardctl.dataset.dataset import Dataset, as_dataset, dataset_title
from shardctl.errors import DatasetError, UsageError
from shardctl.live.key_order import KeyOrder
from shardctl.spec.reads import reads_of
from shardctl.tfds.builder_layout import dataset_of

_NEEDED = 'a TFDS builder, a reference as "mnist", a path, a list of these, or a Dataset'


def _dataset(value: Any) -> Any:
    if hasattr(value, "info") and hasattr(value, "data_dir"):
        return dataset_of(value)
    try:
        return as_dataset(value)
    except UsageError as error:
        if not isinstance(value, Dataset | str) and "is needed" in str(error):
            raise UsageError(f"{_NEEDED} is needed") from None
        raise


# What is read: as for the verbs, or a builder of TFDS.
BuilderOrDataset = Annotated[
    Any, Kind(take=_dataset, needed=_NEEDED, several="datasets", exact=frozenset({Dataset}))
]


def _is_source(value: Any) -> Any:
    try:
        len(value)
    except TypeError:
        has_length = False
    else:
        has_length = hasattr(value, "__getitem__")
    if not has_length or isinstance(value, str | bytes | dict):
        raise UsageError("a data source is needed, as tfds.data_source(name, split=spec)")
    return value


DataSource = Annotated[
    Any, Kind(take=_is_source, needed="a data source, with len() and [key]", several="data sources")
]


def check_source(source: Any, order: KeyOrder) -> None:
    """Refuse a data source that does not hold what the spec of an order selects.

    One of TFDS says of which files it is; of others only the length is known.

    Raises:
        DatasetError: another length, another dataset, or files of other lengths.
    """
    title, spec = order.dataset.title, printable(order.spec)
    if len(source) != order.num_records:
        raise DatasetError(
            f"source has {counted(len(source), 'record')}, and {spec} of {title} "
            f"{counted(order.num_records, 'example')}: give that of tfds.data_source with "
            f"split={spec!r}, whole and in its own order"
        )
    info = getattr(source, "dataset_info", None)
    if info is None or not hasattr(source, "split"):
        return
    config = getattr(info, "config_name", None) or None
    theirs = dataset_title(info.name, config, str(info.version))
    ours = order.dataset
    known = dataset_title(
        ours.name,
        config if ours.config is None else ours.config,
        str(info.version) if ours.version is None else ours.version,
    )
    if theirs != known:
        raise DatasetError(f"source is of {printable(theirs)}, and the order one of {title}")
    _check_files(source, info, order)


def _check_files(source: Any, info: Any, order: KeyOrder) -> None:
    split = next(iter(info.splits)) if source.split is None else source.split
    theirs = [*_pieces_of_source(info.splits[split].file_instructions, info.file_format)]
    ours = [*_pieces(order)]
    if theirs == ours:
        return
    pairs = enumerate(zip_longest(theirs, ours))
    at, (their, our) = next((at, pair) for at, pair in pairs if pair[0] != pair[1])
    raise DatasetError(
        f"source reads {printable(str(source.split))}: its file {at} is {_shown(their)} where the "
        f"order of {printable(order.spec)} of {order.dataset.title} has {_shown(our)}: the order "
        "follows from the lengths of the files, so prepare both formats with as many shards, or "
        "give the dataset of the source"
    )


def _shown(piece: tuple[str, int, int, int] | None) -> str:
    return "none" if piece is None else f"{printable(piece[0])} of {counted(piece[3], 'example')}"


def _pieces_of_source(instructions: Any, file_format: Any) -> Iterator[tuple[str, int, int, int]]:
    suffix = str(getattr(file_format, "value", file_format))
    for one in instructions:
        take = one.examples_in_shard - one.skip if one.take < 0 else one.take
        if take:
            name = _without(basename(str(one.filename)), suffix)
            yield name, one.skip, take, one.examples_in_shard


def _pieces(order: KeyOrder) -> Iterator[tuple[str, int, int, int]]:
    suffix = order.dataset.file_format
    for one in reads_of(order.dataset, order.planned.ranges):
        if one.take:
            yield _without(one.filename, suffix), one.skip, one.take, one.examples_in_shard


def _without(name: str, suffix: str) -> str:
    """Return the name of a file without its format, in which two copies differ.

    >>> _without("toy-train.array_record-00000-of-00001", "array_record")
    'toy-train.*-00000-of-00001'
    """
    return name.replace(f".{suffix}", ".*")


# Examples with the types of their features: a data source hands out Python numbers without.

_TEXTS = ("object_", "object", "str", "str_", "bytes_")


def says_types(source: Any) -> bool:
    """Return whether a data source knows the types of its features, as TFDS's do."""
    return getattr(getattr(source, "dataset_info", None), "features", None) is not None


def types_of(source: Any) -> Any:
    """Return the types of the features of a source that knows them: names of NumPy's, or None."""
    return _types(source.dataset_info.features.get_tensor_info())


def is_text(type_name: str) -> bool:
    """Return whether a type is that of texts, which NumPy has no fixed width for."""
    return type_name in _TEXTS


def typed(value: Any, types: Any) -> Any:
    """Return an example whose numbers, and lists of numbers, have the types of their features.

    >>> import numpy as np
    >>> found = typed({"x": 0.5, "ids": [1, 2], "text": b"a"},
    ...               {"x": "float32", "ids": "uint8", "text": "object_"})
    >>> found["x"].dtype, found["ids"].dtype, found["text"]
    (dtype('float32'), dtype('uint8'), b'a')
    """
    if isinstance(types, dict) and isinstance(value, dict):
        return {name: typed(one, types.get(name)) for name, one in value.items()}
    if not isinstance(types, str) or is_text(types):
        return value
    import numpy as np

    if isinstance(value, bool | int | float):
        return np.dtype(types).type(value)
    if isinstance(value, list):
        try:
            return np.asarray(value, types)
        except (TypeError, ValueError):
            return value  # rows of several lengths are no array
    return value


def with_types(source: Any) -> Any:
    """Return a source of the same records, whose examples have the types of their features."""
    return TypedSource(source) if says_types(source) else source


class TypedSource:
    """The records of a data source with the types that tf.data has; called what that is called."""

    def __init__(self, source: Any) -> None:
        self._source, self._types = source, types_of(source)

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: Any) -> Any:
        return typed(self._source[index], self._types)

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return repr(self._source)


def _types(info: Any) -> Any:
    if isinstance(info, dict):
        return {name: _types(one) for name, one in info.items()}
    kind = getattr(info, "np_dtype", None)
    return None if kind is None else str(getattr(kind, "__name__", kind))
