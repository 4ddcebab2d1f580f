"""`shardctl lint`, from the command line to what it writes."""

from __future__ import annotations

import json
import resource
import shlex
from pathlib import Path

import pytest

from shardctl.verbs.lint.rules import LINT_RULES
from tests.cli.conftest import Shardctl
from tests.record_files import framed

LAYOUTS = {
    "ordered.yaml": "name: o\nordered: true\nsplits: {train: {num_examples: 90, num_shards: 9}}\n",
    "short.yaml": "name: s\nfile_format: parquet\nsplits: {train: {shard_lengths: [214]}}\n",
    "parquet.yaml": "name: p\nfile_format: parquet\nsplits: {train: {shard_lengths: [15, 9]}}\n",
}


def codes(stdout: str) -> list[str]:
    return [finding["code"] for finding in json.loads(stdout)["findings"]]


@pytest.mark.long
@pytest.mark.parametrize("rule", LINT_RULES, ids=[rule.code for rule in LINT_RULES])
def test_the_example_of_a_story_shows_its_finding(shardctl: Shardctl, rule: object) -> None:
    for name, text in LAYOUTS.items():
        Path(name).write_text(text)
    for name in ("clicks-00000.tfrecord", "clicks-00001.tfrecord"):
        Path(name).write_bytes(framed(b"a", b"b"))
    command = shlex.split(rule.story.example)  # type: ignore[attr-defined]
    assert command[0] == "shardctl"
    ran = shardctl(*command[1:], "-f", "json")
    assert (ran.exit_code, ran.stderr) == (1, "")
    assert rule.code in codes(ran.stdout)  # type: ignore[attr-defined]


def test_sound_settings_exit_with_0(shardctl: Shardctl) -> None:
    shuffled = ("--shuffle-seed", 1, "--buffer", 20_000, "--buffer-seed", 2)
    ran = shardctl("lint", "-d", "imagenet2012", *shuffled)
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout == (
        f"train in imagenet2012:5.1.0: nothing found by {len(LINT_RULES)} rules\n"
    )
    assert shardctl("lint", "-d", "imagenet2012", *shuffled, "-f", "github").stdout == ""


CONFIG = """\
dataset: imagenet2012
read:
  epochs: 90
  shuffle-seed: 1
lint:
  specs: ["train[:60%]"]
  eval: ["train[50%:]"]
  hosts: 8
  ignore: [SC003, SC032, SC035]
"""


def test_shardctl_yaml_says_what_is_linted_and_is_pointed_at(shardctl: Shardctl) -> None:
    Path("shardctl.yaml").write_text(CONFIG)
    Path("sub").mkdir()
    ran = shardctl("lint", "-f", "github")
    assert ran.exit_code == 1
    assert ran.stdout.startswith("::error file=shardctl.yaml,line=6,title=SC041::")
    assert ran.stdout.count("\n") == 1
    ran = shardctl("lint", "train", "-f", "json")  # what is named here is all that is looked at
    assert (ran.exit_code, codes(ran.stdout)) == (0, [])
    ran = shardctl("lint", "train", "--ignore", "SC035", "-f", "json")
    assert codes(ran.stdout) == ["SC003"]
    finding = json.loads(ran.stdout)["findings"][0]
    assert (finding["file"], finding["line"]) == ("shardctl.yaml", 4)
    ran = shardctl("lint", "train", "--ignore", "SC035", "--shuffle-seed", 2, "-f", "json")
    finding = json.loads(ran.stdout)["findings"][0]
    assert (finding["file"], finding["line"]) == (None, None)  # said here, not in the file


def test_annotations_name_the_file_from_the_root_of_the_repository(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Path("project/config/deep")
    project.mkdir(parents=True)
    Path("project/.git").mkdir()
    Path("project/config/shardctl.yaml").write_text(CONFIG)
    monkeypatch.chdir(project)
    assert " file=config/shardctl.yaml,line=6," in shardctl("lint", "-f", "github").stdout
    assert " (../shardctl.yaml:6)\n" in shardctl("lint").stdout


def test_evaluation_in_shardctl_yaml_comes_beside_train(shardctl: Shardctl) -> None:
    Path("shardctl.yaml").write_text("dataset: mnist\nlint: {eval: 'train[50000:]'}\n")
    ran = shardctl("lint", "-f", "json")
    assert codes(ran.stdout) == ["SC041", "SC017"]
    ran = shardctl("lint", "--eval", "train[50000:]", "-f", "json")
    assert [read["spec"] for read in json.loads(ran.stdout)["specs"]] == ["train[50000:]"]


def test_codes_come_with_commas_or_one_by_one(shardctl: Shardctl) -> None:
    pipeline = ("lint", "-d", "mnist", "--epochs", 2, "--shuffle-seed", 1, "-f", "json")
    assert codes(shardctl(*pipeline).stdout) == ["SC001", "SC004"]
    for select in (["--select", "SC01,SC004"], ["--select", "SC01", "--select", "sc004"]):
        assert codes(shardctl(*pipeline, *select).stdout) == ["SC004"]
    ran = shardctl(*pipeline, "--ignore", "SC00")
    assert (ran.exit_code, codes(ran.stdout)) == (0, [])
    assert codes(shardctl(*pipeline, "--ignore", "SC00", "--select", "SC001").stdout) == ["SC001"]


def test_cycle_auto_is_that_of_this_machine_unless_one_is_named(shardctl: Shardctl) -> None:
    lint = ("lint", "-d", "imagenet2012", "--select", "SC021", "-f", "json")
    assert codes(shardctl(*lint, "--cycle", "auto").stdout) == ["SC021"]
    ran = shardctl(*lint, "--cycle", "auto", "--cpus", 48)
    assert "16 of 48" in ran.stdout
    Path("shardctl.yaml").write_text("read: {cycle: auto}\n")
    assert codes(shardctl(*lint).stdout) == ["SC021"]
    assert codes(shardctl(*lint, "--cycle", 8).stdout) == []
    Path("shardctl.yaml").write_text("read: {cycle: 8}\n")
    assert codes(shardctl(*lint, "--cycle", "auto").stdout) == ["SC021"]


def test_the_limit_of_open_files_is_that_of_the_process(shardctl: Shardctl) -> None:
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    shuffled = ("--shuffle-seed", 1, "--buffer", 20_000, "--buffer-seed", 2)
    lint = ("lint", "-d", "imagenet2012", "--cycle", 100, *shuffled, "-f", "json")
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (315, most))
        assert codes(shardctl(*lint).stdout) == ["SC024"]
        assert codes(shardctl(*lint, "--open-files", 316).stdout) == []
        resource.setrlimit(resource.RLIMIT_NOFILE, (316, most))
        assert codes(shardctl(*lint).stdout) == []
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))


