"""The command ends well in any case: one line for what goes wrong, and the exit codes promised."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from shardctl.cli.main import COMMANDS
from shardctl.errors import MissingDependencyError
from shardctl.verbs.plan import command as plan_command
from tests.children import run_command, start
from tests.cli.conftest import Outcome, Shardctl
from tests.forked_scripts import forking_commands

_REPOSITORY = Path(__file__).parents[2]


def process(
    *arguments: str | bytes, shell: str | None = None, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run the program by itself; `shell` may redirect "$@"."""
    command: list[str | bytes] = [sys.executable, "-m", "shardctl", *arguments]
    if shell is not None:
        command = ["bash", "-c", shell, "bash", *command]
    environment = {**os.environ, "PYTHONPATH": str(_REPOSITORY), **options.pop("env", {})}
    options = {"capture_output": True, "timeout": 120, **options}
    return subprocess.run(command, check=False, env=environment, **options)


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_help_names_every_command_and_what_it_answers(
    arguments: list[str], shardctl: Shardctl
) -> None:
    ran = shardctl(*arguments)
    assert (ran.exit_code, ran.stderr) == (0, "")
    named = [
        line.split()[0] for line in ran.stdout.splitlines() if line[:3].strip() and line[2] != " "
    ]
    assert set(COMMANDS) <= set(named)
    assert "..." not in ran.stdout.replace("[ARGS]...", "")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_is_plain_text_with_an_example(
    command: str, shardctl: Shardctl
) -> None:
    ran = shardctl(command, "-h")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.startswith(f"Usage: shardctl {command} [OPTIONS]")
    assert "\nExamples:\n" in ran.stdout
    assert ran.stdout.count(f"\n  shardctl {command}") >= 2
    assert ran.stdout.isascii()
    if command != "rehearse":  # whose scripts have {host}
        assert "{" not in ran.stdout  # a place that nobody filled
    wrapped, _, _ = ran.stdout.partition("Examples:")
    assert max(map(len, wrapped.splitlines())) <= 80
    assert ran.stdout == shardctl(command, "--help").stdout


@pytest.mark.parametrize(
    ("error", "line", "code"),
    [
        (ZeroDivisionError("a\nb"), "internal error: ZeroDivisionError: a\\nb; ", 2),
        (AssertionError(), "internal error: AssertionError; ", 2),
        (RecursionError("deep"), "the input is nested too deeply", 2),
        (MemoryError(), "out of memory; ", 2),
        (PermissionError(13, "Permission denied", "/x\x1b"), "'/x\\x1b': Permission denied", 2),
        (OSError(28, "No space left on device"), "No space left on device", 2),
        (MissingDependencyError("two\nlines"), "two lines", 2),
        (KeyboardInterrupt(), None, 130),
        (BrokenPipeError(32, "Broken pipe"), None, 0),
    ],
)
def test_any_exception_ends_in_a_line_and_no_traceback(
    error: BaseException,
    line: str | None,
    code: int,
    shardctl: Shardctl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(plan_command, "chosen_dataset", fails)
    ran = shardctl("plan", "train")
    assert (ran.exit_code, ran.stdout) == (code, "")
    if line is None:
        assert ran.stderr == ""
    else:
        assert ran.stderr.startswith(f"error: {line}")
        assert ran.stderr.count("\n") == 1


_PLAN = "plan train[:0shard] -d mnist -f csv"
_ROWS = (
    "spec,host,filename,split,skip,take,examples_in_shard,first_id\n"
    "train[:0shard],,mnist-train.tfrecord-00000-of-00001,train,0,60000,60000,0\n"
)
_LAYOUT = (
    "split,index,filename,first_id,num_examples,num_bytes\n"
    "train,0,faces-train.tfrecord-00000-of-00001,0,3,\n"
)
_CANNOT = "error: cannot write to stdout: "
_CLOSED = f"{_CANNOT}it is closed; name a file with --output\n"
_FULL = f"{_CANNOT}No space left on device\n"
_MANY = "layout -d imagenet2012 --all -f json"


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "shell", "code", "out", "error"),
    [
        ("layout -d faces.yaml -f csv", None, 0, _LAYOUT, ""),
        ("layout -d faces.yaml -f csv", 'ulimit -v 1048576; "$@"', 0, _LAYOUT, ""),
        # A reader that leaves is not an error, nor is one that left before.
        (_MANY, '"$@" | head -1; echo "${PIPESTATUS[0]}"', 0, "{\n0\n", ""),
        ("list", '{ sleep 0.2; "$@"; echo $? >&2; } | true', 0, "", "0\n"),
        # A stdout that takes nothing is a line; without stderr the answer is the same.
        ("plan train -d mnist", '"$@" >&-', 2, "", _CLOSED),
        ("plan train -d mnist", '"$@" > /dev/full', 2, "", _FULL),
        (_PLAN, '"$@" 2>&-', 0, _ROWS, ""),
        ("plan trian -d mnist", '"$@" 2>&-', 2, "", ""),
    ],
)
def test_the_program_by_itself(
    words: str, shell: str | None, code: int, out: str, error: str, tmp_path: Path
) -> None:
    if shell is not None and "ulimit" in shell and sys.platform != "linux":
        pytest.skip("address space is limited on Linux")
    (tmp_path / "faces.yaml").write_text("splits: {train: {shard_lengths: [3]}}")
    ran = process(*words.split(), shell=shell, cwd=tmp_path)
    assert (ran.returncode, ran.stdout.decode(), ran.stderr.decode()) == (code, out, error)


