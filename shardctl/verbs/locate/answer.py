"""Where is an example in the order and on disk, and which example is at a position?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby, repeat
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from shardctl.base.arguments import checked, keep_fields
from shardctl.base.arrays import Int64s
from shardctl.base.columns import Cell, OnDemand, Records, Tabular, rows_of
from shardctl.base.phrase import option, refused
from shardctl.base.progress import Progress, Watch
from shardctl.base.tfds_rules import POSITIONS
from shardctl.dataset.dataset import DatasetLike
from shardctl.errors import UsageError
from shardctl.order.order import MAX_POSITIONS, Order, check_answerable
from shardctl.order.plan_order import plan_order
from shardctl.settings.keywords import OrderSettings, Unpack
from shardctl.settings.read_settings import SettingsLike

_NONE = np.empty(0, np.int64)
_PIECE = 4096  # matches that are made together

QueryKind = Literal["position", "step", "id", "tfds-id"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """An example in the order: `step` is its batch, None without batches; padding has no file.

    `index_in_batch` counts within the batch, `index_in_shard` within the file.
    """

    position: int
    epoch: int
    step: int | None
    id: int | str
    tfds_id: str | None
    filename: str | None
    index_in_shard: int | None
    index_in_batch: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """One thing asked for: a position, a step, an id (`5` or `train:5`) or a tfds_id."""

    kind: QueryKind
    value: int | str

    def __post_init__(self) -> None:
        keep_fields(self)


MATCH_FIELDS = ("position", "epoch", "step", "id", "tfds_id", "filename", "index_in_shard")


def match_columns(order: Order, positions: Int64s, codes: Int64s) -> Sequence[Cell]:
    """Return the MATCH_FIELDS of the examples with these codes and positions as columns."""
    split, shard, index = order.codes.places(codes)
    padding = order.codes.is_padding(codes)
    indices = [None if pad else i for i, pad in zip(index.tolist(), padding, strict=True)]
    names: Cell = order.codes.tfds_ids(codes)
    files: Cell = order.codes.filenames(codes, split, shard)
    places: Cell = indices if padding.any() else index
    if order.dataset.file_format == POSITIONS:
        names = files = places = None
    return [
        positions,
        order.epoch_of(positions),
        order.steps_of(positions)[0] if order.has_steps else None,
        order.codes.ids(codes),
        names,
        files,
        places,
    ]


def matches_at(order: Order, positions: Int64s, codes: Int64s) -> list[Match]:
    """Return the examples with these codes (int64[q]) at these positions (int64[q])."""
    in_batch = order.steps_of(positions)[1].tolist() if order.has_steps else repeat(None)
    rows = rows_of(len(codes), match_columns(order, positions, codes))
    return [
        Match(**dict(zip(MATCH_FIELDS, row, strict=True)), index_in_batch=within)
        for row, within in zip(rows, in_batch, strict=False)
    ]


class Matches(OnDemand[Match]):
    """The examples at some positions, made piece by piece when they are asked for."""

    def __init__(self, order: Order, positions: Int64s, codes: Int64s) -> None:
        # The latest piece is kept: matches are usually read one after the other.
        @lru_cache(maxsize=1)
        def piece(start: int) -> list[Match]:
            here = slice(start, start + _PIECE)
            return matches_at(order, positions[here], codes[here])

        def columns(start: int, stop: int) -> Sequence[Cell]:
            return match_columns(order, positions[start:stop], codes[start:stop])

        super().__init__(
            len(positions), lambda index: piece(index - index % _PIECE)[index % _PIECE]
        )
        self.records = Records(len(positions), MATCH_FIELDS, columns)
        self._made_of = order, positions, codes

    def __reduce__(self) -> Any:
        return Matches, self._made_of  # another process has the order too


@dataclass(frozen=True, kw_only=True, repr=False)
class Located(Tabular):
    """What was found, in the order asked, and what was not; `codes` (int64[q]) name the matches."""

    order: Order
    matches: Matches
    codes: Int64s = field(repr=False, compare=False)
    warnings: tuple[str, ...] = ()


@checked
def locate(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    position: int | Sequence[int] = (),
    step: int | Sequence[int] = (),
    id: int | str | Sequence[int | str] = (),
    tfds_id: str | Sequence[str] = (),
    queries: Sequence[Query] = (),
    **keywords: Unpack[OrderSettings],
) -> Located:
    """Return where examples are in an order and on disk, both ways, without building the order.

    Args:
        dataset: a reference, or a Dataset.
        spec: the split or slice; None is `train`, else the only split.
        settings, keywords: how it is read.
        position: a position in the order, from 0; or several, as each of these.
        step: a batch of the order, counted from 0, with all its examples.
        id: an example of its split, as 5, or as "train:5" where several splits are read.
        tfds_id: TFDS's name of an example.
        queries: more of these, mixed, in the order in which they are answered.

    Returns:
        A match for each, in the order asked: positions, steps, ids, tfds_ids, queries. An example
        read in several epochs has a match for each, one that is not in the order a warning.

    Raises:
        UsageError: nothing asked for, a position or a step past the end, a step without batches,
            no such id.
        UnpredictableOrderError: the order is nondeterministic.

    >>> import shardctl
    >>> settings = shardctl.ReadSettings(shuffle_seed=42, batch=256)
    >>> found = shardctl.locate("imagenet2012", "train", settings, step=91)
    >>> len(found.matches), found.matches[0].position, found.matches[0].id
    (256, 23296, 679574)
    """
    asked = [
        *(Query(kind="position", value=one) for one in _each(position)),
        *(Query(kind="step", value=one) for one in _each(step)),
        *(Query(kind="id", value=one) for one in _each(id)),
        *(Query(kind="tfds-id", value=one) for one in _each(tfds_id)),
        *queries,
    ]
    if not asked:
        raise refused("nothing to locate: give {position=P}, {step=S}, {id=I} or {tfds_id=T}")
    return locate_in(plan_order(dataset, spec, settings).order, asked)


def _each(given: int | str | Sequence[int | str]) -> Sequence[int | str]:
    return (given,) if isinstance(given, int | str) else given


def locate_in(order: Order, queries: Sequence[Query], *, watch: Watch | None = None) -> Located:
    """Answer the queries in their order, in an order that is known; see `locate`.

    Raises:
        UsageError: as for `locate`.
    """

    def over(epochs: range) -> Iterable[int]:
        speed, fewer = order.epochs_per_second, "ask for fewer --epochs"
        progress = Progress("epochs", len(epochs), watch=watch, per_second=speed, instead=fewer)
        return progress.over(epochs, lambda _: 1)

    warnings: list[str] = []
    found = [(_NONE, _NONE)]
    # Consecutive queries of one kind share one look-up, since each needs the whole order's
    # structure.
    for kind, group in groupby(queries, attrgetter("kind")):  # each run is answered at once
        values = [str(query.value) for query in group]
        if kind in ("position", "step"):
            positions = _positions(order, kind, values)
            found.append((positions, order.codes_at(positions)))
            continue
        parse = order.codes.parse if kind == "id" else order.codes.parse_tfds_id
        codes = np.array([parse(value) for value in values], np.int64)
        check_answerable(order, len(codes))
        # `query` says which of the codes each position is of; an example may have several
        # positions.
        query, positions = order.positions_of(codes, over=over)
        found.append((positions, codes[query]))
        # What has no position is not in the order.
        unread = np.setdiff1d(np.arange(len(codes)), query).tolist()
        warnings += [f"{kind} {values[i]}: not in this order" for i in unread]
    positions, codes = (np.concatenate(column) for column in zip(*found, strict=True))
    matches = Matches(order, positions, codes)
    return Located(order=order, matches=matches, codes=codes, warnings=tuple(warnings))


def _positions(order: Order, kind: QueryKind, values: Sequence[str]) -> Int64s:
    total = order.num_examples
    numbers = [_number(kind, value) for value in values]
    if kind == "position":
        for number in numbers:
            if number >= total:
                raise UsageError(
                    f"position {number}: the order has {total} examples, counted from 0"
                )
        return np.array(numbers, np.int64)
    if not order.has_steps:
        raise UsageError(order.why_no_steps)
    ranges = [order.positions_in_step(number) for number in numbers] or [range(0)]
    found = sum(map(len, ranges))
    # Bounded before arrays are made.
    if found > MAX_POSITIONS:
        raise refused(
            "{} steps of {} examples have more than {} positions; "
            "ask for some of them with {position=P}",
            len(numbers),
            max(map(len, ranges)),
            MAX_POSITIONS,
        )
    return np.concatenate([np.arange(one.start, one.stop) for one in ranges])


def _number(kind: QueryKind, value: str) -> int:
    try:
        number = int(value)
    except ValueError:
        number = -1
    if number < 0:
        raise UsageError(f"{option(kind, value, given=True)}: a number from 0 is needed")
    return number
