"""`report --compare`: options go over settings files, and a file at fault is one line on stderr."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Shardctl

LAYOUT = "name: toy\nsplits: {train: {shard_lengths: [30, 40, 50]}, test: {shard_lengths: [9]}}\n"


@pytest.fixture(autouse=True)
def files(shardctl: Shardctl) -> None:
    """Two settings files and two snapshots."""
    Path("toy.yaml").write_text(LAYOUT)
    for name, block in (("a", 2), ("b", 3)):
        Path(f"{name}.yaml").write_text(f"dataset: toy.yaml\nread:\n  block: {block}\n")
        kept = ("snapshot", "-d", "toy.yaml", "--block", block, "-o", f"{name}.order.yaml")
        assert shardctl(*kept).exit_code == 0


def compared(shardctl: Shardctl, *arguments: object) -> dict[str, object]:
    outcome = shardctl("report", "--compare", *arguments, "-f", "json")
    assert outcome.exit_code == 0, outcome.stderr
    found = json.loads(outcome.stdout)["compared"]
    assert isinstance(found, dict)
    return found


def test_a_page_is_written_and_made_again_by_its_own_line(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Path.cwd()
    order = "toy-train.tfrecord-0000{}-of-00003\n"
    Path("order.txt").write_text(order.format(1) + order.format(0) + order.format(2))
    words = ("report", "train", "--compare", "a.yaml", "b.yaml", "--hosts", 3, "-d", "toy.yaml")
    named = ("--file-order", "order.txt", "--data-dir", ".")
    outcome = shardctl(*words, *named, "-o", "page.html")
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (0, "", "")
    page = Path("page.html").read_text("utf-8")
    line = (
        f"shardctl report train --hosts 3 --compare {here}/a.yaml {here}/b.yaml "
        f"-d {here}/toy.yaml --data-dir {here} --file-order {here}/order.txt -o report.html"
    )
    assert re.sub("<[^>]*>", "", page[page.index("<pre><code>") :].partition("</pre>")[0]) == line
    (here / "other").mkdir()
    monkeypatch.chdir(here / "other")
    assert shardctl(*shlex.split(line)[1:]).exit_code == 0
    made = Path("report.html").read_text("utf-8")
    bare = [re.sub("</?(?:bdi|wbr)>", "", text).replace(f"{here}/", "") for text in (page, made)]
    assert bare[0] == bare[1]  # the same but for how its files are named


def test_pairs_part_where_their_blocks_say(shardctl: Shardctl) -> None:
    for pair in (
        ("a.yaml", "b.yaml"),
        ("a.order.yaml", "b.yaml"),
        ("a.order.yaml", "b.order.yaml"),
    ):
        found = compared(shardctl, *pair)
        assert found["equal"] is False
        first = found["diff"]["first_difference"]  # type: ignore[index]
        # Of three files in blocks of 2: 0 1 30 .., in blocks of 3: 0 1 2 ..
        assert (first["position"], first["expected"], first["actual"]) == (2, 30, 2)
    assert compared(shardctl, "a.order.yaml", "a.yaml")["equal"] is True


def test_options_go_over_both_settings_files(shardctl: Shardctl) -> None:
    found = compared(shardctl, "a.yaml", "b.yaml", "--block", 5, "-d", "mnist", "--eval", "train")
    assert found["equal"] is True
    for side in (found["a"], found["b"]):
        assert side["pipeline"]["block"] == 5  # type: ignore[index]
        assert side["dataset"]["name"] == "mnist"  # type: ignore[index]
    # A snapshot beside one stays as it was pinned.
    assert compared(shardctl, "b.order.yaml", "a.yaml", "--block", 3)["equal"] is True


@pytest.mark.parametrize(
    "options", [["-d", "mnist"], ["--block", "3"], ["--data-dir", "."], ["--no-cache"]]
)
def test_options_beside_two_snapshots_are_refused(shardctl: Shardctl, options: list[str]) -> None:
    outcome = shardctl("report", "--compare", "a.order.yaml", "b.order.yaml", *options)
    assert outcome.exit_code == 2
    assert "are snapshots, which are as they were pinned; leave out SPEC" in outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.yaml", "a.yaml"], "'a.yaml' and 'a.yaml' are one file"),
        (["a.yaml", "none.yaml"], "cannot read 'none.yaml': no such file"),
        (["a.yaml", "toy.yaml"], "toy.yaml:1: unknown key 'name'"),
        (["a.yaml", "bad.yaml"], "bad.yaml:3: cycle=0: a number from 1"),
        (["a.yaml", "b.yaml", "--cycle", "0"], "--cycle '0'"),
        (["a.yaml", "plan.json"], "'plan.json' is a plan; snapshots and settings files"),
        (["a.yaml", "b.yaml", "--loaders"], "--loaders is about one pipeline"),
        (["a.yaml", "b.yaml", "--select", "SC001"], "--select is about the findings of one"),
        (["a.yaml", "b.yaml", "--as-data-source"], "--as-data-source is about the findings"),
        (["a.yaml", "b.yaml", "--hosts", "0"], "--hosts '0': a whole number, at least 1"),
        (["a.yaml"], "--compare"),
    ],
)
def test_what_cannot_be_compared_is_one_line_and_nothing_is_written(
    shardctl: Shardctl, arguments: list[str], words: str
) -> None:
    Path("bad.yaml").write_text("dataset: toy.yaml\nread:\n  cycle: 0\n")
    assert shardctl("plan", "-d", "toy.yaml", "-o", "plan.json").exit_code == 0
    outcome = shardctl("report", "-o", "page.html", "--compare", *arguments)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert words in outcome.stderr
    assert outcome.stderr.startswith("error: ")
    assert outcome.stderr.count("\n") == 1
    assert not Path("page.html").exists()


def test_an_open_order_is_a_warning_and_a_page(shardctl: Shardctl) -> None:
    Path("open.yaml").write_text("dataset: toy.yaml\nread: {shuffle_files: true}\n")
    outcome = shardctl("report", "--compare", "a.yaml", "open.yaml", "-o", "page.html")
    assert outcome.exit_code == 0
    assert outcome.stderr.startswith("warning: open.yaml: no seed is given: measured with ")
    assert "open.yaml has no one order" in Path("page.html").read_text("utf-8")
