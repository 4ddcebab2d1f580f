"""JSON and YAML from anywhere: a value, or one line that says what is wrong with it.

Values of YAML are made of the events of its parser, not by a constructor: so nesting is
bounded, and aliases and tags are refused, before anything is made of them; and a million shard
lengths load in a second.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import Any, NoReturn

from shardctl.base.text import printable, quoted
from shardctl.errors import DatasetError
from shardctl.files.fields import shown
from shardctl.stores.stores import AnyPath, read_file

MAX_VALUES = 20_000_000  # of a document; two splits of a million shards have 2,000,000
MAX_DEPTH = 50
_DIGITS = frozenset("123456789")  # a leading 0 makes a number octal in YAML 1.1
_MAX_DIGITS = 4300  # as many as Python converts
_DECIMAL = re.compile(r"[-+]?[0-9_.]+(?:[eE][-+]?[0-9]+)?")
# 1:59:59 is a number too, in base 60, for which PyYAML takes the square of its length in steps.
_MAX_OTHER_DIGITS = 400
_OTHER_BASE = re.compile(r"[-+]?(?:0[bx][0-9a-fA-F_]+|[0-9_]+:[0-9_:.]*)")
_MAX_ALIKE = 100  # number keys with one hash; each is compared with all the others


def read_json(path: AnyPath) -> object:
    """Return the value a JSON file holds.

    Raises:
        DatasetError: the file cannot be read or is not JSON.
    """
    return parse_json(read_file(path), source=printable(str(path)))


def parse_json(data: bytes, *, source: str) -> object:
    """Return the value of a JSON text; `source` names it in errors.

    A key that occurs twice is refused, as protobuf's parser does (json_format.Parse), and so are
    NaN and Infinity, which are not JSON.

    >>> parse_json(b'{"name": "mnist"}', source="dataset_info.json")
    {'name': 'mnist'}

    Raises:
        DatasetError: not UTF-8, not JSON, nested too deeply, a number too long to convert, or more
            values than any dataset needs.
    """
    # Every value but the first of its list or mapping stands behind a comma, so this is no less
    # than the values; a comma in a text counts too.
    if sum(map(data.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise DatasetError(f"{source}: more than {MAX_VALUES} values")
    text = decode(data, source=source)
    del data
    try:
        value: object = json.loads(
            text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at").lower()
        raise DatasetError(
            f"{source}: line {error.lineno}, column {error.colno} is not JSON: {what}"
        ) from error
    except RecursionError as error:
        raise DatasetError(f"{source}: JSON nested too deeply") from error
    except ValueError as error:  # more digits than Python converts
        raise DatasetError(f"{source}: a number with too many digits") from error
    except _BadValueError as error:
        raise DatasetError(f"{source}: {error}") from error
    return value


def is_json(data: bytes) -> bool:
    """Return whether a file is JSON; YAML can begin with a brace too.

    >>> is_json(b'{"kind": "snapshot"}'), is_json(b"{kind: snapshot}")
    (True, False)
    """
    return re.match(rb'(?:\xef\xbb\xbf)?\s*\{\s*(?:"|\}|$)', data) is not None


class _BadValueError(Exception):
    """What JSON's grammar allows and we refuse."""


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    # A dict keeps the last of equal keys: fewer keys than pairs means that one came twice.
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise _BadValueError(f"key {quoted(twice)} is there twice")
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise _BadValueError(f"{text} is not a JSON number")


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
        DatasetError: not UTF-8, not YAML, several documents, a tag, an alias, a key that is there
            twice, or more depth or values than any dataset needs.
    """
    import yaml

    text = decode(data, source=source)
    del data
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Builder(source, yaml, yaml.parse(text, Loader=loader)).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        what = getattr(error, "problem", None) or getattr(error, "context", None) or error
        raise DatasetError(
            f"{source}: {_line(mark)} is not YAML: {printable(' '.join(str(what).split()))}"
        ) from error


def _line(mark: Any) -> str:
    return "it" if mark is None else f"line {mark.line + 1}"


def _scalar_reader(yaml: Any) -> Callable[[str], object]:
    """Return the function from a plain scalar to its value: YAML 1.1 as PyYAML's SafeLoader."""
    resolver: Any = yaml.resolver.Resolver()
    constructor: Any = yaml.constructor.SafeConstructor()
    tags = {
        "tag:yaml.org,2002:int": constructor.construct_yaml_int,
        "tag:yaml.org,2002:float": constructor.construct_yaml_float,
        "tag:yaml.org,2002:bool": constructor.construct_yaml_bool,
        "tag:yaml.org,2002:null": constructor.construct_yaml_null,
    }

    # Lengths are checked before converting: a number of a million digits would take minutes.
    def read(text: str) -> object:
        if len(text) > _MAX_OTHER_DIGITS and _OTHER_BASE.fullmatch(text):
            raise ValueError("too many digits")
        if len(text) > _MAX_DIGITS:
            if _DECIMAL.fullmatch(text):
                raise ValueError("too many digits")
            return text
        # (True, False): a plain scalar, without quotes.
        tag = resolver.resolve(yaml.ScalarNode, text, (True, False))
        convert = tags.get(tag)
        return text if convert is None else convert(yaml.ScalarNode(tag=tag, value=text))

    return read


