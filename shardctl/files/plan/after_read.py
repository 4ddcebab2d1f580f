"""The calls behind the reader in a plan file: values, and the words that older files have."""

from __future__ import annotations

import re
from dataclasses import MISSING, asdict, fields
from typing import Any

from shardctl.core.resume.after_read import (
    CALLS,
    AfterRead,
    BatchCall,
    ConcatenateCall,
    ShardCall,
    ShuffleCall,
    TakeCall,
)
from shardctl.core.text import choices
from shardctl.errors import DatasetError
from shardctl.files.fields import flag, mapping, only_keys, shown

_KINDS = {kind.call: kind for kind in CALLS}


def call_record(call: AfterRead) -> dict[str, Any]:
    """Return a call as a mapping; `skip_instructions` stands there where it is not 0.

    >>> call_record(ShardCall(num_shards=3, index=1))
    {'call': 'shard', 'num_shards': 3, 'index': 1}
    """
    record = {"call": call.call, **asdict(call)}
    if record.get("skip_instructions") == 0:
        del record["skip_instructions"]
    return record


def read_call(value: object) -> AfterRead:
    """Return the call that a mapping describes, or that older plan files say in words.

    >>> read_call({"call": "take", "count": 4}), read_call("take(4)")
    (TakeCall(count=4), TakeCall(count=4))

    Raises:
        DatasetError: a call that no plan has.
    """
    if isinstance(value, str):
        return _from_words(value)
    what = "a call of after_read"
    record = mapping(value, what)
    kind = _KINDS.get(str(record.get("call")))
    if kind is None:
        raise DatasetError(f"{what}: {shown(record.get('call'))}; there are {choices(_KINDS)}")
    known = fields(kind)
    only_keys(record, ("call", *(field.name for field in known)), what)
    arguments: dict[str, Any] = {}
    for field in known:
        if field.name in record:
            arguments[field.name] = _argument(field.name, record[field.name])
        elif field.default is MISSING:
            raise DatasetError(f"{what}: {kind.call} has no {field.name}")
    return kind(**arguments)


def _argument(name: str, value: object) -> int | bool | None:
    what = f"{name} in after_read"
    if name == "drop_remainder":
        return flag(value, what)
    if name == "seed" and value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise DatasetError(f"{what} must be a whole number, not {shown(value)}")
    return value


_WORDS = re.compile(
    r"shard\((?P<num_shards>\d{1,19}), (?P<index>\d{1,19})\)"
    r"( of all but the first (?P<own>\d{1,19}) instructions, which are this host's alone)?"
    r"|shuffle\((?P<buffer_size>-?\d{1,19}), seed=(?P<seed>-?\d{1,19}|None)\)"
    r"|take\((?P<count>\d{1,19})\)"
    r"|concatenate\(epochs (?P<first_epoch>\d{1,19}) to (?P<last_epoch>\d{1,19})\)"
    r"|batch\((?P<batch_size>\d{1,19})(?P<drop>, drop_remainder=True)?\)",
    re.ASCII,
)


def _from_words(text: str) -> AfterRead:
    """Return a call that was written as text, as all were before they became mappings."""
    match = _WORDS.fullmatch(text)
    if match is None:
        raise DatasetError(f"after_read holds calls, not {shown(text)}")
    found = {name: int(word) for name, word in match.groupdict().items() if _is_number(word)}
    if "num_shards" in found:
        return ShardCall(
            num_shards=found["num_shards"],
            index=found["index"],
            skip_instructions=found.get("own", 0),
        )
    if "buffer_size" in found:
        return ShuffleCall(buffer_size=found["buffer_size"], seed=found.get("seed"))
    if "count" in found:
        return TakeCall(count=found["count"])
    if "first_epoch" in found:
        return ConcatenateCall(first_epoch=found["first_epoch"], last_epoch=found["last_epoch"])
    return BatchCall(batch_size=found["batch_size"], drop_remainder=match["drop"] is not None)


def _is_number(word: str | None) -> bool:
    return word is not None and word.lstrip("-").isdigit()
