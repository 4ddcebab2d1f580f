"""A sweep over numbers of hosts, as a table, a document and rows."""

from __future__ import annotations

import pytest

from shardctl.draw.tables import PLAIN, Screen
from shardctl.verbs.hosts import view as hosts_sweep
from tests.columns import record_dicts
from tests.verbs.hosts.host_plans import IMAGENET, plan


def test_a_sweep_is_an_entry_for_each_number_of_hosts() -> None:
    sweep = plan([3, 1, 4], batch=2)
    document = hosts_sweep.sweep_document(sweep)
    assert [entry["num_hosts"] for entry in document["sweep"]] == [3, 1, 4]
    assert [entry["recommended"] for entry in document["sweep"]] == ["even", "even", "even"]
    assert document["sweep"][2]["strategies"][1]["idle_hosts"] == 1
    assert "hosts" not in document["sweep"][0]["strategies"][0]
    assert len(list(hosts_sweep.sweep_rows(sweep).rows())) == 9
    lines = "".join(hosts_sweep.sweep_table(sweep, PLAIN)).splitlines()
    assert [line.split()[:2] for line in lines[2:5]] == [
        ["3", "even"],
        ["1", "even"],
        ["4", "even"],
    ]


@pytest.mark.parametrize("width", [60, 80])
def test_a_sweep_fits_a_screen(width: int) -> None:
    sweep = plan([1, 8, 60, 2000], IMAGENET, batch=256)
    swept = "".join(hosts_sweep.sweep_table(sweep, Screen(width=width))).splitlines()
    assert max(map(len, swept)) <= width


def test_each_number_of_hosts_is_a_line_of_figures() -> None:
    # 3 files of 4 examples, read from the start of a file to the end of a share. Of 2 hosts each
    # has 6 evenly, for which 4 + 2 and 4 + 4 are read; by files 8 and 4. Of 5 hosts two have 3 and
    # three 2, for which 3, 4 + 2, 4, 2 and 4 are read.
    lines = "".join(hosts_sweep.sweep_table(plan([2, 5], batch=2), PLAIN)).splitlines()
    assert [line.split() for line in lines[2:4]] == [
        ["2", "even", "1.17", "1.000", "1.333", "0", "2.00", "3"],
        ["5", "even", "1.58", "1.250", "1.667*", "2", "5.00", "1–2"],
    ]


def test_a_row_is_a_number_of_hosts_under_a_strategy() -> None:
    rows = record_dicts(hosts_sweep.sweep_rows(plan([2], batch=2)))
    assert [(row["num_hosts"], row["strategy"], row["recommended"]) for row in rows] == [
        (2, "even", "even"),
        (2, "files", "even"),
        (2, "examples", "even"),
    ]
    assert [(row["min_examples"], row["max_examples"]) for row in rows] == [(6, 6), (4, 8), (6, 6)]
    assert [(row["min_batches"], row["max_batches"]) for row in rows] == [(3, 3), (2, 4), (3, 3)]
    assert [row["shared_files"] for row in rows] == [1, 0, 3]


def test_batches_are_unknown_without_a_batch_size() -> None:
    sweep = plan([2])
    assert [row[-2:] for row in hosts_sweep.sweep_rows(sweep).rows()] == [(None, None)] * 3
    assert "batches" not in "".join(hosts_sweep.sweep_table(sweep, PLAIN))
