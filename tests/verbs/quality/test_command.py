"""`shardctl quality`, from the command line to what it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Shardctl

_LAYOUT = """
name: toy
splits:
  train: {num_examples: 20000, num_shards: 40, num_bytes: 2000000}
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    path = tmp_path / "toy.yaml"
    path.write_text(_LAYOUT)
    return path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["train[:1]"],
            "error: the quality of an order needs 2 examples at least, and train[:1] has 1",
        ),
        (["--target", "1.5"], "error: --target '1.5': a score above 0, at most 1, is needed"),
        (["--target", "nan"], "error: --target 'nan': a score above 0, at most 1, is needed"),
        (["--hosts", "2", "--host", "0/2"], "error: --host I/N says how many hosts there are"),
        (["-f", "npy"], "error: no format 'npy' here; choose from table, json, yaml, csv"),
        (["--min-score", "best"], "error: --min-score 'best': a score from 0 to 1, or weak, fair"),
        (["--min-score", "1.5"], "error: --min-score '1.5': a score from 0 to 1, or weak, fair"),
        (["--memory", "8 cups"], "error: --memory '8 cups': a number of bytes is needed, as 8GiB"),
        (["--memory", "0"], "error: --memory '0': a number of bytes is needed, as 8GiB, 500MB or"),
        (["--example-bytes", "-1"], "error: --example-bytes '-1': a number of bytes is needed"),
    ],
)
def test_bad_usage_is_one_line_and_no_output(
    shardctl: Shardctl, toy: Path, arguments: list[str], message: str
) -> None:
    ran = shardctl("quality", "-d", toy, *arguments)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(message)
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "minimum", "line"),
    [
        (
            (),
            "weak",
            "check: score 0.0191 (no shuffle) is not weak; cheapest cure in the table: files ",
        ),
        (
            (),
            "0.5",
            "check: score 0.0191 (no shuffle) is below 0.5; cheapest cure in the table: files ",
        ),
        (
            ("--shuffle-seed", 1),
            "good",
            " is not good; cheapest cure in the table: buffer 10,000 (score 0.8",
        ),
        (
            ("--shuffle-seed", 1),
            "uniform",
            "; --buffer 50000, the whole epoch, is uniform, and --target SCORE finds the smallest",
        ),
        (
            ("--shuffle-seed", 1),
            "1",
            "is below 1, and so is a uniform permutation, which scores 0.9",
        ),
        (
            ("--stages", "repeat(2) | shuffle(9, seed=1)"),
            "0.5",
            "; change the shuffles of --stages",
        ),
        (("--shuffle-seed", 1), "weak", None),
        (("--shuffle-seed", 1), "0", None),
        (("--buffer", -2, "--buffer-seed", 1), "uniform", None),
        (("--buffer", -2, "--buffer-seed", 1), "0.99", None),
    ],
)
def test_a_score_that_is_too_low_exits_with_1_and_names_the_cheapest_cure(
    shardctl: Shardctl, tmp_path: Path, options: tuple[object, ...], minimum: str, line: str | None
) -> None:
    path = tmp_path / "d.yaml"
    path.write_text("name: d\nsplits:\n  train: {num_examples: 50000, num_shards: 64}\n")
    ran = shardctl("quality", "-d", path, *options, "--min-score", minimum)
    assert ran.stdout.splitlines()[1].startswith("verdict: ")
    if line is None:
        assert (ran.exit_code, ran.stderr) == (0, "")
    else:
        assert ran.exit_code == 1
        assert line in ran.stderr
        assert ran.stderr.count("\n") == 1


def test_of_three_examples_no_word_is_reached_and_why(shardctl: Shardctl, tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text("name: d\nsplits:\n  train: {num_examples: 3, num_shards: 3}\n")
    ran = shardctl("quality", "-d", path, "--shuffle-seed", 1, "--min-score", "fair")
    assert ran.exit_code == 1
    assert "(cannot tell) is not fair; --buffer 3, the whole epoch, is uniform, " in ran.stderr
    ran = shardctl("quality", "-d", path, "--buffer", 3, "--buffer-seed", 1, "--min-score", "good")
    assert (ran.exit_code, ran.stderr) == (0, "")


def test_of_an_example_that_nobody_knows_the_size_is_asked_for(
    shardctl: Shardctl, tmp_path: Path
) -> None:
    path = tmp_path / "d.yaml"
    path.write_text("name: d\nsplits:\n  train: {num_examples: 500, num_shards: 4}\n")
    ran = shardctl("quality", "-d", path, "--memory", "8GiB")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == (
        "error: how many bytes has a decoded example? this metadata says neither shapes nor sizes; "
        "give --example-bytes N\n"
    )
    ran = shardctl("quality", "-d", path, "--memory", "8GiB", "--example-bytes", 64)
    assert "holds all 500 examples: --buffer 500 scores " in ran.stdout
    assert "(as good as uniform)" in ran.stdout


def test_what_is_about_one_order_has_no_place_beside_all_loaders(
    shardctl: Shardctl, toy: Path
) -> None:
    for option, value in (("--target", "0.5"), ("--min-score", "good"), ("--memory", "1GiB")):
        ran = shardctl("quality", "-d", str(toy), "--loaders", option, value)
        assert ran.exit_code == 2
        assert ran.stderr.startswith(f"error: {option} is about one order; leave out --loaders")
