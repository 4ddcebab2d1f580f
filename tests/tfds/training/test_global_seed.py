"""A global seed that is in force: refused where the order is another one, and only there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl.tfds
from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.tfds.training.read_config import global_seed_of, seed_in_force
from shardctl.verbs.resume.answer import resume, resume_unseen
from shardctl.verbs.resume.hosts import resume_on_hosts
from tests.tfds_datasets import build_dataset, read_ids

LENGTHS = [7, 4, 9, 5]
CONSUMED = 11
FILES = ReadSettings(shuffle_seed=3, cycle=2, block=2)
BUFFER = ReadSettings(buffer=6, buffer_seed=1, cycle=2, block=2)
SEEDS: dict[str, Callable[[Any, int], None]] = {
    "set_seed": lambda tf, seed: tf.random.set_seed(seed),
    "keras": lambda tf, seed: tf.keras.utils.set_random_seed(seed),
}


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    tfds = pytest.importorskip("tensorflow_datasets")
    splits = {"train": LENGTHS, "one": [12]}
    return tfds.builder_from_directory(
        build_dataset(tmp_path_factory.mktemp("data"), "toy", splits)
    )


def run_of(builder: Any, settings: ReadSettings, spec: str = "train") -> list[int]:
    """Return what TFDS's own calls hand out with the global seed that is in force."""
    import tensorflow_datasets as tfds

    config = tfds.ReadConfig(
        shuffle_seed=settings.shuffle_seed,
        interleave_cycle_length=settings.cycle,
        interleave_block_length=settings.block,
    )
    read = builder.as_dataset(
        split=spec, read_config=config, shuffle_files=settings.shuffle_seed is not None
    )
    if settings.buffer is not None:
        read = read.shuffle(settings.buffer, seed=settings.buffer_seed)
    return read_ids(read)


def flat(datasets: Any) -> list[int]:
    return [example for _, dataset in datasets for example in read_ids(dataset)]


def by_read_config(builder: Any, settings: ReadSettings, *, with_builder: bool) -> list[int]:
    """Return what is left of a plan of files, read by TFDS with the plan's ReadConfig."""
    plan = planned(builder, settings)
    config = shardctl.tfds.read_config(plan, builder if with_builder else None)
    return read_ids(builder.as_dataset(split="train", read_config=config))


def planned(builder: Any, settings: ReadSettings, spec: str = "train") -> Any:
    dataset = shardctl.tfds.dataset_of(builder)
    return resume(dataset, spec, settings, consumed=CONSUMED, mode="exact-order")


def position_of(builder: Any, settings: ReadSettings) -> Any:
    return shardctl.tfds.Position(builder, "train", settings, consumed=CONSUMED)


def keras_of(builder: Any, settings: ReadSettings) -> list[int]:
    batched = shardctl.tfds.keras_epochs(
        builder, "train", replace(settings, batch=1), epochs=1, steps=CONSUMED
    )
    return [int(batch["id"][0]) for _, dataset in batched for batch in dataset.as_numpy_iterator()]


# What continues after CONSUMED examples of `train`.
CALLS: dict[str, Callable[[Any, ReadSettings], list[int]]] = {
    "resume": lambda b, s: read_ids(shardctl.tfds.resume(b, planned(b, s))),
    "resume_epochs": lambda b, s: flat(shardctl.tfds.resume_epochs(b, planned(b, s))),
    "exact_order": lambda b, s: read_ids(
        shardctl.tfds.exact_order(b, "train", s, consumed=CONSUMED)
    ),
    "keras_epochs": keras_of,
    "Position": lambda b, s: read_ids(position_of(b, s).dataset()),
    "pipeline": lambda b, s: read_ids(shardctl.tfds.pipeline(b, "train", s))[CONSUMED:],
}
OF_FILES: dict[str, Callable[[Any, ReadSettings], list[int]]] = {
    **CALLS,
    "read_config": lambda b, s: by_read_config(b, s, with_builder=False),
    "read_config of a builder": lambda b, s: by_read_config(b, s, with_builder=True),
}


