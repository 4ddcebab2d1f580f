"""YAML from anywhere: a value, or one line that says what is wrong with it.

The value is built from the parser's events, not by a YAML constructor: so nesting, aliases and
tags are bounded before anything is made of them, and a million shard lengths load in a second.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from shardctl.core.text import printable, quoted
from shardctl.errors import DatasetError
from shardctl.files.fields import shown
from shardctl.files.file_text import MAX_VALUES, decode
from shardctl.files.json_text import is_json, parse_json
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
_MAX_ALIKE = 100  # number keys with one hash; each is compared with all the others


def read_document(path: AnyPath) -> object:
    """Return the value of a JSON or YAML file.

    Raises:
        DatasetError: the file cannot be read, or is neither as it is read here.
    """
    parse = parse_json if path.suffix == ".json" else parse_document
    return parse(read_file(path), source=printable(str(path)))


def parse_document(data: bytes, *, source: str) -> object:
    """Return the value of a text that is JSON, which is read a hundred times as fast, or YAML."""
    return (parse_json if is_json(data) else parse_yaml)(data, source=source)


def parse_yaml(data: bytes, *, source: str) -> object:
    """Return the value of a YAML text: text, numbers, bools, None, lists and dicts.

    Dates stay text. An empty text is None. JSON is YAML too. `source` names the text in errors.

    >>> parse_yaml(b"version: 3.0.1\\nordered: no", source="layout.yaml")
    {'version': '3.0.1', 'ordered': False}

    Raises:
        DatasetError: not UTF-8, not YAML, several documents, a tag, a key that is there twice, an
            alias inside its own value, or more depth or values than any dataset needs.
    """
    import yaml

    text = decode(data, source=source)
    del data
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        builder = _Builder(source=source)
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
    key: object = None
    has_key: bool = False
    hashes: Counter[int] = field(default_factory=Counter)


@dataclass
class _Builder:
    source: str
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
                value = self.scalar(event)
            elif kind is yaml.SequenceStartEvent or kind is yaml.MappingStartEvent:
                self.open(event, stack, [] if kind is yaml.SequenceStartEvent else {})
                continue
            elif kind is yaml.SequenceEndEvent or kind is yaml.MappingEndEvent:
                value = self.close(stack.pop())
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
                root = value
        return root

    def scalar(self, event: Any) -> object:
        self.add_values(event, 1)
        text: str = event.value
        if event.tag is not None:
            self.fail(event, f"tag {quoted(event.tag)}: tags are not read")
        value: object = text
        if event.implicit[0]:
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
            self.anchors[event.anchor] = (value, 1)
        return value

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

    def close(self, done: _Open) -> object:
        if done.anchor is not None:
            self.unfinished.discard(done.anchor)
            self.anchors[done.anchor] = (done.value, self.num_values - done.num_before)
        return done.value

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
            top.value.append(value)
            return
        if top.has_key:
            top.value[top.key] = value
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
