"""Reads the fields of untrusted documents: each is checked, and an error is one readable line."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field
from dataclasses import fields as dataclass_fields
from functools import cache, partial
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from shardctl.base.arguments import Name, Whole
from shardctl.base.text import choices, near_or_all, nearest_first, printable, quoted
from shardctl.base.tfds_rules import INT64_MAX, RECORD_FORMATS
from shardctl.dataset.shard_files import PackedInts, ShardFiles
from shardctl.errors import DatasetError

MAX_NAME_LENGTH = 255  # what a file system takes as one file name


@contextmanager
def said_about(source: str) -> Iterator[None]:
    """Put `source` in front of the text of every DatasetError raised inside, where it is not yet.

    What is nested too deeply to be looked at is a DatasetError too.

    >>> with said_about("layout.yaml"):
    ...     raise DatasetError("no splits")
    Traceback (most recent call last):
    ...
    shardctl.errors.DatasetError: layout.yaml: no splits
    """
    try:
        yield
    except DatasetError as error:
        if str(error).startswith(f"{source}: "):
            raise
        raise DatasetError(f"{source}: {error}") from error
    except RecursionError as error:  # JSON that is just not too deep to parse
        raise DatasetError(f"{source}: nested too deeply") from error


def shown(value: object) -> str:
    """Return a value from a document as an error shows it: scalars themselves, the rest by kind.

    >>> shown(True), shown({"a": 1}), shown("x"), shown(None)
    ('true', 'a mapping', "'x'", 'nothing')
    """
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    # Python refuses to write numbers of thousands of digits.
    if isinstance(value, int) and abs(value) > 10**40:
        return "a number of more than 40 digits"
    return quoted(value) if isinstance(value, str) else printable(str(value), 80)


def mapping(value: object, what: str) -> Mapping[str, object]:
    """Return a mapping whose keys are text, or raise."""
    if not isinstance(value, Mapping):
        raise DatasetError(f"{what} must be a mapping, not {shown(value)}")
    for key in value:
        if not isinstance(key, str):
            raise DatasetError(f"{what}: key {shown(key)} is not text; put it in quotes")
    return value


def only_keys(value: Mapping[str, object], known: Collection[str], what: str) -> None:
    """Raise on a key that is not known, so that no typo goes unnoticed."""
    for key in value:
        if key not in known:
            raise DatasetError(f"unknown key {quoted(key)} in {what}; {near_or_all(key, known)}")


# Frozen values read by the annotations of their fields: one reader for all kinds of documents.

_Value = TypeVar("_Value")
_Take = Callable[[Any, str], Any]


def record(of: type[_Value], value: object, path: str = "", **made: object) -> _Value:
    """Return a frozen value from a mapping with a key for each of its fields.

    A list holds the fields in their order. `made` are fields that take more than their annotations
    say; `path` is where the mapping lies in its document, "" for the document itself, which may
    hold more.

    >>> from shardctl.base.tfds_rules import RuleSet
    >>> record(RuleSet, {"version": "1"}, "rules")
    Traceback (most recent call last):
    ...
    shardctl.errors.DatasetError: rules.version must be a whole number, not '1'

    Raises:
        DatasetError: the path of the field that is wrong, its value and the rule.
    """
    kind: Any = of
    known = _fields(kind)
    if isinstance(value, list) and len(value) == len(known):
        value = dict(zip(known, value, strict=True))
    given = mapping(value, path or "the document")
    if path:
        only_keys(given, known, path)
    for name, field in known.items():
        if name in made or (name not in given and field.default is not MISSING):
            continue
        if name not in given and path:
            raise DatasetError(f"{path} has no {name}")
        made[name] = _take_of(kind, field)(given.get(name), f"{path}.{name}" if path else name)
    return of(**made)


@cache
def _fields(of: Any) -> dict[str, Field[Any]]:
    return {field.name: field for field in dataclass_fields(of)}


@cache
def _take_of(of: Any, field: Field[Any]) -> _Take:
    # One by one: some annotations name what is imported for a type checker only.
    names = SimpleNamespace(__annotations__={"": field.type})
    return _taker(get_type_hints(names, vars(sys.modules[of.__module__]), include_extras=True)[""])


def _taker(hint: Any) -> _Take:
    origin, parts = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin in (Union, UnionType):
        inner = _taker(parts[0])  # of what may be None, or an id
        if NoneType in parts:
            return lambda value, path: None if value is None else inner(value, path)
        # `int | str`: an id, as a number or as "split:id".
        return lambda value, path: value if isinstance(value, str) else inner(value, path)
    if origin is tuple:
        of_item = _taker(parts[0])
        return lambda value, path: tuple(
            of_item(item, f"{path}[{index}]") for index, item in enumerate(items(value, path))
        )
    if origin is Literal:
        return partial(word, parts)
    return partial(record, hint)


def word(words: Collection[Any], value: object, what: str) -> Any:
    """Return one of some words, or raise."""
    if not isinstance(value, str) or value not in words:
        raise DatasetError(f"{what} {shown(value)}: there are {choices(words)}")
    return value


def texts(value: object, what: str) -> tuple[str, ...]:
    """Return a list of texts, or raise."""
    return tuple(text(item, f"{what}[{index}]") for index, item in enumerate(items(value, what)))


def name(value: object, what: str) -> str:
    """Return a name fit for file names and for the screen, or raise.

    >>> name("train", "split name")
    'train'
    """
    if not isinstance(value, str):
        hint = "" if value is None else "; put it in quotes"
        raise DatasetError(f"{what} must be text, not {shown(value)}{hint}")
    if not value:
        raise DatasetError(f"{what} is empty")
    if len(value) > MAX_NAME_LENGTH:
        raise DatasetError(
            f"{what} {quoted(value, 40)} has {len(value)} characters; "
            f"a file name holds at most {MAX_NAME_LENGTH}"
        )
    if not value.isprintable():
        raise DatasetError(f"{what} {quoted(value)} holds characters that cannot be printed")
    return value


def optional_name(value: object, what: str) -> str | None:
    """Return a name, None where there is none, or raise."""
    return None if value is None else name(value, what)


def text(value: object, what: str) -> str:
    """Return text of any length and any characters, or raise."""
    if not isinstance(value, str):
        raise DatasetError(f"{what} must be text, not {shown(value)}")
    return value


def items(value: object, what: str) -> list[Any]:
    """Return a list, or raise."""
    if not isinstance(value, list):
        raise DatasetError(f"{what} must be a list, not {shown(value)}")
    return value


def split_name(value: object) -> str:
    """Return a split's name, which TFDS wants to hold a letter or digit (core/naming.py)."""
    text = name(value, "split name")
    if not any(char.isalnum() for char in text):
        raise DatasetError(f"split name {quoted(text)} holds no letter or digit")
    return text


