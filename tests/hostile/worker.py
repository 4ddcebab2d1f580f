"""Runs the commands of cases, each in a process of its own with limits of time and memory."""

from __future__ import annotations

import math
import os
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.forked_scripts import forking_commands
from tests.hostile.kinds import KINDS, Case, Sources, write_files
from tests.hostile.verdict import MEMORY, SECONDS, STOPPING, WALL_SECONDS, Outcome, faults

# What takes too long is interrupted as by Ctrl-C, and killed where it does not stop of it.
_PROGRAM = """
import resource, signal, sys
seconds, end, memory, *words = sys.argv[1:]
with open("/proc/self/statm") as file:
    limit = int(file.read().split()[0]) * resource.getpagesize() + int(memory)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
resource.setrlimit(resource.RLIMIT_CPU, (int(end), int(end)))
signal.signal(signal.SIGPROF, lambda number, frame: signal.raise_signal(signal.SIGINT))
signal.setitimer(signal.ITIMER_PROF, float(seconds))
if words[0] == "-c":
    sys.argv[:] = words[1:]
    exec(words[1], {})
else:
    from shardctl.cli.main import main
    main(words)
"""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A case that did what may not happen; `case` tries it again."""

    kind: str
    case: str
    command: Sequence[str]
    fault: str


def made_case(kind: str, name: str, sources: Sources) -> Case:
    """Return the case of this name, the same each time."""
    return KINDS[kind](random.Random(f"{kind} {name}"), sources)


def tried(kind: str, name: str, sources: Sources, parent: Path) -> list[Failure]:
    """Return what failed in a case."""
    # The threads of ArrayRecord's reader hang where they get no address space.
    memory = MEMORY * (4 if kind == "record files" else 1)
    return [
        Failure(kind=kind, case=name, command=outcome.arguments, fault=fault)
        for outcome in outcomes(made_case(kind, name, sources), parent, memory=memory)
        for fault in faults(outcome)
    ]


def outcomes(
    case: Case, parent: Path, *, seconds: float = SECONDS, memory: int = MEMORY
) -> Iterator[Outcome]:
    """Yield what each command of a case leaves behind, in a folder that is removed at the end."""
    with tempfile.TemporaryDirectory(dir=parent, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        write_files(case, folder)
        (folder / "home").mkdir()
        limits = [f"{seconds}", f"{math.ceil(seconds + STOPPING)}", f"{memory}"]
        for arguments in case.commands:
            before = _contents(folder)
            code, stdout, stderr = _ran(["-c", _PROGRAM, *limits, *arguments], case, folder)
            after = _contents(folder)
            yield Outcome(
                arguments=arguments,
                exit_code=code,
                stdout=stdout,
                stderr=stderr,
                new_files=frozenset(after.keys() - before.keys()),
                changed=frozenset(name for name in before if after.get(name) != before[name]),
                must_fail=case.edited,
            )


def _ran(command: Sequence[str], case: Case, folder: Path) -> tuple[int, bytes, bytes]:
    """Return the exit code of a command, and what it wrote to stdout and stderr."""
    # Not files of the folder, so that only what the command writes appears in it.
    with (
        tempfile.TemporaryFile(buffering=0) as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as errors,
    ):
        given.write(case.stdin)
        given.seek(0)
        script = forking_commands().start(
            command,
            stdin=given.fileno(),
            stdout=out.fileno(),
            stderr=errors.fileno(),
            folder=folder,
            environment={**os.environ, "HOME": "home", **case.env},
        )
        try:
            code = script.wait(WALL_SECONDS)
        except TimeoutError:
            script.kill()
            code = script.wait()
        return code, _read(out), _read(errors)


def _contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _read(file: Any) -> bytes:
    file.seek(0)
    data: bytes = file.read(1 << 26)
    return data
