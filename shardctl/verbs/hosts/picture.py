"""What hosts read as pictures: each way to share, host by host."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.text import counted
from shardctl.draw import picture as draw
from shardctl.draw.quantities import bytes_between, counts_between, numbered
from shardctl.order.shard_map import Bucket, buckets
from shardctl.verbs.hosts.answer import Comparison, HostsPlan, spread
from shardctl.verbs.hosts.sharing import Strategy

_CAPTION = (
    "A bar is the number of examples of a host; in a collective the others wait for the longest."
)


def hosts_pictures(plan: HostsPlan, paper: draw.Paper) -> tuple[draw.Picture, ...]:
    """Return what each host reads in each way to share.

    A sweep has no figures of single hosts, and no pictures.
    """
    comparison = plan.comparisons[0]
    if not comparison.num_examples:
        return (draw.nothing(f"What hosts read of {plan.spec}"),)
    if comparison.strategies[0].columns is None:
        return ()
    return tuple(_strategy(comparison, strategy, paper) for strategy in comparison.strategies)


def _strategy(comparison: Comparison, strategy: Strategy, paper: draw.Paper) -> draw.Picture:
    """Return a bar for each host, or group of them; one for all where hosts are alike."""
    found = list(_quantities(strategy))
    differ = any(draw.differs(values, exact=name == "batches") for name, values in found)
    rows = paper.num_rows(comparison.num_hosts) if differ else 1
    groups = buckets(found[0][1], rows)
    # Hosts are grouped alike in each series, so that the bars of a row are of the same hosts.
    series = [
        draw.Series(name, [_bar(name, group) for group in buckets(values, rows)])
        for name, values in found
    ]
    labels = [numbered(group.first, group.last) for group in groups]
    return draw.Picture(
        title=f"{strategy.name}: what each of {counted(comparison.num_hosts, 'host')} reads",
        caption=_CAPTION
        + " Highlighted: hosts without examples." * (not found[0][1].min())
        + draw.OF_GROUPS * (1 < len(groups) < comparison.num_hosts),
        said=f"{strategy.refusal or f'A host reads {spread(strategy.num_examples)} examples'}.",
        marks=tuple(draw.bar_lines(f"{strategy.name}: host", labels, series, paper)),
        warnings=(f"{strategy.name}: {strategy.refusal}",) if strategy.refusal else (),
    )


def _bar(name: str, group: Bucket) -> draw.Bar:
    between = bytes_between if name == "bytes" else counts_between
    idle = name == "examples" and not group.min
    word = ("idle" if not group.max else "some idle") if idle else ""
    return draw.Bar(group.min, group.max, between(int(group.min), int(group.max)), word)


def _quantities(strategy: Strategy) -> Iterator[tuple[str, Int64s]]:
    """Yield what hosts have of examples, of batches and of bytes, where these are known.

    Without bytes it is the examples taken from disk, where more are taken than are yielded.
    """
    columns = strategy.columns
    assert columns is not None
    yield "examples", columns.num_examples
    if strategy.batches is not None:
        yield "batches", strategy.batches
    if columns.num_bytes is not None:
        yield "bytes", columns.num_bytes
    elif not np.array_equal(columns.num_read, columns.num_examples):
        yield "examples from disk", columns.num_read
