"""From the states of the hosts of a run that stopped to the position where this host continues."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from shardctl.base.arguments import checked
from shardctl.base.text import printable
from shardctl.base.tfds_rules import INT64_MAX
from shardctl.dataset.dataset import Dataset
from shardctl.errors import DatasetError, UsageError
from shardctl.files import fields
from shardctl.files.parse import parse_json
from shardctl.live.key_order import KeyOrder, continued, kind_of_state
from shardctl.live.key_order import order_from as order_of_states
from shardctl.loaders.grain import GrainSequence
from shardctl.loaders.grain_states import elements_of, state_of
from shardctl.order.loader_order import LoaderOrder
from shardctl.order.order import Order
from shardctl.saved import position_file
from shardctl.settings.read_settings import ReadSettings, settings_in_force, settings_of_document
from shardctl.tfds.position_counting import check_same_order


def order_after(order: KeyOrder, states: Sequence[bytes]) -> KeyOrder:
    """Return the order from where a run stopped, whose processes had these states of Grain.

    Raises:
        DatasetError, UsageError: a state is none, or as for `continued`.
    """
    records = [_record(state, order, f"states[{index}]") for index, state in enumerate(states)]
    return continued(order, records)


order_from = partial(order_of_states, after=order_after)


@checked
def consumed(state: GrainState, *, batch: int = 1, order: Order | None = None) -> int:
    """Return how many examples had been yielded, by the state of an iterator.

    `state` is what `get_state` returned, or a file of Grain's checkpoint holds. That of a
    `DataLoader` over a `shardctl.grain.Sampler`, or of an `elastic_iterator`, says all, and counts
    from the order's start. That of an iterator behind a `MapDataset` counts elements from where the
    dataset began: `batch` is the size of its batches, and the last of them is counted as a whole
    one. Of another chain, or of a DataLoader with one of Grain's samplers, `order` is the order
    that is predicted for it.

    >>> consumed({"next_index": 7}, batch=32)
    224
    >>> import shardctl
    >>> stages = "shuffle(seed=1) | repeat | to_iter_dataset | batch(32)"
    >>> planned = shardctl.plan_order("mnist", loader="grain", stages=stages)
    >>> consumed({"next_index": 224}, order=planned.order)
    224

    Raises:
        DatasetError: a state of another sampler, or that is none.
        UsageError: a state of another chain than that of `order`.
    """
    if order is not None:
        sequence = _sequence(order)
        return sequence.starts_of(elements_of(sequence.config, state))
    # Only a DataLoader's state has the indices of its workers; ours of an `elastic_iterator` too.
    if _INDICES in state or ELASTIC in state:
        return consumed_of(state, source="the state")
    return examples_of_elements(elements_of_iterator(state), batch)


@checked
def state_at(order: Order, consumed: int, *, state: GrainState | None = None) -> Any:
    """Return the state from which an iterator of Grain continues after so many examples.

    It is what `set_state` takes: a mapping, of a `DataLoader` its JSON as bytes. Such a state names
    the sampler and the data source, which are taken from `state`, any one of the same loader.

    >>> import shardctl
    >>> stages = "shuffle(seed=1) | to_iter_dataset | batch(32)"
    >>> planned = shardctl.plan_order("mnist", loader="grain", stages=stages)
    >>> state_at(planned.order, 224)
    {'next_index': 224}

    Raises:
        UsageError: what Grain would write is not known, or the place is in the midst of a batch.
    """
    sequence = _sequence(order)
    elements = sequence.elements_before(consumed)
    found = state_of(sequence.config, elements, state)
    return json.dumps(found).encode() if _INDICES in found else found


def _sequence(order: Order) -> GrainSequence:
    if not isinstance(order, LoaderOrder) or not isinstance(order.sequence, GrainSequence):
        raise UsageError("order is of another loader; plan_order(.., loader='grain') makes one")
    return order.sequence


def examples_of_elements(elements: int, batch: int) -> int:
    """Return how many examples so many elements hold, each a batch.

    Raises:
        UsageError: no size of a batch, or more examples than an int64 counts.
    """
    if not 1 <= batch <= INT64_MAX // max(elements, 1):
        raise UsageError(f"--batch {batch}: {elements} elements of that size")
    return elements * batch


def consumed_of(state: Mapping[str, object], *, source: str) -> int:
    """Return how many examples a state of a DataLoader says, counted from the order's start.

    Raises:
        DatasetError: it is no state of a DataLoader over a sampler of ours, or of an
            `elastic_iterator`, or damaged.
    """
    return _consumed(_place(state, source), state, source)


def _record(state: bytes, order: KeyOrder, source: str) -> position_file.PositionRecord:
    document = fields.mapping(parse_json(state, source=source), source)
    # A position's own state is accepted as well.
    if document.get("kind") == position_file.POSITION_KIND:
        return position_file.position_of_text(state, source=source)
    if _INDICES not in document and ELASTIC not in document:
        raise DatasetError(
            f"{source}: the state of an iterator of a MapDataset does not say of which order; give "
            "what map_dataset(..).position(state) makes of it"
        )
    place = _place(document, source)
    consumed = _consumed(place, document, source)
    return record_of_place(place, order.dataset, consumed, source=source)


def elastic_index(state: Mapping[str, object], order: KeyOrder) -> int:
    """Return how many examples of an order all processes had, by the state of any one of them.

    Raises:
        DatasetError, UsageError: no state of an `elastic_iterator`, or one of another order.
    """
    record = _record(json.dumps(state).encode(), order, "the state")
    check_same_order(record, order.spec, order.settings, order.dataset, {}, allow_version=False)
    index = record.consumed - order.consumed
    if record.stretches != order.stretches or index < 0:
        raise UsageError(
            f"the state is after {record.consumed} examples of a run, and this dataset begins "
            f"after {order.consumed}, or of another one; map_dataset(.., states=[state]) begins "
            "where the state is"
        )
    return index


def _place(state: Mapping[str, object], source: str) -> Mapping[str, object]:
    with fields.said_about(source):
        text = fields.text(state.get("sampler"), "sampler")
    source = f"{source}, its sampler"
    found = _FORM.fullmatch(text)
    if found is None:
        raise DatasetError(
            f"{source} is of another sampler than shardctl.grain's: {printable(text, 80)}"
        )
    return fields.mapping(parse_json(found["place"].encode(), source=source), source)


def _consumed(place: Mapping[str, object], state: Mapping[str, object], source: str) -> int:
    if ELASTIC in state:
        with fields.said_about(source):
            before, size, ahead = (
                fields.count(where.get(name), name)
                for where, name in ((place, "consumed"), (place, "size"), (state, ELASTIC))
            )
            return min(before + ahead, size)
    # Records that workers have read, counted from where the sampler began.
    records = records_of_data_loader(state, source=source)
    with fields.said_about(source):
        before, size, workers, batch = (
            fields.count(place.get(name), name) for name in ("consumed", "size", "workers", "batch")
        )
        # `size` is that of the whole order; the sampler began at `before`.
        return before + Deal(size=size - before, workers=workers, batch=batch).consumed(records)


# What the states of Grain's iterators say: how many records each worker has read.
#
# Those of a `DataLoader` and of the iterators behind a `MapDataset` as Grain 0.2.18 writes them.


# What `get_state` of an iterator returns: bytes of a DataLoader's, a mapping of a MapDataset's.
GrainState = Annotated[
    Any,
    kind_of_state(
        "what get_state() returned, or a checkpoint's file holds",
        "a state of a Grain iterator",
        "states of Grain",
    ),
]


_INDICES = "last_seen_indices"  # of a DataLoader, which names its sampler
ELASTIC = "global_next_index"  # of an ElasticIterator, the same in all processes


def records_of_data_loader(state: Mapping[str, object], *, source: str) -> list[int]:
    """Return how many records each worker of a DataLoader has read, in their order.

    Grain writes the last index of the sampler that each has read (`_DataLoaderStateIterDataset`).

    >>> records_of_data_loader(
    ...     {"version": 2, "worker_count": 2, "last_seen_indices": {"0": 6, "1": -1}}, source="it")
    [4, 0]

    Raises:
        DatasetError: a state of another version, or damaged.
    """
    with fields.said_about(source):
        if state.get("version") != 2:
            raise DatasetError(f"version {fields.shown(state.get('version'))} of Grain's states")
        count = max(fields.count(state.get("worker_count"), "worker_count"), 1)
        last = fields.mapping(state.get(_INDICES), _INDICES)
        # Workers "0" to "W-1", each exactly once.
        if {*last} != {str(worker) for worker in range(count)}:
            raise DatasetError(f"last_seen_indices of {len(last)} workers, not of {count}")
        records = []
        for worker in range(count):
            index = last[str(worker)]
            if type(index) is not int:
                raise DatasetError(f"last_seen_indices: {fields.shown(index)} is no index")
            # Worker w reads w, w + W, ..; before the first record its last index is w - W, which
            # gives 0.
            number, wrong = divmod(index - worker + count, count)
            if wrong or number < 0:
                raise DatasetError(
                    f"last_seen_indices: worker {worker} of {count} does not read index {index}; "
                    "the sampler is for a DataLoader with NoSharding()"
                )
            records.append(number)
        return records


def elements_of_iterator(state: Mapping[str, object]) -> int:
    """Return how many elements an iterator of a MapDataset has yielded, with any workers.

    >>> elements_of_iterator({"next_index": 7})
    7

    Raises:
        DatasetError: it is no such state, or workers took other turns than one after the other.
    """
    if "next_index" in state:
        return fields.count(state["next_index"], "next_index")
    if "iterators_in_use_states" not in state:
        raise DatasetError(
            "the state is of no iterator of a DataLoader or of MapDataset.to_iter_dataset() with "
            f"mp_prefetch() or without: {json.dumps(sorted(map(str, state)))[:200]}"
        )
    workers = fields.items(state["iterators_in_use_states"], "iterators_in_use_states")
    # None: a worker that has not begun.
    of_each = [{"next_index": 0} if worker is None else worker for worker in workers]
    name = "iterators_in_use_states"
    counts = [elements_of_iterator(fields.mapping(one, name)) for one in of_each]
    total = sum(counts)
    # In turn: worker w of W has yielded elements w, w + W, .. below the total.
    if counts != [len(range(worker, total, len(counts))) for worker in range(len(counts))]:
        raise DatasetError(
            f"the workers have yielded {', '.join(map(str, counts))} elements, not one after "
            "the other"
        )
    return total


# How records are dealt to worker processes so that the batches they make are tf.data's.
#
# Grain hands record i of a sampler to worker i % W, each worker makes batches of what it is handed,
# and the loader takes a batch of each worker in turn (grain/_src/python/data_loader.py and
# dataset/transformations/process_prefetch.py, 0.2.18).


@dataclass(frozen=True, kw_only=True, slots=True)
class Deal:
    """Which position of an order record i of the sampler is, so that worker w makes batch w + kW.

    size: how many examples the order has.
    workers: worker processes; 0 and 1 take the records one after the other.
    batch: the size of the batches that workers make; 1 where they make none.

    >>> [Deal(size=8, workers=2, batch=2).position_of(i) for i in range(8)]
    [0, 2, 1, 3, 4, 6, 5, 7]
    """

    size: int
    workers: int
    batch: int

    @property
    def is_in_order(self) -> bool:
        """Whether records are yielded one after the other, so that nothing is to be undone."""
        return self.workers < 2 or self.batch == 1

    @property
    def is_even(self) -> bool:
        """Whether the workers have a whole number of batches each, none of which is smaller."""
        return self.is_in_order or self.size % (self.workers * self.batch) == 0

    @property
    def num_padded(self) -> int:
        """Number of records up to the end of the last round, `size` and what pads it.

        A position from `size` on is a record that is there to be dropped.

        >>> Deal(size=9, workers=2, batch=2).num_padded
        12
        """
        if self.is_in_order:
            return self.size
        # Rounded up to whole rounds of a batch from each worker.
        of_round = self.workers * self.batch
        return -(-self.size // of_round) * of_round

    def position_of(self, index: int) -> int:
        """Return the position that record `index` of the sampler is."""
        if self.is_in_order:
            return index
        of_worker, worker = divmod(index, self.workers)
        # The worker's k-th record belongs to its batch k // batch, and that batch is number k //
        # batch * W + worker of the order.
        return (of_worker // self.batch * self.workers + worker) * self.batch + (
            of_worker % self.batch
        )

    def consumed(self, records: Sequence[int]) -> int:
        """Return how many examples are yielded when each worker has read so many records.

        Raises:
            DatasetError: the workers have read what is no beginning of the order.

        >>> Deal(size=9, workers=2, batch=2).consumed([4, 2]), Deal(
        ...     size=9, workers=2, batch=2).consumed([5, 4])
        (6, 9)
        """
        count = max(self.workers, 1)
        if len(records) != count or min(records) < 0:
            raise DatasetError(f"{len(records)} workers' counts where {count} workers read")
        # What pads the end comes behind all that a worker reads besides.
        own = [min(number, self._of_worker(w, self.size)) for w, number in enumerate(records)]
        consumed = sum(own)
        is_whole = self.is_in_order or consumed == self.size or consumed % self.batch == 0
        # What was read must be a beginning of the order, cut between batches.
        if not is_whole or own != [self._of_worker(w, consumed) for w in range(count)]:
            raise DatasetError(
                f"the workers have read {', '.join(map(str, records))} records, which are no "
                f"batches of {self.batch} one after the other"
            )
        return consumed

    def _of_worker(self, worker: int, size: int) -> int:
        """Return how many of the first `size` positions are a worker's."""
        count = max(self.workers, 1)
        # Full rounds, then what the last round has for this worker: 0 to `batch`.
        rounds, rest = divmod(size, count * self.batch)
        return rounds * self.batch + min(max(rest - worker * self.batch, 0), self.batch)


