"""YAML from anywhere: a value, or one line that says what is wrong with it.

The value is built from the parser's events, not by a YAML constructor: so nesting, aliases and
tags are bounded before anything is made of them, and a million shard lengths load in a second.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NoReturn

from shardctl.core.text import printable, quoted
from shardctl.errors import DatasetError
from shardctl.files.fields import shown
from shardctl.files.file_text import MAX_VALUES, decode
from shardctl.files.record_columns import (
    NO_TEXT,
    WORD,
    CountsText,
    RecordColumns,
    number_run,
    record_run,
    without_blanks,
)
from shardctl.files.stores.anywhere import read_file
from shardctl.files.stores.remote_path import AnyPath

MAX_DEPTH = 50
_TOO_DEEP = f"nested more than {MAX_DEPTH} deep"
_DIGITS = frozenset("123456789")  # a leading 0 makes a number octal in YAML 1.1
_MAX_DIGITS = 4300  # as many as Python converts
_DECIMAL = re.compile(r"[-+]?[0-9_.]+(?:[eE][-+]?[0-9]+)?")
# 1:59:59 is a number too, in base 60, for which PyYAML takes the square of its length in steps.
_MAX_OTHER_DIGITS = 400
_OTHER_BASE = re.compile(r"[-+]?(?:0[bx][0-9a-fA-F_]+|[0-9_]+:[0-9_:.]*)")
_NOT_CUT = "a list that the parser must read"  # is never said: the whole text is read again
_MAX_ALIKE = 100  # number keys with one hash; each is compared with all the others


def read_yaml(path: AnyPath, *, packed: tuple[str, ...] = ()) -> object:
    """Return the value a YAML file holds; long lists under the keys of `packed` as `parse_yaml`.

    Raises:
        DatasetError: the file cannot be read or is not YAML that is read here.
    """
    return parse_yaml(read_file(path), source=printable(str(path)), packed=packed)


def parse_yaml(data: bytes, *, source: str, packed: tuple[str, ...] = ()) -> object:
    """Return the value of a YAML text: text, numbers, bools, None, lists and dicts.

    Dates stay text. An empty text is None. JSON is YAML too. `source` names the text in errors.
    A long list under one of the keys of `packed` may come as `CountsText`, or as `RecordColumns`,
    whose values are not counted.

    >>> parse_yaml(b"version: 3.0.1\\nordered: no", source="layout.yaml")
    {'version': '3.0.1', 'ordered': False}

    Raises:
        DatasetError: not UTF-8, not YAML, several documents, a tag, a key that is there twice, an
            alias inside its own value, or more depth or values than any dataset needs.
    """
    rest, cuts = cut_lists(data)
    if cuts:
        with suppress(DatasetError):  # which is said of the whole text, below
            value = _parsed(rest, cuts, source=source, packed=packed)
            if not cuts:  # each was a list
                return value
    return _parsed(data, None, source=source)


def _parsed(data: bytes, cuts: Cuts | None, *, source: str, packed: tuple[str, ...] = ()) -> object:
    """Return the value of a text, and take each list of `cuts` whose mark is a value of its own."""
    import yaml

    text = decode(data, source=source)
    del data
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        builder = _Builder(source=source, cuts=cuts, packed=packed)
        return builder.build(yaml.parse(text, Loader=loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if "maximum nesting depth" in str(error.problem):  # of PyYAML 6.0.4, before any event
            raise DatasetError(f"{source}: {_line(mark)}: {_TOO_DEEP}") from error
        what = printable(error.problem or error.context or "cannot be parsed")
        raise DatasetError(f"{source}: {_line(mark)} is not YAML: {what}") from error
    except yaml.reader.ReaderError as error:
        found = yaml.reader.Reader.NON_PRINTABLE.search(text)
        if found is None:
            raise DatasetError(f"{source} is not YAML: {printable(str(error.reason))}") from error
        line = text.count("\n", 0, found.start()) + 1
        raise DatasetError(
            f"{source}: line {line} holds the character U+{ord(found.group()):04X}, "
            "which YAML does not allow"
        ) from error
    except yaml.YAMLError as error:
        raise DatasetError(f"{source} is not YAML: {printable(str(error))}") from error
    except RecursionError as error:
        raise DatasetError(f"{source}: YAML nested too deeply") from error


def _counts(run: object) -> CountsText | None:
    items = run.items if isinstance(run, CutRun) else None
    return items if isinstance(items, CountsText) else None


def _line(mark: Any) -> str:
    return "it" if mark is None else f"line {mark.line + 1}"


def _scalar_reader() -> Callable[[str], object]:
    """Return the function from a plain scalar to its value: YAML 1.1 as PyYAML's SafeLoader."""
    import yaml

    resolver: Any = yaml.resolver.Resolver()
    constructor: Any = yaml.constructor.SafeConstructor()
    tags = {
        "tag:yaml.org,2002:int": constructor.construct_yaml_int,
        "tag:yaml.org,2002:float": constructor.construct_yaml_float,
        "tag:yaml.org,2002:bool": constructor.construct_yaml_bool,
        "tag:yaml.org,2002:null": constructor.construct_yaml_null,
    }

    def read(text: str) -> object:
        if len(text) > _MAX_OTHER_DIGITS and _OTHER_BASE.fullmatch(text):
            raise ValueError("too many digits")
        if len(text) > _MAX_DIGITS:
            if _DECIMAL.fullmatch(text):
                raise ValueError("too many digits")
            return text
        tag = resolver.resolve(yaml.ScalarNode, text, (True, False))
        convert = tags.get(tag)
        return text if convert is None else convert(yaml.ScalarNode(tag=tag, value=text))

    return read


