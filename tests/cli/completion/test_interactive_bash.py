"""A TAB in a real interactive bash: what the line holds afterwards."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.children import write_shardctl

_SCRIPT = Path(__file__).parents[3] / "completions" / "shardctl.bash"
_LAYOUT = "splits: {train: {shard_lengths: [3]}, test: {shard_lengths: [2]}}\n"

pytestmark = pytest.mark.skipif(
    shutil.which("bash") is None or sys.platform == "win32", reason="bash needs a terminal"
)

Tab = Callable[[str], str]


@pytest.fixture(scope="module")
def after_tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A function that types a line and a TAB in a terminal, and returns the line as it is then."""
    import pty

    folder = tmp_path_factory.mktemp("bash")
    for name in ("big.yaml", "imgs/l.yaml"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(_LAYOUT)
    program = folder / "programs" / "shardctl"
    program.parent.mkdir()
    write_shardctl(program)
    environment = {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(_SCRIPT.parents[1]),
        "HOME": str(folder),
        "INPUTRC": "/dev/null",
        "TERM": "dumb",
    }
    terminal, of_bash = pty.openpty()
    bash = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"],
        stdin=of_bash,
        stdout=of_bash,
        stderr=of_bash,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )
    os.close(of_bash)

    def read_until(mark: bytes) -> bytes:
        seen, end = b"", time.monotonic() + 60
        while mark not in seen:
            assert select.select([terminal], [], [], max(end - time.monotonic(), 0))[0], seen
            seen += os.read(terminal, 1 << 16)
        return seen

    def press(line: str) -> str:
        # Control-T, bound below, writes the line; Control-U then empties it.
        os.write(terminal, line.encode() + b"\t\x14")
        shown = read_until(b">>>").rpartition(b"<<<")[2].partition(b">>>")[0]
        os.write(terminal, b"\x15")
        return shown.decode()

    setup = (
        "bind 'set bell-style none'; bind 'set enable-bracketed-paste off'; stty cols 500; "
        f"source '{_SCRIPT}'; "
        """bind -x '"\\C-t": printf "<<%s%s>>>" "<" "$READLINE_LINE"'; echo "rea""dy"\n"""
    )
    try:
        os.write(terminal, setup.encode())
        read_until(b"ready")
        yield press
    finally:
        bash.kill()
        bash.wait()
        os.close(terminal)


@pytest.mark.parametrize(
    ("typed", "then"),
    [
        ("plan 'tr", "plan 'train' "),
        ('plan "tr', 'plan "train" '),
        ("plan 'tr'", "plan 'train' "),
        ("plan 'train[:10%]+te", "plan 'train[:10%]+test' "),
        ('plan "train[:10%]+te', 'plan "train[:10%]+test" '),
        ("plan train[:10%]+te", "plan train[:10%]+test "),
        # The quotes were lost, or the word was there twice.
        ("plan 'train[:10%]+te'", "plan 'train[:10%]+test' "),
        ('plan "train[:10%]"+te', 'plan "train[:10%]"+test '),
        ("plan train'[:10%]+te", "plan train'[:10%]+test' "),
        ("plan train\\[:10%\\]+te", "plan train\\[:10%\\]+test "),
        ("plan 'train[:10%] + te", "plan 'train[:10%] + test' "),
        ("plan --dataset='mnist:", "plan --dataset='mnist:3.0.1' "),
        ("plan -d mnist:", "plan -d mnist:3.0.1 "),
        ("plan 'train[", "plan 'train["),
        ("plan -d bi", "plan -d big.yaml "),
        ("plan -d img", "plan -d imgs/"),
        ("plan -d imgs/", "plan -d imgs/l.yaml "),
        ("plan -d 'imgs/'", "plan -d 'imgs/l.yaml' "),
        ("plan -d 'big.yaml' -d 'fash", "plan -d 'big.yaml' -d 'fashion_mnist' "),
        ("lint --explain SC06", "lint --explain SC061 "),
        ("help 'hos", "help 'hosts' "),
    ],
)
def test_a_tab_keeps_what_is_typed(typed: str, then: str, after_tab: Tab) -> None:
    command, _, rest = typed.partition(" ")
    dataset = "-d mnist " if command == "plan" and "-d" not in rest else ""
    assert after_tab(f"shardctl {command} {dataset}{rest}") == (
        f"shardctl {command} {dataset}{then.removeprefix(command + ' ')}"
    )
