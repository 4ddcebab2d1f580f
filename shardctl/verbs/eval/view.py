"""An evaluation as tables, a document, rows and advice; the smallest changes that cure it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from shardctl.base.columns import Records, numbered_records, picked
from shardctl.base.text import counted, printable
from shardctl.base.tfds_rules import INT64_MAX, has_builder
from shardctl.draw import tables
from shardctl.draw.quantities import counts_between, numbered
from shardctl.files.documents import Document
from shardctl.order.shard_map import Bucket, buckets
from shardctl.saved.head import head
from shardctl.settings.read_settings import ReadSettings, settings_in_force
from shardctl.verbs.eval.answer import REMAINDERS, Evaluation, Hang, Remainder
from shardctl.verbs.hosts.sharing import call_of_hosts

if TYPE_CHECKING:  # else a pipe would load what draws
    from shardctl.draw.picture import Bar, Paper, Picture

_ROWS = 8  # hosts shown on a terminal
WAYS: dict[Remainder, str] = {"ragged": "left ragged", "drop": "dropped", "pad": "padded"}
_COLUMNS = tables.columns("index=host num_examples=examples num_batches=batches remainder padding")
_COLUMNS += tables.columns("padding_batches")
_FIELDS = [column.field for column in _COLUMNS]


def eval_table(evaluation: Evaluation, screen: tables.Screen) -> Iterator[str]:
    """Yield what each host gets, what becomes of remainders, and what to do about it."""
    batch = f"{evaluation.device_batch:,}"
    settings = evaluation.settings
    shares = settings.host_mode.call if settings.reader.on_tf_data else call_of_hosts(settings)
    shared = f", shared by {shares}" if evaluation.num_hosts > 1 else ""
    title = (
        f"{evaluation.spec} in {evaluation.dataset.title}: {counted(evaluation.total, 'example')}, "
        f"{counted(evaluation.num_hosts, 'host')} of {counted(evaluation.num_devices, 'device')}, "
        f"batches of {batch} a device, {evaluation.host_batch:,} a host{shared}"
    )
    yield tables.paragraph(title, screen, style="bold")
    yield from tables.table_pieces(
        _COLUMNS, tables.grouped(eval_rows(evaluation), _COLUMNS), screen, keep=_ROWS
    )
    yield from tables.pictures(evaluation, screen)
    yield "\n"
    yield tables.table(*way_cells(evaluation), screen)
    legend = "* as set up here"
    if evaluation.num_devices > 1:
        legend += (
            f"; dropping by batches of one device, {batch}, would lose "
            f"{counted(evaluation.dropped_by_device_batch, 'example')}"
        )
    yield tables.paragraph(legend, screen)
    first, *others = (f"- {line}" for line in advice(evaluation))
    hangs = evaluation.hang(evaluation.remainder) is not None  # which is said first
    yield tables.paragraph(first, screen, style="error" if hangs else "")
    yield from tables.paragraphs(screen, *others)


def way_cells(evaluation: Evaluation) -> tuple[list[tables.Column], list[Sequence[str]]]:
    """Return what becomes of remainders, dropped, padded or left, as columns and rows."""
    columns = [tables.Column(heading="remainders are", align="left")]
    columns += [
        tables.Column(heading=f"{WAYS[way]}{'*' if way == evaluation.remainder else ''}")
        for way in REMAINDERS
    ]
    return columns, list(_ways(evaluation))


def _ways(evaluation: Evaluation) -> Iterator[Sequence[str]]:
    """Yield a row a measure: its name, and its value for each thing done with remainders."""
    padding = int(evaluation.padding.sum())
    # Batches of padding alone, for hosts that have fewer.
    padding += int(evaluation.padding_batches.sum()) * evaluation.host_batch
    hangs = map(evaluation.hang, REMAINDERS)
    steps = map(evaluation.num_steps, REMAINDERS)
    yield ("steps/host", *(counts_between(int(s.min()), int(s.max())) for s in steps))
    yield (
        "hangs",
        *(tables.Cell(f"at step {hang.step:,}", "error") if hang else "no" for hang in hangs),
    )
    dropped = {"drop": evaluation.dropped_by_host_batch}
    # What a loader leaves out is lost in each way.
    lost = [dropped.get(way, 0) + evaluation.num_left_out for way in REMAINDERS]
    yield ("examples lost", *(tables.Cell(f"{n:,}", "warning" if n else "") for n in lost))
    own = {**evaluation.own_padding, "pad": padding}
    yield ("padding", *(f"{own.get(way, 0):,}" for way in REMAINDERS))
    yield ("XLA shapes", *(f"{evaluation.distinct_shapes(way):,}" for way in REMAINDERS))


def eval_rows(evaluation: Evaluation) -> Records:
    """Return the record of each host."""
    columns = (
        evaluation.num_examples,
        evaluation.num_batches,
        evaluation.remainders,
        evaluation.padding,
        evaluation.padding_batches,
    )
    return numbered_records(_FIELDS, columns)


def eval_document(evaluation: Evaluation) -> Document:
    """Return the document of `eval`."""
    hang = evaluation.hang(evaluation.remainder)
    ordered = evaluation.dataset.ordered
    pipeline = settings_in_force(evaluation.settings, ordered=ordered)
    return {
        **head("eval", evaluation.dataset.identity),
        **picked(evaluation, "spec num_examples=total num_hosts num_devices"),
        "batch": picked(evaluation, "per_device=device_batch per_host=host_batch"),
        "host_by": pipeline["host_by"],
        "remainder": evaluation.remainder,
        "hosts": eval_rows(evaluation),
        "distinct_shapes": {way: evaluation.distinct_shapes(way) for way in REMAINDERS},
        "dropped_examples": picked(
            evaluation,
            "by_device_batch=dropped_by_device_batch by_host_batch=dropped_by_host_batch",
        ),
        **_of_sharer(evaluation),
        "hangs": hang is not None,
        "hang": None if hang is None else dict(vars(hang)),
        "differing_step": evaluation.differing_step,
        "cures": [dict(vars(cure)) for cure in cures(evaluation)],
        "advice": list(advice(evaluation)),
    }


def _of_sharer(evaluation: Evaluation) -> Document:
    """Return fields for another loader than TFDS's, or for stages."""
    if evaluation.is_simple:
        return {}
    settings = evaluation.settings
    versioned = picked(settings, "loader loader_version") if settings.loader_version else {}
    of_examples = "repeated_examples=num_repeated left_out_examples=num_left_out"
    return {**versioned, **picked(evaluation, of_examples)}