def test_list_needs_no_dataset(shardctl: Shardctl) -> None:
    Path("shardctl.yaml").write_text("dataset: nowhere\n")
    ran = shardctl("lint", "--list")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert [line.split()[0] for line in ran.stdout.splitlines()[1:]] == [r.code for r in LINT_RULES]
    assert shardctl("lint", "--list", "-f", "csv").stdout.count("\n") == len(LINT_RULES) + 1
    assert shardctl("lint", "--list", "-f", "github").stdout == ran.stdout
    story = json.loads(shardctl("lint", "--explain", "sc007", "-f", "json").stdout)
    assert [rule["code"] for rule in story["rules"]] == ["SC007"]
    assert "\nWhat helps:\n" in shardctl("lint", "--explain", "sc007").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--explain", "SC999"], "--explain 'SC999': no finding has this code; there are: SC009, "),
        (["--ignore", "E501"], "--ignore 'E501': no finding has this code; there are: SC001, "),
        (["--select", ""], "--select '': no finding has this code"),
        (["--seeds", "1,x"], "--seeds '1,x': whole numbers, with commas, are needed"),
        (["--hosts", "0"], "--hosts '0': a whole number, at least 1, is needed"),
        (["--hosts", "4", "--host", "1/8"], "--host 1/8 and --hosts 4: two numbers of hosts"),
        (["-f", "ids"], "no format 'ids' here; choose from table, json, yaml, csv, github"),
        (["train[9:5]"], "'train[9:5]' runs backwards"),
        (["--drop-remainder"], "--drop-remainder needs --batch N"),
        (["--fail-on", "info"], "--fail-on 'info': choose from error, warning, notice"),
    ],
)
def test_bad_usage_is_one_line(shardctl: Shardctl, arguments: list[str], message: str) -> None:
    ran = shardctl("lint", "-d", "imagenet2012", *arguments)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: {message}")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("fail_on", "severity", "exit_code"),
    [
        ((), "notice", 1),
        (("--fail-on", "notice"), "notice", 1),
        (("--fail-on", "warning"), "notice", 0),
        (("--fail-on", "warning"), "warning", 1),
        (("--fail-on", "error"), "warning", 0),
        (("--fail-on", "error"), "error", 1),
    ],
)
def test_the_least_severity_that_fails_can_be_chosen(
    shardctl: Shardctl, fail_on: tuple[str, ...], severity: str, exit_code: int
) -> None:
    settings = {
        "notice": ("--epochs", 2, "--shuffle-seed", 1),  # SC003
        "warning": (),  # SC017
        "error": ("--eval", "train[50%:]", "--shuffle-seed", 1),  # SC041
    }[severity]
    ran = shardctl("lint", "train", *settings, "-d", "imagenet2012", *fail_on, "-f", "json")
    found = json.loads(ran.stdout)["findings"]
    assert [finding["severity"] for finding in found] == [severity]  # all are shown
    assert (ran.exit_code, ran.stderr) == (exit_code, "")


def test_shardctl_yaml_says_what_fails_and_an_option_overrides_it(shardctl: Shardctl) -> None:
    Path("shardctl.yaml").write_text("dataset: imagenet2012\nlint: {fail-on: error}\n")
    assert shardctl("lint", "-f", "github").exit_code == 0
    assert shardctl("lint", "--fail-on", "warning").exit_code == 1
    Path("shardctl.yaml").write_text("dataset: imagenet2012\nlint:\n  fail_on: fatal\n")
    ran = shardctl("lint")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert "fatal" in ran.stderr
    assert "choose from error, warning, notice" in ran.stderr
