"""Two pipelines side by side: where their orders part, and how well each is shuffled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from shardctl.core.phrase import phrase
from shardctl.core.progress import Watch
from shardctl.core.provided import provided
from shardctl.core.text import in_short
from shardctl.planning.diff.causes import Cause, dataset_causes
from shardctl.planning.diff.diff import Diff, diff
from shardctl.planning.quality.quality import DEFAULT_WINDOW
from shardctl.planning.report.compared_side import Asked, ComparedSide, Side, compared
from shardctl.planning.report.parting import BlockRun, NamedPosition, block_runs, neighbours
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
