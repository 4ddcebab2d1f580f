"""Values that programs stumble over, and documents and bytes changed a little."""

from __future__ import annotations

import copy
import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WORDS: dict[str, Any] = json.loads(Path(__file__).with_name("words.json").read_text("utf-8"))
TEXTS: list[str] = [*WORDS["texts"], *WORDS["specs"], "x" * 300, "9" * 5000, "é" * 100]
TEXTS.append("{SHARD_INDEX}" * 12)
NUMBERS: tuple[Any, ...] = (
    *(0, 1, -1, 2, 3, 7, 16, 255, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 1, 2**63),
    *(2**64, -(2**63), 10**18, 10**30, 10**400, 1.5, -0.0, 1e308, 1e-320),
    *(float("nan"), float("inf"), float("-inf"), True, False, None),
)


def nasty(rng: random.Random) -> Any:
    """Return a value of any kind that is seldom meant."""
    draw = rng.random()
    if draw < 0.8:
        return rng.choice(TEXTS if draw < 0.45 else NUMBERS)
    if draw < 0.9:
        return rng.choice(([], {}, [None], [[]], {"": ""}, ["1", 1], {"a": {"b": []}}))
    if draw < 0.95:
        return [rng.choice([*NUMBERS, *TEXTS]) for _ in range(rng.randint(1, 50))]
    value: Any = nasty(rng)
    for _ in range(rng.choice((3, 60, 400))):
        value = [value] if rng.random() < 0.5 else {"a": value}
    return value


def mutated(document: Any, rng: random.Random) -> Any:
    """Return a document with one to three of its values, keys or items changed."""
    document = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list(_places(document))
        if not places:
            return nasty(rng)
        _change(*rng.choice(places), rng)
    return document


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (container, key) of all values inside a value."""
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(item, (dict, list)):
            yield from _places(item)


def _change(container: Any, key: Any, rng: random.Random) -> None:
    value, draw, named = container[key], rng.random(), isinstance(container, dict)
    if draw < 0.5:
        container[key] = nasty(rng)
    elif draw < 0.6:
        del container[key]
    elif draw < 0.7 and named:
        container[rng.choice(TEXTS) if rng.random() < 0.7 else rng.choice((1, 0.5))] = value
    elif draw < 0.7:
        container.insert(key, copy.deepcopy(value))
    elif draw < 0.8 and named:
        container[rng.choice(TEXTS)] = container.pop(key)
    elif isinstance(value, bool) or value is None:
        container[key] = not value
    elif isinstance(value, int):
        container[key] = value + rng.choice((-1, 1, 10, -value, 2**32))
    elif isinstance(value, str):
        at = rng.randint(0, len(value))
        container[key] = value[:at] + rng.choice((*TEXTS, *"0123456789")) + value[at:]
    else:
        container[key] = [value, nasty(rng)]


def mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with some of them changed, cut out, doubled or put in."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randint(0, max(len(changed) - 1, 0))
        size = rng.choice((1, 1, 2, 8, 100))
        draw = rng.random()
        if draw < 0.35 and changed:
            changed[at] = rng.randrange(256)
        elif draw < 0.5:
            del changed[at : at + size]
        elif draw < 0.6:
            del changed[at:]
        elif draw < 0.75:
            changed[at:at] = changed[at : at + size] * rng.choice((1, 3))
        elif draw < 0.9:
            changed[at:at] = in_bytes(rng.choice(TEXTS))
        else:
            changed[at:at] = rng.randbytes(size)
    return bytes(changed)


def mutated_lines(data: bytes, rng: random.Random) -> bytes:
    """Return lines of text with some doubled, changed, swapped or zipped."""
    lines = data.split(b"\n")
    for _ in range(rng.choice((1, 2, 5))):
        at = rng.randrange(len(lines))
        change = rng.choice(("double", "nasty", "append", "swap", "drop"))
        if change == "double":
            lines.insert(at, lines[at])
        elif change == "nasty":
            lines[at] = in_bytes(rng.choice(TEXTS))
        elif change == "append":
            lines[at] += in_bytes(rng.choice((*TEXTS, "__1", "0" * 30)))
        elif change == "swap":
            rng.shuffle(lines)
        elif len(lines) > 1:
            del lines[at]
    text = rng.choice((b"\n", b"\n", b"\r\n")).join(lines)
    return gzip.compress(text, 1) if rng.random() < 0.1 else text


def in_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def as_json(document: Any, rng: random.Random) -> bytes:
    """Return a document as JSON; at times with one key twice."""
    text = json.dumps(document, ensure_ascii=rng.random() < 0.5)
    twice = rng.random() < 0.05 and text.startswith("{")
    return in_bytes('{"name": "twice", ' + text[1:] if twice else text)


def as_yaml(document: Any, rng: random.Random) -> bytes:
    """Return a document as YAML, which JSON is where PyYAML cannot write it."""
    import yaml

    try:
        text = yaml.safe_dump(document, allow_unicode=True, default_flow_style=rng.random() < 0.3)
        return text.encode("utf-8")
    except (yaml.YAMLError, UnicodeEncodeError, RecursionError, ValueError):
        return as_json(document, rng)
