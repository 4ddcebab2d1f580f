"""Settings as a mapping: what an answer shows gives the same order when it is pasted back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.order.order import Order
from shardctl.order.reader_order import ReaderOrder
from shardctl.settings.names import settings_from_document
from shardctl.settings.read_settings import ReadSettings, settings_in_force, settings_of_document
from shardctl.settings.table import SETTINGS
from shardctl.spec.subsplit import SplitRange
from tests.order.order_cases import changed, read_settings

LENGTHS = (3, 0, 7, 12, 5, 4)


def order_of(settings: ReadSettings, *, ordered: bool = False) -> Order:
    files = ShardFiles(pattern="d-\0", num_shards=len(LENGTHS))
    split = Split(name="train", shard_lengths=LENGTHS, files=(files,))
    dataset = Dataset(name="d", splits=(split,), ordered=ordered)
    return ReaderOrder(dataset, [SplitRange(split=split, start=1, stop=30)], settings)


@pytest.mark.long
@given(
    read_settings(hosts=("even", "files", "examples")),
    st.integers(0, 2),
    st.none() | st.permutations([f"d-0000{i}" for i in range(6)]),
    st.none() | st.integers(1, 50),
)
def test_what_was_in_force_gives_the_same_order(
    settings: ReadSettings, pass_index: int, file_order: list[str] | None, cpus: int | None
) -> None:
    more: dict[str, Any] = {"pass_index": 0 if settings.repeat_files else pass_index}
    if file_order is not None and not settings.reverse:
        more["file_order"] = tuple(file_order)
    if cpus is not None:
        more |= {"cycle": "auto", "cpus": cpus}
    settings = changed(settings, **more)
    shown = settings_in_force(settings, ordered=False)
    again = ReadSettings(**settings_from_document(json.loads(json.dumps(shown))))
    assert settings_in_force(again, ordered=False) == shown
    order, same = order_of(settings), order_of(again)
    assert order.num_examples == same.num_examples
    stop = order.num_examples
    assert order.read(0, stop).tolist() == same.read(0, stop).tolist()


def test_the_cycle_of_an_ordered_dataset_is_shown_as_it_is_and_taken_back() -> None:
    shown = settings_in_force(ReadSettings(), ordered=True)
    assert shown["cycle"] == 1
    again = ReadSettings(**settings_from_document(shown))
    assert order_of(again, ordered=True).read(0, 29).tolist() == list(range(1, 30))


def test_every_setting_is_shown_by_the_name_of_its_option() -> None:
    names = {s.name for s in SETTINGS if s.is_read_by("tfds")} - {"loader"}
    shown = settings_in_force(ReadSettings(stages="repeat | take(3)"), ordered=False)  # type: ignore[arg-type]
    assert set(shown) == names
    assert shown["stages"] == ["repeat", {"take": 3}]


def test_of_a_loader_everything_is_shown_and_what_it_does_not_read_is_none() -> None:
    shown = settings_in_force(ReadSettings(loader="torch", shuffle_seed=3), ordered=False)
    assert (shown["loader"], shown["shuffle_seed"], shown["workers"]) == ("torch", 3, 0)
    assert not shown["drop_shard_remainder"]
    for name in ("cycle", "block", "shuffle_files", "reshuffle", "repeat_files", "loop", "host_by"):
        assert shown[name] is None


def test_stages_are_left_out_where_there_are_none() -> None:
    """So that documents, hashes and files of settings without stages are as they always were."""
    assert "stages" not in settings_in_force(ReadSettings(), ordered=False)


def test_what_no_part_of_the_pipeline_reads_is_none() -> None:
    shown = settings_in_force(ReadSettings(shuffle_files=False, shuffle_seed=3), ordered=False)
    for name in ("shuffle_seed", "reshuffle", "buffer_reshuffle", "host", "batch", "cpus"):
        assert shown[name] is None


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {"cycles": 3},
            r"^x: cycles: no such setting; did you mean cycle\? there are: cycle, cpus, block",
        ),
        ({3: 3}, "^x: 3: no such setting"),
        ({"cycle": "3"}, '^x: cycle="3": a whole number is needed'),
        ({"cycle": True}, "cycle=True: a whole number"),
        ({"block": 2.0}, "block=2.0: a whole number"),
        ({"shuffle_files": 1}, "shuffle_files=1: true or false"),
        ({"host": 1}, "host=1: I/N is needed"),
        ({"host": "1"}, "^x: host=\"1\": host '1' is not I/N"),
        ({"host": "4/4"}, '^x: host="4/4": host 4 of 4'),
        ({"file_order": "a"}, "file_order=.a.: a list of file names"),
        ({"file_order": [1]}, "a list of file names"),
        (
            {"shuffle-seed": 1, "shuffle_seed": 2},
            "x: shuffle_seed: the same setting as shuffle-seed",
        ),
        ({"loop": ["python"]}, "a word is needed"),
    ],
)
def test_what_is_no_setting_is_refused(document: dict[Any, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        settings_of_document(document, "x")