@pytest.fixture(scope="module")
def pinned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a snapshot."""
    folder = tmp_path_factory.mktemp("pinned")
    run_command("snapshot", "train", "-d", "imagenet2012", "-o", "pinned.yaml", folder=folder)
    return folder


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("-h", 0),
        ("diff pinned.yaml --cycle 8", 1),
        ("lint train --cycle 8 -d imagenet2012 --buffer 10", 1),
        ("eval test --hosts 3 --devices 2 --batch 64 -d mnist --check --drop-remainder", 1),
    ],
)
def test_a_command_keeps_its_code_when_its_reader_left(
    command: str, code: int, pinned: Path
) -> None:
    words = command.split()
    expected = run_command(*words, folder=pinned)
    assert expected.code == code
    read_end, write_end = os.pipe()
    os.close(read_end)
    with open(pinned / "said", "wb+") as said:
        running = forking_commands().start(
            ["-m", "shardctl", *words], stdout=write_end, stderr=said.fileno(), folder=pinned
        )
        os.close(write_end)
        assert running.wait(60) == code
    assert (pinned / "said").read_text() == expected.errors


@pytest.mark.long
@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({"PYTHONIOENCODING": "ascii:strict"}, marks=pytest.mark.slow),
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    ],
)
def test_any_encoding_and_any_bytes_do(environment: dict[str, str], tmp_path: Path) -> None:
    ran = process("plan", b"tr\xff\xc3\xa9", "-d", "mnist", cwd=tmp_path, env=environment)
    assert ran.returncode == 2
    assert ran.stderr.startswith(b"error: ")
    assert b"Traceback" not in ran.stderr
    ran = process("hosts", "-d", "imagenet2012", "--hosts", "3", cwd=tmp_path, env=environment)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert "427,055–427,056".encode() in ran.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    "delay", [0.0, *(pytest.param(s, marks=pytest.mark.slow) for s in (0.02, 0.06, 0.12, 0.5))]
)
def test_an_interrupt_ends_with_130_in_silence(delay: float, tmp_path: Path) -> None:
    """Whenever it comes once main runs: while modules load, or in the midst of the work."""
    program = (
        "import sys; from shardctl.cli import main as cli; run = cli._run\n"
        # Said from inside, where an interrupt is caught: before that Python itself would answer.
        "cli._run = lambda arguments: sys.stderr.write('up\\n') and run(arguments)\n"
        "words = 'simulate -d imagenet2012 --take -1 --epochs 90 -f ids'\n"
        "cli.main(words.split())"
    )
    with start(
        [sys.executable, "-c", program],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(_REPOSITORY)},
    ) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == b"up\n"
        time.sleep(delay)
        running.send_signal(signal.SIGINT)
        assert running.stderr.read() == b""
        assert running.wait(timeout=30) == 130


def test_little_is_loaded_before_an_interrupt_is_caught() -> None:
    """What Python loads before it runs a program is not ours, as is a traceback from there."""
    program = (
        f"import os, sys; sys.path.insert(0, {str(_REPOSITORY)!r}); before = set(sys.modules)\n"
        "import shardctl.cli.main; print(*sorted(set(sys.modules) - before))"
    )
    ran = subprocess.run([sys.executable, "-ISc", program], capture_output=True, check=True)
    ours = {"shardctl", "shardctl.cli", "shardctl.cli.main", "shardctl.errors"}
    ours |= {"shardctl.base", "shardctl.base.by_name"}  # one dict
    assert set(ran.stdout.decode().split()) - ours <= {"__future__"}


_TENSORFLOW_LOADED = """
import atexit, sys, types
from shardctl.cli import main as cli
sys.modules["tensorflow"] = types.ModuleType("tensorflow")
atexit.register(print, "taken apart")
def run(arguments):
    raise KeyboardInterrupt
