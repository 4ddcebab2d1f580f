"""What a script does with the dataset of a position before it counts the elements."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.resume.resume_plan import Stretch
from shardctl.core.settings.document import SettingsDocument, settings_in_force
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.stages.document import pipeline_of
from shardctl.core.stages.text import text_of
from shardctl.core.text import choices, counted, printable
from shardctl.errors import UsageError
from shardctl.files.position_file import PositionRecord, position_of_text
from shardctl.planning.resume.apply_plan import check_same_dataset
from shardctl.tfds.builder_layout import in_order_of
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.position.deferred import position_of
from shardctl.tfds.recognizing.graph import call_name

# By what tf.data calls the dataset objects that its methods make, without "_" and "Dataset": after
# these, the elements are not the next ones of the order, each once.
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
    found = _names_behind(dataset)
    if not found:
        return
    names = next((names for of, names in found if of is position), None)
    if names is None:
        raise UsageError(f"elements: these are of another position, {found[0][0]!r}")
    depth = int(batched)
    for name in names:
        depth += ("Batch" in name or name == "DenseToRagged") - (name == "Unbatch")
        if _OTHERS.fullmatch(name):
            raise UsageError(
                f"{_CALLS.get(name, call_name(name))} behind position.dataset() hands out other "
                "examples than the next ones of the order, and counted they would be taken for "
                "those; what the settings say (ReadSettings(buffer=..), stages=..) is counted as "
                "it is"
            )
    if depth != int(counts_batches):
        them = ("examples", "batches", "batches of batches")[min(max(depth, 0), 2)]
        counted_are = "batches" if counts_batches else "examples"
        raise UsageError(
            f"elements: {them} are handed out, and {counted_are} are counted; count(.., batch=N) "
            "says of how many batches are, or ReadSettings(batch=N) makes them"
        )


def check_length(elements: Any, left: int | None) -> None:
    """Refuse a dataset that has more elements than an order has left, None where nobody knows.

    So is one that begins at the start of the order, where a position is further on.

    Raises:
        UsageError: it has more, as far as tf.data knows how many.
    """
    tf = tensorflow()
    if left is None or not isinstance(elements, tf.data.Dataset) or not tf.executing_eagerly():
        return
    number = int(elements.cardinality())
    if number > left:
        raise UsageError(
            f"{counted(number, 'element')} to count, and the order has {left:,} left from here: "
            "a dataset from its beginning, or of other settings? position.dataset() goes on from "
            "where the position is"
        )


def leaves_order_open(dataset: Any) -> bool:
    """Return whether a call or its options hand out elements as they are ready, in any order."""
    by_call = getattr(dataset, "_deterministic", "") == "false"
    return by_call or dataset.options().deterministic is False


def _names_behind(dataset: Any) -> list[tuple[object, list[str]]]:
    """Return the positions that a dataset begins with, each with the dataset objects behind it."""
    position = position_of(dataset)
    if position is not None:
        return [(position, [])]
    inputs = getattr(dataset, "_inputs", None)
    below = [f for each in (inputs() if callable(inputs) else ()) for f in _names_behind(each)]
    if not below:
        return []
    name = type(dataset).__name__.strip("_").removesuffix("Dataset")
    last = "Unordered" if leaves_order_open(dataset) else name
    behind = [name] if last == name else [name, last]
    return [(position, [*names, *behind]) for position, names in below]


def _dataset_read(elements: Any) -> Any:
    """Return the dataset of an iterator, or of what `tfds.as_numpy` or tf.distribute made of one.

    Anything else is returned as it is.
    """
    any_dataset = tensorflow().data.Dataset
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
    for index, record in enumerate(records):
        if others := _differing(records[0], record):
            raise UsageError(
                f"states[{index}] is not of the same run as states[0]: {choices(others)}"
            )
    hosts = [record.settings.host for record in records]
    if hosts == [None]:
        return records
    places: dict[int, int] = {}
    for place, host in enumerate(hosts):
        if host is None:
            raise UsageError(f"states[{place}] is of a process alone, and {len(states)} are given")
        if (other := places.setdefault(host.index, place)) != place:
            raise UsageError(
                f"states[{other}] and states[{place}] are both of host {host}; give one of each"
            )
    count = 1 if hosts[0] is None else hosts[0].count
    if missing := [str(index) for index in range(count) if index not in places]:
        more = ", .." if len(missing) > _MOST_NAMED else ""
        raise UsageError(
            f"states of {len(states)} of {count} hosts: {', '.join(missing[:_MOST_NAMED])}{more} "
            "missing; what a host has left is known from its own state alone"
        )
    return [records[places[index]] for index in range(count)]


def stretch_of(records: Sequence[PositionRecord]) -> Stretch:
    """Return what the hosts of a run have handed out since it was last shared."""
    settings = records[0].settings
    return Stretch(
        consumed=tuple(record.consumed for record in records),
        batch=settings.batch,
        host_by=settings.host_by,
        alone=settings.host is None,
    )


def _differing(first: PositionRecord, record: PositionRecord) -> list[str]:
    """Return what is not as in the first of several states, besides host and dataset."""
    found = [] if record.spec == first.spec else [f"spec is {record.spec}, not {first.spec}"]
    for key, value in vars(first.settings).items():
        if key != "host" and getattr(record.settings, key) != value:
            found.append(f"{key} is {getattr(record.settings, key)}, not {value}")
    counts = [1 if r.settings.host is None else r.settings.host.count for r in (first, record)]
    if counts[0] != counts[1]:
        found.append(f"it has {counts[1]} hosts, not {counts[0]}")
    if record.stretches != first.stretches:
        found.append("the run was shared anew at another place before")
    return found


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
    pairs = [(then.dataset, dataset)]  # where a reference is gone the stages are others, see below
    pairs += [(was, others[ref]) for ref, was in then.sources.items() if ref in others]
    for was, one in pairs:
        now = in_order_of(one, [split.name for split in was.splits])
        check_same_dataset(was, now, "position", allow_version=allow_version)
    ordered = then.dataset.ordered  # as now
    old = settings_in_force(then.settings, ordered=ordered)
    new = settings_in_force(settings, ordered=ordered)
    changed = {
        name: f"{name} was {_said(name, old)}, now {_said(name, new)}"
        for name in dict.fromkeys((*new, *old))
        if name not in besides and old.get(name) != new.get(name)
    }
    if then.spec != spec:
        specs = f"spec was {printable(then.spec, 200)}, now {printable(spec, 200)}"
        changed = {"spec": specs, **changed}
    if changed:
        raise UsageError(
            f"the position is one in another order: {', '.join(changed.values())}; "
            f"{_way_out(then, settings, changed)}"
        )


def _way_out(then: PositionRecord, now: ReadSettings, changed: Collection[str]) -> str:
    hosts, hosts_now = (
        1 if settings.host is None else settings.host.count for settings in (then.settings, now)
    )
    if hosts != hosts_now and SHAREABLE.issuperset(changed):
        return f"set_states takes the states of all {hosts} processes to go on with {hosts_now}"
    if "spec" in changed or hosts != hosts_now:  # where its count would say nothing
        return f"give those that it had{', to set_states too' * (hosts != hosts_now)}"
    return f"where that is meant, begin with the count that it holds, consumed={then.consumed}"


def _said(name: str, in_force: SettingsDocument) -> str:
    """Return the value of a setting as people write it, stages as a text."""
    value = in_force.get(name)
    if name == "stages" and value is not None:
        value = text_of(pipeline_of(value))
    return printable(str(value), 200)
