"""Where two orders differ: as text like a good test failure, as a document, as annotations."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeGuard

from shardctl.base.columns import OnDemand, picked, record_of
from shardctl.base.text import choices, counted, printable
from shardctl.draw import tables
from shardctl.draw.step_rows import heading
from shardctl.files.documents import Document
from shardctl.metadata.project_file import NOWHERE, SettingOrigins
from shardctl.saved.head import head, kind_head
from shardctl.saved.plan_file import call_record
from shardctl.saved.resume_plan import AfterRead
from shardctl.spec.reads import Reads
from shardctl.verbs.diff.answer import Diff, Moved
from shardctl.verbs.diff.causes import IN_STAGES, Cause, ChangedShard
from shardctl.verbs.diff.plans import PlansDiff, Range

# Where two plans differ: as text, as a document, as an annotation.

_ROWS = 20  # files on a terminal, and in an annotation
_RANGES = 3  # ranges of a file there
_COLUMNS_PLANS = tables.columns("<file <expected <actual")


def plans_table(diff: PlansDiff, screen: tables.Screen) -> Iterator[str]:
    """Yield where the first file instruction differs, then every file that is read differently."""
    yield tables.paragraph(plans_headline(diff), screen, style="bold")
    first = diff.first
    if first is not None:
        plan = f" of {first.plan}" if first.plan else ""
        yield tables.paragraph(f"file instruction {first.position:,}{plan}:", screen)
        sides = f"  expected {_read(first.expected)}", f"  actual   {_read(first.actual)}"
        yield from tables.paragraphs(screen, *sides, style="error")
    if diff.only_order:
        yield tables.paragraph("the same ranges of the same files, in another order", screen)
    if diff.files:
        yield "\n"
        yield tables.paragraph(f"{counted(len(diff.files), 'file')} read differently:", screen)
        # A terminal gets the first ranges of each file, a pipe all of them.
        most = _RANGES if screen.abridged else None
        rows = OnDemand(len(diff.files), diff.files.__getitem__).map(
            lambda f: (f.filename, _ranges(f.expected, most), _ranges(f.actual, most))
        )
        yield from tables.table_pieces(_COLUMNS_PLANS, rows, screen, keep=_ROWS)
    # Settings may differ where the reads do not.
    lead = "without effect on the reads: " if diff.equal else ""
    causes = (cause_line(cause, whole=not screen.abridged) for cause in diff.changes)
    yield from tables.paragraphs(screen, *(lead + cause for cause in causes))


def plans_headline(diff: PlansDiff) -> str:
    """Return the sentence that says whether two plans read the same."""
    verb = "read the same" if diff.equal else "do not read the same"
    return f"{diff.labels[0]} and {diff.labels[1]} {verb}"


def _read(read: Reads | None) -> str:
    record = _record(read)
    if record is None:
        return "none: the plan has ended"
    return "{filename} of {split}, skip {skip:,}, take {take:,}".format_map(record)


def _ranges(ranges: Sequence[Range], most: int | None) -> str:
    if not ranges:
        return "not read"
    shown = [f"{start:,} to {stop - 1:,}" if stop > start else "nothing" for start, stop in ranges]
    rest = f" and {len(shown) - most} more" if most is not None and len(shown) > most else ""
    return "; ".join(shown[:most]) + rest


def plans_document(diff: PlansDiff) -> Document:
    """Return the document of `diff` for two plans; positions count file instructions."""
    first = diff.first
    causes = [cause_record(cause) for cause in diff.changes]
    return {
        **head("diff", diff.expected.dataset),
        "expected": diff.labels[0],
        "actual": diff.labels[1],
        "equal": diff.equal,
        "first_difference": None
        if first is None
        else {
            **picked(first, "position"),
            "expected": _record(first.expected),
            "actual": _record(first.actual),
            "plan": first.plan,
        },
        "causes": [] if diff.equal else causes,
        "without_effect": causes if diff.equal else [],
        "files": [picked(file, "plan split filename expected actual") for file in diff.files],
    }


def _record(read: Reads | None) -> Document | None:
    """Return the fields of the one instruction in `read`."""
    return None if read is None else read.records(["filename", "split", "skip", "take"])[0]


# Several snapshots at once: a table, a document and annotations.


@dataclass(frozen=True, kw_only=True)
class CheckedFile:
    """A snapshot beside the current order; or `error`, why it could not be checked."""

    label: str
    hints: Hints
    diff: Diff | None = None
    error: str = ""

    @property
    def why(self) -> str:
        """The error behind the name of the file."""
        return self.error.removeprefix(f"{self.label}: ")


def several_table(
    files: Sequence[CheckedFile], screen: tables.Screen, *, update: str | None = None
) -> Iterator[str]:
    """Yield a line for each file whose order is the same, a section for each other one.

    update: the command that accepts the current order for all that differ.
    """
    # Whether the file before took one line; sections have a blank line around them.
    before_is_line = True
    for file in files:
        is_line = file.diff is None or file.diff.equal
        if not (is_line and before_is_line):
            yield "" if file is files[0] else "\n"
        before_is_line = is_line
        if file.diff is None:
            yield tables.paragraph(f"{file.label} was not checked: {file.why}", screen)
        else:
            hints = replace(file.hints, update=None)  # it is said once, below
            yield from diff_table(file.diff, screen, hints=hints)
    differ = [file for file in files if file.diff is not None and not file.diff.equal]
    if len(files) > 1:
        yield "" if before_is_line else "\n"
        yield tables.paragraph(_summary(files, differ), screen, style="bold")
    if update and differ:
        yield from tables.to_paste(_ACCEPT, update, screen)


def _summary(files: Sequence[CheckedFile], differ: Sequence[CheckedFile]) -> str:
    failed = sum(file.diff is None for file in files)
    said = f"{len(files) - len(differ) - failed} of {counted(len(files), 'file')} match"
    said += f", {len(differ)} changed" if differ else ""
    return said + (f", {failed} not checked" if failed else "")


def several_document(files: Sequence[CheckedFile]) -> Document:
    """Return the documents that `diff` has for each file alone, and what could not be checked."""
    compared = [file.diff for file in files if file.diff is not None]
    return {
        **kind_head("diff"),
        "equal": len(compared) == len(files) and all(diff.equal for diff in compared),
        "comparisons": [diff_document(diff) for diff in compared],
        "not_checked": [picked(file, "file=label error") for file in files if file.diff is None],
    }


def several_annotation(files: Sequence[CheckedFile], *, update: str | None = None) -> Iterator[str]:
    """Yield an annotation for each file whose order differs, or that could not be checked."""
    for file in files:
        if file.diff is None:
            title = f"{file.label} was not checked"
            yield tables.annotation(
                "error", file.why, title=title, file=file.hints.file or file.label
            )
        else:
            yield from diff_annotation(file.diff, hints=file.hints)


_MAX_SHARDS = 100  # shards of a cause that a document lists
_SHARDS = 4  # shards of a cause on a terminal
_VALUE = 100  # characters of a value there
_COLUMNS = tables.columns("<= position expected actual")


@dataclass(frozen=True, kw_only=True)
class Hints:
    """What helps people with a difference, besides the answer.

    file: the expected file, as annotations name it.
    origins: where the current settings were set.
    update: the command that accepts the current order; None where nothing is to be accepted.
    each_other: two files were compared, and might have been meant to be checked each.
    all_of_file: nothing here sets a setting, so that those of the file are all there are.
    """

    file: str | None = None
    origins: SettingOrigins = NOWHERE
    update: str | None = None
    each_other: bool = False
    all_of_file: bool = False


_NO_HINTS = Hints()
_ACCEPT = "if this is meant, accept the current order"
_ALL_OF_FILE = (
    "note: every setting is that of the file, as neither shardctl.yaml nor an option sets one; "
    "a change in a script is not seen"
)
_EACH_OTHER = "compared with each other; --each checks each against the current order"


def diff_table(diff: Diff, screen: tables.Screen, *, hints: Hints = _NO_HINTS) -> Iterator[str]:
    """Yield what a person wants to know: where, how much, why, and what to do about it."""
    yield from heading(headline(diff), diff.assumptions, screen, "bold")
    yield from _differences(diff, screen, hints)
    if hints.update and not diff.equal:
        yield "\n"
        yield from tables.to_paste(_ACCEPT, hints.update, screen)
    if hints.all_of_file:
        yield tables.paragraph(_ALL_OF_FILE, screen)
    if hints.each_other:
        yield tables.paragraph(_EACH_OTHER, screen)


def _differences(diff: Diff, screen: tables.Screen, hints: Hints) -> Iterator[str]:
    """Yield what follows the headline, without what to do about it."""
    if diff.equal:
        yield from tables.paragraphs(screen, *without_effect(diff, whole=not screen.abridged))
        return
    if diff.neighbours is not None:
        yield "\n"
        yield tables.table(_COLUMNS, _rows(diff), screen)
    if diff.first is not None:
        yield "\n"
        yield tables.paragraph(moved_line(diff.moved), screen)
    yield from tables.paragraphs(screen, *(f"note: {note}" for note in diff.notes), "because:")
    for cause in diff.causes:
        place = hints.origins.in_words(_origins_of(cause))
        line = cause_line(cause, whole=not screen.abridged)
        yield tables.paragraph(f"  {line}{place}", screen)


def _origins_of(cause: Cause) -> tuple[str, ...]:
    """Return the keys of shardctl.yaml at which a cause may have come about."""
    if cause.kind == "setting":
        return (cause.name,)
    if cause.kind == "stage":
        return IN_STAGES
    return ("dataset",) if cause.kind in ("dataset", "folders", "split", "shards") else ()


def headline(diff: Diff) -> str:
    """Return the sentence that says whether and where two orders differ."""
    sides, first = (diff.expected.label, diff.actual.label), diff.first
    both = " and ".join(sides)
    if first is not None:
        end = f"between positions {first.position:,} and {first.stop - 1:,}"
        where = f"at position {first.position:,}" if first.exact else end
        return f"{both} first differ {where} of {diff.moved.positions:,}"
    if diff.equal:
        count = counted(diff.expected.snapshot.num_examples, "example")
        return f"{' matches '.join(sides)}: {count}"
    if any(cause.kind == "folders" and cause.certain for cause in diff.changes):
        return f"{both} have the same ids, but they are other examples"
    return f"{both} have the same ids; whether they are the same examples is not known"


def _rows(diff: Diff) -> Iterator[Sequence[str]]:
    stretch, first = diff.neighbours, diff.first
    if stretch is None or first is None:
        return
    pairs = zip(stretch.expected, stretch.actual, strict=True)
    for position, (old, new) in enumerate(pairs, stretch.start):
        row = (">" if position == first.position else "", f"{position:,}", _id(old), _id(new))
        yield tuple(tables.Cell(text, "error") for text in row) if row[0] else row


def _id(value: int | str | None) -> str:
    return "(end)" if value is None else str(value)


def moved_line(moved: Moved) -> str:
    """Return the sentence that says how much of an order moved, and how well that is known.

    >>> moved_line(Moved(at_least=1, at_most=1, positions=8))
    '1 of 8 positions has another example (12.5%)'
    """
    share = _percent(moved.at_most, moved.positions)
    if moved.at_least == moved.at_most:
        have = "has" if moved.at_least == 1 else "have"
        positions = counted(moved.positions, "position")
        return f"{moved.at_least:,} of {positions} {have} another example ({share})"
    return (
        f"between {moved.at_least:,} and {moved.at_most:,} of {moved.positions:,} positions have "
        f"another example (at most {share}; blocks were compared, not every position)"
    )


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole if whole else 0.0
    # Rounded, these would read as none or as all.
    if 0 < share < 0.1:
        return "less than 0.1%"
    return "more than 99.9%" if 99.9 < share < 100 else f"{share:.1f}".removesuffix(".0") + "%"


def without_effect(diff: Diff, *, whole: bool = False) -> Iterator[str]:
    """Yield what changed where the order did not."""
    for cause in diff.changes:
        yield f"  without effect on the order: {cause_line(cause, whole=whole)}"


_CHANGES = {"appeared": "appeared", "vanished": "vanished", "length": "changed length"}
_LINES = {
    "unknown": "nothing that a snapshot records: another version of shardctl wrote it, or files of "
    "a long layout were renamed",
    "rules": "the rules of TensorFlow and TFDS: {became}",
    "folders": "{name}: {words}",
    "dataset": "dataset {name}: {became}",
}


def cause_line(cause: Cause, *, whole: bool = False) -> str:
    """Return a cause as part of a sentence, with every shard and value in it where it is whole.

    >>> cause_line(Cause(kind="setting", name="cycle", expected=16, actual=8))
    'cycle: 16 became 8'
    """
    # A stage is a call with arguments, and gets more room.
    limit = sys.maxsize if whole else _VALUE * (3 if cause.kind == "stage" else 1)
    expected, actual = _value(cause.expected, limit), _value(cause.actual, limit)
    became, name = f"{expected} became {actual}", printable(cause.name)
    if cause.kind == "stage":
        place, text = cause.place or cause.place_now, actual if cause.expected is None else expected
        went = f"became {actual}" if cause.change == "changed" else f"was {cause.change}"
        return f"{place}, {text}, {went}"
    if cause.kind == "split" and None in (cause.expected, cause.actual):
        is_new = cause.expected is None
        return f"split {name} is " + (
            f"read now, {actual} examples" if is_new else "no longer read"
        )
    if cause.kind == "shards":
        return f"{name}: {_shards(cause, became, whole)}"
    if cause.kind in _LINES:
        return _LINES[cause.kind].format(name=name, became=became, words=cause.words)
    return f"{name}: {became}" + (f"; {cause.words}" if cause.words else "")


def _shards(cause: Cause, became: str, whole: bool) -> str:
    if cause.change in (None, "hashed"):
        return became
    if cause.change == "renamed":
        return f"the files were renamed, {became}"
    shards = map(_shard, cause.shards)
    listed = ", ".join(shards) if whole else choices(shards, _SHARDS)
    return f"{counted(len(cause.shards), 'shard')} {_CHANGES[str(cause.change)]}: {listed}"


def _shard(shard: ChangedShard) -> str:
    lengths = [length for length in (shard.expected, shard.actual) if length is not None]
    # A shard that is on one side alone.
    if len(lengths) < 2:
        return f"{shard.filename} ({counted(lengths[0], 'example')})"
    return f"{shard.filename} ({lengths[0]:,} became {lengths[1]:,})"


def _value(value: object, limit: int) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    shown = list(map(str, value)) if _are_calls(value) else value
    return printable(str(shown), limit)


def _recorded(value: object) -> object:
    return list(map(call_record, value)) if _are_calls(value) else value


def _are_calls(value: object) -> TypeGuard[tuple[AfterRead, ...]]:
    """Return whether a value is the calls of a plan's `after_read`."""
    return isinstance(value, tuple) and all(isinstance(call, AfterRead) for call in value)