@dataclass
class _Open:
    """A list or dict whose end is still to come; `key` waits for its value in a dict."""

    value: list[object] | dict[object, object]
    anchor: str | None
    num_before: int
    has_runs: bool = False
    key: object = None
    has_key: bool = False
    hashes: Counter[int] = field(default_factory=Counter)


@dataclass
class _Builder:
    source: str
    cuts: Cuts | None
    packed: tuple[str, ...]
    anchors: dict[str, tuple[object, int]] = field(default_factory=dict)
    unfinished: set[str] = field(default_factory=set)
    num_values: int = 0
    convert: Callable[[str], object] = field(default_factory=_scalar_reader)

    def build(self, events: Iterator[Any]) -> object:
        """Return the value of one document."""
        import yaml

        stack: list[_Open] = []
        root: object = None
        num_documents = 0
        scalar = yaml.ScalarEvent
        for event in events:
            kind = type(event)
            value: object
            if kind is scalar:
                value = self.scalar(event, stack)
            elif kind is yaml.SequenceStartEvent or kind is yaml.MappingStartEvent:
                self.open(event, stack, [] if kind is yaml.SequenceStartEvent else {})
                continue
            elif kind is yaml.SequenceEndEvent or kind is yaml.MappingEndEvent:
                value = self.close(event, stack.pop())
            elif kind is yaml.AliasEvent:
                value = self.alias(event)
            else:
                num_documents += kind is yaml.DocumentStartEvent
                if num_documents > 1:
                    self.fail(event, "a second document starts here; only one is read")
                continue
            if stack:
                self.put(event, stack[-1], value)
            else:
                root = self.plain(event, value)
        return root

    def scalar(self, event: Any, stack: list[_Open]) -> object:
        self.add_values(event, 1)
        text: str = event.value
        if event.tag is not None:
            self.fail(event, f"tag {quoted(event.tag)}: tags are not read")
        value: object = text
        num_before, num_values = self.num_values - 1, 1
        if text == MARK and self.cuts is not None:
            value = self.list_of_mark(event, stack)
            num_values = self.num_values - num_before
        elif event.implicit[0]:
            try:
                plain = text[:1] in _DIGITS and text.isdigit() and text.isascii()
                value = int(text) if plain else self.convert(text)
            except (ValueError, OverflowError):  # in base 60 more than a float holds
                self.fail(
                    event,
                    "a number with too many digits"
                    if len(text) > 300
                    else f"{quoted(text)} is not a number",
                )
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, num_values)
        return value

    def list_of_mark(self, event: Any, stack: list[_Open]) -> object:
        """Return the list for which a mark stands; a run is joined where its list ends."""
        cut = None if self.cuts is None else self.cuts.pop(event.start_mark.line, None)
        top = stack[-1] if stack else None
        if cut is None or len(stack) >= MAX_DEPTH:
            self.fail(event, _NOT_CUT)
        if not isinstance(cut.items, RecordColumns):
            self.add_values(event, len(cut.items))
        if isinstance(cut, CutList):
            return cut.items
        if event.anchor is not None or top is None or not isinstance(top.value, list):
            self.fail(event, _NOT_CUT)
        top.has_runs = True
        return cut

    def open(
        self, event: Any, stack: list[_Open], value: list[object] | dict[object, object]
    ) -> None:
        if event.tag is not None:
            self.fail(event, f"tag {quoted(event.tag)}: tags are not read")
        if len(stack) >= MAX_DEPTH:
            self.fail(event, _TOO_DEEP)
        stack.append(_Open(value=value, anchor=event.anchor, num_before=self.num_values))
        self.add_values(event, 1)
        if event.anchor is not None:
            self.anchors.pop(event.anchor, None)
            self.unfinished.add(event.anchor)

    def close(self, event: Any, done: _Open) -> object:
        value: object = done.value
        if done.has_runs and isinstance(done.value, list):
            value = self.joined(event, done.value)
        if done.anchor is not None:
            self.unfinished.discard(done.anchor)
            self.anchors[done.anchor] = (value, self.num_values - done.num_before)
        return value

    def joined(self, event: Any, items: list[object]) -> object:
        """Return the items of a list, of which some are runs."""
        first = items[0].items if isinstance(items[0], CutRun) else None
        if isinstance(first, RecordColumns):
            records = first.with_records(items[1:])
            if records is None:
                self.fail(event, _NOT_CUT)
            return records
        parts: list[CountsText] = []
        for kind, group in groupby(items, type):
            for counts in map(_counts, group) if kind is CutRun else [CountsText.of_ints(group)]:
                if counts is None:
                    self.fail(event, _NOT_CUT)
                parts.append(counts)
        return CountsText.joined(parts)

    def plain(self, event: Any, value: object) -> object:
        """Return a list that was cut out as a list."""
        if isinstance(value, RecordColumns):
            self.add_values(event, 2 * len(value) * len(value.columns))
            return value.records()
        return value.ints() if isinstance(value, CountsText) else value

    def alias(self, event: Any) -> object:
        if event.anchor in self.unfinished:
            self.fail(event, f"alias {quoted(event.anchor)} lies inside its own value")
        if event.anchor not in self.anchors:
            self.fail(event, f"alias {quoted(event.anchor)} has no anchor before it")
        value, num_values = self.anchors[event.anchor]
        self.add_values(event, num_values)
        return value

    def add_values(self, event: Any, number: int) -> None:
        self.num_values += number
        if self.num_values > MAX_VALUES:
            self.fail(event, f"more than {MAX_VALUES} values with its aliases written out")

    def put(self, event: Any, top: _Open, value: object) -> None:
        if isinstance(top.value, list):
            top.value.append(self.plain(event, value))
            return
        if top.has_key:
            top.value[top.key] = value if top.key in self.packed else self.plain(event, value)
            top.has_key = False
            return
        if not isinstance(value, Hashable):
            self.fail(event, "a key must be text, not a list or a mapping")
        if value in top.value:
            self.fail(event, f"key {shown(value)} is there twice")
        if not isinstance(value, str):
            top.hashes[hash(value)] += 1
            if top.hashes[hash(value)] > _MAX_ALIKE:
                self.fail(
                    event, f"more than {_MAX_ALIKE} number keys with one hash; put keys in quotes"
                )
        top.key, top.has_key = value, True

    def fail(self, event: Any, what: str) -> NoReturn:
        raise DatasetError(f"{self.source}: {_line(event.start_mark)}: {what}")