def file_format(
    value: object, known: tuple[str, ...] = RECORD_FORMATS, said: str = "there are"
) -> str:
    """Return a file format whose examples are counted here, or one of those `known`, or raise."""
    if value not in known:
        names = choices(nearest_first(value, known))
        raise DatasetError(f"unknown file format {shown(value)}; {said}: {names}")
    return str(value)


def compression(value: object) -> str | None:
    """Return how files are packed, None where they are not, or raise."""
    if value not in (None, "GZIP", "ZLIB"):
        raise DatasetError(f"compression {shown(value)}; it is GZIP or ZLIB")
    return None if value is None else str(value)


def flag(value: object, what: str) -> bool:
    """Return a bool, or raise; text and numbers are refused."""
    if not isinstance(value, bool):
        raise DatasetError(f"{what} must be true or false, not {shown(value)}")
    return value


def whole(value: object, what: str) -> int:
    """Return a whole number of any size and sign, or raise."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise DatasetError(f"{what} must be a whole number, not {shown(value)}")
    return value


def count(value: object, what: str) -> int:
    """Return a count of at least 0 that an int64 holds, written as a whole number, or raise."""
    number = whole(value, what)
    if number < 0:
        raise DatasetError(f"{what} {shown(value)} is negative")
    if number > INT64_MAX:
        raise DatasetError(f"{what} {shown(value)} is more than an int64 holds, {INT64_MAX}")
    return number


def counts(value: list[Any], what: str) -> PackedInts:
    """Return a list of counts packed, or raise; `what` says what each is, its index at `{}`.

    >>> counts([3, 4], "length of shard {}")
    (3, 4)
    """
    # Quick for the usual case; else one by one, so that the error names the index.
    plain = set(map(type, value)) <= {int}
    if plain and (not value or (min(value) >= 0 and max(value) <= INT64_MAX)):
        return PackedInts(value)
    return PackedInts(count(item, what.format(index)) for index, item in enumerate(value))


def amount(value: object, what: str) -> float:
    """Return a finite number of at least 0, or raise.

    >>> amount(2, "risk"), amount(1e-06, "risk")
    (2.0, 1e-06)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DatasetError(f"{what} must be a number, not {shown(value)}")
    if not 0 <= value <= INT64_MAX:  # nor is NaN
        raise DatasetError(f"{what} {shown(value)} is not a number from 0 to {INT64_MAX}")
    return float(value)


