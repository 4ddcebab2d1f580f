"""The table of loaders, which versions are proven, and sequences of epochs beside lists."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from importlib import import_module
from typing import get_args

import numpy as np
import pytest

from shardctl.loaders.hugging_face_eras import ERAS, era_of
from shardctl.loaders.loader import (
    LOADERS,
    READERS,
    LoaderName,
    proven_as,
    public_version,
    release_of,
    same_version,
)
from shardctl.loaders.loader_sequence import (
    EpochByEpoch,
    EqualBatches,
    LoaderConfig,
    UnequalBatches,
    matches,
)
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.table import SETTING_BY_FIELD
from tests.cases import counted
from tests.golden import assert_evaluated
from tests.loaders.agreement import check_agreement


def test_the_names_are_those_of_the_contract_in_its_order() -> None:
    assert get_args(LoaderName) == tuple(READERS)
    names = "tfds grain torch stateful accelerate hf streaming litdata webdataset"
    assert tuple(READERS) == tuple(names.split())
    assert all(loader.name == name for name, loader in READERS.items())
    assert ReadSettings().reader is READERS["tfds"]
    assert ReadSettings(loader="torch").reader is LOADERS["torch"]
    assert [loader.name for loader in READERS.values() if loader.on_tf_data] == ["tfds"]


def test_settings_are_of_loaders_that_take_them() -> None:
    for loader in READERS.values():
        assert {"host", "batch", "epochs"} <= set(loader.takes) <= set(SETTING_BY_FIELD)
    taken = {field for loader in LOADERS.values() for field in loader.takes}
    of_loaders = {s.field for s in SETTING_BY_FIELD.values() if s.about == "loader"}
    assert of_loaders - {"loader", "loader_version"} <= taken
    assert {*SETTING_BY_FIELD} - of_loaders == {*READERS["tfds"].takes}


@pytest.mark.parametrize("name", LOADERS)
def test_versions_ascend_and_rules_are_there(name: str) -> None:
    loader = LOADERS[name]
    for proven in (loader.proven, *loader.beside.values(), [era.since for era in ERAS]):
        releases = [release_of(version) for version in proven]
        assert None not in releases
        assert releases == sorted(set(releases), key=lambda release: release or ())
    module, _, function = loader.rule.partition(":")
    assert callable(getattr(import_module(module), function))
    assert era_of("5.1.0rc1+cpu").since == "5.1.0"


def test_the_table_loads_no_numpy() -> None:
    program = (
        "import sys, shardctl.loaders.loader, shardctl.settings.read_settings\n"
        "print('numpy' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "False\n"


PROVEN = ("3.6.0", "4.8.0", "4.8.5", "5.0.0", "5.1.0", "5.2.0")


def test_a_version_is_proven_if_it_is_one_of_those_compared() -> None:
    assert_evaluated(globals(), "proven")
    assert proven_as(LOADERS["hf"].proven, "4.8.2") is None


def test_how_a_version_was_built_does_not_matter() -> None:
    assert public_version("2.14.0.dev1+cu121") == "2.14.0.dev1"
    assert same_version("2.13", "2.13.0+cpu")
    assert same_version("2.14.0rc1", "2.14.0rc1+cpu")
    assert not same_version("2.14.0rc1", "2.14.0")
    assert release_of("2.10.0") == (2, 10)
    assert release_of("2.10.0.post1") is None


def test_epochs_of_any_lengths_are_looked_up_both_ways() -> None:
    rng = random.Random(6)
    for _ in counted(range(100)):
        n, batch = rng.randrange(1, 20), rng.choice([None, 1, 2, 3, 7])
        drops = batch is not None and rng.random() < 0.5
        sizes = [rng.randrange(25) for _ in range(rng.randrange(1, 5))]
        epochs = [[rng.randrange(n) for _ in range(size)] for size in sizes]
        kept = [size // (batch or 1) * (batch or 1) if drops else size for size in sizes]
        lengths = [min(batch or 1, k - at) for k in kept for at in range(0, k, batch or 1)]
        batches = None if batch is None else UnequalBatches(np.array(lengths, np.int64))
        rows = [np.array(epoch[:size], np.int64) for epoch, size in zip(epochs, kept, strict=True)]
        handed_out = EpochByEpoch(kept, rows.__getitem__, batches=batches)
        expected = [
            epoch[start : start + (batch or 1)]
            for epoch in epochs
            for start in range(0, len(epoch), batch or 1)
            if not drops or start + (batch or 1) <= len(epoch)
        ]
        check_agreement(handed_out, expected, n, batched=batch is not None)
        of_epoch = np.repeat(np.arange(len(kept)), kept)
        assert handed_out.epochs_at(np.arange(sum(kept))).tolist() == of_epoch.tolist()
        assert handed_out.epoch_size == kept[0]


def test_batches_of_equal_epochs_are_counted_without_a_list_of_them() -> None:
    batches = EqualBatches(10, 4, epochs=2)
    listed = UnequalBatches(np.array([4, 4, 2, 4, 4, 2]))
    assert batches.num_batches == listed.num_batches == 6
    assert [batches.bounds(step) for step in range(6)] == [listed.bounds(s) for s in range(6)]
    assert np.array_equal(batches.steps_of(np.arange(20)), listed.steps_of(np.arange(20)))
    assert EqualBatches(0, 4, epochs=3).num_batches == 0


@pytest.mark.parametrize("there", [[], [3], [3, 3, 1], [0, 1, 2, 3, 4]])
@pytest.mark.parametrize("wanted", [[], [3], [3, 3], [4, 1, 3]])
def test_matches_are_all_pairs_that_are_equal(wanted: list[int], there: list[int]) -> None:
    found = matches(np.array(wanted, np.int64), np.array(there, np.int64))
    pairs = [
        (q, p) for q, one in enumerate(wanted) for p, other in enumerate(there) if one == other
    ]
    assert sorted(zip(*map(np.ndarray.tolist, found), strict=True)) == pairs


def test_many_look_ups_take_no_time_for_each_of_them() -> None:
    size = 50_000
    handed_out = EpochByEpoch([size], lambda _: np.arange(size)[::-1].copy())
    began = time.process_time()
    which, positions = handed_out.positions_of(np.arange(size))
    assert time.process_time() - began < 2  # one by one it was a minute
    assert np.array_equal(positions, size - 1 - np.arange(size)[which])


def test_a_buffer_is_of_a_stream_unless_somebody_says_otherwise() -> None:
    lengths = np.array([3])
    assert not LoaderConfig(lengths=lengths, version="1.0").streams
    assert LoaderConfig(lengths=lengths, version="1.0", buffer=2).streams
    assert not LoaderConfig(lengths=lengths, version="1.0", buffer=2, streaming=False).streams
    assert LoaderConfig(lengths=lengths, version="1.0", streaming=True).streams
