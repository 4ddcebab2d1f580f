"""`lint --fix`: what it changes in a shardctl.yaml, and that all else stays."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from shardctl.api.settings_file import stated_settings
from shardctl.errors import ShardctlError, UnpredictableOrderError
from shardctl.metadata.project_file import Project, project_of
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.lint.answer import Lint, lint
from shardctl.verbs.lint.context import Usage
from shardctl.verbs.lint.fix import edited, fixed
from tests.cli.conftest import Shardctl
from tests.golden import assert_evaluated
from tests.verbs.lint.lint_cases import codes, dataset

PATH = Path("/p/shardctl.yaml")
FILE = """\
# my project
dataset: toy.yaml  # three files

read:
  shuffle_seed: 7
  reshuffle: false  # for a test
  # cycles
  interleave_cycle_length: 32  # too many
  epochs: 3
  deterministic: no

lint: {ignore: [SC003]}
"""
FIXED = """\
# my project
dataset: toy.yaml  # three files

read:
  shuffle_seed: 7
  # cycles
  interleave_cycle_length: 3  # too many
  epochs: 3

lint: {ignore: [SC003]}
"""


def written(text: str) -> None:
    Path("shardctl.yaml").write_text(text)
    Path("toy.yaml").write_text("name: toy\nsplits: {train: {shard_lengths: [30, 40, 50]}}\n")


def test_lines_are_changed_and_all_else_stays(shardctl: Shardctl) -> None:
    written(FILE)
    assert shardctl("lint").stdout.endswith("\n  shardctl lint --fix\n")
    ran = shardctl("lint", "--fix")
    assert Path("shardctl.yaml").read_text() == FIXED
    assert (ran.exit_code, "checks passed" in ran.stdout) == (0, True)
    changed = [line for line in ran.stderr.splitlines() if line[0] in "+-"]
    assert changed[2:] == [
        "-  reshuffle: false  # for a test",
        "-  interleave_cycle_length: 32  # too many",
        "+  interleave_cycle_length: 3  # too many",
        "-  deterministic: no",
    ]
    again = shardctl("lint", "--fix")
    assert again.stderr == "nothing was changed: no finding has one right setting\n"
    assert Path("shardctl.yaml").read_text() == FIXED


def test_a_cycle_that_another_split_needs_is_left(shardctl: Shardctl) -> None:
    for splits, code in (
        ("test: {shard_lengths: [9]}", 0),
        ("test: {shard_lengths: [9, 9, 9]}", 1),
    ):
        written("dataset: toy.yaml\nread: {cycle: 9, buffer: 99, buffer_seed: 1}\n")
        train = "train: {shard_lengths: [30, 40]}"
        Path("toy.yaml").write_text(f"name: toy\nsplits: {{{train}, {splits}}}\n")
        assert shardctl("lint", "--fix").exit_code == code
        assert ("cycle: 2," in Path("shardctl.yaml").read_text()) is not bool(code)


def test_a_seed_is_left_to_people(shardctl: Shardctl) -> None:
    text = "dataset: toy.yaml\nread: {shuffle_files: true, buffer: 9}\n"
    written(text)
    ran = shardctl("lint", "--fix", "-f", "json")
    assert "SC006" in {finding["code"] for finding in json.loads(ran.stdout)["findings"]}
    assert (ran.exit_code, Path("shardctl.yaml").read_text()) == (1, text)


def test_what_an_option_sets_is_said(shardctl: Shardctl) -> None:
    written("dataset: toy.yaml\nread: {shuffle_seed: 1, deterministic: false}\n")
    before = Path("shardctl.yaml").read_text()
    ran = shardctl("lint", "--fix", "--no-deterministic")
    assert ran.stderr == "SC007 is left, an option sets it: leave out --no-deterministic\n"
    assert Path("shardctl.yaml").read_text() == before
    os.unlink("shardctl.yaml")
    ran = shardctl("lint", "--fix", "-d", "toy.yaml", "--shuffle-seed", 1, "--no-deterministic")
    assert "SC007 is left, an option sets it" in ran.stderr


def test_a_file_in_any_style_is_edited() -> None:
    assert_evaluated(globals(), "edited", edited)


KEYS = {
    "shuffle_seed": ["1"],
    "shuffle_reshuffle_each_iteration": ["false", "true"],
    "buffer": ["1", "9"],
    "buffer-seed": ["3"],
    "buffer_reshuffle": ["no", "yes"],
    "epochs": ["1", "3"],
    "cycle": ["2", "64", "99"],
    "deterministic": ["false", "true"],
    "host_by": ["even", "files", "examples"],
    "repeat_files": ["false"],
    "reverse": ["true"],
}


@st.composite
def files(draw: st.DrawFn) -> str:
    keys = draw(st.lists(st.sampled_from(sorted(KEYS)), unique=True, min_size=1))
    pairs = [(key, draw(st.sampled_from(KEYS[key]))) for key in keys]
    if draw(st.booleans()):
        return f"read: {{{', '.join(f'{key}: {value}' for key, value in pairs)}}} # all\n"
    lines = [f"  {key}: {value}{draw(st.sampled_from(['', ' # why']))}" for key, value in pairs]
    return "\n# read\nread:\n" + "\n  # next\n".join(lines) + "\nlint: {hosts: 2}\n"


@given(
    text=files(), form=st.sampled_from(["tfrecord", "array_record"]), hosts=st.sampled_from([1, 65])
)
def test_what_is_fixed_is_gone_and_no_error_comes(text: str, form: str, hosts: int) -> None:
    data = dataset(train=(3,) * 64, file_format=form)

    def again(project: Project) -> Lint:
        settings = ReadSettings(**stated_settings(project))
        return lint(data, "train", settings, usage=Usage(hosts=hosts))

    before = project_of(text.encode(), PATH)
    try:
        found = again(before)
    except ShardctlError:  # settings that exclude each other
        return
    after, left = fixed(before, found, again, ())
    kinds = {(one.rule.code, one.severity) for one in left.findings}
    gone = {
        one.rule.code
        for one in found.findings
        if one.change and (one.rule.code, one.severity) not in kinds
    }
    assert (after == before) == (not gone)
    assert {code for code, severity in kinds if severity == "error"} <= set(codes(found))
    assert all(one.change == {} for one in left.findings)
    assert fixed(after, left, again, ()) == (after, left)
    assert again(project_of(after.text, PATH)) == left
    kept = after.text.decode().splitlines()
    assert [line for line in kept if "#" in line and ":" not in line] == [
        line for line in text.splitlines() if "#" in line and ":" not in line
    ]
    if gone == {"SC025"}:  # as the finding says
        orders = []
        for project in (before, after):
            try:
                order = plan_order(data, "train", stated_settings(project)).order
            except UnpredictableOrderError:
                return
            orders.append(order.read(0, order.num_examples).tolist())
        assert orders[0] == orders[1]
