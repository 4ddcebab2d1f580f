"""Orders of Hugging Face Datasets, beside those that real versions handed out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.loaders.hugging_face import hugging_face_sequence
from shardctl.loaders.loader import LOADERS
from shardctl.loaders.loader_sequence import LoaderConfig
from tests.loaders.agreement import check_agreement

# Written by `record.py`, a file a version.
RECORDED = [
    json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(Path(__file__).parent.glob("recorded_*.json"))
]
VERSIONS = [recorded["recorded_with"]["datasets"] for recorded in RECORDED]
STREAM: dict[str, Any] = {"streaming": True, "seed": 3, "buffer": 16}


def asked(
    version: str = "5.2.0", lengths: tuple[int, ...] = (8, 4), **settings: Any
) -> LoaderConfig:
    """What a rule is asked."""
    return LoaderConfig(lengths=np.array(lengths, np.int64), version=version, **settings)


def asked_of(recorded: dict[str, Any], version: str) -> LoaderConfig:
    """The same of a recorded case."""
    host, count = recorded.get("host", (0, 1))
    is_map = recorded["source"] == "map"
    return asked(
        version,
        tuple(recorded["lengths"]),
        seed=recorded.get("seed"),
        buffer=recorded.get("buffer"),
        first_epoch=recorded.get("epoch", 0),
        shares="host" in recorded,
        host=host,
        num_hosts=count,
        host_by=recorded.get("host_by", "even"),
        workers=recorded.get("workers", 0),
        batch=recorded.get("batch"),
        drop_remainder=recorded.get("drop", False),
        streaming=not is_map,
        arrow=recorded["source"] in ("parquet", "to_iterable_dataset"),
        input_shards=recorded.get("input_shards"),
    )


def order_of(question: LoaderConfig) -> list[int]:
    """The indices that a process hands out."""
    found = hugging_face_sequence(question)
    order: list[int] = found.indices_at(np.arange(found.num_examples)).tolist()
    return order


@pytest.mark.parametrize("recorded", RECORDED, ids=VERSIONS)
def test_orders_are_those_of_the_library(recorded: dict[str, Any]) -> None:
    version = recorded["recorded_with"]["datasets"]
    assert len(recorded["cases"]) > 40
    for case in recorded["cases"]:
        question = asked_of(case, version)
        batched = question.batch is not None
        check_agreement(
            hugging_face_sequence(question), case["batches"], question.num_examples, batched=batched
        )


@pytest.mark.parametrize("recorded", RECORDED, ids=VERSIONS)
def test_state_dict_of_a_shuffled_stream_loses_what_the_buffer_held(
    recorded: dict[str, Any],
) -> None:
    """The order goes on from a number of examples; the library's own state does not."""
    state, version = recorded["state"], recorded["recorded_with"]["datasets"]
    order = order_of(asked_of(state["asked"], version))
    assert order[:50] == state["head"]
    lost = set(range(197)) - {*state["head"], *state["rest"]}
    assert order[50:] != state["rest"]
    assert 14 <= len(lost) <= 16
    assert not {*state["head"]} & {*state["rest"]}


def test_each_order_begins_at_its_era() -> None:
    lengths = (40,) * 24
    orders = [
        order_of(asked(version, lengths, **STREAM, first_epoch=1, workers=2, batch=4))
        for version in ("4.3.0", "4.4.0", "4.6.0", "5.0.0", "5.1.0")
    ]
    assert len({tuple(order) for order in orders}) == 5
    assert order_of(asked("4.8.5", lengths, **STREAM)) == order_of(
        asked("3.6.0", lengths, **STREAM)
    )


def test_epochs_follow_one_another() -> None:
    kinds: tuple[dict[str, Any], ...] = ({"streaming": True, "buffer": 3}, {})
    for streams in kinds:
        both = order_of(asked(seed=1, first_epoch=4, epochs=2, **streams))
        apart = [order_of(asked(seed=1, first_epoch=epoch, **streams)) for epoch in (4, 5)]
        assert both == apart[0] + apart[1]


def test_a_dataset_has_one_order_in_all_epochs() -> None:
    assert order_of(asked(seed=1, epochs=2)) == 2 * order_of(asked(seed=1, first_epoch=7))


@pytest.mark.parametrize("streams", [{}, {"streaming": True}, STREAM])
@pytest.mark.parametrize("lengths", [(), (1,), (0, 1), (0,)])
def test_little_or_nothing_is_read_as_it_is(
    lengths: tuple[int, ...], streams: dict[str, Any]
) -> None:
    shards = np.array(lengths, np.int64)
    question = asked(
        lengths=tuple(length for length in lengths if length), shard_lengths=shards, **streams
    )
    assert order_of(question) == list(range(sum(lengths)))


def test_an_empty_shard_is_a_shard() -> None:
    """It takes a place in the order of the shards, and in what hosts share."""
    full = asked(lengths=(2, 3, 4), streaming=True, shares=True, num_hosts=2)
    empty = np.array([2, 0, 3, 4])
    with_one = asked(
        lengths=(2, 3, 4), streaming=True, shares=True, num_hosts=2, shard_lengths=empty
    )
    assert order_of(full) == [0, 2, 4, 6, 8]  # 3 shards: by stride
    assert order_of(with_one) == [0, 1, 2, 3, 4]  # 4 shards: the first and the third


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"buffer": 16, "streaming": False, "seed": 1}, "reads by index"),
        ({"host_by": "files"}, "one run of a Dataset"),
        ({"input_shards": 3}, "needs --streaming"),
        ({"seed": -1}, "0 or more"),
        ({"buffer": -2, "seed": 1}, "1 example or more"),
        ({"buffer": 1 << 30, "seed": 1}, "takes about"),
        ({"input_shards": 3, "streaming": True}, "is read with --shuffle-seed N only"),
        ({**STREAM, "input_shards": 3, "version": "4.8.5"}, "came with 5.0.0"),
        ({**STREAM, "shares": True, "host_by": "files", "version": "5.0.1"}, "came with 5.1.0"),
        ({**STREAM, "shares": True, "num_hosts": 3, "host_by": "files"}, "2 shards on 3 hosts"),
        ({**STREAM, "shard_lengths": np.array([9, 4])}, "reads parts of a shard"),
        ({"lengths": (1 << 27, 1), "seed": 1}, "takes about 11 GB"),
        ({"lengths": (1 << 27, 1), "streaming": True}, "takes about 11 GB"),
        ({"shares": True, "host": 12, "num_hosts": 13, "seed": 1}, "IndexError"),
    ],
)
def test_what_the_library_refuses_is_refused_by_name(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as raised:
        hugging_face_sequence(asked(**settings))
    assert message in str(raised.value)


def test_a_buffer_without_a_seed_is_open() -> None:
    with pytest.raises(UnpredictableOrderError, match="--shuffle-seed"):
        hugging_face_sequence(asked(buffer=16))


def test_the_versions_recorded_are_proven() -> None:
    assert {*VERSIONS} <= {*LOADERS["hf"].proven}