@pytest.mark.parametrize("settings", [FILES, BUFFER])
def test_a_seed_that_changes_the_order_is_refused_by_every_call(
    builder: Any, tf: Any, settings: ReadSettings
) -> None:
    calls = OF_FILES if settings is FILES else CALLS
    for (name, call), set_seed in zip(calls.items(), cycle(SEEDS.values())):
        set_seed(tf, 5)
        with pytest.raises(UsageError, match=r"set_seed\(5\) is in force .*global_seed=5") as said:
            call(builder, settings)
        assert "tf.random.set_seed(None) before" in str(said.value), name


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        (FILES, ["Position", "read_config"]),
        pytest.param(FILES, [*OF_FILES], marks=pytest.mark.slow),
        pytest.param(BUFFER, [*CALLS], marks=pytest.mark.slow),
    ],
)
def test_what_is_refused_is_another_order_and_to_say_the_seed_is_the_way_out(
    builder: Any, tf: Any, settings: ReadSettings, names: list[str]
) -> None:
    tf.random.set_seed(5)
    run = run_of(builder, settings)
    tf.random.set_seed(None)
    assert OF_FILES[names[0]](builder, settings) != run[CONSUMED:]
    # The seed that is said is the one in force, or none is.
    for name, in_force in zip(names, cycle((5, None))):
        tf.random.set_seed(in_force)
        said_so = replace(settings, global_seed=5)
        assert OF_FILES[name](builder, said_so) == run[CONSUMED:], name


def test_the_seed_of_a_plan_is_not_another_one(builder: Any, tf: Any) -> None:
    """A pipeline sets its own seed; what continues one cannot know which seed that one had."""
    settings = replace(FILES, global_seed=8)
    tf.random.set_seed(8)
    run = run_of(builder, settings)
    for name, call in OF_FILES.items():
        tf.random.set_seed(5)
        if name == "pipeline":
            assert call(builder, settings) == run[CONSUMED:]
            assert seed_in_force() == 5
            continue
        with pytest.raises(UsageError, match=r"has? .*global_seed=8.*set_seed\(8\)|global_seed=8"):
            call(builder, settings)


@pytest.mark.slow
def test_a_seed_that_changes_nothing_is_allowed(builder: Any, tf: Any) -> None:
    """No shuffle, a buffer of one, and 87654321, which TensorFlow takes where there is none."""
    plain = ReadSettings(cycle=2, block=2)
    buffer_of_one = replace(plain, buffer=1, buffer_seed=2)
    for settings, seed, names in (
        (plain, 5, ["resume", "Position", "read_config"]),
        (buffer_of_one, 5, ["resume", "exact_order"]),
        (FILES, 87654321, OF_FILES),
    ):
        tf.random.set_seed(seed)
        run = run_of(builder, settings)
        for name, set_seed in zip(names, cycle(SEEDS.values())):
            set_seed(tf, seed)
            assert OF_FILES[name](builder, settings) == run[CONSUMED:], name


@pytest.mark.parametrize("settings", [FILES, pytest.param(BUFFER, marks=pytest.mark.slow)])
def test_a_seed_set_after_the_dataset_is_made_changes_nothing(
    builder: Any, tf: Any, settings: ReadSettings
) -> None:
    run, plan = run_of(builder, settings), planned(builder, settings)
    batched = replace(settings, batch=1)
    made = {
        "resume": shardctl.tfds.resume(builder, plan),
        "pipeline": shardctl.tfds.pipeline(builder, "train", settings).skip(CONSUMED),
    }
    by_epoch = shardctl.tfds.resume_epochs(builder, plan)
    fit = shardctl.tfds.keras_epochs(builder, "train", batched, epochs=1, steps=CONSUMED)
    tf.keras.utils.set_random_seed(5)
    for name, dataset in made.items():
        assert read_ids(dataset) == run[CONSUMED:], name
    assert flat(by_epoch) == run[CONSUMED:]
    rest = [int(batch["id"][0]) for _, dataset in fit for batch in dataset.as_numpy_iterator()]
    assert rest == run[CONSUMED:]