class _Builder:
    """A value made of the events of a parser, each counted before it is made."""

    def __init__(self, source: str, yaml: Any, events: Iterator[Any]) -> None:
        self.source, self.yaml = source, yaml
        self.events = events
        self.num_values = 0
        self.convert = _scalar_reader(yaml)

    def document(self) -> object:
        """Return the value of one document."""
        value: object = None
        num_documents = 0
        for event in self.events:
            if isinstance(event, self.yaml.DocumentStartEvent):
                num_documents += 1
                if num_documents > 1:
                    self.fail(event, "a second document starts here; only one is read")
                value = self.value(next(self.events), 0)
        return value

    def value(self, event: Any, depth: int) -> object:
        """Return the value that begins with an event."""
        # Aliases could make a few lines into a value of gigabytes, and tags could make objects.
        if isinstance(event, self.yaml.AliasEvent):
            self.fail(event, f"alias {quoted(event.anchor)}: aliases are not read; write it out")
        if event.tag is not None:
            self.fail(event, f"tag {quoted(event.tag)}: tags are not read")
        self.num_values += 1
        if self.num_values > MAX_VALUES:
            self.fail(event, f"more than {MAX_VALUES} values")
        if isinstance(event, self.yaml.ScalarEvent):
            return self.scalar(event)
        if depth >= MAX_DEPTH:
            self.fail(event, f"nested more than {MAX_DEPTH} deep")
        is_list = isinstance(event, self.yaml.SequenceStartEvent)
        return (self.items if is_list else self.mapping)(depth + 1)

    def scalar(self, event: Any) -> object:
        text: str = event.value
        # In quotes, so it is text whatever it looks like.
        if not event.implicit[0]:
            return text
        try:
            # Nearly all scalars of a large file are lengths: the short way for them.
            plain = text[:1] in _DIGITS and text.isdigit() and text.isascii()
            return int(text) if plain else self.convert(text)
        except (ValueError, OverflowError):  # in base 60 more than a float holds
            long = len(text) > 300
            what = "a number with too many digits" if long else f"{quoted(text)} is not a number"
            self.fail(event, what)

    def items(self, depth: int) -> list[object]:
        found = []
        while not isinstance(event := next(self.events), self.yaml.SequenceEndEvent):
            found.append(self.value(event, depth))
        return found

    def mapping(self, depth: int) -> dict[object, object]:
        found: dict[object, object] = {}
        hashes: Counter[int] = Counter()
        while not isinstance(event := next(self.events), self.yaml.MappingEndEvent):
            key = self.value(event, depth)
            if not isinstance(key, Hashable):
                self.fail(event, "a key must be text, not a list or a mapping")
            if key in found:
                self.fail(event, f"key {shown(key)} is there twice")
            if not isinstance(key, str):
                # Python's hashes of numbers can be chosen, so that a mapping takes quadratic time
                # to fill.
                hashes[hash(key)] += 1
                if hashes[hash(key)] > _MAX_ALIKE:
                    alike = f"more than {_MAX_ALIKE} number keys with one hash"
                    self.fail(event, f"{alike}; put keys in quotes")
            found[key] = self.value(next(self.events), depth)
        return found

    def fail(self, event: Any, what: str) -> NoReturn:
        raise DatasetError(f"{self.source}: {_line(event.start_mark)}: {what}")


def decode(data: bytes, *, source: str) -> str:
    """Return UTF-8 bytes as text, without the byte order mark that some editors put in front.

    Raises:
        DatasetError: the bytes are not UTF-8, or hold a NUL, which no text does.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DatasetError(
            f"{source}: line {line} is not UTF-8 text (byte 0x{data[error.start]:02x})"
        ) from error
    at = text.find("\0")
    if at >= 0:
        line = text.count("\n", 0, at) + 1
        raise DatasetError(f"{source}: line {line} holds a NUL character; it is not a text file")
    return text
