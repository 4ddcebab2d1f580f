"""Tries very many hostile inputs, and prints a line for each kind: how many, and what failed.

Commands run in processes that have them loaded, hundreds one after the other, with the limits of
`verdict.py`. What fails there is tried again in a process of its own, and counts if it fails there
too. Each case has a name, SEED:NUMBER, with which it can be tried again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import resource
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from multiprocessing import Pipe, get_context
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from tests.forked_scripts import load
from tests.hostile.chained import KINDS, SHARES
from tests.hostile.kinds import Case, Sources, valid_sources
from tests.hostile.verdict import MEMORY, SECONDS, WALL_SECONDS, faults_of_case, limits_of, outcomes

_BATCH = 250  # cases of a process
_Ran = tuple[int, float]  # the exit code of a command, and its seconds of processor time


def main(words: Sequence[str] | None = None) -> int:
    """Return 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("number", type=int, nargs="?", default=10_000, help="cases in all")
    parser.add_argument("--seed", default="1", help="another seed, other inputs")
    parser.add_argument("--kind", action="append", choices=KINDS, dest="kinds")
    parser.add_argument("--case", help="try one case of the --kind again, SEED:NUMBER")
    parser.add_argument("-j", type=int, default=os.cpu_count(), help="processes at a time")
    asked = parser.parse_args(words)
    kinds, num_failed, num_tried = asked.kinds or list(KINDS), 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "valid")
        folder.mkdir()
        sources = valid_sources(folder)
        load()
        head = ("cases", "answered", "refused", "failed", "slowest", "seconds")
        print(f"{'kind':<14}", *(f"{word:>9}" for word in head), flush=True)
        for kind in kinds:
            began = time.monotonic()
            number = -(-asked.number // len(kinds) // SHARES.get(kind, 1))
            names = [f"{asked.seed}:{number}" for number in range(number)]
            names = [asked.case] if asked.case else names
            codes, failed = _tried(kind, names, sources, Path(scratch), asked.j)
            refused = sum(code == 2 for code, _ in codes)
            slowest = max((seconds for _, seconds in codes), default=0.0)
            seconds = time.monotonic() - began
            numbers = (len(names), len(codes) - refused, refused, len(failed))
            print(f"{kind:<14}", *(f"{number:>9,}" for number in numbers), end="")
            print(f"{slowest:>8.2f} s{seconds:>8.0f} s")
            print(*failed[:20], sep="\n", end="\n" if failed else "", flush=True)
            num_failed, num_tried = num_failed + len(failed), num_tried + len(names)
    print(f"{num_tried:,} cases, {num_failed:,} failed; seed {asked.seed}")
    return 1 if num_failed else 0


def _tried(
    kind: str, names: list[str], sources: Sources, scratch: Path, processes: int
) -> tuple[list[_Ran], list[str]]:
    """Return what became of commands, and a line for each case that fails."""
    batches = [names[start : start + _BATCH] for start in range(0, len(names), _BATCH)]
    ran: list[_Ran] = []
    suspects: list[str] = []
    for batch, done in _forked(partial(_batch, kind, sources, scratch), batches, processes):
        codes, found = done or ([], batch)  # what ends a process is tried alone
        ran += codes
        suspects += found
    return ran, list(chain.from_iterable(_alone(kind, n, sources, scratch) for n in suspects))


def _forked(
    work: Callable[[Any], Any], batches: Iterable[Any], processes: int
) -> Iterator[tuple[Any, Any]]:
    """Yield each batch with what becomes of it in a process of its own, None where that dies."""
    running: dict[Any, tuple[Any, Any]] = {}  # by the end of a pipe
    waiting = iter(batches)
    while True:
        for batch in islice(waiting, processes - len(running)):
            here, there = Pipe(duplex=False)
            process = get_context("fork").Process(target=lambda: there.send(work(batch)))  # noqa: B023
            process.start()
            there.close()
            running[here] = batch, process
        if not running:
            return
        end: Any
        for end in wait([*running]):
            batch, process = running.pop(end)
            try:
                yield batch, end.recv()
            except EOFError:
                yield batch, None
            process.join()


def _alone(kind: str, name: str, sources: Sources, scratch: Path) -> Iterator[str]:
    case = _case(kind, name, sources)
    found = list(outcomes(case, scratch, **limits_of(kind)))
    wrong = [
        f"{one!a}: {ascii(shlex.join(words))[1:-1][:200]}"
        for words, one in faults_of_case(case, found)
    ]
    if wrong:
        again = f"python -m tests.hostile --kind {shlex.quote(kind)} --case {name}"
        yield f"  {again}: {wrong[0]}"


def _case(kind: str, name: str, sources: Sources) -> Case:
    rng = random.Random(f"{kind}\0{name}")
    while True:
        with contextlib.suppress(RecursionError):  # nested deeper than can be written
            return KINDS[kind](rng, sources)


def _batch(
    kind: str, sources: Sources, scratch: Path, names: list[str]
) -> tuple[list[_Ran], list[str]]:
    """Return what became of commands here, and the cases in which something was wrong."""
    if kind == "rehearsals":
        load(["tensorflow", "shardctl.tfds.*"])
    with open("/proc/self/statm") as file:
        limit = int(file.read().split()[0]) * resource.getpagesize()
    limit += max(4 * MEMORY, limits_of(kind)["memory"])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
    signal.signal(signal.SIGPROF, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.signal(signal.SIGALRM, lambda *_: os._exit(9))
    ran: list[_Ran] = []
    suspects = []
    for name in names:
        case = _case(kind, name, sources)
        found = list(outcomes(case, scratch, run=_run_here))
        ran += [(one.exit_code, one.seconds) for one in found]
        if any(faults_of_case(case, found)):
            suspects.append(name)
    return ran, suspects


def _run_here(arguments: Sequence[str], case: Case, folder: Path) -> tuple[int, bytes, bytes]:
    """Run a command in this process, as `verdict.py` does in one of its own."""
    from shardctl.cli.main import main as run

    streams, before, code = [os.memfd_create(name) for name in "ioe"], os.getcwd(), 0
    os.write(streams[0], case.stdin)
    os.lseek(streams[0], 0, os.SEEK_SET)
    kept = [os.dup(number) for number in range(3)]
    environment = dict(os.environ)
    with contextlib.ExitStack() as undone:
        for number in range(3):
            undone.callback(os.dup2, kept[number], number)
            os.dup2(streams[number], number)
        own = partial(io.open, encoding="utf-8", closefd=False, newline="")
        sys.stdin, sys.stdout, sys.stderr = own(0), own(1, "w"), own(2, "w")
        undone.callback(os.chdir, before)
        undone.callback(_set_environment, environment)
        os.chdir(folder)
        os.environ.update({"HOME": "home", **case.env})
        signal.alarm(WALL_SECONDS)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            if arguments[0] == "-c":
                sys.argv[:] = arguments[1:]
                exec(arguments[1], {})
            else:
                run(list(arguments))
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException as error:
            print(f"Traceback: {error!r}", file=sys.stderr)
            code = 1
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
        for written in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                written.flush()
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
    texts = []
    for stream in streams[1:]:
        os.lseek(stream, 0, os.SEEK_SET)
        texts.append(os.read(stream, 1 << 26))
    for stream in (*streams, *kept):
        os.close(stream)
    return code, texts[0], texts[1]


def _set_environment(environment: dict[str, Any]) -> None:
    os.environ.clear()
    os.environ.update(environment)


if __name__ == "__main__":
    sys.exit(main())