# Long lists in a YAML text, taken out before it is parsed: a hundred times as fast.
#
# Each leaves a mark, a text in quotes, and as many lines as it had. Whether a list was one, and no
# part of a text or a comment, is for the parser to say: it was if the mark comes back as a scalar
# of its own from the line that it was put on. All before the first mark is as it was, so the
# parser stands where it stood, before a value or an entry; and what a list is made of here, plain
# counts, words, texts in quotes, or records of them, means the same wherever a list can stand.

_LONG = 1 << 16  # bytes; a shorter list is parsed with the rest
_MAX_SHORT = 1000  # runs of lines that are looked at in vain
MARK = "\0list"  # that no YAML text holds but by an escape
_ESCAPES = (b"\\0", b"\\x00", b"\\u0000", b"\\U00000000")
_MARK = b'"\\u0000list"'
_RUN = re.compile(rb"\n(?= *- (?:[0-9]|\{))")
_LEAD = re.compile(rb" *- (?=[0-9])")
# What may follow a list, so that it is no key.
_BEHIND = re.compile(rb" *(?:[,}\]\r\n]|\Z)| +#")
_TEXT = rb"(?:'[^']+'|%s)" % WORD
_TEXTS = re.compile(rb"%s(?:, %s)*+" % (_TEXT, _TEXT))
_EACH_TEXT = re.compile(rf"'([^']+)'|({WORD.decode()})")


