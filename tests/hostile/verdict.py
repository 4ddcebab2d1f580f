"""Runs the commands of cases, each in a process with limits, and says what may not happen."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.forked_scripts import forking_commands
from tests.hostile.kinds import Case

SECONDS = 5  # of processor time, after which a command is interrupted
STOPPING = 1  # second more that it may take to stop
# What takes as long as there are examples or hosts, and may be at work when it is interrupted.
LONG = ("plan", "simulate", "resume", "hosts", "eval", "snapshot", "diff", "quality")
WALL_SECONDS = 60  # after which it is killed
MEMORY = 1 << 30  # bytes of address space that a command may add
# The threads of ArrayRecord's reader hang where they get no address space; TensorFlow takes much.
_MEMORIES = {"record files": 4 * MEMORY, "index": 4 * MEMORY, "rehearsals": 64 * MEMORY}

# What actions/runner and azure-pipelines-agent read as a command.
_COMMAND = re.compile(r"^\s*::|##\[|##vso\[", re.MULTILINE)
_ANNOTATION = re.compile(r"::(error|warning|notice) [^\n]*\n")
# Counts that `index` keeps; of what TFDS imports.
_KEPT = re.compile(r"cache/counts/[0-9a-f]{64}\.json|home/\.(cache|keras)/.*")
_FORMULA = re.compile(r"\s*[=+@-]")
_NUMBER = re.compile(r"[+-]?[0-9.]+(e[+-]?[0-9]+)?|-inf")


def limits_of(kind: str) -> dict[str, Any]:
    """Return the limits of `outcomes` for a kind of cases."""
    seconds = 8 * SECONDS if kind == "rehearsals" else SECONDS  # in which TensorFlow is loaded
    return {"memory": _MEMORIES.get(kind, MEMORY), "seconds": seconds}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a command left behind; `new_files` lie where none were, `changed` were there before."""

    arguments: Sequence[str]
    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""
    new_files: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    must_fail: bool = False
    seconds: float = 0.0  # of this process's time


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


