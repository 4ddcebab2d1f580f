"""Plans, positions and epochs of fit of pipelines with stages, beside the uninterrupted ones."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import shardctl
import shardctl.tfds
from shardctl import ReadSettings, UsageError
from shardctl.saved.plan_file import plan_json
from shardctl.settings.read_settings import as_settings
from tests.cases import add_cases
from tests.tfds_datasets import build_dataset

MIXTURE = (
    "sample_from_datasets([train[:60%] | shuffle(9, seed=1) | repeat, read(test, shuffle_seed=3)"
    " | repeat], weights=[0.7, 0.3], seed=42) | shuffle(20, seed=3) | take(120) | batch(7)"
)
STAGES = (
    "cache | shuffle(10, seed=7) | batch(4) | repeat(3)",
    "repeat(2) | shuffle(7, seed=2) | batch(3)",
    "shuffle(7, seed=(2, 3)) | batch(3)",
    MIXTURE,
    "zip(train | shuffle(4, seed=1), test | repeat) | batch(4)",
)


@pytest.fixture(scope="module")
def builder(tfds: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    splits = {"train": [5, 0, 7, 9, 4], "test": [6, 6]}
    return tfds.builder_from_directory(
        build_dataset(tmp_path_factory.mktemp("staged"), splits=splits)
    )


def staged(stages: str, **others: Any) -> ReadSettings:
    return as_settings({"stages": stages, **others})


def plain(dataset: Any) -> list[Any]:
    import tensorflow as tf

    return [[part.numpy().tolist() for part in tf.nest.flatten(element)] for element in dataset]


def name(example: Any) -> Any:
    return example["tfds_id"]


@pytest.mark.parametrize(
    "stages",
    [
        STAGES[1],
        *(pytest.param(stages, marks=pytest.mark.slow) for stages in STAGES if stages != STAGES[1]),
    ],
)
def test_a_plan_goes_on_to_the_end_of_the_stages(builder: Any, stages: str, tmp_path: Path) -> None:
    settings = staged(stages, pass_index=1)
    how: Any = {"transform": name, "add_tfds_id": True}
    uninterrupted = shardctl.tfds.pipeline(builder, None, settings, **how)
    plain(uninterrupted)
    whole = plain(uninterrupted)
    step = random.Random(stages).randrange(1, len(whole))
    plan = shardctl.resume(str(builder.data_dir), None, settings, steps=step)
    assert plan.continued_by == "shardctl.tfds"
    path = tmp_path / "plan.json"
    path.write_text("".join(plan_json(plan)))
    assert plain(shardctl.tfds.resume(builder, path, **how)) == whole[step:]
    if stages in STAGES[2:4]:  # which makes the same plan
        exact = shardctl.tfds.exact_order(builder, None, settings, consumed=plan.consumed, **how)
        assert plain(exact) == whole[step:]
    add_cases()


def test_plans_with_stages_are_for_resume(builder: Any) -> None:
    settings = staged(STAGES[0])
    plan = shardctl.resume(str(builder.data_dir), None, settings, consumed=8)
    with pytest.raises(UsageError, match=r"shardctl\.tfds\.resume does"):
        shardctl.tfds.read_config(plan, builder)
    with pytest.raises(UsageError, match="stages run over epochs"):
        shardctl.tfds.resume_epochs(builder, plan)
    with pytest.raises(UsageError, match="in the middle of step 1"):
        shardctl.tfds.exact_order(builder, None, settings, consumed=6)


def test_a_global_seed_that_changes_stages_is_refused(tf: Any, builder: Any) -> None:
    seeded, pair = (staged(f"repeat(2) | shuffle(7, seed={s})") for s in ("2", "(3, 4)"))
    tf.random.set_seed(5)
    try:
        with pytest.raises(UsageError, match=r"set_seed\(5\) is in force"):
            shardctl.tfds.pipeline(builder, None, seeded)
        with pytest.raises(UsageError, match=r"set_seed\(5\) is in force"):
            shardctl.tfds.exact_order(builder, None, seeded, consumed=3)
        shardctl.tfds.pipeline(builder, None, pair)
    finally:
        tf.random.set_seed(None)


@pytest.mark.slow
def test_a_position_counts_what_stages_hand_out(builder: Any, tmp_path: Path) -> None:
    settings = staged(MIXTURE.replace("take(120)", "take(63)"))
    how: Any = {"transform": name, "add_tfds_id": True}
    whole = plain(shardctl.tfds.pipeline(builder, None, settings, **how))
    position = shardctl.tfds.Position(builder, None, settings)
    for step, _ in enumerate(position.count(position.dataset(**how))):
        if step == 4:
            break
    assert position.consumed == 35
    position.save(tmp_path / "position.json")
    again = shardctl.tfds.Position(builder, None, settings)
    again.restore(tmp_path / "position.json")
    assert plain(again.dataset(**how)) == whole[5:]
    assert len(list(again.count(again.dataset(**how)))) == len(whole) - 5
    assert again.consumed == 63


@pytest.mark.slow
def test_epochs_of_fit_are_those_of_one_run(builder: Any) -> None:
    settings = staged("repeat(2) | shuffle(7, seed=2) | batch(5)")
    how: Any = {"transform": lambda example: example["id"]}
    uninterrupted = shardctl.tfds.pipeline(builder, None, settings, **how)
    passes = [plain(uninterrupted) for _ in range(5)]
    found = shardctl.tfds.keras_epochs(
        builder, None, settings, epochs=3, initial_epoch=1, steps=4, **how
    )
    made = {epoch: plain(dataset) for epoch, dataset in found}
    assert made == {1: passes[2][4:], 2: passes[4]}  # two iterators an epoch


def test_a_log_of_a_pipeline_with_stages_has_its_unseen_examples_left(builder: Any) -> None:
    """What was seen is no place in the order of the stages."""
    dataset = shardctl.tfds.dataset_of(builder)
    settings = staged("repeat(2) | shuffle(7, seed=2) | batch(3)")
    total = shardctl.plan_order(dataset, "train").order.num_examples
    plan = shardctl.resume_unseen(dataset, "train", settings, seen=[0, 3])
    left = [int(e["id"]) for e in shardctl.tfds.resume(builder, plan).as_numpy_iterator()]
    assert left == [1, 2, *range(4, total)]