# Advice on an evaluation, in sentences: where it hangs, what it loses, what cures it.


def advice(evaluation: Evaluation) -> tuple[str, ...]:
    """Return what goes wrong and what cures it, each a sentence; else that all is well."""
    return (*_advice(evaluation), *filter(None, [evaluation.other_epochs]))


def _advice(evaluation: Evaluation) -> Iterator[str]:
    remainder = evaluation.remainder
    if not evaluation.total:
        yield "there is nothing to evaluate"
        return
    hang = evaluation.hang(remainder)
    if hang is not None:
        yield hang_sentence(hang)
    if lost := evaluation.num_lost:
        yield f"{lost:,} of {evaluation.total:,} examples lost ({lost / evaluation.total:.3%})"
    if evaluation.num_repeated or evaluation.num_left_out or not evaluation.is_simple:
        yield from _of_sharer_advice(evaluation)
    if own := evaluation.own_padding.get(remainder):
        yield f"the stages yield {own:,} elements of padding; mask them out of the metrics"
    yield from (_sentence(cure, evaluation) for cure in cures(evaluation))
    if remainder == "ragged":
        yield from _ragged_advice(evaluation)
    padding = int(evaluation.padding.sum())
    whole = int(evaluation.padding_batches.sum()) * evaluation.host_batch
    if remainder == "pad" and padding + whole:
        yield f"{padding + whole:,} examples of padding are computed; mask them out of the metrics"
    elif hang is None and not (evaluation.num_lost or evaluation.num_repeated or padding):
        yield "every batch is full and every host makes the same number of steps"
        return
    if evaluation.is_simple and has_builder(evaluation.dataset.file_format):
        yield f"{call_of(evaluation)} makes the padded batches and their masks"


