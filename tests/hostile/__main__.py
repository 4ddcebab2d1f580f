"""Tries hostile inputs and prints, a line for each kind, how many were tried and failed."""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from tests.hostile.kinds import KINDS, Sources
from tests.hostile.originals import record_files, write_originals
from tests.hostile.verdict import LONG, MEMORY, SECONDS, STOPPING
from tests.hostile.worker import Failure, tried


def main(words: Sequence[str] | None = None) -> int:
    """Return 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--seed", default="1", help="another seed, other inputs")
    parser.add_argument("--budget", type=int, default=200, help="inputs of each kind")
    parser.add_argument("--kind", action="append", choices=KINDS, dest="kinds")
    parser.add_argument("--case", help="try one case of the --kind again, SEED:NUMBER")
    asked = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as scratch:
        originals, folder = Path(scratch, "originals"), Path(scratch, "cases")
        originals.mkdir()
        folder.mkdir()
        sources = Sources(files=write_originals(originals), records=record_files(originals))
        num_failed = 0
        print(f"{'kind':<14}{'tried':>8}{'failures':>10}{'seconds':>9}", flush=True)
        for kind in asked.kinds or KINDS:
            num_failed += _report(kind, asked, sources, folder)
    print(
        f"limits of a command: {SECONDS} s of processor time, {MEMORY >> 20} MiB; what works on "
        f"more examples than that ({', '.join(LONG)}) stops within {STOPPING} s of an interrupt"
    )
    return 1 if num_failed else 0


def _report(kind: str, asked: argparse.Namespace, sources: Sources, folder: Path) -> int:
    """Print the line of a kind and its failures, and return how many cases failed."""
    began = time.monotonic()
    names = [f"{asked.seed}:{number}" for number in range(max(asked.budget, 1))]
    found = []
    for name in [asked.case] if asked.case else names:
        found.append(tried(kind, name, sources, folder))
    num_failed = sum(map(bool, found))
    seconds = time.monotonic() - began
    print(f"{kind:<14}{len(found):>8,}{num_failed:>10,}{seconds:>9.0f}", flush=True)
    for failure in list(chain.from_iterable(found))[:20]:
        print(_line(failure), flush=True)
    return num_failed


def _line(failure: Failure) -> str:
    command = ascii(shlex.join(failure.command))[1:-1]
    again = f"python -m tests.hostile --kind {shlex.quote(failure.kind)} --case {failure.case}"
    return f"  {again}: {ascii(failure.fault)[1:-1]}: {command[:200]}"


if __name__ == "__main__":
    sys.exit(main())