_PLAIN: dict[Any, _Take] = {
    int: count,
    float: amount,
    str: text,
    bool: flag,
    Name: name,
    Whole: whole,
}
_DIGITS = re.compile(r"[0-9]{1,18}")


def proto_int64(value: object, what: str) -> int:
    """Return an int64 as protobuf's JSON parser takes it, from a number or text.

    `"12"`, `12`, `12.0`, `"1e3"` and `"1_000"` are whole numbers to it; `1.5`, true and " 1" are
    not (google.protobuf.json_format, _ConvertInteger).

    >>> proto_int64("1e3", "length"), proto_int64(12.0, "length")
    (1000, 12)
    """
    number = value
    if isinstance(value, str):
        if _DIGITS.fullmatch(value):
            return int(value)
        # Python's int() and float() would take blanks, which protobuf refuses.
        number = _number(value) if " " not in value and len(value) <= 1000 else None
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if type(number) is not int:
        raise DatasetError(f"{what} must be a whole number, not {shown(value)}")
    if not -INT64_MAX - 1 <= number <= INT64_MAX:
        raise DatasetError(f"{what} {shown(value)} is more than an int64 holds, {INT64_MAX}")
    return number


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


# The names of a split's files: a template, or a list of its parts.


def files_field(parts: tuple[ShardFiles, ...], folder: str | None = None) -> object:
    """Return a template of file names; where one is not enough, the names, or several of both.

    A part that does not lie in `folder` says where.
    """
    if not parts:
        return None
    if len(parts) == 1 and parts[0].names is None and parts[0].data_dir == folder:
        return template_of(parts[0].pattern)
    return [
        {
            **(
                {"template": template_of(part.pattern), "num_shards": part.num_shards}
                if part.names is None
                else {"names": list(part.names)}
            ),
            **({} if part.data_dir == folder else {"data_dir": part.data_dir}),
        }
        for part in parts
    ]


def template_of(pattern: str) -> str:
    """Return the template of a pattern of `ShardFiles`."""
    escaped = pattern.replace("{", "{{").replace("}", "}}")
    return escaped.replace("\0", "{SHARD_INDEX}")


def files_of_field(
    value: object, num_shards: int, folder: str | None = None
) -> Iterator[ShardFiles]:
    """Yield the parts that a field holds, or raise DatasetError."""
    if value is None:
        return
    if isinstance(value, str):
        yield _templated(value, num_shards, folder)
        return
    for item in items(value, "files"):
        part = mapping(item, "a part of files")
        lies_in = part.get("data_dir", folder)
        if lies_in is not None:
            lies_in = text(lies_in, "data_dir of a part of files")
        if "names" in part:
            names = tuple(text(name, "a file name") for name in items(part["names"], "names"))
            yield ShardFiles(data_dir=lies_in, num_shards=len(names), names=names)
        else:
            size = count(part.get("num_shards"), "num_shards of a part of files")
            template = text(part.get("template"), "template")
            yield _templated(template, min(size, num_shards), lies_in)


def _templated(template: str, num_shards: int, folder: str | None) -> ShardFiles:
    return ShardFiles.from_template(
        template, dataset="", split="", file_format="", num_shards=num_shards, data_dir=folder
    )
