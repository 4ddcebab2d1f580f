"""`shardctl quality`, from the command line to what it writes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

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


@pytest.mark.long
def test_imagenet_read_as_it_lies_scores_next_to_nothing(shardctl: Shardctl) -> None:
    ran = shardctl("quality", "-d", "imagenet2012")
    assert (ran.exit_code, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    assert lines[0] == "train of imagenet2012:5.1.0: cycle 16, block 16"
    assert lines[1].startswith("verdict: no shuffle (nothing shuffles; ")
    assert lines[2].startswith("score 0.00")
    assert lines[3].startswith("a uniform permutation scores 0.999")
    assert "measured: all 1,281,167 examples of an epoch, batches of 256" in lines
    assert "from pass 0 to pass 1: the same order" in lines
    assert max(len(line) for line in lines if "  " in line) <= 80


@pytest.mark.long
def test_a_table_fits_eighty_columns_with_everything_asked(
    shardctl: Shardctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    split = "{num_examples: 128116, num_shards: 1024, num_bytes: 14000000000}"
    (tmp_path / "large.yaml").write_text(f"name: imagenet2012\nsplits:\n  train: {split}\n")
    ran = shardctl(
        *("quality", "-d", tmp_path / "large.yaml", "--shuffle-files", "--buffer", "10000"),
        *("--sorted-by-shard", "--hosts", "8", "--batch", "1024", "--target", "0.5"),
    )
    assert ran.exit_code == 0
    assert max(map(len, ran.stdout.splitlines())) <= 80
    assert "class purity" in ran.stdout
    assert "across 8 hosts" in ran.stdout
    assert "buffer for a score of 0.5: " in ran.stdout
    assert ran.stderr.startswith("warning: no seed is given: measured with --shuffle-seed 1 and ")


@pytest.mark.long
def test_the_document_has_what_the_table_has(shardctl: Shardctl, toy: Path) -> None:
    arguments = ("quality", "-d", toy, "--buffer", "100", "--buffer-seed", "1", "--target", "0.9")
    ran = shardctl(*arguments, "-f", "json")
    assert (ran.exit_code, ran.stderr) == (0, "")
    document = json.loads(ran.stdout)
    assert list(document)[:5] == ["format_version", "kind", "dataset", "spec", "pipeline"]
    assert (document["format_version"], document["kind"]) == (1, "quality")
    assert document["pipeline"]["buffer"] == 100
    assert document["num_examples"] == 20_000
    assert document["sampled"] is None
    assert document["across_hosts"] is None
    assert [metric["name"] for metric in document["metrics"]] == [
        "same_shard_neighbours",
        "neighbour_distance",
        "batch_coverage",
        "displacement",
        "rank_correlation",
        "shards_in_batch",
        "buffer_coverage",
    ]
    assert len(document["by_position"]) == 10
    found = document["buffer_for_target"]
    assert found["num_bytes"] == 100 * found["buffer"]
    assert yaml.safe_load(shardctl(*arguments, "-f", "yaml").stdout) == document
    rows = list(csv.DictReader(io.StringIO(shardctl(*arguments, "-f", "csv").stdout)))
    assert [row["name"] for row in rows] == ["score", *(m["name"] for m in document["metrics"])]
    assert float(rows[0]["value"]) == document["score"]


@pytest.mark.long
def test_large_datasets_are_sampled_and_say_so(shardctl: Shardctl, tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_text("name: big\nsplits:\n  train: {num_examples: 5000000, num_shards: 500}\n")
    document = json.loads(
        shardctl("quality", "-d", path, "--shuffle-seed", "1", "-f", "json").stdout
    )
    assert document["sampled"]["num_examples"] < 200_000
    assert document["sampled"]["buffer_by_law"] is False
    assert all(metric["sampling_error"] is not None for metric in document["metrics"])
    assert 0 < document["sampling_error"] < 0.01
    table = shardctl("quality", "-d", path, "--shuffle-seed", "1").stdout
    assert "measured: 65,792 of 5,000,000 examples of an epoch, in 256 stretches" in table
    assert ", sampling error 0.0" in table


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["train[:1]"],
            "error: the quality of an order needs 2 examples at least, and train[:1] has 1",
        ),
        (["--target", "1.5"], "error: --target '1.5': a score above 0, at most 1, is needed"),
        (["--target", "nan"], "error: --target 'nan': a score above 0, at most 1, is needed"),
        (["--classes", "0"], "error: --classes '0'"),
        (["--hosts", "2", "--host", "0/2"], "error: --host I/N says how many hosts there are"),
        (["-f", "npy"], "error: no format 'npy' here; choose from table, json, yaml, csv"),
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
            "check: score 0.0191 (no shuffle) is not weak; cheapest cure: files shuffled ",
        ),
        ((), "0.5", "check: score 0.0191 (no shuffle) is below 0.5; cheapest cure: files "),
        (("--shuffle-seed", 1), "good", " is not good; cheapest cure: --buffer 9700 (score 0.8"),
        (
            ("--shuffle-seed", 1),
            "uniform",
            "; cheapest cure: --buffer 50000, the whole epoch, which is uniform",
        ),
        (
            ("--shuffle-seed", 1),
            "1",
            "is below 1, and so is a uniform permutation, which scores 0.9",
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
    assert "(cannot tell): a uniform permutation of so few examples may score 0.0000" in ran.stderr
    assert "cheapest cure: --buffer 3, the whole epoch, which is uniform" in ran.stderr
    ran = shardctl("quality", "-d", path, "--buffer", 3, "--buffer-seed", 1, "--min-score", "good")
    assert (ran.exit_code, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("--min-score", "best", "a score from 0 to 1, or weak, fair, good or uniform, is needed"),
        ("--min-score", "1.5", "a score from 0 to 1, or weak, fair, good or uniform, is needed"),
        ("--memory", "8 cups", "a number of bytes is needed, as 8GiB, 500MB or 4096"),
        ("--memory", "0", "a number of bytes is needed, as 8GiB, 500MB or 4096"),
        ("--example-bytes", "-1", "a number of bytes is needed, as 8GiB, 500MB or 4096"),
    ],
)
def test_bad_limits_are_one_line(shardctl: Shardctl, option: str, value: str, rule: str) -> None:
    ran = shardctl("quality", "-d", "mnist", option, value)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == f"error: {option} {value!r}: {rule}\n"


def test_memory_buys_a_buffer_that_can_be_pasted(shardctl: Shardctl, toy: Path) -> None:
    bought = shardctl("quality", "-d", toy, "--memory", "500KB", "-f", "json")
    document = json.loads(bought.stdout)
    memory = document["memory"]
    assert document["example_bytes"] == {
        "num_bytes": 100,
        "basis": "stored",
        "unknown": [],
        "overhead": 0,
    }
    assert (memory["fits"], memory["buffer"], memory["whole_epoch"]) == (5000, 5000, False)
    tables = shardctl("quality", "-d", toy, "--memory", "500KB").stdout
    assert "\n488.3 KiB holds 5,000 examples of that size: --buffer 5000 scores " in tables
    alone = shardctl("quality", "-d", toy, "--buffer", 5000, "--buffer-seed", 2, "-f", "json")
    found = json.loads(alone.stdout)
    assert found["score"] == pytest.approx(memory["score"])
    assert (found["verdict"], found["buffer_bytes"]) == (memory["verdict"], 500_000)


def test_what_an_example_takes_can_be_said(shardctl: Shardctl, toy: Path) -> None:
    ran = shardctl("quality", "-d", toy, "--memory", "1MiB", "--example-bytes", "1KiB")
    # 1024 bytes and TensorFlow's 200 for a tensor: 1048576 / 1224 = 856.7.
    assert "\nan example in a buffer: 1.2 KiB, 200 of them TensorFlow's own\n" in ran.stdout
    assert "\n1.0 MiB holds 856 examples: --buffer 856 scores " in ran.stdout


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
    assert "holds all 500 examples of the epoch: --buffer 500 scores " in ran.stdout
    assert "(as good as uniform)" in ran.stdout


def test_all_loaders_side_by_side(shardctl: Shardctl, toy: Path) -> None:
    ran = shardctl("quality", "-d", str(toy), "--loaders", "--hosts", "3", "-f", "json")
    assert ran.exit_code == 0
    document = json.loads(ran.stdout)
    assert (document["kind"], document["num_hosts"], document["batch"]) == ("quality", 3, 256)
    by_reader = {row["reader"]: row for row in document["loaders"]}
    assert by_reader["Grain: IndexSampler"]["ending"]["left_out"] == 20_000 % 3
    assert by_reader["torch: DistributedSampler"]["ending"]["repeated"] == 1
    assert by_reader["Grain: IndexSampler"]["pipeline"]["batch"] == 256


def test_what_is_about_one_order_has_no_place_beside_all_loaders(
    shardctl: Shardctl, toy: Path
) -> None:
    for option, value in (("--target", "0.5"), ("--min-score", "good"), ("--memory", "1GiB")):
        ran = shardctl("quality", "-d", str(toy), "--loaders", option, value)
        assert ran.exit_code == 2
        assert ran.stderr.startswith(f"error: {option} is about one order; leave out --loaders")
    ran = shardctl("quality", "-d", str(toy), "--loaders", "--sorted-by-shard")
    assert ran.stderr.startswith("error: --sorted-by-shard is about one order")


@pytest.mark.long
def test_a_terminal_draws_where_examples_lie_and_a_pipe_does_not(
    shardctl: Shardctl, toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy.write_text(_LAYOUT.replace("20000", "2000"))
    asked = ("quality", "-d", str(toy), "--buffer", "500", "--buffer-seed", "1")
    piped = shardctl(*asked)
    assert "To see:" not in piped.stdout
    assert "A diagonal is the\norder of storage" in shardctl(*asked, "--picture").stdout
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    for columns in ("40", "80", "120"):
        monkeypatch.setenv("COLUMNS", columns)
        drawn = shardctl(*asked).stdout
        assert "A diagonal is the" in " ".join(drawn.split())
        assert "this order " in drawn
        assert "uniform    ███" in drawn
        assert "To see:" not in shardctl(*asked, "--no-picture").stdout
        assert max(map(len, drawn.splitlines())) <= int(columns)
    monkeypatch.setenv("COLUMNS", "39")
    assert "To see:" not in shardctl(*asked).stdout
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    assert "To see:" not in shardctl(*asked).stdout


@pytest.mark.long
def test_pictures_alone_as_svg(shardctl: Shardctl, toy: Path) -> None:
    asked = ("quality", "-d", str(toy), "--buffer", "500", "--buffer-seed", "1")
    ran = shardctl(*asked, "-f", "svg")
    assert (ran.exit_code, ran.stderr) == (0, "")
    root = ElementTree.fromstring(ran.stdout)
    said = " ".join(text for text in root.itertext())
    for title in (
        "Where in storage the examples of the epoch lie",
        "The score over the epoch",
        "What other settings would score",
    ):
        assert title in said


@pytest.mark.long
def test_loaders_are_drawn_too(shardctl: Shardctl, toy: Path) -> None:
    ran = shardctl("quality", "--loaders", "-d", str(toy), "-f", "svg")
    assert ran.exit_code == 0
    assert "From how many of 40 shards a batch comes" in ran.stdout
    ElementTree.fromstring(ran.stdout)
    assert (
        "the last bar is that of a uniform"
        in shardctl("quality", "--loaders", "-d", str(toy), "--picture").stdout
    )
    assert "To see" not in shardctl("quality", "--loaders", "-d", str(toy)).stdout
