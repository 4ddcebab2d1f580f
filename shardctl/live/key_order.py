"""The keys of the records that one host reads in tf.data's order, counted from a position on."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, cached_property
from itertools import zip_longest
from os.path import basename
from typing import Annotated, Any

import numpy as np

from shardctl.base.arguments import Kind
from shardctl.base.arrays import Int64s
from shardctl.base.phrase import refused
from shardctl.base.text import counted, dataset_title, printable
from shardctl.dataset.dataset import Dataset, as_dataset
from shardctl.errors import DatasetError, UsageError
from shardctl.files import fields
from shardctl.files.parse import parse_json
from shardctl.order.order import Order
from shardctl.order.plan_order import PlannedOrder, plan_order
from shardctl.order.reader_order import ReaderOrder
from shardctl.order.resolved_spec import why_not_as_dataset
from shardctl.saved.position_file import PositionRecord, position_text
from shardctl.saved.resume_plan import RunSegment, settings_as_planned
from shardctl.settings.read_settings import ReadSettings, SettingsLike, as_settings
from shardctl.spec.reads import reads_of
from shardctl.tfds.builder_layout import dataset_of
from shardctl.tfds.position_counting import SHAREABLE, check_same_order, records_of, stretch_of
from shardctl.verbs.resume.stopped_hosts import SharedRun, shared_run

_CHUNK = 1 << 16  # keys made at once; some of the time goes into the first of them
_KEPT = 4  # threads that read ahead are in two of them where one ends


class KeyOrder:
    """Which record of a data source is at which place of an order, counted from `consumed` on.

    A key counts the records of `tfds.data_source(split=spec)`: the examples of the spec in the
    order of the files. `stretches` are what came before in a run that continued with other hosts.
    Threads may ask at once; a pickled one is planned anew where it is read, and takes no room.

    >>> from shardctl.dataset.dataset import Split
    >>> train = Split.even(name="train", num_examples=12, num_shards=3)
    >>> order = KeyOrder(Dataset(name="d", splits=(train,)), "train[2:]",
    ...                  ReadSettings(cycle=2, block=2))
    >>> len(order), [order.key(i) for i in range(10)]
    (10, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """

    def __init__(
        self,
        dataset: Dataset,
        spec: str | None,
        settings: ReadSettings,
        *,
        stretches: tuple[RunSegment, ...] = (),
        consumed: int = 0,
    ) -> None:
        if not settings.reader.on_tf_data:
            raise refused(
                "{loader=}: it is tf.data's order that a loader is fed here, that of "
                "{loader=tfds}; for its own take its own sampler",
                loader=settings.loader,
            )
        self.stretches, self.consumed = stretches, consumed
        planned = plan_order(dataset, spec, settings)
        order = planned.order
        if not isinstance(order, ReaderOrder):
            raise refused(
                "{stages}: a loader is fed the order of a reader, shard, shuffle, repeat and "
                "batch in this order; write other stages as operations of the loader"
            )
        # Short settings may have come of stages.
        self.settings = settings_as_planned(order.settings, ordered=order.dataset.ordered)
        self.dataset, self.spec = order.dataset, planned.spec
        self._plan(planned)
        if not 0 <= consumed <= self.total:
            raise refused("{consumed=}: the order has {} examples", self.total, consumed=consumed)

    def __len__(self) -> int:
        """Return how many records are left from the place on."""
        return self.total - self.consumed

    @property
    def total(self) -> int:
        """Number of examples that this host yields, also those before the place."""
        return self.order.num_examples if self._run is None else self._run.num_examples

    @property
    def order(self) -> Order:
        """The order of the whole, or that of the epochs behind a shared rest."""
        return self.planned.order

    @cached_property
    def num_records(self) -> int:
        """Number of records of the data source: all that the spec selects."""
        return sum(piece.stop - piece.start for piece in self.planned.ranges)

    def key(self, index: int) -> int:
        """Return the key of the record at an index, counted from the place; it is in the order."""
        # Keys are made in chunks of _CHUNK. A chunk that is there is read without the lock:
        # `_chunks` is replaced, never changed.
        block, offset = divmod(index + self.consumed, _CHUNK)
        keys = self._chunks.get(block)
        if keys is None:
            keys = self._made(block)
        found: int = keys[offset]
        return found

    def epoch(self, index: int) -> int:
        """Return the epoch of the pass that an index is in."""
        position, size = index + self.consumed, max(self.order.epoch_size, 1)
        if self._run is None:
            return position // size
        # The run continues in the middle of epoch `rest.epoch`; whole epochs of `size` follow the
        # shared rest.
        rest = self._run.rest
        return rest.epoch + max(0, 1 + (position - rest.size) // size)

    @property
    def passes_are_alike(self) -> bool:
        """Whether each pass of tf.data over its dataset has this one order."""
        now = self.settings
        files = not now.shuffles_files or now.reshuffle is False
        return files and (now.buffer is None or now.buffer_reshuffle is False)

    def of_pass(self, index: int, **changes: Any) -> KeyOrder:
        """Return the order of a pass over the same dataset, from the start."""
        settings = replace(self.settings, pass_index=index, **changes)
        return KeyOrder(self.dataset, self.spec, settings)

    def _plan(self, planned: PlannedOrder) -> None:
        self._run: SharedRun | None = None
        if self.stretches:
            self._run = shared_run(planned.resolved, self.settings, self.stretches)
            planned = self._run.planned
        self.planned = planned
        self._chunks: dict[int, Any] = {}
        self._lock = threading.Lock()

    def _made(self, block: int) -> Any:
        # Another thread may have made the chunk while this one waited.
        with self._lock:
            if block in self._chunks:
                return self._chunks[block]
            start = block * _CHUNK
            # Of a memoryview an element is a Python int, and four times as fast as of an array.
            made: Any = self._keys(start, min(start + _CHUNK, self.total))
            keys = memoryview(made)
            # A new dict, so that readers without the lock see the old or the new one. The chunk
            # made longest ago goes.
            chunks = {**self._chunks, block: keys}
            while len(chunks) > _KEPT:
                del chunks[next(iter(chunks))]
            self._chunks = chunks
            return keys

    def _keys(self, start: int, stop: int) -> Int64s:
        run, (firsts, offsets) = self._run, self._ranges
        codes = np.concatenate([*(self.order.chunks if run is None else run.chunks)(start, stop)])
        # The last piece that begins at or before each code; its offset makes the key.
        keys: Int64s = codes + offsets[np.searchsorted(firsts, codes, side="right") - 1]
        return keys

    @cached_property
    def _ranges(self) -> tuple[Int64s, Int64s]:
        """The first codes of pieces of the spec, sorted, and what makes a key of a code there.

        An example that is read twice has two keys, under which lies the same record.
        """
        splits = [split.name for split in self.dataset.splits]
        bases = self.order.codes.bases
        # Keys count the records of the spec in the order of its ranges; codes count all examples of
        # the splits.
        pieces, key = [], 0
        for piece in self.planned.ranges:
            first, size = piece.start, piece.stop - piece.start
            first += int(bases[splits.index(piece.split.name)])
            pieces.append((first, key - first, size))
            key += size
        return _without_overlap(pieces)

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in ("spec", "settings", "stretches", "consumed")}
        return {"dataset": replace(self.dataset, features=None), **kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._plan(plan_order(self.dataset, self.spec, self.settings))


def _without_overlap(pieces: Sequence[tuple[int, int, int]]) -> tuple[Int64s, Int64s]:
    """Return (first codes, sorted; offsets) of pieces none of which begins within another.

    Each piece is (first code, offset, size). Each code of one is in the piece that is found for it
    by `searchsorted`.

    >>> [a.tolist() for a in _without_overlap([(5, -5, 5), (0, 10, 8)])]
    [[0, 8], [10, -5]]
    """
    kept: list[tuple[int, int]] = []
    end = 0
    # A piece that lies within the ones before is dropped: its codes have a key already.
    for first, offset, size in sorted(pieces):
        if size and first + size > end:
            kept.append((max(first, end), offset))
            end = first + size
    firsts, offsets = np.array(kept or [(0, 0)], np.int64).T
    return firsts, offsets


class HasOrder:
    """What yields the records of an order."""

    _order: KeyOrder

    @property
    def settings(self) -> ReadSettings:
        """The settings in force."""
        return self._order.settings

    @property
    def order(self) -> KeyOrder:
        """The order, from the place on at which it begins."""
        return self._order


# Where a loader that is fed an order begins, and where it continues after a run that stopped.


def check_number(name: str, value: int, most: int) -> None:
    """Refuse a number that is not from 0 to the most; `name` is the argument.

    Raises:
        UsageError: it is not.
    """
    if not 0 <= value <= most:
        raise UsageError(f"{name}={value}: a number from 0 to {most} is needed")


def order_from(
    dataset: Any,
    spec: str | None,
    settings: SettingsLike | None,
    *,
    consumed: int,
    states: Sequence[Any],
    after: Callable[[KeyOrder, Sequence[Any]], KeyOrder],
) -> KeyOrder:
    """Return the order of a spec from a place on, warned of what surprises about it.

    `states` are those of a run that stopped, in place of `consumed`; `after` continues there.

    Raises:
        UsageError: both are given; as for `KeyOrder`.
    """
    if states and consumed:
        raise refused("{consumed=} and states: one of them", consumed=consumed)
    # The settings are checked by the plan, before the states are.
    order = KeyOrder(dataset, spec, as_settings(settings), consumed=consumed)
    not_by_tf_data = why_not_as_dataset(order.dataset)  # and need not
    for warning in order.planned.warnings:
        # A format that tf.data cannot read is no problem here: the records come from a data source.
        if not_by_tf_data is None or not warning.startswith(not_by_tf_data):
            warnings.warn(warning, stacklevel=4)  # past @checked
    return after(order, states) if states else order


def kind_of_state(returned: str, needed: str, several: str) -> Kind:
    """Return what takes a state: a mapping, or its JSON as text or bytes.

    `returned` says in an error where it comes from.
    """

    def document(value: Any) -> Mapping[str, object]:
        if isinstance(value, Mapping):
            return value
        text = value.encode() if isinstance(value, str) else value
        if not isinstance(text, bytes):
            raise UsageError(f"{returned}, is needed")
        return fields.mapping(parse_json(text, source="the state"), "the state")

    return Kind(take=document, needed=needed, several=several)


def record_at(order: KeyOrder, consumed: int) -> PositionRecord:
    """Return the position after so many examples of an order, counted from its start."""
    return PositionRecord(
        dataset=order.dataset.identity,
        spec=order.spec,
        settings=order.settings,
        consumed=consumed,
        stretches=order.stretches,
    )


def continued(order: KeyOrder, records: Sequence[PositionRecord]) -> KeyOrder:
    """Return the order from where a run stopped, whose processes had these positions.

    With as many hosts this one continues with its own state, which is enough; otherwise what all
    of them have left is shared, as `Position.set_states` does.

    Raises:
        DatasetError: a state of another dataset.
        UsageError: another spec or other settings, a host whose state is missing, or files that
            repeat without end, of which nothing is left to share.
    """
    host, here = order.settings.host, (order.spec, order.settings, order.dataset)
    if len(records) != 1 or records[0].settings.host != host:
        # Written and read back, so that all records pass the same checks as those of files.
        records = records_of([position_text(record) for record in records])
    # With as many hosts, this host's own state is enough; the settings besides `host` must be
    # equal.
    own = [record for record in records if record.settings.host == host]
    besides = ("host",) if own else SHAREABLE
    for record in own or records:
        check_same_order(record, *here, {}, allow_version=False, besides=besides)
    if own:
        consumed, stretches = own[0].consumed, own[0].stretches
    # The order itself says why its rest cannot be shared among other hosts.
    elif why := order.order.why_unshared:
        raise refused("states of {} processes for other hosts: {}", len(records), why)
    else:
        consumed, stretches = 0, (*records[0].stretches, stretch_of(records))
    place: dict[str, Any] = {"stretches": stretches, "consumed": consumed}
    return KeyOrder(order.dataset, order.spec, order.settings, **place)


# Is a data source that of the dataset and spec whose order it is read in?

_NEEDED = 'a TFDS builder, a reference as "mnist", a path, a list of these, or a Dataset'


def _dataset(value: Any) -> Any:
    if hasattr(value, "info") and hasattr(value, "data_dir"):
        # A builder is known by what it has; TFDS is not imported for the question.
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
    # Texts and dicts have a length and can be indexed, but not by record number.
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
    # The length first, which every source has; then the dataset, then the files.
    if len(source) != order.num_records:
        raise DatasetError(
            f"source has {counted(len(source), 'record')}, and {spec} of {title} "
            f"{counted(order.num_records, 'example')}: give that of tfds.data_source with "
            f"split={spec!r}, whole and in its own order"
        )
    info = getattr(source, "dataset_info", None)
    if info is None or not hasattr(source, "split"):
        return
    ours, config, version = order.dataset, getattr(info, "config_name", None), str(info.version)
    theirs = dataset_title(info.name, config or None, version)
    # What one side does not state (config, version) is taken as equal.
    if theirs != dataset_title(ours.name, ours.config or config or None, ours.version or version):
        raise DatasetError(f"source is of {printable(theirs)}, and the order one of {title}")
    _check_files(source, info, order)


def _check_files(source: Any, info: Any, order: KeyOrder) -> None:
    split = next(iter(info.splits)) if source.split is None else source.split
    theirs = [*_pieces(info.splits[split].file_instructions, info.file_format)]
    ours = [*_pieces(reads_of(order.dataset, order.planned.ranges), order.dataset.file_format)]
    if theirs == ours:
        return
    # Both lists to the end of the longer one, so that a missing file differs as well.
    pairs = enumerate(zip_longest(theirs, ours))
    at, (their, our) = next((at, pair) for at, pair in pairs if pair[0] != pair[1])
    raise DatasetError(
        f"source reads {printable(str(source.split))}: its file {at} is {_shown(their)} where the "
        f"order of {printable(order.spec)} of {order.dataset.title} has {_shown(our)}; give the "
        "dataset of the source, or prepare both formats with the same number of shards"
    )


def _shown(piece: tuple[str, int, int, int] | None) -> str:
    return "none" if piece is None else f"{printable(piece[0])} of {counted(piece[3], 'example')}"


def _pieces(instructions: Any, file_format: Any) -> Iterator[tuple[str, int, int, int]]:
    suffix = str(getattr(file_format, "value", file_format))
    # A negative `take` of TFDS means all that is left of the shard.
    for one in instructions:
        size = one.examples_in_shard
        if take := size - one.skip if one.take < 0 else one.take:
            # Copies in two formats differ in the suffix of their file names.
            name = basename(str(one.filename)).replace(f".{suffix}", ".*")
            yield name, one.skip, take, size


# Examples with the types of their features: a data source yields Python numbers without.

_TEXTS = ("object_", "object", "str", "str_", "bytes_")


def says_types(source: Any) -> bool:
    """Return whether a data source knows the types of its features, as TFDS's do."""
    return getattr(getattr(source, "dataset_info", None), "features", None) is not None


def types_of(source: Any) -> Any:
    """Return the types of the features of a source that knows them: names of NumPy's, or None."""
    return _types(source.dataset_info.features.get_tensor_info())


def may_have_texts(source: Any) -> bool:
    """Return whether examples may have texts; False where the types of a source say they do not.

    >>> may_have_texts([{"x": 1}])
    True
    """

    def has(types: Any) -> bool:
        # None is a feature without one NumPy type, which may hold anything.
        return (
            any(map(has, types.values()))
            if isinstance(types, dict)
            else (types is None or is_text(types))
        )

    return not says_types(source) or has(types_of(source))


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
    # Runs for each value of each example, so arrays, which most are, are asked for first.
    if type(value) is np.ndarray:
        return value
    if isinstance(types, dict) and isinstance(value, dict):
        return {name: typed(one, types.get(name)) for name, one in value.items()}
    if not isinstance(types, str) or is_text(types):
        return value
    if isinstance(value, bool | int | float):
        return _scalar(types)(value)
    with suppress(TypeError, ValueError):  # rows of several lengths are no array
        return np.asarray(value, types) if isinstance(value, list) else value
    return value


@cache
def _scalar(name: str) -> Any:
    return np.dtype(name).type


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