def _of_sharer_advice(evaluation: Evaluation) -> Iterator[str]:
    """Yield what a loader's shares, or stages, repeat and leave out, and what cures it."""
    settings, hang = evaluation.settings, evaluation.hang(evaluation.remainder)
    who, cure = call_of_hosts(settings), "gather the predictions and keep the first of each"
    if settings.reader.on_tf_data:
        who, cure = "--stages", "leave out the repeat"
    if evaluation.num_repeated:
        yield (
            f"{who} yields {counted(evaluation.num_repeated, 'example')} twice, and a metric "
            f"counts them twice; {cure}"
        )
    if evaluation.num_left_out:
        yield f"{who} leaves out {counted(evaluation.num_left_out, 'example')}"
    if hang is not None:
        steps = counted(hang.step, "step")
        yield f"cure: end every host after {steps}, or pad until all have as many"


def call_of(evaluation: Evaluation) -> str:
    """Return the call that makes the padded batches of an evaluation, for the host I.

    >>> from shardctl.dataset.dataset import Dataset, Split
    >>> from shardctl.verbs.eval.answer import evaluate
    >>> odd = Dataset(name="d", splits=(Split(name="test", shard_lengths=(4097,)),))
    >>> print(call_of(evaluate(odd, batch=512, devices=8, hosts=8)))
    shardctl.tfds.evaluation(builder, 'test', batch=512, devices=8, hosts=8, host=I)
    """
    settings, default = evaluation.settings, ReadSettings()
    given = {
        name: getattr(settings, name)
        for name in ("host_by", "reverse", "file_order")
        if getattr(settings, name) != getattr(default, name)
    }
    arguments = ["builder", repr(evaluation.spec), *([repr(given)] if given else [])]
    arguments.append(f"batch={evaluation.host_batch}")
    if evaluation.num_devices > 1:
        arguments.append(f"devices={evaluation.num_devices}")
    if evaluation.num_hosts > 1:
        arguments += [f"hosts={evaluation.num_hosts}", "host=I"]
    return f"shardctl.tfds.evaluation({', '.join(arguments)})"


def _ragged_advice(evaluation: Evaluation) -> Iterator[str]:
    if evaluation.differing_step is not None:
        yield (
            f"at step {evaluation.differing_step:,} hosts have batches of different sizes and run "
            "different XLA programs; --pad gives all the same"
        )
    partial = np.unique(evaluation.remainders)
    uneven = partial[partial % evaluation.num_devices > 0]
    if len(uneven) and evaluation.is_simple:  # else which batches are partial is not known
        yield (
            f"a last batch of {int(uneven[0]):,} cannot be shared evenly by "
            f"{evaluation.num_devices:,} devices"
        )
    shapes = evaluation.distinct_shapes("ragged")
    if shapes > 1:
        yield (
            f"{shapes:,} shapes are compiled; --pad compiles 1, with "
            f"{int(evaluation.padding.sum()):,} examples of padding in the last batches"
        )


def hang_sentence(hang: Hang) -> str:
    """Return at which step a collective hangs, which hosts wait in it, and for how many."""
    who = f"host {hang.first_waiting} blocks"
    if hang.waiting > 1:
        who = f"{hang.waiting:,} hosts block, host {hang.first_waiting} first"
    have = "host has" if hang.finished == 1 else f"{hang.finished:,} hosts have"
    return f"hangs at step {hang.step:,}, counted from 0: {who}; the other {have} finished"


def _sentence(cure: Cure, evaluation: Evaluation) -> str:
    if cure.change == "batch":
        of_host = cure.value * evaluation.num_devices
        change = f"--batch {of_host} instead of {evaluation.host_batch}"
    else:
        batches = counted(cure.value, "batch", "batches")
        change = f"--pad with {batches} of padding alone" if cure.value else "--pad"
    return f"cure: {change} ({counted(cure.num_steps, 'step')} a host)"


def problems(evaluation: Evaluation) -> Iterator[str]:
    """Yield what a check finds wrong, each in a line: a hang, examples that are lost."""
    hang, lost = evaluation.hang(evaluation.remainder), evaluation.num_lost
    if hang is not None:
        yield hang_sentence(hang)
    if lost:
        yield f"{counted(lost, 'example')} lost"


# The smallest changes of the batch or of padding that let an evaluation end.

_MOST_TRIED = 1 << 20  # a batch size farther away than this is not a small change


@dataclass(frozen=True, kw_only=True)
class Cure:
    """A change after which every host makes the same number of steps.

    value: the batch of a device, or the batches of padding to add in all.
    """

    change: Literal["batch", "padding"]
    value: int
    num_steps: int


