"""Runs the sessions of README.md and of every guide, and writes their answers anew.

A document is run in a folder that `shardctl demo` has just written, from top to end:

- a block of a file begins with its name in a comment: `# faces.yaml`, `# train.py`, which is a line
  of the file, but not of a JSON file; the demo has it, but for shardctl.yaml, which readers save
- a `console` block is a session: commands after `$ `, below each what it answers on stdout and
  stderr; a line `...` stands for any number of lines, and `/data` for the folder; a command goes on
  in the next line behind a backslash, or within single quotes
- `$ echo $?` says the exit code of the command before; it has to be there where that is not 0
- other commands than shardctl, pipes and redirections are run by bash; of a Python program only
  stdout is shown, since TensorFlow logs on stderr what depends on the machine; both are forked from
  processes that have shardctl, or TensorFlow, loaded
- a `python` block with `>>>` is run as a doctest, after those before it

After a change that is meant, `python -m tests.sessions --update shardctl/guide/resume.md` writes
the answers as they are now; `...` stays where it stood. Read the difference before you commit it.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import doctest
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from unittest import mock

from shardctl.cli.main import main
from shardctl.guide.guides import FOLDER, guide_questions
from shardctl.verbs.demo.answer import write_demo
from tests.children import asking, write_program
from tests.forked_scripts import forking_commands, forking_python
from tests.stores.servers import gcs_server

REPOSITORY = Path(__file__).parents[1]
README = REPOSITORY / "README.md"
DOCUMENTS = (README, *(FOLDER / f"{subject}.md" for subject in guide_questions()))

_BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (?P<name>[\w./-]+\.(?:yaml|yml|json|py|txt))\b.*\n")
_GAP = "...\n"
_MOST_LINES = 60  # of a wrong answer, in a report
# In which `gs://my-bucket/tfds` is a data dir with the dataset `toy`, which no reader has.
WITH_BUCKET = ("questions.md", "remote-data.md")
_IN_THIS_PROCESS = "python look.py"  # a few lines, where TensorFlow is loaded anyway
_LOADING = re.compile(r"python (\S+\.py|-m pytest)\b")
_NEEDS_BASH = re.compile(r"[|<>;&$`]")


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block of a document: its kind, its text, and where the text begins."""

    kind: str
    text: str
    start: int

    @property
    def file(self) -> str | None:
        """The name of the file that the block is, if it is one."""
        match = _FILE.match(self.text)
        return match["name"] if match is not None and self.kind != "console" else None


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """A command as it is typed, what is shown below it, and where that begins in the document."""

    typed: str
    shown: str
    start: int
    answer: str = ""
    exit_code: int = 0

    @property
    def command(self) -> str:
        """The command in one line, but for what is quoted."""
        return re.sub(r" *\\\n *", " ", self.typed)


