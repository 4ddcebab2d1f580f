"""What hosts read, as tables, documents, rows and bars: whole texts, and bars that fit a screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shardctl.dataset.dataset import Dataset
from shardctl.draw.tables import Screen, display_width
from shardctl.files.documents import to_csv, to_json
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.hosts import view
from shardctl.verbs.hosts.answer import HostsPlan, hosts
from tests.golden import assert_golden, values
from tests.verbs.hosts.test_answer import IMAGENET, toy

GOLDEN = Path(__file__).parent / "golden"
TORCH = {"loader": "torch", "loader_version": "2.13.0"}
TOY = toy(4, 4, 4, shard_bytes=(400, 400, 400))
CASES: dict[str, tuple[Dataset, int | list[int], dict[str, Any], Screen]] = values(
    Path(__file__).with_name("cases.txt"), globals()
)


def found(name: str) -> tuple[HostsPlan, Screen]:
    dataset, counts, settings, screen = CASES[name]
    return hosts(dataset, "train", ReadSettings(**settings), hosts=counts), screen


@pytest.mark.parametrize("name", CASES)
def test_tables_and_bars_are_these(name: str) -> None:
    plan, screen = found(name)
    shown = view.sweep_table if name.startswith("sweep") else view.hosts_table
    text = "".join(shown(plan, screen))
    assert_golden(GOLDEN / f"{name}.txt", text)
    if screen.width and not screen.color:
        assert max(map(display_width, text.splitlines())) <= screen.width


@pytest.mark.parametrize(
    "name", ["two", "idle-and-refused", "no-bytes", "padding", "empty", "sweep-refused"]
)
def test_documents_and_rows_are_these(name: str) -> None:
    plan, _ = found(name)
    document, rows = view.hosts_document, view.hosts_rows
    if "sweep" in name:
        document, rows = view.sweep_document, view.sweep_rows
    text = "".join([*to_json(document(plan)), *to_csv(rows(plan))])
    assert_golden(GOLDEN / f"{name}.json.txt", text)


def test_all_shows_every_host_under_each_strategy() -> None:
    plan = hosts(IMAGENET, "train", hosts=64)
    shown = "".join(view.hosts_table(plan, Screen(), every_strategy=True))
    assert shown.count("what each host reads") == 3
    assert sum(line.split()[:1] == ["63"] for line in shown.splitlines()) == 3
