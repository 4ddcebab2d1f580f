"""A part of the order in which the examples of a spec are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shardctl.base.arguments import checked
from shardctl.base.arrays import Ids, Int64s
from shardctl.base.columns import Tabular
from shardctl.base.phrase import refused
from shardctl.base.text import counted, in_short
from shardctl.dataset.dataset import DatasetLike
from shardctl.order.order import Order
from shardctl.order.plan_order import PlannedOrder, plan_order
from shardctl.settings.keywords import OrderSettings, Unpack
from shardctl.settings.read_settings import SettingsLike
from shardctl.tfdata.shuffle_buffer import check_buffer


@dataclass(frozen=True, kw_only=True)
class Simulation(Tabular):
    """A part of an order: `take` examples after the first `skip`."""

    spec: str
    order: Order
    skip: int
    take: int
    warnings: tuple[str, ...] = ()

    def chunks(self) -> Iterator[Int64s]:
        """Yield the codes of the examples (ids where the spec reads one split), int64 arrays."""
        return self.order.chunks(self.skip, self.skip + self.take)

    @property
    def ids(self) -> Ids:
        """The codes of the examples, int64[take], -1 of padding; computed anew each time."""
        codes = self.order.read(self.skip, self.skip + self.take)
        return self.order.codes.numbers(codes).view(Ids)

    def __repr__(self) -> str:
        last = self.skip + self.take - 1
        where = f"positions {self.skip:,} to {last:,}" if self.take else "no positions"
        total = counted(self.order.num_examples, "example")
        total = "an endless order" if self.order.is_endless else total
        return in_short(self, f"{self.order.dataset.title} {self.spec}", f"{where} of {total}")


@checked
def simulate(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    skip: int = 0,
    take: int | None = 20,
    **keywords: Unpack[OrderSettings],
) -> Simulation:
    """Return a part of the order in which a pipeline reads a spec.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: the split or slice, as TFDS writes it; None is `train`, else the only split.
        settings, keywords: how it is read: a ReadSettings, a dict of its values, or keywords.
        skip: how many examples of the order come before the part.
        take: how many it has, at most; -1 or None for all that are left, unless stages repeat
            without end.

    Returns:
        A Simulation; `ids` is an array; `chunks()` yields those of a long part piece by piece.

    Raises:
        UsageError: `skip` is past the end, or a number is negative.
        UnpredictableOrderError: the order is nondeterministic.

    >>> import shardctl
    >>> settings = shardctl.ReadSettings(cycle=3, block=2)
    >>> shardctl.simulate("imagenet2012", "train", settings, take=8).ids.tolist()
    [0, 1, 1251, 1252, 2502, 2503, 2, 3]
    >>> len(shardctl.simulate("mnist", "train", take=-1).ids)
    60000
    """
    return simulate_order(plan_order(dataset, spec, settings), skip=skip, take=take)


def simulate_order(planned: PlannedOrder, *, skip: int = 0, take: int | None = 20) -> Simulation:
    """Return a part of an order that is known; see `simulate`.

    Raises:
        UsageError: as for `simulate`.
    """
    total = planned.order.num_examples
    if not 0 <= skip <= total:
        raise refused("{skip=}: the order has {} examples", total, skip=skip)
    if take is not None and take < -1:
        raise refused("{take=}: a number of examples is needed, or -1 for all", take=take)
    if planned.order.is_endless and take in (None, -1):
        raise refused("{stages} repeat without end; give {take=N}")
    rest = total - skip
    if take == -1:
        take = None
    if take != 0 and rest and planned.order.num_buffered is not None:
        # Before a part of the answer is written.
        check_buffer(min(planned.order.num_buffered, planned.order.stream_size))
    # More was asked for than is there; the text says what would follow.
    cut = [planned.order.goes_on] if take is not None and take > rest else []
    return Simulation(
        spec=planned.spec,
        order=planned.order,
        skip=skip,
        take=rest if take is None else min(take, rest),
        warnings=(*planned.warnings, *filter(None, cut)),
    )
