"""Subsplits: text -> slices of splits -> ranges of examples -> file instructions, as in TFDS.

Source of every rule: TFDS 4.9.10 core/splits.py. The regular expressions and the order of the
checks are TFDS's, so that both accept the same texts.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Literal

from shardctl.base.arguments import keep_fields
from shardctl.base.columns import OnDemand
from shardctl.base.text import choices, quoted
from shardctl.base.tfds_rules import INT64_MAX
from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import NotASplitError, UsageError

# Ranges of a split: what a spec resolves to, one for each part of its sum.


@dataclass(frozen=True, kw_only=True, slots=True)
class SplitRange:
    """The examples [start, stop) of one split."""

    split: Split
    start: int
    stop: int

    def __post_init__(self) -> None:
        if not (type(self.start) is type(self.stop) is int):
            keep_fields(self)
        if not 0 <= self.start <= self.stop <= self.split.num_examples:
            keep_fields(self)
            raise ValueError(f"[{self.start}, {self.stop}) is not a range of {self.split.name}")

    @property
    def num_examples(self) -> int:
        """Number of examples in the range."""
        return self.stop - self.start

    def shards(self) -> range:
        """Return the indices of the shards the range touches, empty ones between included."""
        if self.start == self.stop:
            return range(0)
        offsets = self.split.offsets
        # From the last shard that begins at or before `start`, to the first that begins at or after
        # `stop`. bisect_right skips empty shards in front of it.
        return range(bisect_right(offsets, self.start) - 1, bisect_left(offsets, self.stop))


Unit = Literal["abs", "%", "shard"]

# The patterns of TFDS core/splits.py (_SUB_SPEC_RE, _SLICE_RE), in which `$` also matches before a
# newline at the end.
_PART = re.compile(r"^(?P<split>[\w-]+)(\[(?P<selector>[\d\w%:.-]+)\])?$")
_BOUND = re.compile(r"^((?P<value>-?[\d_.]+)(?P<unit>%|shard)?)?$")
_FORMS = "train, train[40:], train[:10%], train[3shard], train[:2shard]+test, all"


@dataclass(frozen=True, kw_only=True)
class Slice:
    """One part of a spec: a split and two bounds, None where the bound is left out.

    `warning` says what surprises about the text it was read from; it takes no part in `==`.

    >>> [str(part) for part in parse_subsplit("train[40:]+test[3shard]+all")]
    ['train[40:]', 'test[3shard]', 'all']
    """

    split: str
    start: int | float | None = None
    stop: int | float | None = None
    unit: Unit = "abs"
    warning: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        if self.start is None and self.stop is None:
            return self.split
        unit = "" if self.unit == "abs" else self.unit
        if unit == "shard" and self.start is not None and self.stop == self.start + 1:
            return f"{self.split}[{self.start}shard]"
        start, stop = (
            "" if bound is None else f"{_number(bound)}{unit}" for bound in (self.start, self.stop)
        )
        return f"{self.split}[{start}:{stop}]"


def _number(bound: int | float) -> str:
    if isinstance(bound, int):
        return str(bound)
    # TFDS's pattern has no exponent, so the shortest text that reads back is written out.
    from decimal import Decimal

    return format(Decimal(repr(bound)), "f").removesuffix(".0")


OPEN_SPLITS = (
    "'all' of several folders: tfds.builder_from_directories orders the splits anew in each run"
)


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """The ranges a spec selects, in the order it names them, and what surprises about them.

    spelled_out: the spec with the splits in the place of `all`, where TFDS orders them at random;
        else None.
    """

    dataset: Dataset = field(compare=False, repr=False)
    spec: str
    ranges: tuple[SplitRange, ...]
    spelled_out: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def num_examples(self) -> int:
        """Number of examples in all ranges, those named twice counted twice."""
        return sum(piece.num_examples for piece in self.ranges)

    @property
    def num_selected(self) -> int | None:
        """Number of examples of an epoch, None where stages decide how many of them come."""
        return self.num_examples


def parse_subsplit(spec: str) -> tuple[Slice, ...]:
    """Parse a spec into its parts; the split `all` stands for every split until it is resolved.

    Raises:
        UsageError: the text is not a spec; the message names the part and the forms there are.
    """
    # TFDS splits at \s*\+\s*, which is this, but takes quadratic time over blanks.
    head, *rest = spec.split("+")
    parts = [head, *(part.lstrip() for part in rest)]
    # Blanks at the ends of the whole text stay, and are refused as TFDS refuses them.
    parts[:-1] = [part.rstrip() for part in parts[:-1]]
    return tuple(_parse_part(part, spec) for part in parts)


def resolve_subsplit(spec: str, dataset: Dataset) -> Resolved:
    """Return the ranges of examples that TFDS reads for a spec.

    Raises:
        UsageError: no such split, a bound outside the split, or a slice that runs backwards (for
            which TFDS yields a negative `take`, which reads to the end of the shard, or nothing).
    """
    warnings: list[str] = []
    ranges: list[SplitRange] = []
    parts = parse_subsplit(spec)
    spelled_out = _spelled_out(parts, dataset)
    if spelled_out is not None:
        warnings.append(
            f"{OPEN_SPLITS}; they are listed here as {quoted(spelled_out)}, which is how to fix "
            "their order"
        )
    for part in parts:
        if part.warning is not None:
            warnings.append(part.warning)
        if part.split == "all":
            whole = (Slice(split=split.name) for split in dataset.splits)
            ranges += [_resolve_part(one, dataset.split(one.split), warnings) for one in whole]
        else:
            ranges.append(_resolve_part(part, dataset.split(part.split), warnings))
    warnings += _overlaps(spec, ranges)
    if not any(piece.num_examples for piece in ranges):
        warnings.append(f"{quoted(spec)} selects no examples; TFDS refuses to read it")
    return Resolved(
        dataset=dataset,
        spec=spec,
        ranges=tuple(ranges),
        spelled_out=spelled_out,
        warnings=tuple(warnings),
    )


def _parse_part(text: str, spec: str) -> Slice:
    match = _PART.match(text)
    if match is None:
        raise _unreadable(text, spec)
    split, selector = match["split"], match["selector"]
    if selector is None:
        return Slice(split=split)
    if split == "all":
        raise UsageError(f"{quoted(text)}: 'all' takes no slice; name the splits and slice each")
    bounds = [_BOUND.match(bound) for bound in selector.split(":")]
    # "train[:]" has bounds, but both are empty: TFDS refuses it.
    if len(bounds) > 2 or not any(bound is not None and bound[0] for bound in bounds):
        raise _unreadable(text, spec)
    if any(bound is None for bound in bounds):
        raise _unreadable(text, spec)
    values = [bound["value"] for bound in bounds if bound is not None]
    units = [bound["unit"] for bound in bounds if bound is not None]
    try:
        if len(values) == 1:
            return _single_shard(split, text, values[0], units[0])
        return _bounded(split, text, values, units)
    # int() and float() refuse what the pattern lets through, as "1_" or "1.2.3".
    except ValueError:
        raise _unreadable(text, spec) from None


def _single_shard(split: str, text: str, value: str, unit: str | None) -> Slice:
    index = int(value)
    if unit != "shard":
        raise UsageError(
            f"{quoted(text)}: one bound selects a shard only, as in {split}[3shard]; "
            f"write a slice, as in {split}[3:4] or {split}[3%:4%]"
        )
    return Slice(split=split, start=index, stop=index + 1, unit="shard")


def _bounded(split: str, text: str, values: list[str], units: list[str | None]) -> Slice:
    unit: Unit = units[0] or units[1] or "abs"  # type: ignore[assignment]  # the pattern's groups
    number = float if unit == "%" else int
    start, stop = (None if value is None else number(value) for value in values)
    if unit == "%":
        for bound, value in ((start, values[0]), (stop, values[1])):
            if abs(bound or 0) > 100:
                raise UsageError(
                    f"{quoted(text)}: {quoted(value)} is outside -100 to 100, "
                    "the range of a percent bound"
                )
    warning = None
    if None not in values and units[0] != units[1]:
        read = "percent" if unit == "%" else f"{unit}s"
        rule = "the unit of the first counts" if all(units) else "a unit on one bound counts"
        warning = f"{quoted(text)}: {rule} for both; both are read as {read}"
    return Slice(split=split, start=start, stop=stop, unit=unit, warning=warning)


def _unreadable(text: str, spec: str) -> UsageError:
    where = "" if text == spec else f" in {quoted(spec)}"
    return NotASplitError(f"{quoted(text)}{where} is not a subsplit; forms: {_FORMS}", text)


def _resolve_part(part: Slice, split: Split, warnings: list[str]) -> SplitRange:
    total = split.num_examples
    if part.unit == "shard":
        start, stop = _shard_bounds(part, split, warnings)
    elif part.unit == "%":
        # In this order of operations, as TFDS: the product first, then Python's round to even.
        start = 0 if part.start is None else round(part.start * total / 100.0)
        stop = total if part.stop is None else round(part.stop * total / 100.0)
    else:
        start = 0 if part.start is None else int(part.start)
        stop = total if part.stop is None else int(part.stop)
    for bound in (start, stop):
        if abs(bound) > total:
            raise UsageError(
                f"{quoted(part)}: bound {quoted(bound, 24)} is outside {split.name}, "
                f"which has {total} examples; bounds are -{total} to {total}"
            )
    # Negative bounds count from the end, after the check of their range.
    start = total + start if start < 0 else start
    stop = total + stop if stop < 0 else stop
    if start > stop:
        raise UsageError(
            f"{quoted(part)} runs backwards, from {start} to {stop}; "
            "write the smaller bound first (TFDS would read something else)"
        )
    return SplitRange(split=split, start=start, stop=stop)


def _shard_bounds(part: Slice, split: Split, warnings: list[str]) -> tuple[int, int]:
    """Resolve shard bounds as Python slices of the shard lengths, the way TFDS does."""
    count, offsets = split.num_shards, split.offsets
    has = f"{split.name} has {count} shard{'' if count == 1 else 's'}"
    start = 0 if part.start is None else int(part.start)
    stop = count if part.stop is None else int(part.stop)
    if abs(start) > count or stop > count:
        warnings.append(f"{quoted(part)}: {has}; a bound beyond that is clamped")
    if part.stop is not None and stop <= 0:
        # TFDS adds the number of shards to 0 as well, so that -1shard ends at the end, and then
        # slices with the sum, which counts from the end once more where it is still negative.
        if stop == 0 and part.start != -1:
            warnings.append(
                f"{quoted(part)}: TFDS reads a stop of 0 shards as the end of {split.name}, "
                "not as nothing"
            )
        if -2 * count < stop < -count:
            last = stop + 2 * count - 1
            warnings.append(
                f"{quoted(part)}: {has}; TFDS counts a stop before the first from the end "
                f"once more, and reads up to shard {last}"
            )
        stop += count
    # As slices of a list clamp them.
    return offsets[len(range(count)[:start])], offsets[len(range(count)[:stop])]


def _spelled_out(parts: Sequence[Slice], dataset: Dataset) -> str | None:
    """Return the spec with every split in the place of `all`, None where it has one order as it is.

    TFDS takes the splits of several folders from a set (core/splits.py, merge_multiple), so that
    the order differs from run to run. Splits without examples change nothing.
    """
    several = sum(split.num_examples > 0 for split in dataset.splits) > 1
    if not several or not dataset.in_several_folders:
        return None
    if all(part.split != "all" for part in parts):
        return None
    names = [split.name for split in dataset.splits]
    return "+".join(
        name for part in parts for name in (names if part.split == "all" else [str(part)])
    )


def _overlaps(spec: str, ranges: list[SplitRange]) -> list[str]:
    """Say which splits a sum reads in part twice; TFDS allows it."""
    warnings = []
    for name in dict.fromkeys(piece.split.name for piece in ranges):
        # Sorted by start, a range overlaps if it begins before the furthest end so far.
        own = sorted((p.start, p.stop) for p in ranges if p.split.name == name and p.num_examples)
        ends = accumulate((stop for _, stop in own), max)
        if any(start < end for (start, _), end in zip(own[1:], ends, strict=False)):
            warnings.append(
                f"{quoted(spec)} reads examples of {name} more than once (the parts of the sum "
                "overlap)"
            )
    return warnings


def default_spec(dataset: Dataset) -> str:
    """Return the spec a command reads when none is given: `train`, else the only split.

    Raises:
        UsageError: neither; the message lists the splits.
    """
    names = [split.name for split in dataset.splits]
    if "train" in names:
        return "train"
    if len(names) == 1:
        return names[0]
    raise UsageError(f"no split given and {dataset.title} has no train; it has: {choices(names)}")


# File instructions: which examples to read from which file, as TFDS's reader takes them.

_PIECE = 1 << 14  # instructions made at once


@dataclass(frozen=True, kw_only=True, slots=True)
class FileInstruction:
    """Skip `skip` examples of a file, then take `take` (TFDS core/utils/shard_utils.py).

    `first_id` counts the first example that is read from the start of its split.
    """

    filename: str
    split: str
    skip: int
    take: int
    examples_in_shard: int
    first_id: int

    def __post_init__(self) -> None:
        if self._is_plain and self._fits:
            return  # soon, as there may be millions of them
        keep_fields(self)
        if not self._fits:
            raise UsageError(
                f"skip={self.skip} and take={self.take} do not fit "
                f"examples_in_shard={self.examples_in_shard} and first_id={self.first_id}"
            )

    @property
    def last_id(self) -> int:
        """The last example that is read, counted as the first is."""
        return self.first_id + self.take - 1

    @property
    def _is_plain(self) -> bool:
        numbers = type(self.skip) is type(self.take) is type(self.examples_in_shard) is int
        texts = type(self.filename) is type(self.split) is str
        return numbers and texts and type(self.first_id) is int

    @property
    def _fits(self) -> bool:
        fits = self.skip >= 0 <= self.take and self.skip + self.take <= self.examples_in_shard
        return fits and 0 <= self.first_id <= INT64_MAX - self.examples_in_shard + self.skip


def file_instructions(ranges: Sequence[SplitRange]) -> OnDemand[FileInstruction]:
    """Return the file instructions that read the ranges, in order, each made when it is asked for.

    Empty shards get none, as in TFDS (core/utils/shard_utils.py, get_file_instructions). The cost
    is that of the shards touched, after one search a range.

    Raises:
        DatasetError: examples are read of a split that names no files.

    >>> from shardctl.dataset.dataset import Split
    >>> from shardctl.dataset.shard_files import ShardFiles
    >>> files = ShardFiles(pattern="d-train-\\0", num_shards=3)
    >>> split = Split.even(name="train", num_examples=10, num_shards=3, files=(files,))
    >>> for i in file_instructions([SplitRange(split=split, start=2, stop=8)]):
    ...     print(i.filename, i.skip, i.take, i.examples_in_shard, i.first_id)
    d-train-00000 2 1 3 2
    d-train-00001 0 4 4 3
    d-train-00002 0 1 3 7
    """
    for piece in ranges:
        if piece.num_examples:
            piece.split.check_named()
    touched = [piece.shards() for piece in ranges]
    # Counted without making any instruction, so that the length is known at once.
    counts = [num_read(piece.split, shards) for piece, shards in zip(ranges, touched, strict=True)]
    ends = list(accumulate(counts))

    def make(index: int) -> FileInstruction:
        number = bisect_right(ends, index)
        # `place` counts instructions within the range; shards without examples have none.
        shards, place = touched[number], index - ends[number] + counts[number]
        if counts[number] < len(shards):  # shards without examples are left out
            lengths = ranges[number].split.shard_lengths
            shard = next(islice(filter(lengths.__getitem__, shards), place, None))
        else:
            shard = shards[place]
        return next(_of_shards(ranges[number], range(shard, shard + 1)))

    def make_all() -> Iterator[FileInstruction]:
        for piece, shards in zip(ranges, touched, strict=True):
            for start in range(0, len(shards), _PIECE):
                yield from _of_shards(piece, shards[start : start + _PIECE])

    return OnDemand(sum(counts), make, make_all)


def num_read(split: Split, shards: range) -> int:
    """Return how many of these shards of a split hold examples.

    >>> from shardctl.dataset.dataset import Split
    >>> num_read(Split(name="train", shard_lengths=(3, 0, 4)), range(1, 3))
    1
    """
    num_empty = split.num_empty_shards
    if num_empty:
        num_empty = split.shard_lengths[shards.start : shards.stop].count(0)
    return len(shards) - num_empty


def _of_shards(piece: SplitRange, shards: range) -> Iterator[FileInstruction]:
    split = piece.split
    run = slice(shards.start, shards.stop)
    for filename, length, offset in zip(
        split.filenames_between(shards.start, shards.stop),
        split.shard_lengths[run],
        split.offsets[run],
        strict=True,
    ):
        if not length:
            continue
        start = max(piece.start, offset)
        yield FileInstruction(
            filename=filename,
            split=split.name,
            skip=start - offset,
            take=min(piece.stop, offset + length) - start,
            examples_in_shard=length,
            first_id=start,
        )