def blocks(document: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a document."""
    for match in _BLOCK.finditer(document.read_text("utf-8")):
        yield Block(kind=match["kind"], text=match["text"], start=match.start("text"))


def dialogue(block: Block) -> Iterator[Exchange]:
    """Yield each command of a console block with what is shown below it."""
    starts = [match.start() for match in re.finditer(r"^\$ ", block.text, re.MULTILINE)]
    assert starts[:1] == [0], f"a session begins with a command: {block.text[:80]}"
    for start, stop in zip(starts, [*starts[1:], len(block.text)], strict=True):
        lines = block.text[start + 2 : stop].splitlines(keepends=True)
        count = 1
        while lines[count - 1].endswith("\\\n") or "".join(lines[:count]).count("'") % 2:
            count += 1
        typed, shown = "".join(lines[:count]), "".join(lines[count:])
        begin = block.start + start + 2
        yield Exchange(typed=typed[:-1], shown=shown, start=begin + len(typed))


MOST_COLUMNS = 78  # of a command, so that a terminal of 80 shows it as it is typed


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Work in a folder that is the home folder too, without settings from outside."""
    ours = {name: text for name, text in os.environ.items() if not name.startswith("SHARDCTL_")}
    for name in ("TFDS_DATA_DIR", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
        ours.pop(name, None)
    programs = folder.parent / f"{folder.name}-bin"
    programs.mkdir(exist_ok=True)
    write_program(programs / "shardctl", f'{asking("$FORKING_COMMANDS")} -m shardctl "$@"')
    loaded = f'[ "$FORKING_PYTHON" ] && {asking("$FORKING_PYTHON")} "$@"'
    real = f'exec "{sys.executable}" "$@"'
    write_program(programs / "python", f'case "$1" in *.py|-m) {loaded} ;; esac\n{real}')
    ours |= {
        "HOME": str(folder),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "-1",
    }
    if not entry_points(group="pytest11", name="shardctl"):  # a checkout that is not installed
        ours["PYTEST_PLUGINS"] = "shardctl.pytest"
    # Other loaders are of the newest proven version, wherever this runs.
    installed = "shardctl.metadata.loader_versions.installed_version"
    nothing = mock.patch(installed, return_value=None)
    with mock.patch.dict(os.environ, ours, clear=True), nothing, contextlib.chdir(folder):
        yield


def answered(command: str, last_code: int) -> tuple[str, int]:
    """Return what a command says on stdout and stderr, as it is seen on a screen, and its code."""
    if command == "echo $?":
        return f"{last_code}\n", 0
    ours = command.startswith("shardctl") or command == _IN_THIS_PROCESS
    if _NEEDS_BASH.search(re.sub(r"'[^']*'", "", command)) or not ours:
        environment = dict(os.environ)
        program = _LOADING.match(command)
        if program is not None and _loads_much(program[1]):
            environment["FORKING_PYTHON"] = forking_python().address
        if "shardctl " in command:
            environment["FORKING_COMMANDS"] = forking_commands().address
        ran = subprocess.run(
            ["bash", "-c", command], capture_output=True, check=False, env=environment
        )
        quiet = command.startswith("python ") and ran.returncode == 0
        return (ran.stdout + (b"" if quiet else ran.stderr)).decode(), ran.returncode
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    code: object = 0
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        try:
            if command == _IN_THIS_PROCESS:
                _run_program(Path(command.split()[1]))
            else:
                main(shlex.split(command)[1:])
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int)
    return raw.getvalue().decode(), code


def _loads_much(program: str) -> bool:
    """Return whether a program, or `-m pytest`, imports what takes seconds."""
    if not program.endswith(".py"):
        return True
    return (
        re.search(r"\b(shardctl|tensorflow|keras|jax|flax)\b", Path(program).read_text())
        is not None
    )


def _run_program(path: Path) -> None:
    """Run a program as Python does, which finds the modules beside it."""
    folder, before = str(path.resolve().parent), set(sys.modules)
    with mock.patch.object(sys, "path", [folder, *sys.path]):
        runpy.run_path(str(path), run_name="__main__")
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(folder):
            del sys.modules[name]


@contextlib.contextmanager
def bucket() -> Iterator[None]:
    """Copy the dataset `toy` to a bucket, which a server on this machine holds."""
    with gcs_server("my-bucket") as server, mock.patch.dict(os.environ, server.variables()):
        for file in sorted(Path("toy").rglob("*")):
            if file.is_file():
                server.put(f"tfds/{file.as_posix()}", file.read_bytes())
        yield


def exchanges(document: Path, folder: Path) -> Iterator[Exchange]:
    """Run a document in a folder that is empty, and yield each exchange with what is answered now.

    Raises:
        AssertionError: a Python example says something else than the document.
    """
    names: dict[str, object] = {}
    code = 0
    write_demo(str(folder))
    with contextlib.ExitStack() as around:
        around.enter_context(alone_in(folder))
        if document.name in WITH_BUCKET:
            around.enter_context(bucket())
        for block in blocks(document):
            if block.file is not None:
                file = Path(block.file)
                file.parent.mkdir(parents=True, exist_ok=True)
                text = block.text.partition("\n")[2] if file.suffix == ".json" else block.text
                file.write_text(text, encoding="utf-8")
            elif block.kind == "python" and ">>> " in block.text:
                _run_python(block, names, document)
            for exchange in dialogue(block) if block.kind == "console" else ():
                answer, code = answered(exchange.command, code)
                answer = answer.replace(str(folder), "/data")
                yield replace(exchange, answer=answer, exit_code=code)


def _run_python(block: Block, names: dict[str, object], document: Path) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, names, document.name, str(document), 0)
    report = io.StringIO()
    failed = doctest.DocTestRunner().run(test, out=report.write, clear_globs=False).failed
    names |= test.globs
    assert failed == 0, report.getvalue()