def diff_document(diff: Diff) -> Document:
    """Return the document of `diff` for two orders; the dataset is the expected one's."""
    first, stretch = diff.first, diff.neighbours
    return {
        **head("diff", diff.expected.snapshot.head, assumptions=diff.assumptions),
        **picked(diff, "expected=expected.label actual=actual.label equal"),
        "first_difference": None if first is None else {**asdict(first), "exact": first.exact},
        "neighbours": record_of(stretch, "start expected actual"),
        **picked(diff, "moved"),
        "causes": [cause_record(cause) for cause in diff.causes],
        "without_effect": [cause_record(cause) for cause in diff.changes] if diff.equal else [],
        "notes": list(diff.notes),
    }


def cause_record(cause: Cause) -> Document:
    """Return a cause as a record; `text` is for people, and long lists of shards are counted."""
    record: Document = {
        **picked(cause, "kind name"),
        "expected": _recorded(cause.expected),
        "actual": _recorded(cause.actual),
        "text": cause_line(cause),
    }
    if cause.change is not None:
        record["change"] = cause.change
    if cause.kind == "stage":
        record["place"] = picked(cause, "expected=place actual=place_now")
    if cause.shards:
        record["num_shards"] = len(cause.shards)
        record["shards"] = list(map(asdict, cause.shards[:_MAX_SHARDS]))
    return record


def diff_annotation(diff: Diff, *, hints: Hints = _NO_HINTS) -> Iterator[str]:
    """Yield an annotation where the orders differ, with the command that accepts it.

    It is at the line of the setting that changed, where that is known, else at the expected file.
    Where the orders are the same there is none, unless that may not be what was asked.
    """
    # The first cause that a line of shardctl.yaml set.
    file, line = hints.origins.place(key for cause in diff.causes for key in _origins_of(cause))
    if file is None:
        file = hints.file or diff.expected.label
    update = hints.update and f"{_ACCEPT}:\n{hints.update}"
    more = [update if not diff.equal else "", _EACH_OTHER if hints.each_other else ""]
    level: tables.Level = "notice" if diff.equal else "error"
    # A notice is about the comparison, not about a setting.
    line = None if diff.equal else line
    said = "" if diff.equal else "".join(_differences(diff, tables.Screen(abridged=True), hints))
    text = "\n\n".join(part for part in (said.strip("\n"), *more) if part)
    if text:
        yield tables.annotation(level, text, title=headline(diff), file=file, line=line)
