"""JSON from anywhere: a value, or one line that says what is wrong with it."""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import NoReturn

from shardctl.base.text import printable, quoted
from shardctl.errors import DatasetError
from shardctl.stores.anywhere import read_file
from shardctl.stores.file_text import MAX_VALUES, decode
from shardctl.stores.remote_path import AnyPath


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
    # Each key ends in a quote before its colon; what looks so within a text makes this larger, and
    # a key that is there twice is but one in the value: so it is told without a look at each.
    most_keys = data.translate(None, b" \t\r\n").count(b'":')
    del data
    try:
        value: object = json.loads(text, parse_constant=_refuse_constant)
        if _num_keys(value) != most_keys:
            value = None  # which may be large, before the next is made
            value = json.loads(
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


def _num_keys(value: object) -> int:
    """Return how many keys all mappings in a value have."""
    if type(value) is dict:
        return len(value) + _num_keys([*value.values()])
    if type(value) is not list:
        return 0
    kinds = set(map(type, value))
    if kinds == {dict}:  # many alike, of which few hold more than scalars
        inner = set(map(type, chain.from_iterable(map(dict.values, value))))
        if inner.isdisjoint((dict, list)):
            return sum(map(len, value))
    return 0 if kinds.isdisjoint((dict, list)) else sum(map(_num_keys, value))


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value: dict[str, object] = {}
    for key, item in pairs:
        if key in value:
            raise _BadValueError(f"key {quoted(key)} is there twice")
        value[key] = item
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise _BadValueError(f"{text} is not a JSON number")
