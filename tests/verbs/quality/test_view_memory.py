"""What buffers take and what memory buys, as people and programs read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from shardctl.dataset.dataset import Dataset
from shardctl.dataset.element_size import ExampleSize
from shardctl.draw.tables import PLAIN, Screen, paragraphs
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.quality.answer import Quality, quality
from shardctl.verbs.quality.view import memory_lines, memory_record
from tests.verbs.quality.quality_orders import even_dataset

_SIZE = ExampleSize(num_bytes=600, num_tensors=2)
_PARTLY = replace(_SIZE, unknown=("image", "name"))


def _text(plan: Quality, screen: Screen) -> Iterator[str]:
    return paragraphs(screen, *memory_lines(plan))


def _dataset(size: ExampleSize | None, num_bytes: int | None = None) -> Dataset:
    plain = even_dataset(20_000, 40)
    splits = tuple(replace(split, num_bytes=num_bytes) for split in plain.splits)
    return replace(plain, splits=splits, features=lambda: size)


def _lines(
    dataset: Dataset, memory: str | None = None, example_bytes: int | None = None, **read: object
) -> list[str]:
    plan = quality(
        dataset,
        "train",
        ReadSettings(**read),  # type: ignore[arg-type]
        what_if=False,
        memory=memory,
        example_bytes=example_bytes,
    )
    return "".join(_text(plan, PLAIN)).splitlines()


@pytest.mark.parametrize(
    ("size", "num_bytes", "given", "line"),
    [
        (
            _SIZE,
            None,
            None,
            "an example in a buffer: 1000 B, from the shapes and dtypes in features.json; 400 of "
            "them TensorFlow's own",
        ),
        (_SIZE, None, 100, "an example in a buffer: 500 B, 400 of them TensorFlow's own"),
        (
            None,
            2_000_000,
            None,
            "an example in a buffer: 100 B as stored on average, since no readable "
            "features.json is here; decoded, images take several times as much: "
            "--example-bytes N says what it is",
        ),
        (
            _PARTLY,
            200_000_000,
            None,
            "an example in a buffer: 9.8 KiB as stored on average, since features.json gives no "
            "fixed size for: image, name; decoded, images take several times as much: "
            "--example-bytes N says what it is",
        ),
        (
            _PARTLY,
            None,
            None,
            "an example in a buffer: at least 1000 B, since features.json gives no fixed size for: "
            "image, name; --example-bytes N says what it is",
        ),
    ],
)
def test_it_is_said_how_an_example_was_counted(
    size: ExampleSize | None, num_bytes: int | None, given: int | None, line: str
) -> None:
    assert _lines(_dataset(size, num_bytes), "1MB", given)[0] == line


@pytest.mark.parametrize(
    ("size", "num_bytes", "memory", "start"),
    [
        (_SIZE, None, "1MB", "976.6 KiB holds 1,000 examples: --buffer 1000 scores 0."),
        (_SIZE, None, "1GB", "953.7 MiB holds all 20,000 examples of the epoch: --buffer 20000 "),
        (_SIZE, None, "1KB", "1000 B buys no shuffle: it holds 1 example"),
        (_PARTLY, None, "1MB", "976.6 KiB holds at most 1,000 examples of that size: --buffer "),
        (None, 2_000_000, "100KB", "97.7 KiB holds 1,000 examples of that size: --buffer 1000 "),
    ],
)
def test_what_memory_buys_is_an_option_and_its_score(
    size: ExampleSize | None, num_bytes: int | None, memory: str, start: str
) -> None:
    lines = _lines(_dataset(size, num_bytes), memory)
    assert lines[1].startswith(start)


def test_files_are_compared_where_they_are_not_shuffled() -> None:
    lines = _lines(_dataset(_SIZE), "1MB")
    assert re.search(r"; without a buffer 0\.0\d{3} \(no shuffle\)$", lines[1])
    assert lines[2].startswith("with --shuffle-files besides: 0.")
    assert "; files shuffled alone: 0." in lines[2]
    assert len(_lines(_dataset(_SIZE), "1MB", shuffle_seed=1)) == 2


def test_a_buffer_that_gains_nothing_is_called_that() -> None:
    single = replace(even_dataset(20_000, 1), features=lambda: _SIZE)
    assert _lines(single, "2KB")[-1] == "the buffer gains next to nothing"
    many = replace(even_dataset(1000, 1000), features=lambda: _SIZE)
    assert _lines(many, "50KB")[-1] == ("shuffling files does as well alone, and takes no memory")


def test_the_present_buffer_and_hosts_are_named() -> None:
    host = Host(index=0, count=2)
    lines = _lines(_dataset(_SIZE), "1MB", buffer=100, buffer_seed=1, host=host)
    assert lines[1] == "the buffer of 100 examples: 97.7 KiB decoded"
    assert lines[2].startswith("976.6 KiB on each host holds 1,000 examples: ")
    assert _lines(_dataset(_PARTLY), buffer=100, buffer_seed=1)[1].endswith(" 97.7 KiB or more")
    assert _lines(_dataset(None), buffer=100, buffer_seed=1) == []


@pytest.mark.parametrize("width", [20, 40, 80])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    settings = ReadSettings(buffer=100, buffer_seed=1)
    plan = quality(_dataset(_PARTLY), "train", settings, what_if=False, memory="1MB")
    text = "".join(_text(plan, Screen(width=width)))
    assert max(map(len, text.splitlines())) <= width


def test_the_record_holds_every_figure() -> None:
    plan = quality(_dataset(_SIZE), "train", what_if=False, memory="1MB")
    assert plan.memory is not None
    assert plan.memory.files is not None
    assert plan.memory.both is not None
    assert memory_record(plan) == {
        "example_bytes": {"num_bytes": 1000, "basis": "features", "unknown": [], "overhead": 400},
        "buffer_bytes": None,
        "memory": {
            "num_bytes": 1_000_000,
            "fits": 1000,
            "buffer": 1000,
            "whole_epoch": False,
            "score": plan.memory.score,
            "verdict": plan.memory.verdict,
            "without_buffer": {"score": plan.memory.without.score.value, "verdict": "no shuffle"},
            "files_shuffled": {
                "score": plan.memory.files.score.value,
                "verdict": plan.memory.files.verdict,
            },
            "files_shuffled_too": {
                "score": plan.memory.both.score.value,
                "verdict": plan.memory.both.verdict,
            },
        },
    }
    bare = quality(_dataset(None), "train", what_if=False)
    assert memory_record(bare) == {"example_bytes": None, "buffer_bytes": None, "memory": None}
