"""Where two orders differ, as text, as a document, and as GitHub's annotations."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import yaml

from shardctl.draw.setting_origins import SettingOrigins
from shardctl.draw.tables import PLAIN, Screen, annotation
from shardctl.files.documents import to_json, to_yaml
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.text import parse_stages
from shardctl.verbs.diff.answer import Diff, Moved, PinnedOrder, diff
from shardctl.verbs.diff.causes import Cause, ChangedShard
from shardctl.verbs.diff.view import (
    Hints,
    cause_line,
    diff_annotation,
    diff_document,
    diff_table,
    moved_line,
)
from shardctl.verbs.snapshot.answer import snapshot
from tests.draw.github_runner import as_github_reads
from tests.verbs.diff.diff_cases import dataset_of

TOY = dataset_of({"train": (4, 4, 4)})


def pinned(**settings: object) -> PinnedOrder:
    arguments = {"cycle": 2, "block": 2, **settings}
    taken = snapshot(TOY, "train", ReadSettings(**arguments)).snapshot  # type: ignore[arg-type]
    return PinnedOrder(snapshot=taken, label="order.yaml")


def changed_block() -> Diff:
    return diff(pinned(), replace(pinned(block=4), label="today"))


def test_the_text_reads_like_a_failed_test() -> None:
    # 0 1 4 5 2 3 6 7 8.. against 0 1 2 3 4 5 6 7 8..: positions 2 to 5 differ.
    text = "".join(
        diff_table(changed_block(), PLAIN, hints=Hints(update="shardctl diff order.yaml --update"))
    )
    assert text.splitlines() == [
        "order.yaml and today first differ at position 2 of 12",
        "",
        "   position  expected  actual",
        "          0         0       0",
        "          1         1       1",
        ">         2         4       2",
        "          3         5       3",
        "          4         2       4",
        "          5         3       5",
        "",
        "4 of 12 positions have another example (33.3%)",
        "because:",
        "  block: 2 became 4",
        "",
        "if this is meant, the same command with --update writes it to order.yaml",
    ]


def test_equal_orders_take_a_line_and_what_changed_without_effect_another() -> None:
    text = "".join(diff_table(diff(pinned(), pinned(batch=3)), PLAIN))
    assert text == (
        "order.yaml and order.yaml: the same, the order of 12 examples\n"
        "  without effect on the order: batch: none became 3\n"
    )


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    other = snapshot(
        dataset_of({"train": tuple([7] * 60)}), "train", ReadSettings(shuffle_seed=10**60)
    ).snapshot
    found = diff(pinned(), PinnedOrder(snapshot=other, label="x" * 50))
    text = "".join(diff_table(found, Screen(width=width)))
    assert max(map(len, text.splitlines())) <= width


def test_the_document_has_the_promised_fields_first() -> None:
    document = diff_document(changed_block())
    assert list(document)[:3] == ["format_version", "kind", "dataset"]
    assert list(document["dataset"]) == [
        "name",
        "config",
        "version",
        "file_format",
        "data_dir",
        "fingerprint",
    ]
    assert document["equal"] is False
    assert {**document["first_difference"], "stop": 0, "exact": 0} == {
        "position": 2,
        "expected": 4,
        "actual": 2,
        "stop": 0,
        "exact": 0,
    }
    assert document["moved"] == {"at_least": 4, "at_most": 4, "positions": 12}
    assert [(c["kind"], c["name"], c["expected"], c["actual"]) for c in document["causes"]] == [
        ("setting", "block", 2, 4)
    ]
    assert json.loads("".join(to_json(document))) == document
    assert yaml.safe_load("".join(to_yaml(document))) == document


def test_the_document_of_equal_orders_has_no_difference_and_no_cause() -> None:
    document = diff_document(diff(pinned(), pinned(batch=3)))
    assert (document["equal"], document["first_difference"], document["causes"]) == (True, None, [])
    assert [change["name"] for change in document["without_effect"]] == ["batch"]


def test_an_annotation_is_one_line_that_a_runner_reads_back() -> None:
    for texts in [("a,b:c%.yaml", "50%, no: 1", "x\r\ny: 3%, z"), ("f", "%0A", "%25::")]:
        line = annotation("error", texts[2], title=texts[1], file=texts[0])
        assert line.count("\n") == 1
        file, title, message = texts
        assert as_github_reads(line) == ("error", {"file": file, "title": title}, message)


def test_orders_that_differ_are_annotated_at_the_file() -> None:
    (line,) = diff_annotation(changed_block())
    level, properties, message = as_github_reads(line)
    assert (level, properties["file"]) == ("error", "order.yaml")
    assert properties["title"] == "order.yaml and today first differ at position 2 of 12"
    assert "block: 2 became 4" in message
    assert "4 of 12 positions" in message
    assert list(diff_annotation(diff(pinned(), pinned()))) == []


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        (Moved(at_least=999_999, at_most=999_999, positions=10**6), "more than 99.9%"),
        (Moved(at_least=1, at_most=1, positions=10**6), "less than 0.1%"),
        (Moved(at_least=10, at_most=10, positions=10), "(100%)"),
        (Moved(at_least=2, at_most=5, positions=10), "between 2 and 5 of 10 positions"),
    ],
)
def test_shares_are_never_rounded_to_none_or_all(moved: Moved, words: str) -> None:
    assert words in moved_line(moved)


def test_the_first_difference_is_marked_where_colour_is_shown() -> None:
    lines = "".join(diff_table(changed_block(), Screen(color=True))).splitlines()
    assert [line.startswith("\x1b[1;91m>\x1b[0m") for line in lines].count(True) == 1
    assert lines[5].endswith("\x1b[1;91m4\x1b[0m       \x1b[1;91m2\x1b[0m")
    assert "\x1b[1;91m" not in "".join(lines[:5] + lines[6:])


def test_every_shard_of_a_cause_is_named_but_where_tables_are_abridged() -> None:
    shards = tuple(
        ChangedShard(filename=f"{'d' * 60}-{i:05}-of-00009", expected=3, actual=None)
        for i in range(9)
    )
    cause = Cause(kind="shards", name="train", change="vanished", shards=shards)
    whole = cause_line(cause, whole=True)
    assert [shard.filename for shard in shards if shard.filename not in whole] == []
    assert "…" not in whole
    assert cause_line(cause).endswith(" and 5 more")
    setting = Cause(kind="setting", name="x", expected="y" * 300, actual="z")
    assert "y" * 300 in cause_line(setting, whole=True)
    assert "y" * 101 not in cause_line(setting)


def staged(text: str) -> PinnedOrder:
    settings = ReadSettings(stages=parse_stages(text), cycle=2, block=2)
    return PinnedOrder(snapshot=snapshot(TOY, None, settings).snapshot, label="order.yaml")


def test_stages_are_named_by_their_place() -> None:
    before = staged("cache | shuffle(4, seed=7) | skip(2)")
    after = replace(staged("shuffle(4, seed=8) | cache | skip(2) | batch(3)"), label="today")
    origins = SettingOrigins(file="shardctl.yaml", lines={"stages": 4, "dataset": 1})
    found = diff(before, after)
    text = "".join(diff_table(found, PLAIN, hints=Hints(origins=origins)))
    assert text.splitlines()[-4:] == [
        "because:",
        "  stage 1, cache, moved from before shuffle to behind it (shardctl.yaml:4)",
        "  stage 2, shuffle(4, seed=7): seed 7 became 8 (shardctl.yaml:4)",
        "  stage 4, batch(3), was added behind skip(2) (shardctl.yaml:4)",
    ]
    (line,) = diff_annotation(found, hints=Hints(origins=origins))
    read = as_github_reads(line)
    assert read is not None
    assert "line=4" in line
    assert "file=shardctl.yaml" in line
    causes = diff_document(found)["causes"]
    assert [(c["kind"], c["name"], c["change"], c["place"]) for c in causes] == [
        ("stage", "cache", "moved", {"expected": "stage 1", "actual": "stage 2"}),
        ("stage", "shuffle", "changed", {"expected": "stage 2", "actual": "stage 1"}),
        ("stage", "batch", "added", {"expected": None, "actual": "stage 4"}),
    ]
    assert (causes[1]["expected"], causes[1]["actual"]) == (
        "shuffle(4, seed=7)",
        "shuffle(4, seed=8)",
    )


def test_settings_are_compared_with_stages_as_what_they_stand_for() -> None:
    short = pinned(buffer=4, buffer_seed=7)
    found = diff(short, staged("shuffle(4, seed=7) | take(9)"))
    lines = [cause_line(cause) for cause in found.causes]
    assert lines == ["stage 2, take(9), was added behind shuffle(4, seed=7)"]
    other = diff(short, staged("shuffle(4, seed=9) | repeat(2) | skip(1)"))
    assert [cause_line(cause) for cause in other.causes] == [
        "stage 1, shuffle(4, seed=7, reshuffle=True): seed 7 became 9",
        "stage 2, repeat(2), was added behind shuffle(4, seed=9)",
        "stage 3, skip(1), was added behind repeat(2)",
    ]


def test_a_source_that_combines_others_is_said_without_them() -> None:
    mixture = "sample_from_datasets([train | repeat, train | map | repeat], {}seed=3) | take(9)"
    found = diff(staged(mixture.format("")), staged(mixture.format("weights=[0.75, 0.25], ")))
    assert [cause_line(cause) for cause in found.causes] == [
        "source, sample_from_datasets: weights none became [0.75, 0.25]"
    ]
