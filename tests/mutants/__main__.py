"""Puts small faults into rooms of the package, one by one, and prints which tests notice them.

It is run in the repository's folder. The tests of a file are those of its room, and the examples of
that room's docstrings; options of pytest come last, as in `-m 'not tensorflow'`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.mutants.mutations import Mutant, chosen, mutants
from tests.mutants.planted import environment

_ROOMS = [  # of shardctl/
    *("tfdata", "iteration", "order", "spec", "saved", "files"),
    *(f"verbs/{verb}" for verb in ("resume", "eval", "quality", "hosts", "snapshot")),
]
_PYTEST = [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider"]
_PYTEST += ["-p", "tests.mutants.planted"]
_NOTICED = re.compile(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of a mutant."""

    died: str  # the test that noticed it; empty: it survived
    seconds: float


def main(words: Sequence[str] | None = None) -> int:
    """Return 1 if a mutant survived, 2 if a test fails without a mutant."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    rooms = [Path("shardctl", room) for room in _ROOMS]
    parser.add_argument("rooms", nargs="*", type=Path, default=rooms, help="folders, or files")
    parser.add_argument("--seed", default="1", help="another seed, other mutants")
    parser.add_argument("--count", type=int, default=300, help="mutants, as many of each room")
    parser.add_argument("--mutant", action="append", help="FILE:NUMBER, to try this one alone")
    parser.add_argument("--list", action="store_true", help="print the mutants, and try none")
    parser.add_argument("--tests", nargs="+", help="in place of those of the room")
    parser.add_argument("--most", type=float, default=300, help="seconds of one mutant")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, help="a file that gets a line for each mutant")
    asked, options = parser.parse_known_args(words)
    if asked.mutant:
        named = (name.rpartition(":") for name in asked.mutant)
        wanted = [mutants(Path(file))[int(number)] for file, _, number in named]
    else:
        wanted = chosen(asked.rooms, asked.count, asked.seed)
    if asked.list:
        print(*wanted, sep="\n")
        return 0
    tests = {one: [*(asked.tests or _tests_of(one.path)), *options] for one in wanted}
    every = [*dict.fromkeys(word for words in tests.values() for word in words)]
    failed = _verdict(None, every, 100 * asked.most).died
    if failed:
        print(f"{failed} fails without a mutant", file=sys.stderr)
        return 2
    with ThreadPoolExecutor(asked.processes) as pool:
        found = pool.map(lambda one: _verdict(one, tests[one], asked.most), wanted)
        verdicts = [_told(*one, asked.json) for one in zip(wanted, found, strict=True)]
    num_died = sum(bool(one.died) for one in verdicts)
    print(f"{len(verdicts)} mutants: {num_died} died, {len(verdicts) - num_died} survived")
    return int(num_died < len(verdicts))


def _tests_of(path: Path) -> list[str]:
    """Return the tests of a file's room, and the room itself, whose docstrings have examples."""
    inside = path.parent.relative_to("shardctl")
    rooms = (Path("tests", room) for room in (inside, *inside.parents))
    return [str(next(room for room in rooms if room.is_dir())), str(path.parent)]


def _verdict(mutant: Mutant | None, tests: Sequence[str], most: float) -> Verdict:
    began = time.monotonic()
    try:
        ran = subprocess.run(
            [*_PYTEST, *tests],
            env=environment(mutant),
            capture_output=True,
            text=True,
            timeout=most,
            check=False,
        )
    except subprocess.TimeoutExpired:
        died = f"no end in {most:g} s"
    else:
        named = _NOTICED.search(ran.stdout)
        died = named[1] if named else f"pytest exits with {ran.returncode}"
        died = died if ran.returncode else ""
    return Verdict(died=died, seconds=round(time.monotonic() - began, 1))


def _told(mutant: Mutant, verdict: Verdict, report: Path | None) -> Verdict:
    print(f"{mutant}\n    {verdict.died or 'SURVIVED'} ({verdict.seconds} s)", flush=True)
    if report is not None:
        shown = {key: str(value) for key, value in vars(mutant).items()}
        with report.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps({'mutant': shown, **asdict(verdict)})}\n")
    return verdict


if __name__ == "__main__":
    sys.exit(main())
