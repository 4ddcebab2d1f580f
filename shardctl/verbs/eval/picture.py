"""The steps of an evaluation as bars: one for each host, or group of hosts."""

from __future__ import annotations

from shardctl.base.text import counted, printable
from shardctl.draw.picture import Bar, Paper, Picture, Series, bar_lines, differs, nothing
from shardctl.draw.quantities import counts_between, numbered
from shardctl.order.shard_map import Bucket, buckets
from shardctl.verbs.eval.answer import Evaluation


def eval_pictures(evaluation: Evaluation, paper: Paper) -> tuple[Picture, ...]:
    """Return the steps and examples of each host or group of them, and where a collective hangs."""
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
    return Bar(group.min, group.max, counts_between(int(group.min), int(group.max)))