def matches(answer: str, shown: str) -> bool:
    """Return whether an answer is what is shown, where a line `...` stands for any lines.

    >>> matches("a\\nb\\nc\\n", "a\\n...\\nc\\n"), matches("a\\nb\\n", "a\\n")
    (True, False)
    """
    pattern = "".join(
        r"(?:.*\n)*" if line == _GAP else re.escape(line) for line in shown.splitlines(True)
    )
    return re.fullmatch(pattern, answer) is not None


def faults(ran: Sequence[Exchange]) -> list[str]:
    """Return what a document shows and is not so: answers, and exit codes that it keeps silent."""
    found = []
    for number, exchange in enumerate(ran):
        if not matches(exchange.answer, exchange.shown):
            answer = updated(exchange.shown, exchange.answer).splitlines(True)
            found.append(f"$ {exchange.command}\n{''.join(answer[:_MOST_LINES])}")
        after = ran[number + 1].command if number + 1 < len(ran) else ""
        if exchange.exit_code and after != "echo $?":
            found.append(f"$ {exchange.command}\nexits with {exchange.exit_code}: show `echo $?`")
    return found


def updated(shown: str, answer: str) -> str:
    """Return an answer as it is to be shown, with lines left out where they were.

    The lines shown are looked for in the answer, in order, where each stands or where the line
    that is most like it stands.

    >>> updated("a\\n...\\nd 4\\n", "a\\nb\\nc\\nd 5\\n")
    'a\\n...\\nd 5\\n'
    >>> updated("a\\n", "b\\nc\\n")
    'b\\nc\\n'
    """
    if matches(answer, shown):
        return shown
    pieces = _pieces(shown)
    lines = answer.splitlines(True)
    if len(pieces) == 1 or sum(map(len, pieces)) > len(lines):
        if len(lines) > _MOST_LINES:  # somebody is to choose what of it is shown
            return "".join([*lines[:9], _GAP, *lines[-9:]])
        return answer
    made, position = [], 0
    for number, piece in enumerate(pieces):
        last = number == len(pieces) - 1
        room = len(lines) - sum(map(len, pieces[number:]))
        if number == 0 or not piece:
            start = position
        elif last:
            start = len(lines) - len(piece)
        else:
            start = max(range(position, room + 1), key=lambda at: _likeness(piece, lines[at:]))
        made.append("".join(lines[start : start + len(piece)]))
        position = start + len(piece)
    text = _GAP.join(made)
    assert matches(answer, text)
    return text


def _pieces(shown: str) -> list[list[str]]:
    """Return the runs of lines between the gaps; the first and the last may be empty."""
    pieces: list[list[str]] = [[]]
    for line in shown.splitlines(True):
        if line == _GAP:
            pieces.append([])
        else:
            pieces[-1].append(line)
    return pieces


def _likeness(piece: Sequence[str], lines: Sequence[str]) -> float:
    """Return how like lines are to those shown; one that begins as another counts as the same."""
    return sum(
        max(difflib.SequenceMatcher(None, shown, line).ratio(), line.startswith(shown.rstrip()))
        for shown, line in zip(piece, lines, strict=False)
    )


def update(document: Path) -> int:
    """Write the answers of a document as they are now, and return how many changed."""
    text, shift, count = document.read_text("utf-8"), 0, 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve() / "here"
        folder.mkdir()
        ran = list(exchanges(document, folder))
    for exchange in ran:
        answer = updated(exchange.shown, exchange.answer)
        start = exchange.start + shift
        text = text[:start] + answer + text[start + len(exchange.shown) :]
        shift += len(answer) - len(exchange.shown)
        count += answer != exchange.shown
    document.write_text(text, encoding="utf-8")
    return count


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("documents", nargs="*", type=Path, help="all of them, if none is named")
    parser.add_argument("--update", action="store_true", help="write the answers as they are now")
    given = parser.parse_args()
    for document in map(Path.resolve, given.documents or DOCUMENTS):
        if given.update:
            print(f"{document.name}: {update(document)} answers changed")
            continue
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made).resolve() / "here"
            folder.mkdir()
            print(f"{document.name}:", *faults(list(exchanges(document, folder))), sep="\n")


if __name__ == "__main__":
    _main()
