"""From the indices of a loader to examples, and back."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UsageError
from shardctl.loaders.loader import LOADERS, VerifiedVersion
from shardctl.order import loader_order
from shardctl.order.loader_order import LoaderOrder, loader_version
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings, as_settings
from shardctl.spec.subsplit import resolve_subsplit
from tests.golden import assert_evaluated

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
    with pytest.raises(UsageError, match=r"^datasets has no reader of tfrecord files, .* --arrow"):
        made("train", **STREAMED)
    known: tuple[dict[str, Any], ...] = (
        *({"arrow": True}, {"arrow": False}, {"streaming": None}, {"shuffle_seed": None}),
        *({"buffer": 19}, {"loader_version": "5.0.0"}),
    )
    for said in known:
        assert made("train", **{**STREAMED, **said}).assumptions == ()
    torch = made("train", loader="torch", loader_version="2.13.0", shuffle_seed=1)
    (of_seed,) = torch.assumptions
    assert "generator=torch.Generator().manual_seed(N)" in of_seed


def test_what_stands_before_a_shuffle_of_tables_is_assumed_and_can_be_stated() -> None:
    tables = replace(DATA, file_format="parquet")
    ranges = resolve_subsplit("train", tables).ranges

    def order(**settings: Any) -> LoaderOrder:
        return LoaderOrder(tables, ranges, as_settings({**STREAMED, **settings}))

    (said,) = order().assumptions
    assert said.startswith("no map, filter, remove_columns, rename_column, rename_columns or ")
    for stated in ({"arrow": True}, {"buffer": 19}):
        assert order(**stated).assumptions == ()
    (*_, said) = order(host="0/2").assumptions
    assert "split_dataset_by_node; a Trainer or Accelerator" in said
    with pytest.raises(UsageError, match="is read with --shuffle-seed N only"):
        order(input_shards=3, shuffle_seed=None)
    with pytest.raises(UsageError, match="are of a stream; --streaming, or"):
        order(input_shards=3, streaming=False)


def test_workers_that_end_are_assumed_where_it_matters() -> None:
    def said(settings: Any) -> bool:
        order = made("train", **{"workers": 2, "epochs": 2, **settings})
        return any("worker processes end with each epoch" in each for each in order.assumptions)

    assert_evaluated(globals(), "workers_that_end", said)


def test_workers_that_stay_need_workers() -> None:
    with pytest.raises(UsageError, match=r"--persistent-workers needs --workers N, as torch says"):
        made("train", loader="torch", persistent_workers=True)


@pytest.mark.parametrize("given", [{"streaming": True}, {"buffer": 9}, {"input_shards": 1}])
def test_a_stream_of_accelerate_is_a_chain(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"a stream of Accelerate .*split_dataset_by_node"):
        made("train", loader="accelerate", batch=2, **given)


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("spec", SPECS)
def test_an_index_counts_the_examples_of_the_spec(spec: str, loader: str) -> None:
    if loader in ("streaming", "litdata", "webdataset") and spec != "train":
        with pytest.raises(UsageError, match="reads whole shards, and the spec cuts some"):
            made(spec, loader=loader, batch=4)
        return
    order = made(spec, loader=loader, batch=4)
    assert order.num_examples == len(SPECS[spec])
    assert names(order, order.read(0, order.num_examples)) == SPECS[spec]
    assert (
        order.codes_at([]).tolist() == list(order.chunks(3, 3)) == order.read(3, 3).tolist() == []
    )


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
        indices = order.indices_at(np.array(there))
        assert np.array_equal(order.codes_of(indices), whole[steps == step])


def test_what_is_not_there_is_refused() -> None:
    order = made("train", loader="torch", batch=4)
    for wrong in (-1, 15):
        with pytest.raises(UsageError, match=rf"^position {wrong}: the order has 15 examples"):
            order.codes_at([wrong])
    with pytest.raises(UsageError, match=r"^step 4: the order has 4 batches of 4"):
        order.positions_in_step(4)
    with pytest.raises(UsageError, match=r"^start=3 and stop=99: "):
        list(order.chunks(3, 99))


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


# Of which version the order is: named, installed, or the newest that is proven.

LOADER = replace(LOADERS["torch"], proven=("2.13.0", "2.15.0"), beside={"numpy": ("1.0",)})


class World:
    """What is installed and what was verified, instead of this machine."""

    def __init__(self) -> None:
        self.installed: dict[str, str] = {}
        self.verified: dict[str, VerifiedVersion] = {}
        self.alike: dict[str, str] = {}  # packages, each with the version whose source it has

    def provided(self, name: str) -> object:
        if name == "installed_version":
            return self.installed.get
        if name == "same_source":
            return self.alike.get
        assert name == "verified_version"
        return lambda loader, version: self.verified.get(version)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(loader_order, "provided", world.provided)
    monkeypatch.setattr(loader_order, "LOADERS", {"torch": LOADER})
    return world


def settings(version: str | None = None) -> ReadSettings:
    return ReadSettings(loader="torch", loader_version=version)


def verified(version: str) -> VerifiedVersion:
    return VerifiedVersion(
        loader="torch", version=version, rule=1, num_settings=100, date="2026-11-22"
    )


def test_a_named_version_is_in_force_else_the_installed_one_else_the_newest(world: World) -> None:
    assert loader_version(settings()).version == "2.15.0"
    (assumed,) = loader_version(settings()).assumptions
    assert assumed.startswith("torch 2.15.0, since none is installed here; --loader-version ")
    assert loader_version(settings("2.13.0")).assumptions == ()
    world.installed = {"numpy": "7.0"}  # matters to an installed library alone
    assert loader_version(settings()).version == "2.15.0"
    world.installed = {"torch": "2.13.0", "numpy": "1.0"}
    found = loader_version(settings())
    assert (found.version, found.warnings, found.assumptions) == ("2.13.0", (), ())
    assert loader_version(settings("2.15")).version == "2.15.0"


@pytest.mark.parametrize("version", ["2.15.1", "2.14.1", "2.12.0", "3", "2.14.0rc1"])
def test_another_version_is_refused_with_two_ways_out(world: World, version: str) -> None:
    named = rf"torch {version} is named, and its order is known for 2\.13\.0, 2\.15\.0: --"
    with pytest.raises(UsageError, match=named):
        loader_version(settings(version))
    world.installed = {"torch": version}
    refused = rf"torch {version} is installed, and its order is known for 2\.13\.0, 2\.15\.0: "
    with pytest.raises(UsageError, match=refused + r"--loader-version 2\.15\.0 predicts that one"):
        loader_version(settings())


def test_a_version_that_was_verified_here_comes_with_a_warning(world: World) -> None:
    world.installed = {"torch": "2.16.0"}
    world.verified = {"2.16.0": verified("2.16.0")}
    for found in (loader_version(settings()), loader_version(settings("2.16.0"))):
        assert (found.version, found.is_proven) == ("2.16.0", False)
        (warning,) = found.warnings
        assert "found it equal here in 100 settings, on 2026-11-22" in warning
    planned = plan_order("mnist", "train[:100]", {"loader": "torch", "host": "0/2"})
    assert [warning for warning in planned.warnings if "2.16.0" in warning]
    again = planned.with_settings(planned.order.settings).order.settings
    assert again.loader_version == planned.order.settings.loader_version == "2.16.0"


def test_an_unproven_version_of_a_proven_source_is_predicted_as_it(world: World) -> None:
    world.installed = {"torch": "2.16.0", "numpy": "7.0"}
    for alike in ({"torch": "2.15.0"}, {"numpy": "1.0"}, {"torch": "2.12.0", "numpy": "1.0"}):
        world.alike = alike  # one of the two, or a version that is not proven
        with pytest.raises(UsageError):
            loader_version(settings())
    world.alike = {"torch": "2.13.0", "numpy": "1.0"}
    for found in (loader_version(settings()), loader_version(settings("2.16.0"))):
        assert (found.version, found.is_proven) == ("2.13.0", False)
        assert [said.partition(" was not")[0] for said in found.warnings] == [
            "numpy 7.0",
            "torch 2.16.0",
        ]
        assert "shardctl verify --loader torch" in found.warnings[1]
    with pytest.raises(UsageError):
        loader_version(settings("2.17.0"))


def test_a_package_beside_the_library_counts_where_both_are_installed(world: World) -> None:
    world.installed = {"torch": "2.15.0", "numpy": "7.0"}
    with pytest.raises(UsageError, match=r"torch 2\.15\.0 is installed with numpy 7\.0, and its"):
        loader_version(settings())
    assert loader_version(settings("2.15.0")).version == "2.15.0"  # the proven pair, as named
    world.verified = {"2.15.0": verified("2.15.0")}
    assert loader_version(settings()).warnings


@pytest.mark.parametrize(
    "settings",
    [
        {"loader": "torch", "shuffle_seed": 1},
        {"loader": "accelerate", "shuffle_seed": 1, "batch": 4},
        {"loader": "hf", "shuffle_seed": 1, "buffer": 5, "arrow": True},
    ],
    ids=str,
)
def test_an_order_outlives_a_process(settings: dict[str, Any]) -> None:
    order = made("train", **settings)
    copied = pickle.loads(pickle.dumps(order))
    places = np.arange(order.num_examples)
    assert copied.codes_at(places).tolist() == order.codes_at(places).tolist()