def test_a_seed_set_between_a_plan_and_its_dataset_is_refused(
    builder: Any, tf: Any, tmp_path: Path
) -> None:
    position = position_of(builder, FILES)
    position.save(tmp_path / "position.json")
    plan = position.plan()
    configs = [shardctl.tfds.read_config(plan), shardctl.tfds.read_config(plan, builder)]
    tf.keras.utils.set_random_seed(5)
    for call in (
        position.dataset,
        lambda: position.restore(tmp_path / "position.json"),
        *(partial(builder.as_dataset, split="train", read_config=c) for c in configs),
    ):
        with pytest.raises(UsageError, match=r"set_seed\(5\) is in force"):
            call()


def test_a_log_of_examples_has_no_order_that_a_seed_could_change(builder: Any, tf: Any) -> None:
    dataset = shardctl.tfds.dataset_of(builder)
    plan = resume_unseen(dataset, "train", FILES, seen=[11, 12, 13, 14, 15])
    tf.random.set_seed(5)
    assert sorted(read_ids(shardctl.tfds.resume(builder, plan))) == [*range(11), *range(16, 25)]
    config = shardctl.tfds.read_config(plan)
    read = read_ids(builder.as_dataset(split="train", read_config=config))
    assert sorted(read) == [*range(11), *range(16, 25)]


@pytest.mark.parametrize(
    "mode", ["at-most-once", pytest.param("at-least-once", marks=pytest.mark.slow)]
)
def test_of_a_buffer_without_a_seed_the_order_of_the_files_counts(
    builder: Any, tf: Any, mode: Any
) -> None:
    dataset = shardctl.tfds.dataset_of(builder)
    unseeded = ReadSettings(buffer=6, cycle=2, block=2)
    of_files = resume(
        dataset, "train", replace(unseeded, shuffle_seed=3), consumed=CONSUMED, mode=mode
    )
    unshuffled = resume(dataset, "train", unseeded, consumed=CONSUMED, mode=mode)
    tf.keras.utils.set_random_seed(5)
    with pytest.raises(UsageError, match=r"set_seed\(5\) is in force"):
        shardctl.tfds.resume(builder, of_files)
    left = read_ids(shardctl.tfds.resume(builder, unshuffled))
    # Other hosts go on in an order as well.
    plan = resume_on_hosts(dataset, "train", FILES, hosts=2, to_hosts=3, consumed=2)
    with pytest.raises(UsageError, match="the plan has no global_seed"):
        shardctl.tfds.resume(builder, plan, host=1)
    tf.random.set_seed(None)
    assert sorted(left) == sorted(read_ids(shardctl.tfds.resume(builder, unshuffled)))


@pytest.mark.parametrize("spec_settings", [FILES, pytest.param(BUFFER, marks=pytest.mark.slow)])
def test_verify_refuses_and_leaves_the_seed_as_it_was(
    builder: Any, tf: Any, spec_settings: ReadSettings
) -> None:
    dataset = shardctl.tfds.dataset_of(builder)
    plan = planned(builder, spec_settings)
    tf.random.set_seed(5)
    with pytest.raises(UsageError, match=r"set_seed\(5\) is in force"):
        shardctl.tfds.verify(dataset, "train", spec_settings)
    with pytest.raises(UsageError, match=r"set_seed\(5\) is in force"):
        shardctl.tfds.verify_plan(dataset, plan)
    said_so = replace(spec_settings, global_seed=5)
    for seed, settings in ((9, said_so), (9, ReadSettings())):
        tf.random.set_seed(seed)
        assert shardctl.tfds.verify(dataset, "train", settings).equal
        assert seed_in_force() == seed


@pytest.mark.parametrize("seed", [0, -1, 2**31 + 7, np.int64(3), None])
def test_the_seed_in_force_is_named_as_it_was_given(tf: Any, seed: Any) -> None:
    tf.random.set_seed(seed)
    assert seed_in_force() == seed
    drawn = tf.random.uniform([]).numpy()
    tf.random.set_seed(4)
    with global_seed_of(ReadSettings(global_seed=6)):
        assert seed_in_force() == 6
    assert seed_in_force() == 4
    if seed is not None:
        tf.random.set_seed(seed)
        seed_in_force()
        assert tf.random.uniform([]).numpy() == drawn
