"""Where two orders differ: as text like a good test failure, as a document, as annotations."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from shardctl.core.resume.resume_plan import AfterRead
from shardctl.core.text import choices, counted, printable
from shardctl.files.documents import Document
from shardctl.files.head import head
from shardctl.files.plan.document import call_record
from shardctl.planning.diff.causes import IN_STAGES, Cause, ChangedShard
from shardctl.planning.diff.diff import Diff, Moved, OrderDifference
from shardctl.planning.diff.stages import ChangedStage
from shardctl.rendering.text.setting_origins import NOWHERE, SettingOrigins
from shardctl.rendering.text.step_rows import heading
from shardctl.rendering.text.tables import Cell, Screen, annotation, columns, paragraph, table

_MAX_SHARDS = 100  # shards of a cause that a document lists
_SHARDS = 4  # shards of a cause on a terminal
_VALUE = 100  # characters of a value there
_COLUMNS = columns("<= position expected actual")


@dataclass(frozen=True, kw_only=True)
class Hints:
    """What helps people with a difference, besides the answer.

    file: the expected file, as annotations name it.
    origins: where the settings of today were set.
    update: the command that accepts the order of today; None where nothing is to be accepted.
    each_other: two files were compared, and might have been meant to be checked each.
    """

    file: str | None = None
    origins: SettingOrigins = NOWHERE
    update: str | None = None
    each_other: bool = False


_NO_HINTS = Hints()
_EACH_OTHER = "compared with each other; --each checks each against the current order"


def diff_table(diff: Diff, screen: Screen, *, hints: Hints = _NO_HINTS) -> Iterator[str]:
    """Yield what a person wants to know: where, how much, why, and what to do about it."""
    yield from heading(headline(diff), diff.assumptions, screen, "bold")
    yield from _differences(diff, screen, hints)
    if hints.update and not diff.equal:
        yield "\n"
        label = diff.expected.label
        advice = f"if this is meant, the same command with --update writes it to {label}"
        yield paragraph(advice, screen)
    if hints.each_other:
        yield paragraph(_EACH_OTHER, screen)


def _differences(diff: Diff, screen: Screen, hints: Hints) -> Iterator[str]:
    """Yield what follows the headline, without what to do about it."""
    if diff.equal:
        for line in without_effect(diff, whole=not screen.abridged):
            yield paragraph(line, screen)
        return
    if diff.neighbours is not None:
        yield "\n"
        yield table(_COLUMNS, _rows(diff), screen)
    if diff.first is not None:
        yield "\n"
        yield paragraph(moved_line(diff.moved), screen)
    for note in diff.notes:
        yield paragraph(f"note: {note}", screen)
    yield paragraph("because:", screen)
    for cause in diff.causes:
        place = hints.origins.in_words(_origins_of(cause))
        line = cause_line(cause, whole=not screen.abridged)
        yield paragraph(f"  {line}{place}", screen)


def _origins_of(cause: Cause) -> tuple[str, ...]:
    """Return the keys of shardctl.yaml at which a cause may have come about."""
    if cause.kind == "setting":
        return (cause.name,)
    if cause.kind == "stage":
        return IN_STAGES
    return ("dataset",) if cause.kind in ("dataset", "folders", "split", "shards") else ()


def headline(diff: Diff) -> str:
    """Return the sentence that says whether and where two orders differ."""
    old, new = diff.expected, diff.actual
    if diff.first is None:
        order = f"the order of {counted(old.snapshot.num_examples, 'example')}"
        if not diff.equal:
            certain = any(cause.kind == "folders" and cause.certain for cause in diff.changes)
            said = (
                "not the same examples, though the same ids"
                if certain
                else "the same ids, and whether of the same examples cannot be told"
            )
            return f"{old.label} and {new.label}: {said}"
        return f"{old.label} and {new.label}: the same, {order}"
    where = f"{_where(diff.first)} of {diff.moved.positions:,}"
    return f"{old.label} and {new.label} first differ {where}"


def _where(first: OrderDifference) -> str:
    if first.exact:
        return f"at position {first.position:,}"
    return f"between positions {first.position:,} and {first.stop - 1:,}"


def _rows(diff: Diff) -> Iterator[Sequence[str]]:
    stretch, first = diff.neighbours, diff.first
    if stretch is None or first is None:
        return
    pairs = zip(stretch.expected, stretch.actual, strict=True)
    for position, (old, new) in enumerate(pairs, stretch.start):
        row = (">" if position == first.position else "", f"{position:,}", _id(old), _id(new))
        yield tuple(Cell(text, "error") for text in row) if row[0] else row


def _id(value: int | str | None) -> str:
    return "(end)" if value is None else str(value)


def moved_line(moved: Moved) -> str:
    """Return the sentence that says how much of an order moved, and how well that is known.

    >>> moved_line(Moved(at_least=1, at_most=1, positions=8))
    '1 of 8 positions has another example (12.5%)'
    """
    if moved.at_least == moved.at_most:
        positions = counted(moved.positions, "position")
        have = "has" if moved.at_least == 1 else "have"
        share = _percent(moved.at_least, moved.positions)
        return f"{moved.at_least:,} of {positions} {have} another example ({share})"
    return (
        f"between {moved.at_least:,} and {moved.at_most:,} of {moved.positions:,} positions have "
        f"another example (at most {_percent(moved.at_most, moved.positions)}; "
        "blocks were compared, not every position)"
    )


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole if whole else 0.0
    if 0 < share < 0.1:
        return "less than 0.1%"
    return "more than 99.9%" if 99.9 < share < 100 else f"{share:.1f}".removesuffix(".0") + "%"


def without_effect(diff: Diff, *, whole: bool = False) -> Iterator[str]:
    """Yield what changed where the order did not."""
    for cause in diff.changes:
        yield f"  without effect on the order: {cause_line(cause, whole=whole)}"


_CHANGES = {"appeared": "appeared", "vanished": "vanished", "length": "changed length"}


def cause_line(cause: Cause, *, whole: bool = False) -> str:
    """Return a cause as part of a sentence, with every shard and value in it where it is whole.

    >>> cause_line(Cause(kind="setting", name="cycle", expected=16, actual=8))
    'cycle: 16 became 8'
    """
    expected, actual = _value(cause.expected, whole), _value(cause.actual, whole)
    became = f"{expected} became {actual}"
    if cause.kind == "unknown":
        return (
            "nothing that a snapshot pins: another version of shardctl made it, or the files are "
            "named otherwise inside a long layout"
        )
    if cause.stage is not None:
        return _stage_line(cause.stage, whole)
    if cause.kind == "rules":
        return f"the rules of TensorFlow and TFDS: {became}"
    if cause.kind == "folders":
        return f"{printable(cause.name)}: {cause.words}"
    if cause.kind == "dataset":
        return f"dataset {cause.name}: {became}"
    if cause.kind == "split":
        if cause.actual is None:
            return f"split {cause.name} is no longer read"
        if cause.expected is None:
            return f"split {cause.name} is read now, {actual} examples"
    if cause.kind == "shards":
        return f"{cause.name}: {_shards(cause, became, whole)}"
    return f"{cause.name}: {became}" + (f"; {cause.words}" if cause.words else "")


def _stage_line(stage: ChangedStage, whole: bool) -> str:
    limit = sys.maxsize if whole else _VALUE
    text = printable(stage.expected or stage.actual or "", limit)
    if stage.change == "source" and not stage.words.startswith("became"):
        text = stage.name  # its inputs are compared one by one
    parted = "," if stage.change in ("moved", "added", "left out") else ":"
    return f"{stage.place or stage.place_now}, {text}{parted} {printable(stage.words, 3 * limit)}"


def _shards(cause: Cause, became: str, whole: bool) -> str:
    if cause.change in (None, "hashed"):
        return became
    if cause.change == "renamed":
        return f"the files are named otherwise, {became}"
    shards = map(_shard, cause.shards)
    listed = ", ".join(shards) if whole else choices(shards, _SHARDS)
    return f"{counted(len(cause.shards), 'shard')} {_CHANGES[str(cause.change)]}: {listed}"


def _shard(shard: ChangedShard) -> str:
    if shard.expected is None or shard.actual is None:
        length = shard.actual if shard.expected is None else shard.expected
        return f"{shard.filename} ({counted(length or 0, 'example')})"
    return f"{shard.filename} ({shard.expected:,} became {shard.actual:,})"


def _value(value: object, whole: bool) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    calls = _calls(value)
    shown = value if calls is None else [str(call) for call in calls]
    return printable(str(shown), sys.maxsize if whole else _VALUE)


def _recorded(value: object) -> object:
    calls = _calls(value)
    return value if calls is None else [call_record(call) for call in calls]


def _calls(value: object) -> tuple[AfterRead, ...] | None:
    """Return the calls of a plan's `after_read`, None for the value of anything else."""
    if isinstance(value, tuple) and all(isinstance(call, AfterRead) for call in value):
        return value
    return None


