"""`shardctl hosts`, from the command line to what it writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from shardctl.draw.tables import display_width
from tests.children import run_on_a_terminal
from tests.cli.conftest import Shardctl
from tests.tfds_datasets import write_dataset


def test_bytes_are_those_of_the_files(shardctl: Shardctl, tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "data", splits={"train": [4, 4, 2]})
    ran = shardctl("hosts", "--hosts", 2, "-d", folder, "-f", "json")
    sizes = [path.stat().st_size for path in sorted(folder.glob("toy-train*"))]
    even, files, examples = json.loads(ran.stdout)["strategies"]
    assert [host["num_bytes"] for host in files["hosts"]] == [sizes[0] + sizes[2], sizes[1]]
    assert [host["num_bytes"] for host in examples["hosts"]] == [sum(sizes)] * 2
    # Host 0 takes the first of the four examples in file 1, host 1 all four of them.
    quarter = round(sizes[1] / 4)
    assert [host["num_bytes"] for host in even["hosts"]] == [
        sizes[0] + quarter,
        sizes[1] + sizes[2],
    ]
    assert even["hosts"][0]["num_batches"] is None


@pytest.mark.parametrize(
    ("text", "counts"),
    [("1-4", [1, 2, 3, 4]), ("8,16,32", [8, 16, 32]), ("4,1-2", [4, 1, 2]), ("3-3", [3])],
)
def test_a_sweep_has_a_line_for_each_number_and_strategy(
    shardctl: Shardctl, text: str, counts: list[int]
) -> None:
    ran = shardctl("hosts", "--hosts", text, "-d", "imagenet2012")
    of_each = [count for count in counts for _ in range(3)]
    lines = ran.stdout.splitlines()[2:]
    assert [int(line.split()[0]) for line in lines] == of_each
    swept = shardctl("hosts", "--hosts", text, "-d", "imagenet2012", "-f", "json")
    assert [entry["num_hosts"] for entry in json.loads(swept.stdout)["sweep"]] == of_each
    rows = shardctl("hosts", "--hosts", text, "-d", "imagenet2012", "-f", "csv").stdout.splitlines()
    assert len(rows) == 1 + len(of_each)


def test_a_pipe_gets_bars_where_they_are_asked_for(shardctl: Shardctl) -> None:
    words = ("hosts", "--hosts", 60, "-d", "imagenet2012")
    table = shardctl(*words).stdout
    assert "█" not in table
    shown = shardctl(*words, "--picture").stdout
    assert shown.startswith(table)
    assert max(map(display_width, shown.removeprefix(table).splitlines())) <= 80


@pytest.mark.parametrize(("columns", "counts"), [(40, "12"), (120, "60")])
def test_a_terminal_gets_bars_that_fit(columns: int, counts: str) -> None:
    words = ("hosts", "--hosts", counts, "--batch", "256", "-d", "imagenet2012")
    shown, _ = run_on_a_terminal(*words, columns=columns)
    table, to_see, picture = shown.partition("A bar is the number ")
    assert to_see
    assert "█" in picture
    plain = re.sub(r"\x1b\[[\d;]*m", "", picture)
    assert max(map(display_width, plain.splitlines())) <= min(columns, 80)
    without, _ = run_on_a_terminal(*words, "--no-picture", columns=columns)
    assert f"{without}\n" == table
    dumb, _ = run_on_a_terminal(*words, columns=columns, TERM="dumb")  # that of a screen reader
    assert "█" not in dumb