@dataclass(frozen=True)
class CutList:
    """A list in brackets that was taken out."""

    items: CountsText | list[object]


@dataclass(frozen=True)
class CutRun:
    """Items of a list of a line each, all of one kind; others may stand before and behind."""

    items: CountsText | RecordColumns


Cuts = dict[int, CutList | CutRun]
Finder = Callable[[bytes], Iterator[tuple[int, int, CutList | CutRun]]]


def cut_lists(data: bytes) -> tuple[bytes, Cuts]:
    """Return a YAML text with marks for its long lists, and these by the lines of the marks.

    Lines are counted from 0, and keep their numbers. A text that may hold a mark has none cut.
    """
    cuts: Cuts = {}
    if len(data) < _LONG or any(escape in data for escape in _ESCAPES):
        return data, cuts
    return _with_marks(_with_marks(data, _runs, cuts), _brackets, cuts), cuts


def _with_marks(data: bytes, find: Finder, cuts: Cuts) -> bytes:
    kept: list[bytes] = []
    done = at = line = 0
    for start, stop, cut in find(data):
        line += data.count(b"\n", at, start)
        at = start
        if line in cuts:  # one list a line
            continue
        num_lines = data.count(b"\n", start, stop)
        cuts[line] = cut
        kept += [data[done:start], _MARK, b"\n" * num_lines]
        line += num_lines
        done = at = stop
    return b"".join((*kept, data[done:])) if kept else data


def _runs(data: bytes) -> Iterator[tuple[int, int, CutRun]]:
    """Yield runs of entries of a line each: from behind the first dash to the line of the last."""
    at = num_short = 0
    while num_short < _MAX_SHORT and (found := _RUN.search(data, at)) is not None:
        start = found.end()
        run = _run(data, start)
        if run is None or run[1] - start < _LONG:
            num_short += 1
            at = start if run is None else run[1] - 1
            continue
        items, at = run
        yield data.find(b"-", start) + 2, at, CutRun(items)
        at -= 1


def _run(data: bytes, start: int) -> tuple[CountsText | RecordColumns, int] | None:
    lead = _LEAD.match(data, start)
    return record_run(data, start) if lead is None else number_run(data, start, lead[0])


def _brackets(data: bytes) -> Iterator[tuple[int, int, CutList]]:
    """Yield lists in brackets with nothing in brackets in them."""
    at = 0
    while (end := data.find(b"]", at)) >= 0:
        start = data.rfind(b"[", at, end)
        at = end + 1
        if start >= 0 and end - start >= _LONG and _BEHIND.match(data, at):
            items = _items(data[start + 1 : end])
            if items is not None:
                yield start, at, CutList(items)


def _items(body: bytes) -> CountsText | list[object] | None:
    """Return the items between the brackets of a list, None where it takes a parser."""
    if b"\t" in body or b"\r" in body:
        return None
    if body[:1] in b" \n0123456789":
        compact = without_blanks(body)
        return None if compact is None else CountsText.of(compact.removesuffix(b","))
    if not _TEXTS.fullmatch(body):
        return None
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    if not text.isprintable():
        return None
    found = _EACH_TEXT.findall(text)
    if any(word.lower().encode() in NO_TEXT for _, word in found if len(word) < 6):
        return None
    return [quoted or word for quoted, word in found]
