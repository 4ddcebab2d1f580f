"""Advice on an evaluation, in sentences: where it hangs, what it loses, what cures it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.text import counted
from shardctl.base.tfds_rules import INT64_MAX
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host_reads import SharedReads
from shardctl.verbs.eval.answer import Evaluation, Hang
from shardctl.verbs.hosts.answer import MAX_NUM_HOSTS
from shardctl.verbs.hosts.sharing import call_of_hosts


def advice(evaluation: Evaluation) -> tuple[str, ...]:
    """Return what goes wrong and what cures it, each a sentence; one that all is well if it is."""
    said = tuple(_advice(evaluation))
    return (*said, evaluation.other_epochs) if evaluation.other_epochs else said


def _advice(evaluation: Evaluation) -> Iterator[str]:
    remainder, num_hosts = evaluation.remainder, evaluation.num_hosts
    if not evaluation.total:
        yield "there is nothing to evaluate"
        return
    hang = evaluation.hang(remainder)
    if hang is not None:
        yield hang_sentence(hang)
    if evaluation.num_lost:
        share = evaluation.num_lost / evaluation.total
        verb = "is" if evaluation.num_lost == 1 else "are"
        yield f"{evaluation.num_lost:,} of {evaluation.total:,} examples {verb} lost ({share:.3%})"
    if not evaluation.is_simple:
        yield from _of_sharer(evaluation)
        return
    yield from (_sentence(cure, evaluation) for cure in cures(evaluation))
    if remainder == "ragged":
        yield from _ragged_advice(evaluation)
    padding = int(evaluation.padding.sum())
    if remainder == "pad":
        whole = int(evaluation.padding_batches.sum()) * evaluation.host_batch
        yield (
            f"{num_hosts:,} hosts compute {padding + whole:,} examples of padding; mask them out "
            "of the metrics"
        )
    elif hang is None and not evaluation.num_lost and not padding:
        yield "every batch is full and every host makes the same number of steps"
        return
    yield f"{call_of(evaluation)} makes the padded batches and their masks"


def _of_sharer(evaluation: Evaluation) -> Iterator[str]:
    """Yield what a loader's shares, or stages, repeat and leave out, and what cures it."""
    settings, hang = evaluation.settings, evaluation.hang(evaluation.remainder)
    by_stages = settings.reader.shares_in_modes
    who = "--stages" if by_stages else call_of_hosts(settings)
    if evaluation.num_repeated:
        cure = f"gather the predictions and keep the first {evaluation.total:,}"
        yield (
            f"{counted(evaluation.num_repeated, 'example')} come again by {who}, and a metric "
            f"counts them twice; {'leave out the repeat' if by_stages else cure}"
        )
    if evaluation.num_left_out:
        cure = "take hosts that divide"
        if by_stages:
            cure = "leave out take and skip, or a mixture that ends with its first input"
        elif settings.drop_shard_remainder:
            cure = "leave out --drop-shard-remainder"
        yield f"{counted(evaluation.num_left_out, 'example')} left out by {who}; {cure}"
    if hang is not None:
        yield f"cure: end every host after {_steps(hang.step)}, or pad until all have made as many"
    shapes = evaluation.distinct_shapes("ragged")
    if evaluation.remainder == "ragged" and shapes > 1:
        yield f"batches have {shapes:,} sizes, each of which a compiler makes a program of"
    if hang is None and not evaluation.num_lost and not evaluation.num_repeated:
        yield "every example is seen once, and every host makes the same number of steps"


def call_of(evaluation: Evaluation) -> str:
    """Return the call that makes the padded batches of an evaluation, for the host I.

    >>> from shardctl.dataset.dataset import Dataset, Split
    >>> from shardctl.verbs.eval.answer import evaluate
    >>> odd = Dataset(name="d", splits=(Split(name="test", shard_lengths=(4097,)),))
    >>> print(call_of(evaluate(odd, batch=64, devices=8, hosts=8)))
    shardctl.tfds.evaluation(builder, 'test', batch=64, devices=8, hosts=8, host=I)
    """
    settings, default = evaluation.settings, ReadSettings()
    given = {
        name: getattr(settings, name)
        for name in ("host_by", "reverse", "file_order")
        if getattr(settings, name) != getattr(default, name)
    }
    arguments = ["builder", repr(evaluation.spec), *([repr(given)] if given else [])]
    arguments.append(f"batch={evaluation.device_batch}")
    if evaluation.num_devices > 1:
        arguments.append(f"devices={evaluation.num_devices}")
    if evaluation.num_hosts > 1:
        arguments += [f"hosts={evaluation.num_hosts}", "host=I"]
    return f"shardctl.tfds.evaluation({', '.join(arguments)})"


