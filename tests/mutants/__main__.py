"""Puts small faults into rooms of the package, one by one, and prints which tests notice them.

It is run in the repository's folder. Which tests reach which line is learned first, with
`coverage`, and kept in the first file of --reached, which is good until lines move.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.mutants.mutations import Mutant, chosen, mutants
from tests.mutants.reached import Learning, Reached
from tests.mutants.runs import PYTEST, Asked, Verdict, forked, verdicts

_ROOMS = [  # of shardctl/
    *("tfdata", "iteration", "order", "spec", "saved", "files"),
    *(f"verbs/{verb}" for verb in ("resume", "eval", "quality", "hosts", "snapshot")),
]
_TESTS = [f"{top}/{room}" for top in ("tests", "shardctl") for room in _ROOMS]


def main(words: Sequence[str] | None = None) -> int:
    """Return 1 if a mutant survived, 2 if a test fails without a mutant."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "rooms",
        nargs="*",
        type=Path,
        default=[Path("shardctl", room) for room in _ROOMS],
        help="folders, or files",
    )
    parser.add_argument("--seed", default="1", help="another seed, other mutants")
    parser.add_argument("--count", type=int, default=300, help="mutants, as many of each room")
    parser.add_argument("--mutant", action="append", help="FILE:NUMBER, to try this one alone")
    parser.add_argument("--list", action="store_true", help="print the mutants, and try none")
    parser.add_argument("--tests", nargs="+", default=_TESTS, help="to learn from, and to run")
    parser.add_argument(
        "--reached", nargs="+", type=Path, default=[Path(".mutants_cache/reached.json")]
    )
    parser.add_argument("--most", type=float, default=100, help="seconds of tests of one mutant")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, help="a file that gets a line for each mutant")
    asked = parser.parse_args(words)
    if asked.mutant:
        named = (name.rpartition(":") for name in asked.mutant)
        wanted = [mutants(Path(file))[int(number)] for file, _, number in named]
    else:
        wanted = chosen(asked.rooms, asked.count, asked.seed)
    if asked.list:
        print(*wanted, sep="\n")
        return 0
    if not asked.reached[0].exists():
        learning = forked(lambda: _learn(asked.reached[0], asked.tests))
        if os.waitpid(learning, 0)[1]:
            return 2
    with tempfile.TemporaryDirectory() as scratch:
        report = asked.json or Path(scratch, "report")
        report.write_text("")
        reached = Reached.read(asked.reached, {str(mutant.path) for mutant in wanted})
        verdicts(
            list(_asked(wanted, reached, asked.most)),
            lambda *of: _tell(report, *of),
            asked.processes,
        )
        return _summary(report)


def _learn(file: Path, tests: Sequence[str]) -> None:
    """Write what tests reach, which have to pass."""
    plugin = Learning()
    pytest.main([*PYTEST, *tests], plugins=[plugin])
    if plugin.failed:
        raise SystemExit(f"{len(plugin.failed)} tests fail without a mutant: {plugin.failed[:9]}")
    file.parent.mkdir(parents=True, exist_ok=True)
    plugin.reached().write(file)


def _asked(wanted: Sequence[Mutant], reached: Reached, most: float) -> Iterator[Asked]:
    """Yield mutants with their tests, which together take so many seconds at most."""
    for mutant in wanted:
        file = str(mutant.path)
        room = f"tests/{'/'.join(mutant.path.parts[1:-1])}/"
        own = f"{room}test_{mutant.path.name}::"
        names = reached.tests_of(file, None if mutant.at_import else mutant.lines, own)
        # Some reach it in processes that they start; what a module makes is used elsewhere, too.
        names += reached.tests_in(room if mutant.at_import else own)
        tests: dict[str, float] = {}
        for name in dict.fromkeys(names):
            if sum(tests.values()) + reached.seconds[name] <= most:
                tests[name] = reached.seconds[name]
        yield Asked(mutant=mutant, tests=tests)


def _tell(report: Path, one: Asked, verdict: Verdict) -> None:
    print(f"{one.mutant}\n    {verdict} ({verdict.seconds} s)", flush=True)
    mutant = {key: str(value) for key, value in vars(one.mutant).items()}
    with report.open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps({'mutant': mutant, **asdict(verdict)})}\n")


def _summary(report: Path) -> int:
    told = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    num_died = sum(bool(one["died"]) for one in told)
    print(f"{len(told)} mutants: {num_died} died, {len(told) - num_died} survived")
    return int(num_died < len(told))


if __name__ == "__main__":
    sys.exit(main())
