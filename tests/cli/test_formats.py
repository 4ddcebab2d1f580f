"""A format is declared once: the check, the help, the shell and the writing follow from that."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from shardctl.cli.app import module_of
from shardctl.cli.main import COMMANDS
from shardctl.cli.output import Formats, OutputOptions, as_table, formats_of
from shardctl.draw.tables import PLAIN, Screen
from shardctl.errors import UsageError
from tests.cli.conftest import Shardctl


def formats(*names: str) -> Formats:
    return Formats(renderers=dict.fromkeys(names, lambda *_: []))


@pytest.mark.parametrize(("asked", "what"), [("npy", "bytes"), ("html", "a page for browsers")])
def test_what_a_terminal_cannot_show_is_refused_there(
    asked: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = formats(asked, "svg")
    terminal, elsewhere = Screen(width=80, abridged=True), Screen()
    monkeypatch.setattr(
        "shardctl.cli.output.screen",
        lambda output, *, picture: elsewhere if output == "file" else terminal,
    )
    for out in (OutputOptions(), OutputOptions(format=asked), OutputOptions(output="-")):
        with pytest.raises(UsageError, match=f"^--format {asked} writes {what}: name a file with "):
            some.chosen(out)
    assert some.chosen(OutputOptions(output="file")) == asked
    assert some.chosen(OutputOptions(format="svg")) == "svg"  # which is text
    monkeypatch.setattr("shardctl.cli.output.screen", lambda output, *, picture: elsewhere)
    assert some.chosen(OutputOptions()) == asked  # a pipe


def test_pictures_are_refused_in_a_format_without_them() -> None:
    some = formats("table", "json", "csv", "svg")
    said = r"^--picture draws in tables, not in json; leave it out, or choose --format table or svg"
    for out in (OutputOptions(format="json"), OutputOptions(output="a.json")):
        with pytest.raises(UsageError, match=said):
            some.chosen(out, picture=True)
        assert some.chosen(out, picture=False) == some.chosen(out) == "json"
    assert some.chosen(OutputOptions(), picture=True) == "table"
    assert some.chosen(OutputOptions(format="svg"), picture=True) == "svg"  # is pictures already


@pytest.mark.parametrize(
    "command", [x for x in COMMANDS if x not in ("init", "demo", "completion")]
)
def test_every_format_of_a_command_has_a_renderer_and_is_in_its_help(
    command: str, shardctl: Shardctl
) -> None:
    module = importlib.import_module(module_of(command))
    declared = [value for value in vars(module).values() if isinstance(value, Formats)]
    assert declared
    # Some questions have fewer.
    assert all({*some.names} <= {*module.FORMATS.names} for some in declared)
    page = " ".join(shardctl(command, "--help-all").stdout.split())
    said = page.partition("--format FORMAT ")[2].partition(f" [default: {module.FORMATS.names[0]}")
    assert said[1]
    assert tuple(re.split(", | or ", said[0])) == module.FORMATS.names


LAYOUT = "name: toy\nsplits: {train: {shard_lengths: [3, 4]}, test: {shard_lengths: [5]}}\n"
_LINES = (
    *("plan train", "locate --id 1", "resume --consumed 2", "hosts --hosts 2", "eval --batch 2"),
    *("lint --ignore SC", "diff order.yaml", "index data", "audit steps.log"),
)
_ENOUGH = {line.split()[0]: line.split()[1:] for line in _LINES}
_OTHERS = ("verify", "inspect", "init", "demo", "completion", "help")


@pytest.mark.long
@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in _OTHERS])
def test_every_format_is_written_and_parses(command: str, shardctl: Shardctl) -> None:
    Path("toy.yaml").write_text(LAYOUT)
    Path("data").mkdir()
    Path("data/toy-train.tfrecord").touch()
    Path("steps.log").write_text("1 0 1 2 3 4 5 6\n")
    source = () if command in ("list", "index") else ("-d", "toy.yaml")
    assert shardctl("snapshot", "-d", "toy.yaml", "-o", "order.yaml").exit_code == 0
    names = importlib.import_module(module_of(command)).FORMATS.names
    for name in names:
        target = f"out.{name}"
        ran = shardctl(command, *_ENOUGH.get(command, ()), *source, "-f", name, "-o", target)
        assert (ran.exit_code, ran.stdout) == (0, "")
        said = ran.stderr.startswith(f"wrote {target}: ")
        assert said if command in ("resume", "snapshot", "index") else not ran.stderr
        if name == "python":
            compile(Path(target).read_text(), target, "exec")
        if name == "svg":
            assert ElementTree.parse(target).getroot().tag == "{http://www.w3.org/2000/svg}svg"
        if name in ("json", "yaml"):
            text = Path(target).read_text()
            document = json.loads(text) if name == "json" else yaml.safe_load(text)
            assert (document["format_version"], document["kind"]) == (1, command)


def test_a_declared_format_imports_nothing_until_it_is_written() -> None:
    some = formats_of("nowhere", "nothing")
    assert some.names == ("table", "json", "yaml", "csv")
    with pytest.raises(ModuleNotFoundError, match=r"verbs\.nowhere"):
        some.write(OutputOptions(format="json"), object())


def test_no_line_of_a_table_is_a_command_however_it_comes_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def pieces(screen: object) -> list[str]:
        return ["a\n:", ":error::b\n", "c ::d", "\n", " ::e"]

    module = importlib.import_module("shardctl.verbs.plan.view")
    monkeypatch.setattr(module, "toy_table", pieces, raising=False)
    written = "".join(map(str, as_table("verbs.plan.view:toy_table")((), PLAIN, {})))
    assert written == "a\n\\x3a:error::b\nc ::d\n \\x3a:e"


@pytest.mark.parametrize(
    "command",
    [
        *("plan train", "layout train", "hosts train --hosts 40", "eval test --hosts 40 --batch 8"),
        *("resume train --consumed 5000", "resume train --consumed 5 --hosts 2 --to-hosts 40"),
    ],
)
def test_a_terminal_says_how_to_see_every_row_and_a_pipe_has_them(
    command: str, shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*command.split(), "-d", "imagenet2012"]
    piped = shardctl(*words).stdout
    assert "--all" not in piped
    terminal = Screen(width=120, abridged=True)
    monkeypatch.setattr("shardctl.cli.output.screen", lambda output, *, picture: terminal)
    shown = shardctl(*words).stdout
    assert shown.count(" more rows; --all shows them\n") == 1
    whole = shardctl(*words, "--all").stdout
    assert "more rows" not in whole
    kept = [line for line in shown.splitlines() if "…" not in line]
    assert set(kept) <= set(whole.splitlines())
    rows = [line.split() for line in piped.splitlines()]
    if not command.startswith("hosts"):  # whose --all shows the other strategies too
        assert len(whole.splitlines()) >= len(rows) > len(kept)


@pytest.mark.slow
def test_a_pipe_loads_nothing_that_draws() -> None:
    """Here `simulate` alone takes something of the pictures: where the visits of its rows end."""
    program = """
import subprocess
import sys
from shardctl.cli import main
for line in (
    "layout", "hosts --hosts 4", "hosts --hosts 4,8", "eval --hosts 4 --batch 8",
    "simulate --take 3", "quality", "quality --loaders",
):
    assert main._run([*line.split(), "-d", "mnist", "-o", "/dev/null"]) == 0
drawing = ("shardctl.draw.svg", "shardctl.verbs.report")
print([n for n in sys.modules if n.startswith(drawing) or n.endswith(".picture")])
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "[]"), ran.stderr
