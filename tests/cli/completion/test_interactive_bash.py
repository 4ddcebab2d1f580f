"""A TAB in a real interactive bash: what the line holds afterwards."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.children import write_shardctl
from tests.cli.completion.terminal import terminal

_SCRIPT = Path(__file__).parents[3] / "completions" / "shardctl.bash"
_LAYOUT = "splits: {train: {shard_lengths: [3]}, test: {shard_lengths: [2]}}\n"

pytestmark = pytest.mark.skipif(
    shutil.which("bash") is None or sys.platform == "win32", reason="bash needs a terminal"
)

Tab = Callable[[str], str]


@pytest.fixture(scope="module")
def after_tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A function that types a line and a TAB in a terminal, and returns the line as it is then."""
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
    }
    setup = f"source '{_SCRIPT}'"
    with terminal("bash", folder=folder, environment=environment, setup=setup) as bash:
        yield bash.after_tab


@pytest.mark.long
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