def cures(evaluation: Evaluation) -> tuple[Cure, ...]:
    """Return the nearest batch that cures the evaluation, and the padding, which loses nothing.

    A cured evaluation does not hang; where it only lost examples, it loses none; and if partial
    batches are dropped, every host still makes a step. Of two batches as near it is the larger;
    batches a million away are not tried.

    >>> from shardctl.dataset.dataset import Dataset, Split
    >>> from shardctl.verbs.eval.answer import evaluate
    >>> odd = Dataset(name="d", splits=(Split(name="test", shard_lengths=(4097,)),))
    >>> [(cure.change, cure.value, cure.num_steps)
    ...  for cure in cures(evaluate(odd, batch=512, devices=8, hosts=8))]
    [('batch', 65, 1), ('padding', 7, 2)]
    """
    if evaluation.hang(evaluation.remainder) is None and not evaluation.num_lost:
        return ()
    if not evaluation.is_simple:
        return ()  # of even shares; what else a loader or stages do is not tried
    now, devices = evaluation.device_batch, evaluation.num_devices
    least, most = int(evaluation.num_examples.min()), int(evaluation.num_examples.max())
    # A batch larger than what the fullest host has changes nothing more.
    largest = min(-(-most // devices), now + _MOST_TRIED)
    # Sizes to try, int64[n], the largest first, so that `argmin` below takes the larger of two that
    # are equally near. The host's batch is that of a device times its devices.
    of_host = np.arange(largest, max(0, now - _MOST_TRIED - 1), -1, dtype=np.int64) * devices
    # Steps with a ragged or padded last batch, which rounds up; `good` is where the emptiest host
    # makes as many as the fullest.
    steps = -(-most // of_host)
    good = -(-least // of_host) == steps
    if evaluation.remainder == "drop":
        steps = most // of_host
        # Every host makes at least one step.
        good = (least // of_host == steps) & (least >= of_host)
        if evaluation.hang("drop") is None:  # then it is the loss that is to be cured
            good = good & (least == most) & (least % of_host == 0)
    # The present batch is no change.
    good = good & (of_host != now * devices)
    found = [
        Cure(
            change="padding",
            value=int(evaluation.padding_batches.sum()),
            num_steps=int(evaluation.num_steps("pad").max()),
        )
    ]
    if good.any():
        nearest = int(np.where(good, np.abs(of_host - now * devices), INT64_MAX).argmin())
        size = int(of_host[nearest]) // devices
        found.append(Cure(change="batch", value=size, num_steps=int(steps[nearest])))
    # Where examples are dropped, padding comes first, since it loses none.
    return tuple(found if evaluation.remainder == "drop" else found[::-1])


# As pictures.


def eval_pictures(evaluation: Evaluation, paper: Paper) -> tuple[Picture, ...]:
    """Return the steps and examples of each host or group of them, and where a collective hangs."""
    from shardctl.draw.picture import Picture, Series, bar_lines, differs, nothing

    title = f"Steps of {counted(evaluation.num_hosts, 'host')} in {printable(evaluation.spec, 200)}"
    if not evaluation.total:
        return (nothing(title),)
    remainder = evaluation.remainder
    hang, num_steps = evaluation.hang(remainder), evaluation.num_steps(remainder)
    differ = differs(num_steps, exact=True) or differs(evaluation.num_examples)
    rows = paper.num_rows(evaluation.num_hosts) if differ else 1
    # Hosts that are alike need one bar; else as many groups as there is room for.
    groups = buckets(num_steps, rows)
    steps = [
        _bar(group)._replace(word="waits" if hang and group.max > hang.step else "")
        for group in groups
    ]
    examples = list(map(_bar, buckets(evaluation.num_examples, rows)))
    series = [Series("steps", steps), Series("examples", examples)]
    labels = [numbered(group.first, group.last) for group in groups]
    return (
        Picture(
            title=title,
            caption="All hosts must run the same number of steps."
            + " Highlighted: hosts that wait for the others." * (hang is not None),
            said=f"Each host runs {counts_between(int(num_steps.min()), int(num_steps.max()))} "
            f"steps{'' if hang is None else f', and the evaluation hangs at step {hang.step:,}'}.",
            marks=tuple(bar_lines("host", labels, series, paper)),
            warnings=() if hang is None else (f"hangs at step {hang.step:,}",),
        ),
    )


def _bar(group: Bucket) -> Bar:
    from shardctl.draw.picture import Bar

    return Bar(group.min, group.max, counts_between(int(group.min), int(group.max)))