def _ragged_advice(evaluation: Evaluation) -> Iterator[str]:
    if evaluation.differing_step is not None:
        yield (
            f"at step {evaluation.differing_step:,} hosts hold batches of different sizes, so they "
            "run different XLA programs; --pad gives all one"
        )
    partial = np.unique(evaluation.remainders)
    uneven = partial[partial % evaluation.num_devices > 0]
    if len(uneven):
        yield (
            f"a last batch of {int(uneven[0]):,} does not divide among {evaluation.num_devices:,} "
            "devices, so it cannot be sharded over them"
        )
    shapes = evaluation.distinct_shapes("ragged")
    if shapes > 1:
        yield (
            f"{shapes:,} shapes are compiled; --pad compiles 1 and fills the last batches with "
            f"{int(evaluation.padding.sum()):,} examples of padding"
        )


def hang_sentence(hang: Hang) -> str:
    """Return at which step a collective hangs, who waits in it, and for whom."""
    return (
        f"hangs at step {hang.step:,}, counted from 0: {_hosts(hang.first_waiting, hang.waiting)} "
        f"there for {_others(hang.finished)} done after {_steps(hang.step)}"
    )


def _hosts(first: int, count: int) -> str:
    if count == 1:
        return f"host {first} waits"
    return f"{count:,} hosts, host {first} the first, wait"


def _others(count: int) -> str:
    return "1 host that is" if count == 1 else f"{count:,} hosts that are"


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count:,} steps"


def _sentence(cure: Cure, evaluation: Evaluation) -> str:
    if cure.change == "padding":
        change = "--pad"
        if cure.value:
            batches = "1 batch" if cure.value == 1 else f"{cure.value:,} batches"
            change = f"{change} with {batches} of padding alone"
    elif cure.change == "hosts":
        now = evaluation.num_hosts
        change = f"--hosts {cure.value} instead of {now}"
    else:
        change = f"--batch {cure.value} instead of {evaluation.device_batch}"
    cost = [f"{_steps(cure.num_steps)} a host"]
    if cure.num_slots:
        cost.append(f"{cure.padding / cure.num_slots:.1%} of the places empty")
    if evaluation.remainder == "drop":
        cost.append(f"{counted(cure.dropped, 'example')} lost" if cure.dropped else "nothing lost")
    return f"cure: {change} ({', '.join(cost)})"


def problems(evaluation: Evaluation) -> tuple[str, ...]:
    """Return what a check finds wrong, each in a line: a hang, examples that are lost."""
    found = []
    hang = evaluation.hang(evaluation.remainder)
    if hang is not None:
        waiting = _hosts(hang.first_waiting, hang.waiting)
        found.append(f"a collective hangs at step {hang.step:,}: {waiting} in it")
    if evaluation.num_lost:
        lost = evaluation.num_lost
        found.append("1 example is lost" if lost == 1 else f"{lost:,} examples are lost")
    return tuple(found)


# Which smallest change of batch, hosts or padding lets an evaluation end, and at what cost?

Change = Literal["batch", "hosts", "padding"]

_MOST_TRIED = 1 << 20  # a batch size farther away than this is not a small change
_MOST_COUNTS = 100  # numbers of hosts tried where hosts share whole files, each a pass over them


@dataclass(frozen=True, kw_only=True)
class Cure:
    """A change after which every host makes the same number of steps, and what it costs.

    value: the batch of a device, the number of hosts, or the batches of padding to add in all.
    num_steps: steps that every host then makes.
    num_slots: places for examples in all steps of all hosts.
    padding: places of these that hold no example.
    dropped: examples that are then not seen.
    """

    change: Change
    value: int
    num_steps: int
    num_slots: int
    padding: int
    dropped: int


def cures(evaluation: Evaluation) -> tuple[Cure, ...]:
    """Return the smallest change of each kind that cures the evaluation, the smallest first.

    A cured evaluation does not hang; where it only lost examples, it loses none; and if partial
    batches are dropped, every host still makes a step. Of two equally small changes the one that
    computes less is taken. Kinds are compared by what they drop, then by relative size: a batch or
    a number of hosts relative to what it was, padding to the examples. Not tried are batches a
    million away, more than twice the hosts, and, where hosts share whole files, numbers of hosts
    100 away.

    >>> from shardctl.dataset.dataset import Dataset, Split
    >>> from shardctl.verbs.eval.answer import evaluate
    >>> odd = Dataset(name="d", splits=(Split(name="test", shard_lengths=(4097,)),))
    >>> [(cure.change, cure.value, cure.num_steps)
    ...  for cure in cures(evaluate(odd, batch=64, devices=8, hosts=8))]
    [('batch', 65, 1), ('hosts', 9, 1), ('padding', 7, 2)]
    """
    if evaluation.hang(evaluation.remainder) is None and not evaluation.num_lost:
        return ()
    if not evaluation.is_simple:
        return ()  # of even shares; what else a loader or stages do is not tried
    found = (_batch_cure(evaluation), _hosts_cure(evaluation), _padding_cure(evaluation))
    return tuple(
        sorted(
            (cure for cure in found if cure is not None),
            key=lambda cure: (cure.dropped, _relative_size(cure, evaluation)),
        )
    )


