"""From the indices of a loader to examples, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UsageError
from shardctl.loaders.loader import LOADERS
from shardctl.order import loader_order as loader_version
from shardctl.order.loader_order import LoaderOrder
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import as_settings
from shardctl.spec.subsplit import resolve_subsplit

DATA = Dataset(
    name="d",
    splits=(
        Split(name="train", shard_lengths=(5, 0, 7, 3)),
        Split(name="test", shard_lengths=(4, 2)),
    ),
)
# A spec, and the examples of it in the order of the files.
SPECS = {
    "train": [("train", i) for i in range(15)],
    "train[3:9]": [("train", i) for i in range(3, 9)],
    "test+train[10:]": [*(("test", i) for i in range(6)), *(("train", i) for i in range(10, 15))],
    "train[4:6]+train[:5]": [("train", i) for i in (4, 5, 0, 1, 2, 3, 4)],
}


def made(spec: str, **settings: Any) -> LoaderOrder:
    order = plan_order(DATA, spec, settings).order
    assert isinstance(order, LoaderOrder)
    return order


def names(order: LoaderOrder, codes: Any) -> list[tuple[str, int]]:
    texts = order.codes.ids(codes)
    only = order.ranges[0].split.name
    pairs = [text.split(":") if isinstance(text, str) else (only, text) for text in texts]
    return [(str(split), int(number)) for split, number in pairs]


STREAMED: dict[str, Any] = {
    "loader": "hf",
    "streaming": True,
    "shuffle_seed": 1,
    "loader_version": "5.2.0",  # else it is assumed where none is installed
}


def test_a_stream_of_files_that_nothing_reads_needs_the_word_of_the_user() -> None:
    """Tables and rows of the same examples have two orders; of one table row they have one."""
    with pytest.raises(UsageError, match=r"^datasets has no reader of tfrecord files; .* --arrow"):
        made("train", **STREAMED)
    known: tuple[dict[str, Any], ...] = (
        *({"arrow": True}, {"arrow": False}, {"streaming": None}, {"shuffle_seed": None}),
        *({"buffer": 19}, {"loader_version": "5.0.0"}, {"before_shuffle": "map"}),
    )
    for said in known:
        assert made("train", **{**STREAMED, **said}).assumptions == ()
    torch = made("train", loader="torch", loader_version="2.13.0", shuffle_seed=1)
    assert torch.assumptions == ()


@pytest.mark.parametrize("installed", [None, "2.13.0"])
def test_a_version_that_nobody_names_is_assumed_where_none_is_installed(
    installed: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"installed_version": lambda library: installed}
    monkeypatch.setattr(loader_version, "provided", given.__getitem__)
    said = made("train", loader="torch", shuffle_seed=1).assumptions
    expected = "torch 2.14.1, since none is installed here; --loader-version "
    assert [text.startswith(expected) for text in said] == [True] * (installed is None)
    assert made("train", loader="torch", loader_version="2.13.0").assumptions == ()


def test_what_stands_before_a_shuffle_of_tables_is_assumed_and_can_be_stated() -> None:
    tables = replace(DATA, file_format="parquet")
    ranges = resolve_subsplit("train", tables).ranges

    def order(**settings: Any) -> LoaderOrder:
        return LoaderOrder(tables, ranges, as_settings({**STREAMED, **settings}))

    (said,) = order().assumptions
    assert said.startswith("no map, filter, remove_columns, rename_column, rename_columns or ")
    for stated in ({"arrow": True}, {"before_shuffle": "select_columns"}, {"buffer": 19}):
        assert order(**stated).assumptions == ()
    (said,) = order(before_shuffle="filter").assumptions
    assert said.startswith("filter keeps every example")
    (*_, said) = order(host="0/2").assumptions
    assert "split_dataset_by_node; a Trainer or Accelerator" in said
    with pytest.raises(UsageError, match=r"^before_shuffle=\"take\": choose from "):
        order(before_shuffle="take")
    with pytest.raises(UsageError, match="is read with --shuffle-seed N only"):
        order(before_shuffle="map", shuffle_seed=None)
    with pytest.raises(UsageError, match="needs --streaming"):
        order(before_shuffle="map", streaming=False)
    with pytest.raises(UsageError, match=r"4\.8\.2 shares what is read of tables in a way of its"):
        order(before_shuffle="map", loader_version="4.8.2")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"loader": "torch", "shuffle_seed": 1}, True),
        ({"loader": "torch", "shuffle": True, "global_seed": 1}, True),
        ({"loader": "stateful", "shuffle_seed": 1}, True),
        ({"loader": "accelerate", "shuffle": True, "global_seed": 1, "batch": 2}, True),
        ({"loader": "torch", "shuffle_seed": 1, "workers": 0}, False),
        ({"loader": "torch", "shuffle_seed": 1, "epochs": 1}, False),
        ({"loader": "torch", "shuffle_seed": 1, "host": "0/2"}, False),
        ({"loader": "torch", "shuffle_seed": 1, "persistent_workers": False}, False),
        ({"loader": "torch", "shuffle_seed": 1, "persistent_workers": True}, False),
        ({"loader": "torch"}, False),
    ],
)
def test_workers_that_end_are_assumed_where_it_matters(settings: Any, said: bool) -> None:
    order = made("train", **{"workers": 2, "epochs": 2, **settings})
    assert any("worker processes end with each epoch" in each for each in order.assumptions) == said


def test_workers_that_stay_need_workers() -> None:
    with pytest.raises(UsageError, match=r"--persistent-workers needs --workers N, as torch says"):
        made("train", loader="torch", persistent_workers=True)


@pytest.mark.parametrize("given", [{"streaming": True}, {"buffer": 9}, {"input_shards": 1}])
def test_a_stream_that_accelerate_deals_out_is_refused_by_name(given: dict[str, Any]) -> None:
    with pytest.raises(
        UsageError, match=r"dispatch_batches=False, give each process .*split_dataset_by_node"
    ):
        made("train", loader="accelerate", batch=2, **given)


def test_the_newest_version_that_is_proven_is_taken_where_none_is_named() -> None:
    ranges = made("train", loader="torch").ranges
    proven = LOADERS["torch"].proven
    assert LoaderOrder(DATA, ranges, as_settings({"loader": "torch"})).version == proven[-1]
    older = as_settings({"loader": "torch", "loader_version": proven[0]})
    assert LoaderOrder(DATA, ranges, older).version == proven[0]


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("spec", SPECS)
def test_an_index_counts_the_examples_of_the_spec(spec: str, loader: str) -> None:
    order = made(spec, loader=loader, batch=4)
    assert order.num_examples == len(SPECS[spec])
    assert names(order, order.read(0, order.num_examples)) == SPECS[spec]


@pytest.mark.parametrize("loader", ["grain", "torch", "accelerate", "hf"])
@pytest.mark.parametrize("spec", SPECS)
def test_positions_codes_steps_and_epochs_fit_together(spec: str, loader: str) -> None:
    order = made(spec, loader=loader, shuffle_seed=3, batch=4, epochs=2, host="0/2")
    whole = order.read(0, order.num_examples)
    assert np.array_equal(np.concatenate(list(order.chunks(0, order.num_examples))), whole)
    positions = np.arange(order.num_examples)
    assert np.array_equal(order.codes_at(positions), whole)
    assert np.array_equal(order.codes_of(order.indices_at(positions)), whole)
    query, found = order.positions_of(np.unique(whole))
    expected = [(q, p) for q, code in enumerate(np.unique(whole)) for p in positions[whole == code]]
    assert list(zip(query.tolist(), found.tolist(), strict=True)) == expected
    epochs = order.epoch_of(positions)
    assert set(epochs.tolist()) == {0, 1}
    assert order.has_steps
    steps, within = order.steps_of(positions)
    for step in range(order.num_steps or 0):
        there = order.positions_in_step(step)
        assert np.array_equal(positions[steps == step], np.arange(there.start, there.stop))
        assert within[steps == step].tolist() == list(range(len(there)))
        assert np.array_equal(order.codes_of(order.indices_in_step(step)), whole[steps == step])


@pytest.mark.parametrize("loader", LOADERS)
def test_of_no_positions_there_are_no_examples(loader: str) -> None:
    order = made("train", loader=loader, batch=2)
    assert order.codes_at([]).tolist() == []
    assert [order.read(at, at).tolist() for at in (0, 3, 15)] == [[], [], []]
    assert list(order.chunks(3, 3)) == []


def test_what_is_not_there_is_refused() -> None:
    order = made("train", loader="torch", batch=4)
    for wrong in (-1, 15):
        with pytest.raises(UsageError, match=rf"^position {wrong}: the order has 15 examples"):
            order.codes_at([wrong])
    with pytest.raises(UsageError, match=r"^step 4: the order has 4 batches of 4"):
        order.positions_in_step(4)
    with pytest.raises(UsageError, match=r"^start=3 and stop=99: "):
        list(order.chunks(3, 99))


def test_nothing_of_tf_data_is_there() -> None:
    order = made("train", loader="torch")
    assert not order.has_blocks
    assert order.num_buffered is None
    assert not {"reading", "replay", "seeds"} & set(dir(order))


@pytest.mark.parametrize(
    "settings",
    [
        {"loader": "grain", "shuffle_seed": 3},
        {"loader": "grain", "shuffle_seed": 3, "drop_shard_remainder": True},
        {"loader": "hf", "shuffle_seed": 3, "buffer": 4},
        {"loader": "hf", "shuffle_seed": 3, "buffer": 4, "pass_index": 2, "workers": 2},
    ],
)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_a_process_reads_is_what_it_hands_out(settings: dict[str, Any], count: int) -> None:
    for index in range(count):
        order = made("train", host=f"{index}/{count}", batch=2, **settings)
        there = order.reads_of_epoch
        firsts = order.codes.first_codes(there).tolist()
        spans = zip(firsts, there.take.tolist(), strict=True)
        read = [first + place for first, take in spans for place in range(take)]
        assert len({*read}) == len(read)
        handed_out = {*order.read(0, order.num_examples).tolist()}
        assert handed_out <= {*read}
        # A remainder that Grain loses, and all examples where hosts take every so many of them.
        assert len(read) - len(handed_out) <= 1 or len(read) == order.reads.num_examples


def test_steps_are_batches_of_the_pass_the_last_one_counted() -> None:
    assert [plan_order(DATA, "train", {"batch": n}).order.num_steps for n in (1, 4, 5, 15, 16)] == [
        *(15, 4, 3, 1, 1),
    ]
    assert plan_order(DATA, "train").order.num_steps == 15
