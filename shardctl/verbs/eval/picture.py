"""The steps of an evaluation as bars: one for each host, or group of hosts that do the same."""

from __future__ import annotations

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.text import counted, printable
from shardctl.draw.picture import Bar, Paper, Picture, Series, bar_lines
from shardctl.draw.quantities import counts_between
from shardctl.verbs.eval.answer import Evaluation

_ROWS = 12  # hosts, or groups of them


def eval_pictures(evaluation: Evaluation, paper: Paper) -> tuple[Picture, ...]:
    """Return the steps and examples of each host or group of them, and where a collective hangs."""
    title = f"Steps of {counted(evaluation.num_hosts, 'host')} in {printable(evaluation.spec, 200)}"
    if not evaluation.total:
        caption = "nothing, for there are no examples."
        return (Picture(name="eval-steps", title=title, caption=caption),)
    hang, groups = evaluation.hang(evaluation.remainder), _groups(evaluation)
    steps = [_bar(evaluation.num_steps(evaluation.remainder)[hosts]) for hosts in groups]
    if hang is not None:
        steps = [bar._replace(word="waits" if bar.least > hang.step else "") for bar in steps]
    examples = [_bar(evaluation.num_examples[hosts]) for hosts in groups]
    series = [Series("steps", steps), Series("examples", examples)]
    return (
        Picture(
            name="eval-steps",
            title=title,
            caption="the steps of each host: all bars must be of one length.",
            marks=tuple(bar_lines("host", list(map(_name, groups)), series, paper)),
            warnings=() if hang is None else (f"hangs at step {hang.step:,}",),
        ),
    )


def _bar(values: Int64s) -> Bar:
    least, most = int(values.min()), int(values.max())
    return Bar(least, most, counts_between(least, most))


def _name(hosts: Int64s) -> str:
    """Return which hosts these are, in short; with others among them how many."""
    first, last = int(hosts[0]), int(hosts[-1])
    is_run = last - first + 1 == len(hosts)
    return counts_between(first, last) if is_run else f"{len(hosts):,} hosts"


def _groups(evaluation: Evaluation) -> list[Int64s]:
    """Return the numbers of hosts in few groups, by the first of each; few hosts are alone.

    Many hosts are together that make as many steps, or about as many; the hosts with the fewest,
    for which others wait, are a group of their own.
    """
    labels = np.arange(evaluation.num_hosts)
    if evaluation.num_hosts > _ROWS:
        # Padding makes all alike: how many batches they have is what tells them apart.
        steps = evaluation.num_steps("drop" if evaluation.remainder == "drop" else "ragged")
        labels = np.unique(steps, return_inverse=True)[1].reshape(-1)
        if (others := int(labels.max())) >= _ROWS:
            labels = np.where(labels == 0, 0, 1 + (labels - 1) * (_ROWS - 1) // others)
    found = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    return sorted(found, key=lambda hosts: int(hosts[0]))
