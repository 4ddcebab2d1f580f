"""Two pipelines side by side: where their orders part, and how well each is shuffled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Literal

from shardctl.core.phrase import phrase
from shardctl.core.progress import Watch
from shardctl.core.provided import provided
from shardctl.core.snapshot.order_tree import differing_blocks
from shardctl.core.text import in_short
from shardctl.errors import ShardctlError
from shardctl.planning.diff.causes import Cause, dataset_causes
from shardctl.planning.diff.diff import Diff, Id, PinnedOrder, TwoOrders, diff
from shardctl.planning.quality.quality import DEFAULT_WINDOW
from shardctl.planning.report.compared_side import Asked, ComparedSide, Side, compared
from shardctl.planning.report.question import STAND_IN_HOSTS, refuse_counts
from shardctl.planning.report.shown import NotShown, Shown, shown


@dataclass(frozen=True, kw_only=True)
class ComparedSetting:
    """A setting in force on both sides; None where a side does not have it."""

    name: str
    a: object
    b: object

    @property
    def differs(self) -> bool:
        """Whether the two have other values."""
        return self.a != self.b


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportComparison:
    """Two pipelines side by side; `diff` says where their orders part.

    dataset_changes: what differs of the two datasets and their layouts; where there is something,
        equal ids need not be equal examples.
    num_hosts, num_devices: of `hosts` and `evaluation` on both sides.
    hosts_said: whether somebody said how many hosts there are; else it is a stand-in.
    again: the command that makes the page again, "" where nobody knows.
    """

    a: ComparedSide
    b: ComparedSide
    diff: Shown[Diff]
    dataset_changes: tuple[Cause, ...]
    num_hosts: int
    hosts_said: bool
    num_devices: int
    notes: tuple[str, ...] = ()
    again: str = ""

    @property
    def sides(self) -> tuple[ComparedSide, ComparedSide]:
        """Both of them, the expected one first."""
        return self.a, self.b

    @property
    def warnings(self) -> tuple[str, ...]:
        """What surprises about each, by its label."""
        return tuple(
            phrase("{}: {}", side.label, text) for side in self.sides for text in side.warnings
        )

    @property
    def equal(self) -> bool | None:
        """Whether both hand out the same order; None where that cannot be told."""
        return None if isinstance(self.diff, NotShown) else self.diff.equal

    @cached_property
    def settings(self) -> tuple[ComparedSetting, ...]:
        """Every setting that is in force on a side, with both values."""
        names = dict.fromkeys((*self.a.settings, *self.b.settings))
        return tuple(
            ComparedSetting(name=name, a=self.a.settings.get(name), b=self.b.settings.get(name))
            for name in names
        )

    @cached_property
    def blocks(self) -> tuple[BlockRun, ...]:
        """Where the two orders are the same and where not, by the blocks of their hash trees."""
        return () if isinstance(self.diff, NotShown) else block_runs(self.diff)

    @cached_property
    def neighbours(self) -> tuple[NamedPosition, ...]:
        """What both hand out around the first difference; none where there is none."""
        return () if isinstance(self.diff, NotShown) else neighbours(self.diff)

    def to_html(self) -> str:
        """Return the two side by side as one page that needs nothing else."""
        return "".join(provided("comparison_page")(self))

    def _repr_html_(self) -> str:
        html: str = provided("comparison_body")(self)
        return html

    def __repr__(self) -> str:
        said = {None: "not to be compared", True: "equal", False: "they part"}
        return in_short(self, f"{self.a.label}, {self.b.label}", said[self.equal])


def compare_sides(
    a: Side,
    b: Side,
    *,
    hosts: int | None = None,
    devices: int = 1,
    evaluated: str | None = None,
    watch: Watch | None = None,
) -> ReportComparison:
    """Return two pipelines side by side.

    A snapshot counts as it was pinned: its order is made again from what it holds, so its dataset
    need not be there.

    Args:
        a, b: what is compared, a as it was expected.
        hosts: how many share the examples; None is what the settings say, else 8.
        devices: how many each host has, which share its batch in an evaluation.
        evaluated: what is evaluated on; None is as of `evaluate`, of a snapshot nothing.
        watch: is called as the work proceeds.

    Raises:
        UsageError: settings that their dataset does not take, or a spec that it does not have.
    """
    refuse_counts(hosts=hosts, devices=devices)
    notes: list[str] = []
    said_hosts = hosts or _said_hosts(a, b)
    num_hosts = said_hosts or STAND_IN_HOSTS
    if said_hosts is None:
        notes.append(
            phrase(
                "nobody said how many hosts read: {} are shown side by side; say how many with "
                "{hosts=N}",
                num_hosts,
            )
        )
    asked = Asked(hosts=num_hosts, devices=devices, evaluated=evaluated, watch=watch)
    one, other = (compared(side, asked) for side in (a, b))
    notes += _meant_batches(one, other)
    found = _difference(one, other)
    return ReportComparison(
        a=one,
        b=other,
        diff=found,
        dataset_changes=_dataset_changes(one, other, found),
        num_hosts=num_hosts,
        hosts_said=said_hosts is not None,
        num_devices=devices,
        notes=tuple(notes),
    )


def _meant_batches(*sides: ComparedSide) -> Iterator[str]:
    """Yield that the batch of an evaluation is a stand-in, once for both."""
    named = [
        side.label
        for side in sides
        if not isinstance(side.evaluation, NotShown)
        and side.settings.get("batch") is None
        and side.settings.get("stages") is None
    ]
    if named:
        yield phrase(
            "nobody said how large a batch of {} is: {} examples are meant in its evaluation",
            " and of ".join(named),
            DEFAULT_WINDOW,
        )


def _said_hosts(*sides: Side) -> int | None:
    """Return the number of hosts that settings name, the first that is named."""
    for side in sides:
        settings = side.settings
        if side.pinned is not None:
            host = side.pinned.snapshot.pipeline.get("host")
            if isinstance(host, str) and host.partition("/")[2].isdecimal():
                return int(host.partition("/")[2])
        elif settings is not None and settings.host is not None:
            return settings.host.count
    return None


def _difference(one: ComparedSide, other: ComparedSide) -> Shown[Diff]:
    for side in (one, other):
        if isinstance(side.order, NotShown):
            reason = phrase("{} has no one order: {}", side.label, side.order.reason)
            return NotShown(reason=reason)
    assert not isinstance(one.order, NotShown)
    assert not isinstance(other.order, NotShown)
    expected, actual = one.order, other.order
    return shown(lambda: diff(expected, actual))


def _dataset_changes(
    one: ComparedSide, other: ComparedSide, found: Shown[Diff]
) -> tuple[Cause, ...]:
    if not isinstance(found, NotShown):
        kinds = ("dataset", "folders", "split", "shards")
        return tuple(cause for cause in found.changes if cause.kind in kinds)
    return tuple(dataset_causes(one.head, other.head, leaving_out=("data_dir", "splits")))


# Where two orders part, to be seen: block by block, and by name around the first difference.

BlockState = Literal["same", "moved", "one has ended"]


@dataclass(frozen=True, kw_only=True)
class BlockRun:
    """Blocks [start, stop) of positions that follow each other and are in one state.

    In a block that is "moved" at least one position has another example; where "one has ended"
    only the longer order has positions.
    """

    start: int
    stop: int
    state: BlockState


@dataclass(frozen=True, kw_only=True)
class NamedPosition:
    """What two orders hand out at a position, as ids and as TFDS names it.

    None where an order has ended; a tfds_id also where nothing says what a file is called.
    """

    position: int
    a: Id | None
    b: Id | None
    a_tfds_id: str | None
    b_tfds_id: str | None

    @property
    def differs(self) -> bool:
        """Whether the two hand out another example."""
        return self.a != self.b


def block_runs(found: Diff) -> tuple[BlockRun, ...]:
    """Return the runs of blocks of one state that two orders have.

    The end of the shorter order is an edge of its own, wherever it lies in its block.
    """
    trees = found.expected.snapshot.tree, found.actual.snapshot.tree
    size, moved = differing_blocks(*trees)
    shorter, longer = sorted(tree.num_examples for tree in trees)
    edges: list[tuple[int, int, BlockState]] = []
    differs = set(moved)
    for block in range(-(-longer // size)):
        start, stop = block * size, min((block + 1) * size, longer)
        if start < shorter:
            end = min(stop, shorter)
            is_moved = block in differs and _is_moved(
                found, block, size=size, shorter=shorter, longer=longer
            )
            edges.append((start, end, "moved" if is_moved else "same"))
        if stop > shorter:
            edges.append((max(start, shorter), stop, "one has ended"))
    runs = []
    for state, group in groupby(edges, key=lambda edge: edge[2]):
        parts = list(group)
        runs.append(BlockRun(start=parts[0][0], stop=parts[-1][1], state=state))
    return tuple(runs)


def _is_moved(found: Diff, block: int, *, size: int, shorter: int, longer: int) -> bool:
    """Return whether a block that differs does so before the end of the shorter order.

    Where that cannot be told, since an order cannot be made again, it counts as if it did.
    """
    stop = min((block + 1) * size, longer)
    if shorter >= stop:
        return True
    orders = TwoOrders(expected=found.expected, actual=found.actual, size=size, positions=longer)
    scan = orders.scan(block)
    return scan is None or scan.num_positions > stop - shorter


def neighbours(found: Diff) -> tuple[NamedPosition, ...]:
    """Return what two orders hand out from a little before their first difference on.

    Where only the first ids of two orders are known it is the difference alone; where not even
    those are, nothing.
    """
    near, first = found.neighbours, found.first
    if first is None or not first.exact:
        return ()
    if near is None:
        a, b = first.expected, first.actual
        return (NamedPosition(position=first.position, a=a, b=b, a_tfds_id=None, b_tfds_id=None),)
    stop = near.start + len(near.expected)
    names = [_tfds_ids(side, near.start, stop) for side in (found.expected, found.actual)]
    rows = zip(near.expected, near.actual, *names, strict=True)
    return tuple(
        NamedPosition(position=position, a=a, b=b, a_tfds_id=one, b_tfds_id=other)
        for position, (a, b, one, other) in enumerate(rows, near.start)
    )


def _tfds_ids(side: PinnedOrder, start: int, stop: int) -> Sequence[str | None]:
    """Return TFDS's names at positions, as many as there are; None past the end, or unknown.

    Of files in several folders a name has a part of the path, which a snapshot does not keep.
    """
    nothing: list[str | None] = [None] * (stop - start)
    live = side.rebuilt
    if live is None or _folders_are_open(side):
        return nothing
    end = min(stop, live.order.num_examples)
    try:
        found = live.order.codes.tfds_ids(live.order.read(min(start, end), end))
    except ShardctlError:  # nothing says how the files are named
        return nothing
    return [*found, *nothing[len(found) :]]


def _folders_are_open(side: PinnedOrder) -> bool:
    """Whether files lie in several folders, or may, and only a snapshot says in which."""
    kept = side.snapshot
    several = any(pinned.split and len(pinned.split.files) > 1 for pinned in kept.splits)
    return side.live is None and (bool(kept.head.folders) or several)
