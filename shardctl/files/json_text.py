"""JSON from anywhere: a value, or one line that says what is wrong with it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import NoReturn

from shardctl.core.text import printable, quoted
from shardctl.errors import DatasetError
from shardctl.files.file_text import MAX_VALUES, decode
from shardctl.files.lists.counts_text import CountsText
from shardctl.files.lists.json_lists import Cut, cut_lists, put_back
from shardctl.files.stores.anywhere import read_file
from shardctl.files.stores.remote_path import AnyPath


def read_json(path: AnyPath, *, packed: tuple[str, ...] = (), in_quotes: bool = False) -> object:
    """Return the value a JSON file holds; long lists under the keys of `packed` as `parse_json`.

    Raises:
        DatasetError: the file cannot be read or is not JSON.
    """
    return parse_json(
        read_file(path), source=printable(str(path)), packed=packed, in_quotes=in_quotes
    )


def parse_json(
    data: bytes, *, source: str, packed: tuple[str, ...] = (), in_quotes: bool = False
) -> object:
    """Return the value of a JSON text; `source` names it in errors.

    A long list under one of the keys of `packed` may come as `CountsText`, with `in_quotes` where
    its counts stand in quotes too, or as `RecordColumns`, whose values are not counted.

    A key that occurs twice is refused, as protobuf's parser does (json_format.Parse), and so are
    NaN and Infinity, which are not JSON.

    >>> parse_json(b'{"name": "mnist"}', source="dataset_info.json")
    {'name': 'mnist'}

    Raises:
        DatasetError: not UTF-8, not JSON, nested too deeply, a number too long to convert, or more
            values than any dataset needs.
    """
    rest, lists = cut_lists(data, packed, in_quotes=in_quotes)
    if lists:
        with suppress(DatasetError, ValueError):  # which are said of the whole text, below
            return _parsed(rest, lists, source=source)
    return _parsed(data, [], source=source)


def _parsed(data: bytes, lists: list[Cut], *, source: str) -> object:
    # Every value but the first of its list or mapping stands behind a comma, so this is no less
    # than the values; a comma in a text counts too.
    num_counts = sum(len(one) for one in lists if isinstance(one, CountsText))
    if num_counts + sum(map(data.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise DatasetError(f"{source}: more than {MAX_VALUES} values")
    text = decode(data, source=source)
    del data

    def mapping_of(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if lists:
            pairs = [(key, put_back(value, lists)) for key, value in pairs]
        return _without_duplicates(pairs)

    try:
        value: object = json.loads(
            text, object_pairs_hook=mapping_of, parse_constant=_refuse_constant
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


class _BadValueError(Exception):
    """What JSON's grammar allows and we refuse."""


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _BadValueError(f"key {quoted(key)} is there twice")
            seen.add(key)
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise _BadValueError(f"{text} is not a JSON number")