"""
_IN_CODE_FROM_TEXT = """
from shardctl.cli import main as cli
def run(arguments):
    exec("raise KeyboardInterrupt")
"""
_TWICE = """
import signal
from shardctl.cli import main as cli
def run(arguments):
    cli._INTERRUPTS.go_on()
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.raise_signal(signal.SIGINT)
"""


@pytest.mark.parametrize(
    ("program", "code", "out"),
    [
        pytest.param(_TENSORFLOW_LOADED, 130, b"", id="not taken apart"),
        pytest.param(_IN_CODE_FROM_TEXT, 130, b"", id="in code from text"),
        pytest.param(_TWICE, -signal.SIGINT, b"", id="the second ends it at once"),
    ],
)
def test_an_interrupt_in_any_state(program: str, code: int, out: bytes, tmp_path: Path) -> None:
    (tmp_path / "run_it.py").write_text(f"{program}\ncli._run = run\ncli.main()")
    ran = subprocess.run(
        [sys.executable, "-m", "run_it"],
        env={**os.environ, "PYTHONPATH": f"{_REPOSITORY}:{tmp_path}"},
        # Where this run is in the background, SIGINT is ignored, by its children too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        check=False,
        capture_output=True,
        timeout=30,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (code, out, b"")


def test_python_without_docstrings_shows_the_options() -> None:
    ran = subprocess.run(
        [sys.executable, "-OO", "-m", "shardctl", "resume", "-h"],
        env={**os.environ, "PYTHONPATH": str(_REPOSITORY)},
        check=True,
        capture_output=True,
    )
    assert b"--seen" in ran.stdout


def test_the_handler_of_a_caller_is_there_again(shardctl: Shardctl) -> None:
    before = signal.getsignal(signal.SIGINT)
    shardctl("--version")
    assert signal.getsignal(signal.SIGINT) is before


_IN_A_DELETED_FOLDER = [
    ("layout -d mnist", 0),
    ("resume --consumed 5 -d mnist", 0),
    ("lint test -d mnist", 0),
    ("list", 0),
    ("resume --consumed 5 -d mnist -o {tmp}/plan.json", 0),
    ("diff {tmp}/order.yaml -d mnist", 0),
    ("snapshot -d mnist -o order.yaml", "cannot write 'order.yaml': the working folder is gone"),
    ("plan train -d toy.yaml", "no file or folder 'toy.yaml'"),
    ("diff a.yaml b.yaml", "cannot read 'a.yaml': no such file"),
]


@pytest.mark.parametrize(("words", "ends"), _IN_A_DELETED_FOLDER)
def test_a_working_folder_that_was_deleted_is_not_missed(
    words: str, ends: int | str, shardctl: Shardctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shardctl("snapshot", "-d", "mnist", "-o", tmp_path / "order.yaml")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    ran = shardctl(*words.format(tmp=tmp_path).split())
    if ends == 0:
        assert (ran.exit_code, "error" in ran.stderr) == (0, False)
    else:
        assert (ran.exit_code, ran.stdout, ran.stderr) == (2, "", f"error: {ends}\n")


@pytest.mark.long
def test_a_file_that_is_written_is_not_where_a_closed_stream_was(tmp_path: Path) -> None:
    """The least free number is that of the stream, to which libraries write what they say."""
    program = (
        "import os, sys\n"
        "from shardctl.cli import main as cli\n"
        "from shardctl.verbs.plan import command\n"
        "render = command.FORMATS.write\n"
        "def write(*arguments, **options):\n"
        "    os.write(1, b'said on stdout'), os.write(2, b'said on stderr')\n"
        "    assert os.open(os.devnull, os.O_WRONLY) > 2\n"
        "    return render(*arguments, **options)\n"
        "object.__setattr__(command.FORMATS, 'write', write)\n"
        "cli.main()"
    )
    shell = '"${@:1:1}" -c "$PROGRAM" plan train -d mnist -f csv -o out.csv <&- >&- 2>&-'
    ran = process(shell=shell, cwd=tmp_path, env={"PROGRAM": program})
    assert ran.returncode == 0
    assert (tmp_path / "out.csv").read_text().startswith("spec,host,filename")


def test_an_error_that_an_interrupt_causes_is_an_interrupt(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python raises a RuntimeError of it where it comes within the body of a class."""

    def interrupted(arguments: list[str]) -> int:
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    monkeypatch.setattr("shardctl.cli.main._run", interrupted)
    assert shardctl("plan") == Outcome(exit_code=130, stdout="", stderr="")
