"""Counting a training loop: which elements it received, and which of them it has trained on."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any

from shardctl.base.arguments import Kind, whole_number
from shardctl.base.text import choices, counted, printable
from shardctl.dataset.dataset import Dataset
from shardctl.errors import UsageError
from shardctl.order.order import Order
from shardctl.saved.position_file import PositionRecord, position_of_text
from shardctl.saved.resume_plan import RunSegment
from shardctl.settings.read_settings import ReadSettings, SettingsDocument, settings_in_force
from shardctl.settings.table import stages_in
from shardctl.stages.text import text_of
from shardctl.tfds.builder_layout import in_order_of
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.inspecting.graph import call_name
from shardctl.tfds.position_dataset import position_of
from shardctl.tfds.training.own_elements import element_after, width_of
from shardctl.verbs.resume.apply_plan import check_same_dataset

_NEEDED = (
    "a tf.Variable that goes up by one a batch is needed, or a function that returns a number, as "
    "lambda: state.step"
)

# What tf.distribute returns for one element is one value for each replica.
_SEVERAL = (
    "each replica is handed an element of its own: make batches that are for all of them, and part "
    "those, strategy.experimental_distribute_dataset(position.dataset())"
)


def _steps_of(value: Any) -> Callable[[], int]:
    """Return a function that says how many steps are trained by now."""
    if callable(value) and not hasattr(type(value), "__int__"):  # as a variable of Flax has too
        return lambda: whole_number(value())
    whole_number(value)
    kind = type(value)
    # A variable or an array may be another number later, an int or a tensor not; nor one of JAX,
    # where `__setitem__` says so.
    may_change = hasattr(kind, "assign") or hasattr(kind, "__setitem__")
    if not may_change or kind.__module__.partition(".")[0] in ("jax", "jaxlib"):
        raise UsageError(_NEEDED)
    return lambda: whole_number(value)


Steps = Annotated[Any, Kind(take=_steps_of, needed=_NEEDED, several="tf.Variables")]


class Loop:
    """A loop over elements: how many examples it was handed, and how many it has trained on.

    consumed: the examples that it was handed, counted from the start of the order.

    Without `steps` a batch that is yielded counts as trained on. With it a batch does when the
    step has gone up, so that a state which is taken before, or after an error, is that before the
    batch.
    """

    def __init__(self, consumed: int, steps: Callable[[], int] | None) -> None:
        self.consumed = self._before = consumed
        # `consumed` includes the batch in hand, `_before` does not. Which of them is the state
        # depends on whether `step` has gone up.
        self._steps = steps
        self._step = 0 if steps is None else steps()
        self._in_hand = False
        if self._step and not consumed:
            warnings.warn(
                f"the position is at its beginning, and step is {self._step}; was a checkpoint "
                "without the position restored?",
                stacklevel=4,
            )

    def ask(self) -> None:
        """Note that the next element is asked for, so that the one before is trained on.

        Raises:
            UsageError: it is not.
        """
        # Without a batch in hand nothing was yielded, so that there is nothing to compare `step`
        # with.
        if self._in_hand and self._steps is not None:
            now = self._steps()
            if now != self._step + 1:
                raise UsageError(
                    f"step was {self._step} when a batch was yielded, and is {now} when the "
                    "next is asked for: it must have gone up by one; count what the loop itself "
                    "receives, not what reads ahead of it"
                )
            # In this order, here and below: a handler of signals takes a state between any two.
            self._in_hand = False
            self._step = now
        self._in_hand = False

    def hand_out(self, consumed: int) -> None:
        """Note that one more element is yielded, which ends after so many examples."""
        # In this order: a signal between the lines finds a state that is too early at worst, never
        # one that skips a batch. See `ask`.
        self._before = self.consumed
        self._in_hand = True
        self.consumed = consumed

    def trained(self) -> int:
        """Return how many examples were trained on, counted from the start of the order.

        Raises:
            UsageError: step says neither that the last batch was nor that it was not.
        """
        # Without `step` a batch that was yielded counts as trained on.
        if self._steps is None or not self._in_hand:
            return self.consumed
        # Only two values make sense: the step of before the batch, or one more.
        now = self._steps()
        if now not in (self._step, self._step + 1):
            raise UsageError(
                f"step was {self._step} when a batch was yielded, and is {now} now; it must go up "
                "by one for each batch"
            )
        return self._before if now == self._step else self.consumed


class RowCounter:
    """Examples of elements, each one or a batch, by the rows of its first component.

    `first` is how many examples come before the first whole epoch.
    """

    def __init__(self, order: Order, loop: Loop, batch: int | None, first: int) -> None:
        self._order, self._loop, self._batch, self._first = order, loop, batch, first
        self._is_partial = False

    def __call__(self, element: Any) -> int:
        """Return how many examples the next element holds.

        Raises:
            UsageError: more than a batch, or it comes after less than one in mid-epoch.
        """
        # Without a batch size each element is one example.
        if self._batch is None:
            if len(_parts(element)) > 1:
                raise UsageError(_SEVERAL)
            return 1
        rows = _num_rows(element)
        if rows > self._batch:
            raise UsageError(
                f"a batch of {rows} examples where batches of {self._batch} are counted"
            )
        # A batch below the full size ends an epoch. One in the middle means that the dataset was
        # batched otherwise than said.
        if self._is_partial:
            raise UsageError(
                f"a batch of less than {self._batch} examples is followed by another in mid-epoch: "
                f"are these batches of {self._batch}?"
            )
        self._is_partial = rows < self._batch and not self._ends_epoch(self._loop.consumed + rows)
        return rows

    def _ends_epoch(self, consumed: int) -> bool:
        if self._order.sources:
            return True  # perhaps, of one of its sources
        # Epoch boundaries are at first + k * epoch_size. `first` is the shared rest of an
        # interrupted epoch, 0 in an ordinary run.
        behind = consumed - self._first
        # `max(.., 1)`: an empty order has epoch_size 0.
        return behind >= 0 and behind % max(self._order.epoch_size, 1) == 0


class OrderCounter:
    """Examples of the elements that stages yield, as the order says."""

    def __init__(self, order: Order, loop: Loop, batch: int | None, first: int) -> None:
        self._order = order
        self._next = element_after(order, loop.consumed)

    def __call__(self, element: Any) -> int:
        """Return how many examples the next element holds; one more than there are if none."""
        step, self._next = self._next, self._next + 1
        # Past the end of the order: returns 1, so that the caller's sum goes beyond the total and
        # is refused there.
        if self._order.steps_up_to(step + 1) == step:
            return 1
        width = width_of(self._order, step)
        # Replicas hold the parts of one batch; together they must have the rows that the order
        # says.
        if len(_parts(element)) > 1 and _num_rows(element) != width:
            raise UsageError(_SEVERAL)
        return width


def elements_left(order: Order, consumed: int, batch: int | None) -> int | None:
    """Return how many elements are left at most behind so many examples, None if unknown.

    `batch` is that of batches which are made behind the order, perhaps each epoch for itself.
    """
    rest = order.num_examples - consumed
    # Batches that are made behind a mixture may end with any of its sources; their number is not
    # known.
    if order.num_steps is None or (batch is not None and order.sources):
        return None
    if batch is None:
        # `steps_of` returns (steps, offsets in them); the step of the next example is the number of
        # steps before it.
        return order.num_steps - int(order.steps_of([consumed])[0][0]) if rest else 0
    # At most one more batch for each epoch that is begun, since each may end with a partial batch.
    parts = -(-rest // max(order.epoch_size, 1)) if order.epoch_size % batch else 0
    return -(-rest // batch) + parts


def _num_rows(batch: Any) -> int:
    shapes = [tuple(getattr(part, "shape", ())) for part in _parts(batch)]
    # A scalar has shape () and no rows.
    if not all(shapes):
        raise UsageError("elements: batches are counted, and one of them has no rows")
    return sum(int(shape[0]) for shape in shapes)


def _parts(element: Any) -> tuple[Any, ...]:
    """Return the first component of an element, in as many parts as `tf.distribute` made of it."""
    # The first component is enough: all components of a batch have the same number of rows.
    tf = tensorflow()
    first = (*tf.nest.flatten(element), None)[0]
    return first.values if isinstance(first, tf.distribute.DistributedValues) else (first,)


# What a script does with the dataset of a position before it counts the elements.


# After these, the elements are not the next ones of the order, each once.
# Names of the classes in tensorflow/python/data/ops, without "_" and "Dataset", so that `map`,
# `prefetch`, `batch` and `with_options` pass.
_OTHERS = re.compile(
    "AutoShard|Cache|Concatenate|DirectedInterleave|Filter|FlatMap|GlobalShuffle|GroupByReducer|"
    "GroupByWindow|IgnoreErrors|Interleave|LegacyRebatch|LegacySnapshot|ParallelInterleave|Rebatch|"
    "Repeat|Shard|Shuffle|ShuffleAndRepeat|Skip|Snapshot|Unique|Unordered|Window"
)
_CALLS = {
    "AutoShard": "experimental_distribute",
    "DirectedInterleave": "sample_from_datasets",
    "Unordered": "deterministic=False",
}


def check_derived(position: object, elements: Any, *, batched: bool, counts_batches: bool) -> None:
    """Refuse a dataset whose elements are not what is counted: the next of the order, each once.

    `batched` says whether those of the position are batches already, `counts_batches` whether what
    is counted are. Of what does not begin with the dataset of a position nothing is known.

    Raises:
        UsageError: a call behind it picks, repeats or reorders examples, or batches them otherwise
            than they are counted; or these are elements of another position.
    """
    dataset = _dataset_read(elements)
    found = calls_behind(dataset)
    if not found:
        return
    # A dataset may have several positions below it (a zip); it is fine if this one is among them.
    names = next((names for of, names in found if of is position), None)
    if names is None:
        raise UsageError(f"elements: these are of another position, {found[0][0]!r}")
    # The depth of batching: 0 for examples, 1 for batches. `batch` adds a level, `unbatch` removes
    # one.
    depth = int(batched)
    for name in names:
        # "Batch" is also in PaddedBatch and MapAndBatch; DenseToRagged is `ragged_batch`.
        depth += ("Batch" in name or name == "DenseToRagged") - (name == "Unbatch")
        if _OTHERS.fullmatch(name):
            raise UsageError(
                f"{_CALLS.get(name, call_name(name))} behind position.dataset() yields other "
                "examples than the next ones of the order, and counted they would be taken for "
                "those; what the settings say (ReadSettings(buffer=..), stages=..) is counted as "
                "it is"
            )
    if depth != int(counts_batches):
        them = ("examples", "batches", "batches of batches")[min(max(depth, 0), 2)]
        counted_are = "batches" if counts_batches else "examples"
        raise UsageError(
            f"elements: {them} are yielded, and {counted_are} are counted; count(.., batch=N) "
            "says of how many batches are, or ReadSettings(batch=N) makes them"
        )


def check_length(elements: Any, left: int | None) -> None:
    """Refuse a dataset that has more elements than an order has left, None where it is unknown.

    So is one that begins at the start of the order, where a position is further on.

    Raises:
        UsageError: it has more, as far as tf.data knows how many.
    """
    tf = tensorflow()
    # Within a graph the cardinality is a tensor, and no number to compare.
    if left is None or not isinstance(elements, tf.data.Dataset) or not tf.executing_eagerly():
        return
    # Negative for infinite (-1) and unknown (-2), and then never above `left`.
    number = int(elements.cardinality())
    if number > left:
        raise UsageError(
            f"{counted(number, 'element')} to count, and the order has {left:,} left from here: "
            "a dataset from its beginning, or of other settings? position.dataset() continues from "
            "where the position is"
        )


def calls_behind(dataset: Any) -> list[tuple[object, list[str]]]:
    """Return the positions that a dataset begins with, each with the dataset objects behind it.

    They are named as tf.data calls them, without "_" and "Dataset"; one that yields elements as
    they are ready, in any order, is followed by "Unordered".
    """
    position = position_of(dataset)
    if position is not None:
        return [(position, [])]
    # `_inputs` is TensorFlow's private list of the datasets that one is made of
    # (python/data/ops/dataset_ops.py). Where it is gone, nothing is found and nothing refused.
    inputs = getattr(dataset, "_inputs", None)
    below = [f for each in (inputs() if callable(inputs) else ()) for f in calls_behind(each)]
    if not below:
        return []
    names = [type(dataset).__name__.strip("_").removesuffix("Dataset")]
    # `deterministic=False` of one map, or of the options that hold for the whole dataset.
    by_call = getattr(dataset, "_deterministic", "") == "false"
    if by_call or dataset.options().deterministic is False:
        names.append("Unordered")
    return [(position, [*before, *names]) for position, before in below]


def _dataset_read(elements: Any) -> Any:
    """Return the dataset of an iterator, or of what `tfds.as_numpy` or tf.distribute made of one.

    Anything else is returned as it is.
    """
    any_dataset = tensorflow().data.Dataset
    # The private attributes of tf.data's iterator, of TFDS's as_numpy, and of tf.distribute, in
    # this order.
    if not isinstance(elements, any_dataset):
        for name in ("_dataset", "_ds", "_original_dataset"):
            dataset = getattr(elements, name, None)
            if isinstance(dataset, any_dataset):
                return dataset
    return elements


# The states of all processes of a run: whose they are, and whether they are of one run.

_MOST_NAMED = 8


def records_of(states: Sequence[bytes]) -> list[PositionRecord]:
    """Return the positions of all hosts of a run, host 0 first, in whatever order they are given.

    Raises:
        DatasetError: one of them is no position, or was edited.
        UsageError: a host is missing or there twice, or they are of several runs.
    """
    if not states:
        raise UsageError("states: none are given; those of all processes of the run are needed")
    records = [
        position_of_text(state, source=f"states[{index}]") for index, state in enumerate(states)
    ]
    # All states are compared with the first one; which of two is wrong cannot be known.
    first = _of_run(records[0])
    for index, own in enumerate(map(_of_run, records)):
        if changed := [f"{k} is {v}, not {first[k]}" for k, v in own.items() if v != first[k]]:
            raise UsageError(
                f"states[{index}] is not of the same run as states[0]: {choices(changed)}"
            )
    # One process alone has no host, and its own state is all that there is.
    hosts = [record.settings.host for record in records]
    if hosts == [None]:
        return records
    places: dict[int, int] = {}
    # Each host exactly once: index of host -> index of the state that was given.
    for place, host in enumerate(hosts):
        if host is None:
            raise UsageError(f"states[{place}] is of a process alone, and {len(states)} are given")
        if (other := places.setdefault(host.index, place)) != place:
            raise UsageError(
                f"states[{other}] and states[{place}] are both of host {host}; give one of each"
            )
    count = 1 if hosts[0] is None else hosts[0].count
    if missing := [str(index) for index in range(count) if index not in places]:
        raise UsageError(
            f"states of {len(states)} of {count} hosts: {choices(missing, _MOST_NAMED)} "
            "missing; what a host has left is known from its own state alone"
        )
    # Host 0 first, whatever the order in which the states were given.
    return [records[places[index]] for index in range(count)]


def stretch_of(records: Sequence[PositionRecord]) -> RunSegment:
    """Return what the hosts of a run have yielded since it was last shared."""
    settings = records[0].settings
    return RunSegment(
        consumed=tuple(record.consumed for record in records),
        batch=settings.batch,
        host_by=settings.host_by,
        alone=settings.host is None,
    )


# Without `host`, all settings of the processes of one run are equal.
def _of_run(record: PositionRecord) -> dict[str, Any]:
    """Return what the states of all processes of a run have in common."""
    host, others = record.settings.host, {**vars(record.settings)}
    del others["host"]
    hosts = 1 if host is None else host.count
    return {"spec": record.spec, "hosts": hosts, **others, "shared before": record.stretches}


# Is a position one in the order that is read now, and if not, what is another?

# What `Position.set_states` takes otherwise than it was.
SHAREABLE = frozenset(("host", "host_by", "batch"))


def check_same_order(
    then: PositionRecord,
    spec: str,
    settings: ReadSettings,
    dataset: Dataset,
    others: Mapping[str, Dataset],
    *,
    allow_version: bool,
    besides: Collection[str] = (),
) -> None:
    """Refuse a position in another order than that of a spec and settings.

    `dataset` is the builder's, `others` are those that readers of stages read besides, by their
    references. `allow_version` takes another version or config of the same layout. The settings
    named by `besides` may have changed.

    Raises:
        DatasetError: it is of another dataset; the text says everything in which.
        UsageError: it is of another spec or other settings; the text names them all.
    """
    # The dataset itself, then those that stages read besides.
    pairs = [(then.dataset, dataset)]  # where a reference is gone the stages are others, see below
    pairs += [(was, others[ref]) for ref, was in then.sources.items() if ref in others]
    for was, one in pairs:
        # Splits are put in the order of then: a builder over several folders lists them in no fixed
        # order.
        now = in_order_of(one, [split.name for split in was.splits])
        check_same_dataset(was, now, "position", allow_version=allow_version)
    ordered = then.dataset.ordered  # as now
    old = settings_in_force(then.settings, ordered=ordered)
    # Settings in force on both sides: a default that was left out equals the same value written
    # out.
    new = settings_in_force(settings, ordered=ordered)
    changed = {
        name: f"{name} was {_said(name, old)}, now {_said(name, new)}"
        # Names of both sides, in a stable order: one that only the older state has is a change too.
        for name in dict.fromkeys((*new, *old))
        if name not in besides and old.get(name) != new.get(name)
    }
    if then.spec != spec:
        specs = f"spec was {printable(then.spec, 200)}, now {printable(spec, 200)}"
        changed = {"spec": specs, **changed}
    if not changed:
        return
    # The count alone may still be meant, unless the spec has changed, where it would mean other
    # examples.
    way_out = f"where that is meant, begin with the count that it holds, consumed={then.consumed}"
    if besides or "spec" in changed:  # where its count would say nothing
        way_out = "give those that it had"
    elif "host" in changed:
        way_out = "set_states takes the states of all processes of the run, all else as it was"
    raise UsageError(
        f"the position is one in another order: {', '.join(changed.values())}; {way_out}"
    )


def _said(name: str, in_force: SettingsDocument) -> str:
    """Return the value of a setting as people write it, stages as a text."""
    value = in_force.get(name)
    if name == "stages" and value is not None:
        value = text_of(stages_in(in_force))
    return printable(str(value), 200)
