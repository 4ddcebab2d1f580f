"""The calls behind the reader in a plan file: values, and the words that older files have."""

from __future__ import annotations

import re
from dataclasses import MISSING, asdict, fields
from typing import Any

from shardctl.core.resume.after_read import CALLS, AfterRead
from shardctl.core.text import choices
from shardctl.errors import DatasetError
from shardctl.files.fields import flag, mapping, only_keys, shown

_KINDS = {kind.call: kind for kind in CALLS}


def call_record(call: AfterRead) -> dict[str, Any]:
    """Return a call as a mapping; `skip_instructions` stands there where it is not 0.

    >>> call_record(read_call("shard(3, 1)"))
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
    what = "a call of after_read"
    record = _of_words(value) if isinstance(value, str) else mapping(value, what)
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


# Each group is named after the argument that it says.
_WORDS = re.compile(
    r"shard\((?P<num_shards>\d{1,19}), (?P<index>\d{1,19})\)"
    r"( of all but the first (?P<skip_instructions>\d{1,19}) instructions, "
    r"which are this host's alone)?"
    r"|shuffle\((?P<buffer_size>-?\d{1,19}), seed=(?P<seed>-?\d{1,19}|None)\)"
    r"|take\((?P<count>\d{1,19})\)"
    r"|concatenate\(epochs (?P<first_epoch>\d{1,19}) to (?P<last_epoch>\d{1,19})\)"
    r"|batch\((?P<batch_size>\d{1,19})(?P<drop_remainder>|, drop_remainder=True)\)",
    re.ASCII,
)


def _of_words(text: str) -> dict[str, object]:
    """Return the mapping of a call that was written as text, as all were in older files."""
    match = _WORDS.fullmatch(text)
    if match is None:
        raise DatasetError(f"after_read holds calls, not {shown(text)}")
    record: dict[str, object] = {"call": text.partition("(")[0]}
    for name, word in match.groupdict().items():
        if word is None:
            continue  # of another call
        if name == "drop_remainder":
            record[name] = bool(word)
        else:
            record[name] = None if word == "None" else int(word)
    return record
