"""What hosts read as pictures: every number is the plan's, and whoever is late or idle is named."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.planning.hosts.hosts import HostsPlan
from shardctl.planning.hosts.hosts import hosts as plan_hosts
from shardctl.rendering.pictures.hosts import hosts_pictures
from shardctl.rendering.pictures.picture import Box, Label, Picture
from tests.cases import FUZZ, check_cases
from tests.rendering.hosts.host_plans import IMAGENET, plan
from tests.rendering.hosts.random_hosts import NUMS_HOSTS, plans
from tests.rendering.pictures.drawn import HOSTILE, check_labels


def labels(picture: Picture) -> list[str]:
    return [mark.text for mark in picture.marks if isinstance(mark, Label)]


def boxes(picture: Picture, role: str) -> list[Box]:
    return [mark for mark in picture.marks if isinstance(mark, Box) and mark.role == role]


def words(picture: Picture) -> str:
    return " ".join(labels(picture))


def test_every_way_has_a_picture_after_the_times_that_each_reads() -> None:
    times, *ways = hosts_pictures(plan(2, batch=4))
    assert times.title == "Times that 2 hosts read train"
    # Shards of 4, 4, 4: even gives the second host examples 6 to 11, and 4 and 5 are skipped.
    assert [row[:4] for row in times.numbers.rows] == [
        ("even", 14 / 12, 1.0, 0),
        ("files", 1.0, 8 / 6, 0),
        ("examples", 2.0, 1.0, 0),
    ]
    assert [way.name for way in ways] == ["hosts-even", "hosts-files", "hosts-examples"]
    assert [way.numbers.headings for way in ways] == [
        ("host", "examples", "batches", "bytes", "files")
    ] * 3
    assert [list(way.numbers.rows) for way in ways] == [
        [(0, 6, 2, 600, 2), (1, 6, 2, 800, 2)],
        [(0, 8, 2, 800, 2), (1, 4, 1, 400, 1)],
        [(0, 6, 2, 1200, 3), (1, 6, 2, 1200, 3)],
    ]


def test_the_straggler_is_named_in_words_and_figures() -> None:
    even, files, examples = hosts_pictures(plan(2, batch=4))[1:]
    assert "800 B most" in labels(even)
    assert "Host 1 has the most: 800 B (+14.3% over the mean); 2 files, 8 examples taken" in words(
        even
    )
    assert {"8 most", "2 most", "800 B most"} <= set(labels(files))
    assert "Hosts make 1 to 2 batches: a collective hangs at step 1." in labels(files)
    assert not boxes(examples, "alarm")
    assert {"2 batches on every host.", "1.2 KiB on every host."} <= set(labels(examples))
    assert "Host 0 has the most: 8 examples (+33.3% over the mean)" in files.alternative


def test_idle_hosts_are_words_and_a_refusal_is_told() -> None:
    _, even, files, _ = hosts_pictures(plan(5))
    assert labels(files).count("0 idle") == 2
    assert "Refused: TFDS refuses an InputContext with fewer files than hosts: 3 for 5." in words(
        files
    )
    assert "2 hosts (3–4) are idle: no examples." in labels(files)
    assert "idle" not in words(even)


def test_many_hosts_are_columns_whose_straggler_has_a_word_above_it() -> None:
    picture = hosts_pictures(plan(60, IMAGENET, batch=256))[2]
    assert picture.name == "hosts-files"
    # 1,024 files and 60 hosts: 17 each and one more for the first four, so that these have 22,521
    # or 22,520 examples. A word stands over all four.
    assert labels(picture).count("most") == 3
    assert len(boxes(picture, "alarm")) == 3 * 4 + 1  # and one in the key
    assert [row[0] for row in picture.numbers.rows] == list(range(60))
    assert [row[2] for row in picture.numbers.rows] == [88] * 4 + [84] * 56
    assert picture.note is None
    assert [row[-1] for row in picture.numbers.rows] == [18] * 4 + [17] * 56


@pytest.mark.long
def test_a_million_hosts_are_in_groups_of_which_both_ends_are_drawn() -> None:
    _, even, files, _ = hosts_pictures(plan(1_000_000, IMAGENET))
    assert even.note == "1,000,000 hosts in 64 groups of 15,625, named by the first."
    first, *_, last = files.numbers.rows
    lengths = np.array(IMAGENET.splits[0].shard_lengths)
    assert first[:4] == ("0–15624", 0, lengths.max(), lengths.sum() / 15_625)
    assert last[:4] == ("984375–999999", 0, 0, 0.0)
    assert {"most, some idle", "idle"} <= set(labels(files))
    ticks = [int(text) for text in labels(files) if text.isdecimal() and int(text) > 1500]
    assert ticks
    assert not any(tick % 15_625 for tick in ticks)
    assert "998,976 hosts (1024–999999) are idle: no examples." in words(files)


def test_one_host_reads_everything_alike() -> None:
    for picture in hosts_pictures(plan(1))[1:]:
        assert list(picture.numbers.rows) == [(0, 12, 1200, 3)]
        assert "most" not in words(picture)
        assert not boxes(picture, "alarm")


def test_without_bytes_the_examples_taken_from_disk_are_drawn() -> None:
    dataset = Dataset(name="bare", splits=(Split(name="train", shard_lengths=(4, 4, 4)),))
    even, files, _ = hosts_pictures(plan(2, dataset))[1:]
    assert even.numbers.headings == ("host", "examples", "examples from disk", "files")
    assert list(even.numbers.rows) == [(0, 6, 6, 2), (1, 6, 8, 2)]
    assert files.numbers.headings == ("host", "examples", "files")


def test_a_spec_without_examples_is_refused_in_words() -> None:
    dataset = Dataset(name="bare", splits=(Split(name="train", shard_lengths=(0, 0)),))
    times, *ways = hosts_pictures(plan(3, dataset))
    assert [row[1] for row in times.numbers.rows] == [None] * 3
    for way in ways:
        assert "Refused: TFDS refuses to read a spec without examples." in words(way)
        assert "0 examples on every host." in labels(way)
        check_labels(way.marks, way.height)


def test_a_loader_has_one_way_and_says_what_it_repeats() -> None:
    (picture,) = hosts_pictures(plan(5, batch=2, loader="torch", shuffle=True, shuffle_seed=1))
    assert picture.name == "hosts-loader"
    assert picture.title == "DistributedSampler: what each of 5 hosts reads"
    # 12 examples are padded to 15, three for each host.
    assert [row[1] for row in picture.numbers.rows] == [3] * 5
    assert "3 examples are handed out again." in labels(picture)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_within_the_frame(name: str) -> None:
    dataset = Dataset(name=name * 3, splits=(Split(name="train", shard_lengths=(3, 1)),))
    for picture in hosts_pictures(plan(3, dataset)):
        check_labels(picture.marks, picture.height)


def as_int(value: object) -> int:
    assert isinstance(value, int)
    return value


def check_plan(found: HostsPlan) -> None:
    pictures = hosts_pictures(found)
    comparison = found.comparisons[0]
    for picture in pictures:
        check_labels(picture.marks, picture.height)
        assert len(picture.numbers.rows) <= 100
        for box in (mark for mark in picture.marks if isinstance(mark, Box)):
            assert box.x >= -1e-6
            assert box.y >= -1e-6
            assert box.x + box.width <= picture.width + 1e-6
            assert box.y + box.height <= picture.height + 1e-6
    for picture, strategy in zip(pictures[1:], comparison.strategies, strict=True):
        assert strategy.columns is not None
        examples = strategy.columns.num_examples
        rows = picture.numbers.rows
        if len(examples) <= 64:
            assert [row[1] for row in rows] == examples.tolist()
        else:
            assert min(as_int(row[1]) for row in rows) == examples.min()
            assert max(as_int(row[2]) for row in rows) == examples.max()
        said = words(picture)
        assert ("idle" in said) == bool(strategy.idle_hosts)
        assert ("Refused" in said) == (strategy.refusal is not None)


@pytest.mark.long
def test_marks_stay_in_the_frame_and_labels_apart_whatever_hosts_read() -> None:
    check_cases(plans(NUMS_HOSTS), check_plan, 8)


@pytest.mark.fuzz
def test_marks_stay_in_the_frame_and_labels_apart_fuzz() -> None:
    check_cases(plans(NUMS_HOSTS), check_plan, FUZZ // 4, fuzz=True)


def test_a_sweep_is_one_picture() -> None:
    (picture,) = hosts_pictures(plan_hosts(IMAGENET, "train", hosts=[8, 60]))
    assert picture.name == "hosts-sweep"
