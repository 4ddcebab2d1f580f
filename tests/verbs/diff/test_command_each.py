"""`shardctl diff` of several snapshots: all are checked, and GitHub is told what to do."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from shardctl.cli import output as output_of
from shardctl.errors import UsageError
from tests.cli.conftest import Outcome, Shardctl
from tests.draw.github_runner import as_github_reads

LAYOUT = """\
name: toy
version: 1.0.0
splits:
  train: {shard_lengths: [30, 40, 50]}
  test: {shard_lengths: [9]}
"""
NAMES = ("a.order.yaml", "b.order.yaml", "c.order.json")
OTHER = "name: other\nsplits: {train: {shard_lengths: [2, 3]}}\n"


@pytest.fixture(autouse=True)
def pinned(shardctl: Shardctl) -> None:
    """Three snapshots, two of them of orders in which a block matters."""
    Path("toy.yaml").write_text(LAYOUT)
    for name, spec in zip(NAMES, ("train", "test", "train[5:]"), strict=True):
        ran = shardctl("snapshot", spec, "-d", "toy.yaml", "--block", 2, "-o", name)
        assert ran.exit_code == 0


def test_three_and_more_are_each_beside_today(shardctl: Shardctl) -> None:
    same = shardctl("diff", *NAMES)
    assert (same.exit_code, same.stderr) == (0, "")
    changed = shardctl("diff", *NAMES, "--block", 3)
    assert (changed.exit_code, changed.stderr) == (1, "")
    told = re.compile(r"\w\.order\.\w+ |.* files ")
    assert list(filter(told.match, changed.stdout.splitlines())) == [
        "a.order.yaml and the current order first differ at position 2 of 120",
        "b.order.yaml matches the current order: 9 examples",
        "c.order.json and the current order first differ at position 2 of 115",
        "1 of 3 files match, 2 changed",
    ]
    ran = shardctl("diff", *NAMES, "--block", 3, "-o", "out.json")
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert len(json.loads(Path("out.json").read_text())["comparisons"]) == 3


def test_each_checks_however_many(shardctl: Shardctl) -> None:
    for names in (NAMES[:1], NAMES[:2], NAMES):
        ran = shardctl("diff", "--each", *names, "-f", "json")
        assert ran.exit_code == 0
        document = json.loads(ran.stdout)
        assert [document["kind"], document["equal"], document["not_checked"]] == ["diff", True, []]
        assert [one["actual"] for one in document["comparisons"]] == ["the current order"] * len(
            names
        )
        alone = json.loads(shardctl("diff", names[0], "-f", "json").stdout)
        assert document["comparisons"][0] == alone
    assert yaml.safe_load(shardctl("diff", *NAMES, "-f", "yaml").stdout) == json.loads(
        shardctl("diff", *NAMES, "-f", "json").stdout
    )


@pytest.mark.parametrize("second", ["b.order.yaml", "copy.yaml"])
def test_two_are_compared_with_each_other_and_that_is_said(second: str, shardctl: Shardctl) -> None:
    """Two of a pattern may be the same, and today another: nothing of it is silent."""
    Path("copy.yaml").write_bytes(Path("a.order.yaml").read_bytes())
    words = "compared with each other; --each checks each against the current order"
    code = int(second != "copy.yaml")
    ran = shardctl("diff", "a.order.yaml", second)
    assert (ran.exit_code, ran.stderr) == (code, "")
    assert ran.stdout.splitlines()[-1] == words
    noted = shardctl("diff", "a.order.yaml", second, "-f", "github")
    level, where, text = as_github_reads(noted.stdout)
    assert (noted.exit_code, level) == (code, "error" if code else "notice")
    assert where["file"] == "a.order.yaml"
    assert text.endswith(words)
    for refused in (["--update"], ["--block", "3"], ["-d", "toy.yaml"]):
        ran = shardctl("diff", "a.order.yaml", second, *refused)
        assert ran.exit_code == 2
        assert "or check both with --each" in ran.stderr
    ran = shardctl("diff", "--each", "a.order.yaml", second, "--block", "2")
    assert (ran.exit_code, words in ran.stdout) == (0, False)


def test_one_that_cannot_be_checked_stops_no_other_and_wins(shardctl: Shardctl) -> None:
    Path("b.order.yaml").write_text("")
    Path("plan.json").write_text(shardctl("plan", "train", "-d", "toy.yaml", "-f", "json").stdout)
    names = ("none.yaml", "b.order.yaml", "plan.json", "a.order.yaml", "c.order.json")
    ran = shardctl("diff", *names, "--block", 3)
    assert ran.exit_code == 2
    assert ran.stderr.splitlines() == [
        "error: cannot read 'none.yaml': no such file",
        "error: b.order.yaml is empty; it should hold a snapshot or a plan",
        "error: 'plan.json' is a plan; name a second one to compare it with",
    ]
    assert "a.order.yaml and the current order first differ" in ran.stdout
    assert "\n0 of 5 files match, 2 changed, 3 not checked\n" in ran.stdout
    document = json.loads(shardctl("diff", *names, "-f", "json").stdout)
    assert (document["equal"], len(document["comparisons"])) == (False, 2)
    assert [one["file"] for one in document["not_checked"]] == list(names[:3])
    lines = shardctl("diff", *names, "-f", "github").stdout.splitlines()
    assert [as_github_reads(line)[1]["file"] for line in lines] == list(names[:3])


def test_what_is_wrong_with_all_is_said_once(shardctl: Shardctl) -> None:
    Path("shardctl.yaml").write_text("read:\n  cycle: 0\n")
    for options, words in (
        ([], "shardctl.yaml:2: cycle=0: "),
        (["--cycle", "auto"], "error: --cycle auto depends on the CPUs"),
        (["-d", "nodataset"], "error: no dataset 'nodataset'"),
        (["--spec", "nosplit"], "error: no split 'nosplit' in toy:1.0.0"),
    ):
        ran = shardctl("diff", *NAMES, *options)
        assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
        assert words in ran.stderr
        Path("shardctl.yaml").unlink(missing_ok=True)


def test_a_reason_without_a_name_gets_that_of_the_file(shardctl: Shardctl) -> None:
    Path("other.yaml").write_text(OTHER)
    shardctl("snapshot", "train", "-d", "other.yaml", "-o", "o.order.yaml")
    Path("toy.yaml").write_text(LAYOUT.replace("test:", "tset:"))
    ran = shardctl("diff", "o.order.yaml", *NAMES)
    assert ran.exit_code == 2
    assert ran.stderr.startswith("error: b.order.yaml: no split 'test' in toy:1.0.0")
    assert "o.order.yaml matches the current order" in ran.stdout


def test_update_accepts_each_that_differs(shardctl: Shardctl) -> None:
    before = Path("b.order.yaml").read_bytes()
    Path("bad.yaml").write_text("kind: snapshot\n")
    ran = shardctl("diff", "bad.yaml", *NAMES, "--block", 3, "--update")
    assert ran.exit_code == 2
    assert ran.stderr.splitlines()[:-1] == [f"{name} now holds the current order" for name in NAMES]
    assert ran.stderr.splitlines()[-1].startswith("error: bad.yaml: ")
    assert "--update" not in ran.stdout
    assert Path("b.order.yaml").read_bytes() != before  # its block is another, its order is not
    assert Path("bad.yaml").read_text() == "kind: snapshot\n"
    assert json.loads(Path("c.order.json").read_text())["pipeline"]["block"] == 3
    again = shardctl("diff", *NAMES, "--update")
    assert (again.exit_code, again.stderr) == (0, "")
    assert shardctl("diff", *NAMES, "--block", 3).exit_code == 0


def test_a_file_that_cannot_be_written_stops_no_other(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_write = output_of.write

    def write(chunks: Iterable[str], output: str) -> None:
        if output == NAMES[0]:
            raise UsageError("cannot write 'it': no space left on device")
        really_write(chunks, output)

    monkeypatch.setattr(output_of, "write", write)
    ran = shardctl("diff", *NAMES, "--block", 3, "--update")
    assert ran.exit_code == 2
    assert ran.stderr.splitlines()[-1] == (
        "error: a.order.yaml: cannot write 'it': no space left on device"
    )
    assert json.loads(Path("c.order.json").read_text())["pipeline"]["block"] == 3


def test_github_is_told_the_line_that_changed_and_the_command_that_accepts_it(
    shardctl: Shardctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    Path("shardctl.yaml").write_text("dataset: toy.yaml\nread:\n  epochs: 1\n  block: 3\n")
    ran = shardctl("diff", "a.order.yaml", "--cycle", 16, "-f", "github")
    level, where, text = as_github_reads(ran.stdout)
    assert (ran.exit_code, level) == (1, "error")
    assert (where["file"], where["line"]) == ("cwd/shardctl.yaml", "4")
    assert "block: 2 became 3 (cwd/shardctl.yaml:4)" in text
    # The command that is given accepts the order as it is now.
    command = text.rpartition("\n")[2]
    assert command == "shardctl diff a.order.yaml --cycle 16 --update"
    assert shardctl(*shlex.split(command)[1:]).exit_code == 0
    assert shardctl("diff", "a.order.yaml", "-f", "github").stdout == ""
    # What an option says is at no line of a file.
    ran = shardctl("diff", "a.order.yaml", "--block", 5, "-f", "github")
    assert as_github_reads(ran.stdout)[1] == {
        "file": "cwd/a.order.yaml",
        "title": "a.order.yaml and the current order first differ at position 3 of 120",
    }
    # People get it as from the folder that they are in.
    shown = shardctl("diff", "c.order.json").stdout
    assert "block: 2 became 3 (shardctl.yaml:4)" in shown


def test_a_dataset_that_shardctl_yaml_names_is_at_its_line(shardctl: Shardctl) -> None:
    Path("other.yaml").write_text(OTHER)
    Path("shardctl.yaml").write_text("read: {epochs: 1}\ndataset: other.yaml\n")
    ran = shardctl("diff", "a.order.yaml", "-f", "github")
    assert as_github_reads(ran.stdout)[1]["line"] == "2"
    named = shardctl("diff", "a.order.yaml", "-d", "other.yaml", "-f", "github")
    assert as_github_reads(named.stdout)[1]["file"] == "a.order.yaml"


def test_names_of_files_act_neither_in_a_shell_nor_on_a_runner(shardctl: Shardctl) -> None:
    name = "a b;$(touch x),%0A::error::.yaml"
    Path("a.order.yaml").rename(name)
    ran = shardctl("diff", name, "--block", 3, "-f", "github")
    assert ran.stdout.count("\n") == 1
    _, where, text = as_github_reads(ran.stdout)
    assert where["file"] == name
    command = text.rpartition("\n")[2]
    assert shlex.split(command) == ["shardctl", "diff", name, "--block", "3", "--update"]


def test_stdin_is_one_of_the_files(shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch) -> None:
    def given(*words: str) -> Outcome:
        with Path("a.order.yaml").open() as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            return shardctl("diff", *words)

    ran = given("--each", "-", "b.order.yaml", "--block", "3")
    assert ran.exit_code == 1
    assert ran.stdout.startswith("stdin and the current order first differ at position 2 of 120\n")
    assert "if this is meant" not in ran.stdout  # stdin cannot be written
    assert "if this is meant" not in given("-", "--block", "3", "-f", "github").stdout
    assert given("-", "a.order.yaml").stdout.startswith("stdin matches a.order.yaml: ")
    Path("toy.yaml").unlink()
    missing = given("-")
    assert missing.stderr.startswith("error: stdin: no file or folder 'toy.yaml'; say where")
    refused = given("--each", "-", "b.order.yaml", "--update")
    assert (refused.exit_code, "which is stdin; name a file" in refused.stderr) == (2, True)