def _relative_size(cure: Cure, evaluation: Evaluation) -> float:
    if cure.change == "padding":
        return cure.padding / max(evaluation.total, 1)
    now = evaluation.device_batch if cure.change == "batch" else evaluation.num_hosts
    return abs(cure.value - now) / now


def _padding_cure(evaluation: Evaluation) -> Cure:
    steps = int(evaluation.num_steps("pad").max())
    slots = steps * evaluation.host_batch * evaluation.num_hosts
    return Cure(
        change="padding",
        value=int(evaluation.padding_batches.sum()),
        num_steps=steps,
        num_slots=slots,
        padding=slots - evaluation.total,
        dropped=0,
    )


def _batch_cure(evaluation: Evaluation) -> Cure | None:
    now, devices = evaluation.device_batch, evaluation.num_devices
    least, most = evaluation.num_examples.min(), evaluation.num_examples.max()
    largest = min(-(-int(most) // devices), now + _MOST_TRIED)
    sizes = np.arange(max(1, now - _MOST_TRIED), largest + 1, dtype=np.int64)
    good = sizes[_is_cured(evaluation, least, most, sizes * devices) & (sizes != now)]
    return _cheapest(
        _cure(evaluation, "batch", size, evaluation.num_examples, size * devices)
        for size in _nearest(good, now)
    )


def _hosts_cure(evaluation: Evaluation) -> Cure | None:
    now, mode = evaluation.num_hosts, evaluation.settings.host_mode
    if mode.whole_files:
        most_hosts = min(now + _MOST_COUNTS, len(evaluation.reads))
        counts = np.arange(max(1, now - _MOST_COUNTS), most_hosts + 1, dtype=np.int64)
        shares = [_examples_by_host(evaluation, count) for count in counts.tolist()]
        least = np.array([share.min() for share in shares], np.int64)
        most = np.array([share.max() for share in shares], np.int64)
    else:
        # Beside a host with examples one without would make fewer steps: it is none of these.
        counts = np.arange(1, min(2 * now, MAX_NUM_HOSTS) + 1, dtype=np.int64)
        pieces = np.array(mode.pieces(evaluation.resolved.ranges), np.int64)[:, None]
        least, most = (pieces // counts).sum(axis=0), (-(-pieces // counts)).sum(axis=0)
    batch = np.array([evaluation.host_batch])
    good = counts[_is_cured(evaluation, least, most, batch) & (counts != now)]
    return _cheapest(
        _cure(
            evaluation, "hosts", count, _examples_by_host(evaluation, count), evaluation.host_batch
        )
        for count in _nearest(good, now)
    )


def _nearest(numbers: Int64s, value: int) -> list[int]:
    """Return the number nearest to a value, or the two that are as near; of none, none."""
    distance = np.abs(numbers - value)
    nearest: list[int] = numbers[distance == distance.min(initial=INT64_MAX)].tolist()
    return nearest


def _cheapest(found: Iterable[Cure]) -> Cure | None:
    return min(found, key=lambda cure: (cure.dropped, cure.num_slots), default=None)


def _is_cured(
    evaluation: Evaluation, least: Int64s | np.int64, most: Int64s | np.int64, host_batch: Int64s
) -> Int64s:
    """Return whether hosts with `least` to `most` examples all make as many steps, bool[n]."""
    if evaluation.remainder != "drop":
        same: Int64s = -(-least // host_batch) == -(-most // host_batch)
        return same
    same = (least // host_batch == most // host_batch) & (least >= host_batch)
    if evaluation.hang("drop") is None:  # then it is the loss that is to be cured
        same = same & (least == most) & (least % host_batch == 0)
    return same


def _examples_by_host(evaluation: Evaluation, num_hosts: int) -> Int64s:
    """Return how many examples each host would get, int64[num_hosts]."""
    mode, ranges = evaluation.settings.host_mode, evaluation.resolved.ranges
    return mode.num_examples(SharedReads(evaluation.reads, ranges), num_hosts)


def _cure(
    evaluation: Evaluation, change: Change, value: int, num_examples: Int64s, host_batch: int
) -> Cure:
    drops = evaluation.remainder == "drop"
    most = int(num_examples.max())
    steps = most // host_batch if drops else -(-most // host_batch)
    dropped = int((num_examples % host_batch).sum()) if drops else 0
    slots = steps * host_batch * len(num_examples)
    return Cure(
        change=change,
        value=value,
        num_steps=steps,
        num_slots=slots,
        padding=slots - (evaluation.total - dropped),
        dropped=dropped,
    )
