"""What hosts read, as tables, documents and rows."""

from __future__ import annotations

import csv
import io
import json

import pytest
import yaml

from shardctl.dataset.dataset import Dataset, Split
from shardctl.draw.tables import PLAIN, Screen
from shardctl.files.documents import to_csv, to_json, to_yaml
from shardctl.verbs.hosts import view as rendering
from shardctl.verbs.hosts.answer import HostsPlan
from tests.verbs.hosts.host_plans import IMAGENET, plan


def text(shown: HostsPlan, screen: Screen = PLAIN, *, every_strategy: bool = False) -> str:
    return "".join(rendering.hosts_table(shown, screen, every_strategy=every_strategy))


def test_strategies_are_side_by_side_then_the_hosts_under_the_best() -> None:
    lines = text(plan(2, batch=4)).splitlines()
    cells = {line[:14].strip(): line[14:].split() for line in lines[1:12]}
    assert cells["measure"] == ["even", "files", "examples"]
    assert cells["examples/host"] == ["6", "4–8", "6"]
    assert cells["bytes/host"] == ["600–800", "B", "400–800", "B", "1.2", "KiB"]
    assert cells["files/host"] == ["2", "1–2", "3"]
    assert cells["batches/host"] == ["2", "1–2", "2"]
    assert cells["times read"] == ["1.167", "1.000", "2.000"]
    assert cells["imbalance"] == ["1.000", "1.333", "1.000"]
    assert cells["idle hosts"] == ["0", "0", "0"]
    assert cells["shared files"] == ["1", "0", "3"]
    assert cells["most examples"] == ["-", "host", "0", "+33.3%", "-"]
    assert cells["most bytes"] == ["host", "1", "+14.3%", "host", "0", "+33.3%", "-"]
    assert lines[12:] == [
        "serves best: even, 2 batches on every host, 1.17 times read; files gives 1 to 2 batches; "
        "examples reads 2.00 times",
        "- 3 files do not divide among 2 hosts; 2 or 4 would",
        "",
        "even: what each host reads",
        "host  examples  bytes  files  batches",
        "   0         6  600 B      2        2",
        "   1         6  800 B      2        2",
    ]


def test_a_refused_strategy_is_marked_and_the_reason_follows() -> None:
    shown = text(plan(4))
    assert "idle hosts" in shown
    assert "1*" in shown
    assert "* files: TFDS refuses an InputContext with fewer files than hosts: 3 for 4\n" in shown


def test_all_shows_every_host_under_each_strategy() -> None:
    shown = text(plan(64, IMAGENET), every_strategy=True)
    assert shown.count("what each host reads") == 3
    assert sum(line.split()[:1] == ["63"] for line in shown.splitlines()) == 3


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("num_hosts", [1, 60, 2000])
def test_tables_fit_a_screen(width: int, num_hosts: int) -> None:
    screen = Screen(width=width, abridged=True)
    shown = plan(num_hosts, IMAGENET, batch=256, shuffle_seed=1, drop_remainder=True)
    lines = text(shown, screen).splitlines()
    assert max(map(len, lines)) <= width
    if width == 80 or num_hosts < 2000:  # else each measure is a record of its own
        assert sum(line.startswith("examples/host ") for line in lines) == 1


def test_unknown_bytes_are_unknown_not_none() -> None:
    dataset = Dataset(name="toy", splits=(Split(name="train", shard_lengths=(2, 2)),))
    shown = text(plan(2, dataset))
    assert "unknown" in shown
    document = rendering.hosts_document(plan(2, dataset))
    assert document["strategies"][0]["hosts"][0]["num_bytes"] is None
    assert document["strategies"][0]["stragglers"]["bytes"] is None


def test_the_document_has_the_fields_that_programs_rely_on() -> None:
    document = rendering.hosts_document(plan(2, batch=4))
    assert list(document)[:3] == ["format_version", "kind", "dataset"]
    assert document["kind"] == "hosts"
    even, files, examples = document["strategies"]
    assert [strategy["name"] for strategy in document["strategies"]] == [
        "even",
        "files",
        "examples",
    ]
    assert list(even)[:5] == ["name", "hosts", "read_amplification", "imbalance", "idle_hosts"]
    assert even["hosts"] == [
        {"index": 0, "num_examples": 6, "num_bytes": 600, "num_files": 2, "num_batches": 2},
        {"index": 1, "num_examples": 6, "num_bytes": 800, "num_files": 2, "num_batches": 2},
    ]
    assert (files["read_amplification"], files["idle_hosts"]) == (1.0, 0)
    assert examples["read_amplification"] == 2.0
    assert examples["equal_batches"] is True
    assert document["recommended"] == "even"
    assert document["even_shard_counts"] == [2, 4]


def test_json_yaml_and_csv_say_the_same() -> None:
    shown = plan(3, batch=2)
    document = rendering.hosts_document(shown)
    assert json.loads("".join(to_json(document))) == document
    assert yaml.safe_load("".join(to_yaml(document))) == document
    rows = list(csv.DictReader(io.StringIO("".join(to_csv(rendering.hosts_rows(shown))))))
    expected = [
        {"strategy": strategy["name"], **{key: str(value) for key, value in host.items()}}
        for strategy in document["strategies"]
        for host in strategy["hosts"]
    ]
    assert rows == expected


def test_idle_hosts_are_marked_where_colour_is_shown() -> None:
    assert "\x1b[1;95m1*\x1b[0m" in text(plan(4), Screen(color=True))
    assert "\x1b[1;95m" not in text(plan(2), Screen(color=True))