def diff_document(diff: Diff) -> Document:
    """Return the document of `diff` for two orders; the dataset is the expected one's."""
    first, stretch = diff.first, diff.neighbours
    return {
        **head("diff", diff.expected.snapshot.head, assumptions=diff.assumptions),
        "expected": diff.expected.label,
        "actual": diff.actual.label,
        "equal": diff.equal,
        "first_difference": None if first is None else {**asdict(first), "exact": first.exact},
        "neighbours": None
        if stretch is None
        else {
            "start": stretch.start,
            "expected": list(stretch.expected),
            "actual": list(stretch.actual),
        },
        "moved": asdict(diff.moved),
        "causes": [cause_record(cause) for cause in diff.causes],
        "without_effect": [cause_record(cause) for cause in diff.changes] if diff.equal else [],
        "notes": list(diff.notes),
    }


def cause_record(cause: Cause) -> Document:
    """Return a cause as a record; `text` is for people, and long lists of shards are counted."""
    record: Document = {
        "kind": cause.kind,
        "name": cause.name,
        "expected": _recorded(cause.expected),
        "actual": _recorded(cause.actual),
        "text": cause_line(cause),
    }
    if cause.change is not None:
        record["change"] = cause.change
    if cause.stage is not None:
        record["change"] = cause.stage.change
        record["place"] = {"expected": cause.stage.place, "actual": cause.stage.place_now}
    if cause.shards:
        record["num_shards"] = len(cause.shards)
        record["shards"] = list(map(asdict, cause.shards[:_MAX_SHARDS]))
    return record


def diff_annotation(diff: Diff, *, hints: Hints = _NO_HINTS) -> Iterator[str]:
    """Yield an annotation where the orders differ, with the command that accepts it.

    It is at the line of the setting that changed, where that is known, else at the expected file.
    Where the orders are the same there is none, unless that may not be what was asked.
    """
    file, line = hints.origins.place(key for cause in diff.causes for key in _origins_of(cause))
    if file is None:
        file = hints.file or diff.expected.label
    if diff.equal:
        if hints.each_other:
            yield annotation("notice", _EACH_OTHER, title=headline(diff), file=file)
        return
    text = "".join(_differences(diff, Screen(abridged=True), hints)).strip("\n")
    if hints.update:
        text += f"\n\nif this is meant: {hints.update}"
    if hints.each_other:
        text += f"\n\n{_EACH_OTHER}"
    yield annotation("error", text, title=headline(diff), file=file, line=line)