# A place in an order as text: what Grain keeps of a sampler.
#
# Grain writes `repr(sampler)` into its checkpoints and restores where it is the same text. So it
# says all that the order follows from, and nothing that another release or folder would change.

_FORM = re.compile(r"shardctl\.grain\.Sampler\((?P<place>\{.*\})\)", re.DOTALL)
_ALWAYS = ("cycle", "block")  # whose defaults are TFDS's, and of files in order others


def place_text(order: KeyOrder, **others: int | None) -> str:
    """Return what a sampler of an order is called: its dataset, spec, settings and place.

    `others` are numbers that Grain is to compare too. Settings that are as without any are left
    out, so that a new one changes no text.
    """
    identity = order.dataset.identity
    default = settings_in_force(ReadSettings(), ordered=identity.ordered)
    settings = {
        name: value
        for name, value in settings_in_force(order.settings, ordered=identity.ordered).items()
        if name in _ALWAYS or value != default.get(name)
    }
    document: dict[str, Any] = {
        "dataset": identity.title,
        "fingerprint": identity.fingerprint,
        "spec": order.spec,
        "settings": settings,
        "size": order.total,
        "consumed": order.consumed,
        **{name: value for name, value in others.items() if value is not None},
    }
    if order.stretches:
        document["stretches"] = [position_file.stretch_document(one) for one in order.stretches]
    return f"shardctl.grain.Sampler({json.dumps(document)})"


def record_of_place(
    place: Mapping[str, object], dataset: Dataset, consumed: int, *, source: str
) -> position_file.PositionRecord:
    """Return the position after so many examples of the order that a place is in.

    Raises:
        DatasetError: it is of another dataset than `dataset`, or damaged.
    """
    identity = dataset.identity
    with fields.said_about(source):
        title = fields.text(place.get("dataset"), "dataset")
        if place.get("fingerprint") != identity.fingerprint:
            now = "" if title == identity.title else f" {printable(identity.title)}, with"
            raise DatasetError(
                f"it is of {printable(title)}, and this is{now or ' the same name with'} other "
                "files: their names or lengths differ; if it is the same order, begin with the "
                f"count that it holds, consumed={consumed}"
            )
        settings = settings_in_force(ReadSettings(), ordered=identity.ordered)
        settings |= fields.mapping(place.get("settings"), "settings")
        return position_file.PositionRecord(
            dataset=identity,
            spec=fields.text(place.get("spec"), "spec"),
            settings=settings_of_document(settings, "settings"),
            consumed=consumed,
            stretches=position_file.stretches_of_document(place.get("stretches", [])),
        )
