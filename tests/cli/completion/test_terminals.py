"""A TAB in a real terminal: what the line holds afterwards, and that shells find the scripts."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.children import write_shardctl
from tests.golden import assert_answers

_REPOSITORY = Path(__file__).parents[3]
_SCRIPT = _REPOSITORY / "completions" / "shardctl.bash"
_BASH_COMPLETION = Path("/usr/share/bash-completion/bash_completion")
_LAYOUT = "splits: {train: {shard_lengths: [3]}, test: {shard_lengths: [2]}}\n"

pytestmark = pytest.mark.slow

# What each shell is told first: to keep quiet, and to write its line at Control-T. The marks are
# written in pieces, as the terminal shows these commands too.
_SETUP = {
    "bash": (
        "bind 'set bell-style none'; bind 'set enable-bracketed-paste off'; stty cols 500; "
        """bind -x '"\\C-t": printf "<<%s%s>>>" "<" "$READLINE_LINE"'; """
    ),
    "zsh": (
        "PS1=; unset zle_bracketed_paste; bindkey -e; unsetopt beep; stty cols 500; "
        "show() { print -rn -- '<''<<'$BUFFER'>''>>' }; zle -N show; bindkey '^T' show; "
    ),
}
_QUIET = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"]}


class Terminal:
    """A shell that waits for a line."""

    def __init__(self, number: int) -> None:
        self._number = number

    def after_tab(self, line: str) -> str:
        """Return what a line is after a TAB at its end; it is not run."""
        os.write(self._number, line.encode() + b"\t\x14")
        shown = self._read_until(b">>>").rpartition(b"<<<")[2].partition(b">>>")[0]
        os.write(self._number, b"\x15")  # empties the line
        return shown.decode()

    def run(self, commands: str) -> None:
        """Run commands and wait for their end."""
        os.write(self._number, f"""{commands}\necho "rea""dy"\n""".encode())
        self._read_until(b"ready")

    def _read_until(self, mark: bytes) -> bytes:
        seen, end = b"", time.monotonic() + 60
        while mark not in seen:
            waits = select.select([self._number], [], [], max(end - time.monotonic(), 0))
            assert waits[0], seen
            seen += os.read(self._number, 1 << 16)
        return seen


@contextmanager
def terminal(
    shell: str, *, folder: Path, environment: Mapping[str, str], setup: str = ""
) -> Iterator[Terminal]:
    """Start bash or zsh without anybody's settings; `setup` is what its rc file would hold."""
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [shell, *_QUIET[shell], "-i"],
        stdin=its,
        stdout=its,
        stderr=its,
        cwd=folder,
        env={**environment, "HOME": str(folder), "INPUTRC": "/dev/null", "TERM": "dumb"},
        start_new_session=True,
    )
    os.close(its)
    try:
        started = Terminal(ours)
        started.run(_SETUP[shell] + setup)
        yield started
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder into which shardctl was installed as `pip install --user` does, in .local."""
    project = tomllib.loads((_REPOSITORY / "pyproject.toml").read_text("utf-8"))
    shared = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    for source, installed in shared.items():
        file = tmp_path / ".local" / installed
        file.parent.mkdir(parents=True)
        shutil.copy(_REPOSITORY / source, file)
    program = tmp_path / ".local" / "bin" / "shardctl"
    program.parent.mkdir()
    write_shardctl(program)
    return tmp_path


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    return {**kept, "HOME": str(home), "PATH": f"{home}/.local/bin:{os.environ['PATH']}"}


def needs(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")


def test_bash_completion_finds_the_script(home: Path) -> None:
    needs("bash")
    if not _BASH_COMPLETION.exists():
        pytest.skip("bash-completion is not installed")
    setup = f"source {_BASH_COMPLETION}"  # which /etc/bash.bashrc or /etc/profile.d does
    with terminal("bash", folder=home, environment=environment(home), setup=setup) as bash:
        assert bash.after_tab("shardctl pla") == "shardctl plan "
        assert bash.after_tab("shardctl plan -d mnist 'tr") == "shardctl plan -d mnist 'train' "


def test_zsh_finds_the_script(home: Path) -> None:
    """Where it looks without a line is /usr/local/share, which no test writes into."""
    needs("zsh")
    setup = f"fpath=({home}/.local/share/zsh/site-functions $fpath); autoload -U compinit; compinit"
    with terminal("zsh", folder=home, environment=environment(home), setup=f"{setup} -u") as zsh:
        assert zsh.after_tab("shardctl pla") == "shardctl plan "
        assert zsh.after_tab("shardctl plan -d mnist tr") == "shardctl plan -d mnist train "
        # The alias of the script is known from the first TAB on.
        zsh.run("shardctl plan train[40:]+test -d mnist >plan.txt")
    assert "train[40:]+test in mnist" in (home / "plan.txt").read_text("utf-8")


def test_fish_finds_the_script(home: Path) -> None:
    needs("fish")
    ran = subprocess.run(
        ["fish", "-c", "complete -C 'shardctl plan -d mnist tr'"],
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.partition("\t")[0] for line in ran.stdout.splitlines()] == ["train"]


Tab = Callable[[str], str]


@pytest.fixture(scope="module")
def after_tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A function that types a line and a TAB in a terminal, and returns the line as it is then."""
    needs("bash")
    folder = tmp_path_factory.mktemp("bash")
    for name in ("big.yaml", "imgs/l.yaml"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(_LAYOUT)
    program = folder / "programs" / "shardctl"
    program.parent.mkdir()
    write_shardctl(program)
    known = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    with terminal("bash", folder=folder, environment=known, setup=f"source '{_SCRIPT}'") as bash:
        yield bash.after_tab


def test_a_tab_keeps_what_is_typed(after_tab: Tab) -> None:
    def answer(typed: str) -> str:
        command, _, rest = typed.partition(" ")
        dataset = "-d mnist " if command == "plan" and "-d" not in rest else ""
        then = after_tab(f"shardctl {command} {dataset}{rest}")
        return repr(then.removeprefix(f"shardctl {command} {dataset}"))

    assert_answers(Path(__file__).parent / "golden" / "tabs.txt", answer)
