"""Tries lines of TensorFlow in environments of their own and prints a table, a row a pair.

A pair is a line of TensorFlow and a version of Python; `--quick` runs a few of the tests alone.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from shardctl.base.tfds_rules import LINES
from tests.versions.pairs import Pair, Tried, interpreter, tried

PYTHONS = tuple(dict.fromkeys(python for line in LINES for python in line.pythons))
TITLES = (
    *("Python", "TensorFlow", "TFDS", "NumPy", "protobuf", "Keras", "ml-dtypes"),
    *("passed", "failed", "skipped", "verify"),
)


def main(words: Sequence[str] | None = None) -> int:
    """Return 1 if anything failed in any pair that there is."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    parser.add_argument("lines", nargs="*", metavar="LINE", help="as 2.18 [default: all]")
    parser.add_argument("--python", action="append", choices=PYTHONS, dest="pythons")
    parser.add_argument("--quick", action="store_true", help="a few tests that compare orders")
    asked = parser.parse_args(words)
    names = [line.name for line in LINES]
    for name in asked.lines:
        if name not in names:
            parser.error(f"no line {name}; there are {', '.join(names)}")
    rows, failed = [], False
    for pair in pairs(asked.lines, asked.pythons):
        missing = pair.why_not or (
            None if interpreter(pair.python) else f"there is no Python {pair.python} here"
        )
        if missing is not None:
            print(f"{pair}: {missing}", flush=True)
            continue
        with tempfile.TemporaryDirectory() as scratch:
            found = tried(pair, Path(scratch), quick=asked.quick)
        rows.append(row(cells(pair, found)))
        failed |= not found.is_good
        print(f"{pair}: {rows[-1]}", *found.failures, sep="\n  ", flush=True)
    print("", row(TITLES), row(["---"] * len(TITLES)), *rows, sep="\n")
    return 1 if failed or not rows else 0


def pairs(lines: Sequence[str], pythons: Sequence[str] | None) -> Iterator[Pair]:
    """Yield the pairs that are asked for; each line with its newest Python here where none is."""
    for line in LINES:
        if not lines or line.name in lines:
            here = next(filter(interpreter, reversed(line.pythons)), line.pythons[-1])
            for python in pythons or [here]:
                yield Pair(python=python, line=line)


def cells(pair: Pair, found: Tried) -> tuple[str, ...]:
    """Return what the table says of a pair, a text for each of `TITLES`."""
    versions = (found.versions.get(name, "-") for name in Tried.PACKAGES)
    counts = (found.num_passed, found.num_failed, found.num_skipped)
    return pair.python, *versions, *(f"{count:,}" for count in counts), found.verified


def row(texts: Sequence[str]) -> str:
    """Return a row of a table in Markdown."""
    return f"| {' | '.join(texts)} |"


if __name__ == "__main__":
    raise SystemExit(main())
