"""The figures of both pipelines side by side: those that the commands show of each."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from shardctl.core.settings.read_settings import ReadSettings
from shardctl.planning.report.compare import ReportComparison, compare_sides
from shardctl.planning.report.compared_side import Side
from shardctl.planning.report.shown import NotShown
from shardctl.rendering.report.compared_figures import (
    evaluation_section,
    hosts_section,
    shuffle_section,
)
from tests.planning.diff.diff_cases import dataset_of
from tests.rendering.report.reports import text_of

TOY = dataset_of({"train": (30, 40, 50), "test": (10, 7)})


def compared(a: dict[str, Any], b: dict[str, Any]) -> ReportComparison:
    sides = [
        Side(label=label, dataset=TOY, spec="train", settings=ReadSettings(**settings))
        for label, settings in zip("ab", (a, b), strict=True)
    ]
    return compare_sides(*sides, hosts=2)


def test_scores_maps_and_what_if_are_those_of_each() -> None:
    found = compared({"batch": 8}, {"buffer": 10, "buffer_seed": 1, "batch": 8})
    body = shuffle_section(found).body
    assert re.findall(r'<figure [^>]*id="([\w-]+)"', body) == [
        "picture-shard-map-a",
        "picture-shard-map-b",
        "picture-both-scores",
    ]
    text = text_of(body)
    for letter, side in zip("AB", found.sides, strict=True):
        assert not isinstance(side.quality, NotShown)
        assert f"{letter}: {side.quality.verdict}." in text
        assert f"It scores {side.quality.score.value:.4f} of 1" in text
    rows = dict(re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', body))
    cells = re.findall(r"<td[^>]*>(.*?)</td>", rows["as it is"])
    assert cells == [  # without a column for the memory of buffers, of which nothing is known
        f"{side.quality.alternatives[0].score.value:.4f}"  # type: ignore[union-attr]
        for side in found.sides
    ]
    # Only B has a buffer that can be ten times as large.
    cells = re.findall(r"<td[^>]*>(.*?)</td>", rows["buffer 100"])
    assert cells[0] == "-"
    assert "its buffer" not in text


def test_buffers_have_their_memory_where_it_is_known() -> None:
    bare = dataset_of({"train": (3000, 4000)})
    sized = replace(bare, splits=(replace(bare.splits[0], num_bytes=7000 * 1024),))
    sides = [
        Side(label=name, dataset=sized, spec="train", settings=ReadSettings(batch=8, block=block))
        for name, block in (("a", 1), ("b", 2))
    ]
    body = shuffle_section(compare_sides(*sides, hosts=2)).body
    text = text_of(body)
    assert "what if A scores A, its buffer B scores B, its buffer" in text
    # An example is 1 KiB, so a thousand of them are 1000 KiB.
    assert re.search(r"buffer 1,000 0\.\d{4} 1000\.0 KiB 0\.\d{4} 1000\.0 KiB", text)


def test_hosts_are_side_by_side_as_each_shares() -> None:
    # Even splits give 60 and 60; whole files 30 + 50 and 40.
    body = hosts_section(compared({}, {"host_by": "files"})).body
    text = text_of(body)
    assert "measure A: even B: files examples/host 60 40–80" in text
    assert "A: the ways to share, among 2 hosts" in text


def test_evaluations_are_side_by_side() -> None:
    # Of 17 examples on 2 hosts 9 and 8: in batches of 4 the first makes 3 steps, the other 2.
    text = text_of(evaluation_section(compared({"batch": 4}, {"batch": 20})).body)
    assert "steps of a host 2–3 1" in text
    assert "hangs at step 2 no" in text


def test_what_one_of_them_lacks_says_why() -> None:
    found = compared({}, {"loader": "torch", "host": "0/2"})
    for section in (shuffle_section, hosts_section, evaluation_section):
        text_of(section(found).body)
    tiny = dataset_of({"train": (1,)})
    sides = [
        Side(label="a", dataset=tiny, spec="train", settings=ReadSettings()),
        Side(label="b", dataset=TOY, spec="train", settings=ReadSettings()),
    ]
    text = text_of(shuffle_section(compare_sides(*sides, hosts=2)).body)
    assert "Not shown: A: the quality of an order needs 2 examples at least" in text
    assert "B: no shuffle." in text
