"""Layout files as texts, in many ways of writing, and changes to them that make near-misses."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

Draw = random.Random
_COUNTS = ("0", "7", "1043", "12", "999", "1000000", "100000000000000000", "999999999999999999")
_WORDS = ("a", "b-1.tfrecord", "d/e", "train", "x_w", "é")
# What may stand in the place of a number, or anywhere.
_ODD = (
    *("1_000", "017", "0x1f", "1e3", "1.5", "~", "null", "yes", "'5'", '"5"', "-3", "+5", "1:30"),
    *(
        "*x",
        "&x 5",
        "!!str 5",
        "# c",
        "99999999999999999999",
        "0o7",
        "5 # c",
        "é",
        "",
        "1 2",
        "1,2",
    ),
    *("[1, 2]", "{a: 1}", "a: 1", "|", "'it''s'", '"\\0list"', '"\\u0000list"', "5:", "? 5", "- 5"),
    *("\t5", "5\t", "\u2028", "\x85", "\x01", "[", "]", ", ", "}", "---", "...", "--- 5", "'", '"'),
    *("- - 5", "\ufeff", "\\", "n", "\r\n"),
)
_ENDS = (" # c", " ", ":", ",", " ,", "\t", " x", "'", " |", " >", "\\", "\r")
_LINES = (
    *("a: |", "a: >", "  x: 'y", '  x: "y', "---", "...", "  it's: 'x", "- |", "? a", "  a: b"),
    *("    - |", "x: [", "x: {", "]", "}", "'", '"', "%YAML 1.1", "a: &b", "<<: *b", "# [1, 2]"),
    *("    z: it's", "      7", "", "    note: 'a", "    note: text"),
)
_SWAPS = (
    *(("- ", "-"), ("- ", "- &x "), ("- ", "- - "), ("- ", "? "), (": ", ":"), (": ", ": &x ")),
    *((": ", ": !!seq "), (": ", ": - "), ("[", "[["), ("[", "{"), (", ", ","), (", ", " - ")),
)


def yaml_layout(draw: Draw) -> str:
    """Return a layout in YAML, its lists in brackets or in blocks, on a line or over several."""
    lines = draw.choice(([], ["name: toy"], ["# it's a layout"], ["note: |", "  a", "  b"]))
    lines = [*lines, "splits:"]
    for split in draw.sample(("train", "test", "val"), draw.randrange(1, 3)):
        key = draw.choice(("shard_lengths", "shards", "other"))
        size = draw.randrange(1, 12)
        counts = [draw.choice(_COUNTS) for _ in range(size)]
        in_line = ", ".join(counts)
        separators = (",\n      ", ",\n", ", \n   ", ",", " ,", ", ")
        apart = draw.choice(separators).join(counts)
        opening, closing = draw.choice(
            (("[", "]"), ("[\n      ", "\n    ]"), ("[ ", ",\n]"), ("[", ", ]"))
        )
        words = ", ".join(draw.choice((*_WORDS, "'q r'")) for _ in counts)
        dash = draw.choice(("    - ", "      - "))
        lines += draw.choice(
            (
                [f"  {split}:", f"    {key}: [{in_line}]"],
                [f"  {split}:", f"    {key}:", *(f"{dash}{count}" for count in counts)],
                [f"  {split}:", f"    {key}: {opening}{apart}{closing}"],
                [f"  {split}:", f"    {key}:", *_records(draw, size, "    - ")],
                [f"  {split}: {{{key}: [{in_line}], num_bytes: 3}}"],
                [f"  {split}:", f"    {key}: [{words}]"],
            )
        )
        lines += draw.choice(([], [], ["    num_bytes: 5"], [""], ["    # more"]))
    return "\n".join(lines) + draw.choice(("", "\n", "\n"))


def json_layout(draw: Draw) -> str:
    """Return a layout in JSON."""
    splits = []
    for number in range(draw.randrange(1, 3)):
        counts = [draw.choice(_COUNTS) for _ in range(draw.randrange(1, 9))]
        rows = _records(draw, len(counts), "    ", is_json=True)
        items = draw.choice(
            (
                draw.choice((", ", ",\n   ", ",")).join(counts),
                ", ".join(f'"{count}"' for count in counts),
                "\n" + ",\n".join(rows) + "\n  ",
            )
        )
        key = draw.choice(("shard_lengths", "shards", "other"))
        splits.append(f'"s{number}": {{"{key}": [{items}]}}')
    return '{"name": "toy",\n  ' + ",\n  ".join(splits) + "\n}\n"


def _records(draw: Draw, size: int, lead: str, *, is_json: bool = False) -> list[str]:
    quote = '"' if is_json else draw.choice(("", "'", '"'))
    key_quote = '"' if is_json else ""
    keys = draw.sample(("index", "filename", "take", "num_bytes", "split"), draw.randrange(1, 5))
    same = {key: draw.choice((None, None, *_WORDS)) for key in keys}
    rows = []
    for _ in range(size):
        values = []
        for key in keys:
            value = draw.choice(_COUNTS)
            if key in ("filename", "split"):
                value = f"{quote}{same[key] or draw.choice(_WORDS[:5])}{quote}"
            elif key == "num_bytes" and same[key]:
                value = "null"
            values.append(f"{key_quote}{key}{key_quote}: {value}")
        rows.append(f"{lead}{{{', '.join(values)}}}")
    return rows


def changed(draw: Draw, text: str) -> str:
    """Return a text with a few changes: characters, lines, numbers, indents, endings."""
    for _ in range(draw.choice((0, 1, 1, 1, 2, 3))):
        change = draw.choice(_CHANGES)
        text = change(draw, text)
    return text


def _line_changed(change: Callable[[Draw, str], list[str]]) -> Callable[[Draw, str], str]:
    def of_text(draw: Draw, text: str) -> str:
        lines = text.split("\n")
        at = draw.randrange(len(lines))
        return "\n".join([*lines[:at], *change(draw, lines[at]), *lines[at + 1 :]])

    return of_text


def _put(draw: Draw, text: str) -> str:
    at = draw.randrange(len(text) + 1)
    added: str = draw.choice((*_ODD, *" \n,:'\"#-[]{}|>&*!%@`\t\r"))
    return text[:at] + added + text[at:]


def _cut(draw: Draw, text: str) -> str:
    start, stop = sorted(draw.randrange(len(text) + 1) for _ in range(2))
    again: str = draw.choice(("", text[start:stop] * 2))
    return text[:start] + again + text[stop:]


def _number_changed(draw: Draw, text: str) -> str:
    found = list(re.finditer("[0-9]+", text))
    if not found:
        return text
    one = draw.choice(found)
    return text[: one.start()] + draw.choice(_ODD) + text[one.end() :]


def _letter_left_out(draw: Draw, text: str) -> str:
    at = draw.randrange(len(text) + 1)
    return text[:at] + text[at + 1 :]


def _with_returns(draw: Draw, text: str) -> str:
    ending: str = draw.choice(("\r\n", "\r", "\n\n"))
    return text.replace("\n", ending, draw.choice((-1, 1)))


_CHANGES: tuple[Callable[[Draw, str], str], ...] = (
    _put,
    _cut,
    _letter_left_out,
    _number_changed,
    _number_changed,
    _with_returns,
    _line_changed(lambda draw, line: []),
    _line_changed(lambda draw, line: [line, line]),
    _line_changed(lambda draw, line: [draw.choice((" ", "  ", "\t", "    ")) + line]),
    _line_changed(lambda draw, line: [line[1:]]),
    _line_changed(lambda draw, line: [line + draw.choice(_ENDS)]),
    _line_changed(lambda draw, line: [draw.choice(_LINES), line]),
    _line_changed(lambda draw, line: [line.replace(*draw.choice(_SWAPS), 1)]),
)