def outcomes(
    case: Case,
    parent: Path,
    *,
    seconds: float = SECONDS,
    memory: int = MEMORY,
    run: Callable[[Sequence[str], Case, Path], tuple[int, bytes, bytes]] | None = None,
) -> Iterator[Outcome]:
    """Yield what each command of a case leaves behind, in a folder that is removed at the end.

    `run` runs a command where no process of its own, with limits, is wanted.
    """
    with tempfile.TemporaryDirectory(dir=parent, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for path, data in case.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        if case.pipe is not None:
            os.mkfifo(folder / case.pipe)
        (folder / "home").mkdir()
        limits = [f"{seconds}", f"{math.ceil(seconds + STOPPING)}", f"{memory}"]
        for arguments in case.commands:
            if callable(arguments):
                arguments(folder)
                continue
            before = _contents(folder)
            began = time.process_time()
            if run is None:
                code, stdout, stderr = _ran(["-c", _PROGRAM, *limits, *arguments], case, folder)
            else:
                code, stdout, stderr = run(arguments, case, folder)
            used, after = time.process_time() - began, _contents(folder)
            yield Outcome(
                arguments=arguments,
                exit_code=code,
                stdout=stdout,
                stderr=stderr,
                new_files=frozenset(after.keys() - before.keys()),
                changed=frozenset(name for name in before if after.get(name) != before[name]),
                must_fail=case.edited,
                seconds=used,
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


def faults_of_case(case: Case, found: Sequence[Outcome]) -> Iterator[tuple[Sequence[str], str]]:
    """Yield what is wrong with the outcomes of a case, each with the command."""
    for outcome in found:
        yield from ((outcome.arguments, one) for one in faults(outcome))
    if wrong := case.law(found):
        yield found[-1].arguments, wrong


def faults(outcome: Outcome) -> Iterator[str]:
    """Yield what is wrong, in a few words each."""
    errors = outcome.stderr.decode("utf-8", "replace")
    code = outcome.exit_code
    interrupted = code in (130, -signal.SIGINT)
    if code in (-signal.SIGKILL, -signal.SIGXCPU):
        yield f"an interrupt after {SECONDS} s of processor time does not stop it"
    elif code not in (0, 1, 2) and not interrupted:
        yield f"exit code {code}"
    if "Traceback" in errors or "internal error" in errors:
        yield f"internal error: {_line_with('error', errors)}"
    if "out of memory" in errors:
        yield f"more than {MEMORY >> 20} MiB"
    if interrupted and outcome.arguments[0] not in LONG:
        yield f"more than {SECONDS} s of processor time"
    num_errors = sum(line.startswith("error:") for line in errors.split("\n"))
    # `diff` checks several files, whatever becomes of the others, and says a line for each.
    most = max(len(outcome.arguments) - 1, 1) if outcome.arguments[0] == "diff" else 1
    found = code == 1 and outcome.arguments[0] == "index"  # what is wrong with files
    if not (1 <= num_errors <= most if code == 2 else found or not num_errors):
        yield f"{num_errors} error lines and exit code {code}"
    if outcome.must_fail and outcome.exit_code == 0:
        yield "an edited file passes"
    yield from _of_text("stderr", outcome.stderr)
    form = format_of(outcome.arguments)
    if form != "npy":
        written = outcome.stdout
        if outcome.arguments == ["completion"]:  # what a shell reads: tabs, and what was typed
            written = re.sub(rb"\t|::|##", b" ", written)
        yield from _of_text("stdout", written, annotations=form == "github")
        if outcome.exit_code in (0, 1):
            yield from _of_format(form, outcome.stdout)
    yield from _of_files(outcome)


def format_of(arguments: Sequence[str]) -> str:
    """Return the format that arguments ask for, an empty text where they ask for none, or help."""
    form = ""
    if {"-h", "--help", "--help-all"}.intersection(arguments):
        return form
    for number, word in enumerate(arguments):
        if word in ("-f", "--format"):
            form = arguments[number + 1] if number + 1 < len(arguments) else ""
        elif word.startswith("--format="):
            form = word.partition("=")[2]
    return form


def output_of(arguments: Sequence[str]) -> set[str]:
    """Return the files that arguments name to be written."""
    named = {b for a, b in pairwise(arguments) if a in ("-o", "--output")}
    named |= {word.partition("=")[2] for word in arguments if word.startswith("--output=")}
    if "--update" in arguments:
        named |= set(arguments)
    return named


def _of_text(where: str, data: bytes, *, annotations: bool = False) -> Iterator[str]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        yield f"{where} is not UTF-8"
        return
    bad = [char for char in text if not char.isprintable() and char != "\n"]
    if bad:
        yield f"{where} holds {bad[0]!r}"
    text = _ANNOTATION.sub("", text) if annotations else text
    command = _COMMAND.search(text)
    if command is not None:
        yield f"{where} holds a command of CI: {text[command.start() : command.start() + 40]!r}"


def _of_format(form: str, data: bytes) -> Iterator[str]:
    text = data.decode("utf-8", "replace")
    if form == "json" and text:
        try:
            json.loads(text)
        except ValueError as error:
            yield f"stdout is not JSON: {error}"
    if form == "csv":
        for row in csv.reader(io.StringIO(text, newline="")):
            for cell in row:
                if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
                    yield f"CSV holds the formula {cell[:40]!r}"
                    return


def _of_files(outcome: Outcome) -> Iterator[str]:
    named = output_of(outcome.arguments)
    if "init" in outcome.arguments[:1] and outcome.exit_code == 0:
        named = {*named, "shardctl.yaml", "shardctl.schema.json"}
    if "demo" in outcome.arguments[:1]:  # whose files are in the folder that is named
        folders = (os.path.normpath(word) for word in (*outcome.arguments[1:], "shardctl-demo"))
        below = tuple(f"{folder}/" for folder in folders)
        named |= {file for file in outcome.new_files if file.startswith(below)}
    if outcome.exit_code == 2 and outcome.new_files & named:
        yield "a file of a command that failed"
    named |= {file for file in outcome.new_files if _KEPT.fullmatch(file)}
    stray = sorted(outcome.new_files - named)
    if stray:
        yield f"left {stray[0]!r} behind"
    touched = sorted(file for file in outcome.changed - named if not _KEPT.fullmatch(file))
    if touched:
        yield f"changed {touched[0]!r}"


def _line_with(word: str, text: str) -> str:
    lines = [line for line in text.split("\n") if word in line.lower()]
    return lines[-1][:160] if lines else ""
