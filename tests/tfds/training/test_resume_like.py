"""The rest of one's own pipeline, beside what the uninterrupted pipeline hands out."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl
import shardctl.tfds
from shardctl import ReadSettings
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.files.documents import to_json
from shardctl.saved.plan_file import plan_document
from shardctl.settings.read_settings import as_settings
from tests.cases import FUZZ, add_cases, check_cases
from tests.pipelines.random_pipelines import Habits, RandomPipeline, pipelines
from tests.pipelines.real_pipelines import epochs_of_fit, real_dataset
from tests.pipelines.tfds_sources import Sources, build_datasets
from tests.tfds_datasets import build_dataset

Make = Callable[[], Any]


@pytest.fixture(scope="module")
def world(tfds: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a function that reads a dataset with shuffled files, as TFDS does."""
    root = tmp_path_factory.mktemp("own")
    folder = build_dataset(root, "toy", {"train": [5, 0, 7, 9, 4]})

    def read(**config: Any) -> Any:
        config = {"read_config": tfds.ReadConfig(shuffle_seed=3, **config)}
        builder = tfds.builder_from_directory(folder)
        return builder.as_dataset(split="train", shuffle_files=True, **config)

    return read


def plain(element: Any) -> Any:
    """Return an element as lists, to be compared."""
    import tensorflow as tf

    parts = tf.nest.flatten(element)
    return [p.to_list() if hasattr(p, "to_list") else np.asarray(p).tolist() for p in parts]


def elements(dataset: Any) -> list[Any]:
    return [plain(element) for element in dataset]


def doubled(example: Any) -> Any:
    return {"id": example["id"], "twice": 2 * example["id"]}


def own_pipelines(read: Any) -> dict[str, Make]:
    """Return pipelines by a name that are made of the examples left, with what no law draws."""
    import tensorflow as tf

    def uneven() -> Any:
        return read().map(lambda e: tf.range(e["id"] % 5)).shuffle(9, seed=2)

    return {
        "chain": lambda: (
            read()
            .map(doubled, num_parallel_calls=2)
            .shuffle(6, seed=4)
            .repeat(3)
            .batch(4)
            .map(lambda batch: (batch["id"], batch["twice"] + 1))
            .prefetch(1)
        ),
        "cache": lambda: read().map(doubled).shuffle(6, seed=4).cache().batch(4).repeat(3),
        "batches": lambda: (
            read().batch(4).shuffle(5, seed=2).repeat(2).map(lambda b: tf.reduce_sum(b["id"]))
        ),
        "ids": lambda: read(add_tfds_id=True).shuffle(6, seed=4).batch(4, drop_remainder=True),
        "range": lambda: tf.data.Dataset.range(30).map(lambda x: x + 1).shuffle(7, seed=3).batch(4),
        "slices": lambda: (
            tf.data.Dataset.from_tensor_slices(([1.5, 2.5, 3.5], list("abc")))
            .shuffle(2, seed=3)
            .repeat(2)
        ),
        "padded": lambda: uneven().padded_batch(4).repeat(2),
        "ragged": lambda: uneven().ragged_batch(4),
    }


NAMES = ["chain", "cache", "batches", "ids", "slices", "padded", "ragged"]


@pytest.mark.parametrize(
    "name", ["range", *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES)]
)
def test_the_rest_is_what_the_uninterrupted_pipeline_hands_out(world: Any, name: str) -> None:
    make = own_pipelines(world)[name]
    whole = elements(make())
    rng = random.Random(name)
    steps = rng.randrange(len(whole))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # nothing is read again from its start
        rest = shardctl.tfds.resume_like(make(), steps=steps)
    for _ in range(1 + (name in ("range", "cache"))):  # the second time from where it began, too
        assert elements(rest) == whole[steps:], steps
    add_cases()


def without_files(folder: Path) -> dict[str, tuple[Make, int]]:
    """Return pipelines of sources without files, and how many elements their sources have."""
    import keras
    import tensorflow as tf

    sets, keyed = tf.data.Dataset, {"seed": 3, "batch_size": 8}
    for number in range(20):
        path = folder / "ab"[number % 2] / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"text {number}")
    numbers, tens = np.arange(100), np.arange(100) * 10

    def slices(values: Any) -> Any:
        return sets.from_tensor_slices(values)

    def series(**options: Any) -> Any:
        make: Any = keras.utils.timeseries_dataset_from_array
        return make(numbers * 1.0, tens, sequence_length=5, **keyed, **options)

    return {
        "zip": (
            lambda: sets.zip((slices(numbers), slices(tens))).shuffle(64, seed=1).batch(8),
            100,
        ),
        "nested": (
            lambda: (
                sets.zip(
                    (slices(numbers).map(doubled_number), sets.zip((slices(tens), sets.range(70))))
                )
                .shuffle(64, seed=1)
                .batch(8)
            ),
            70,
        ),
        "enumerated": (lambda: slices(numbers).enumerate().shuffle(9, seed=1).batch(8), 100),
        "series": (lambda: series(shuffle=True), 96),
        "series in order": (lambda: series(shuffle=False, sampling_rate=2), 92),
        "texts": (
            lambda: keras.utils.text_dataset_from_directory(folder, verbose=False, **keyed),
            20,
        ),
    }


def doubled_number(number: Any) -> Any:
    return number * 2


@pytest.mark.parametrize(
    "name",
    [
        *("zip", "enumerated"),
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("nested", "series", "series in order", "texts")
        ),
    ],
)
def test_elements_that_are_zipped_by_their_index_have_one_id(name: str, tmp_path: Path) -> None:
    make, num_elements = without_files(tmp_path)[name]
    whole = elements(make())
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # nothing is read again from its start
        for steps in (0, 1, len(whole) - 1, len(whole)):
            rest = shardctl.tfds.resume_like(make(), steps=steps)
            assert elements(rest) == whole[steps:], steps
    ids = shardctl.tfds.inspect(make()).ids().tolist()
    assert sorted(ids) == list(range(num_elements))
    if name == "zip":
        assert ids == [number for batch in whole for number in batch[0]]


def test_a_zip_of_several_orders_goes_on_by_steps_alone(tf: Any) -> None:
    def make() -> Any:
        parts = [tf.data.Dataset.range(40).shuffle(9, seed=seed) for seed in (1, 2)]
        return tf.data.Dataset.zip(tuple(parts)).batch(4)

    # 16 pairs are 4 batches, and 32 numbers.
    with pytest.raises(UsageError, match=r"consumed=16: zip puts .*; give steps=N"):
        shardctl.tfds.resume_like(make(), consumed=16)
    assert elements(shardctl.tfds.resume_like(make(), steps=4)) == elements(make())[4:]


def test_sources_without_files_that_are_mixed_are_resumed(tf: Any) -> None:
    def make() -> Any:
        numbers = tf.data.Dataset.range(10).concatenate(tf.data.Dataset.range(20, 35))
        return numbers.shuffle(9, seed=1).batch(4)

    assert elements(shardctl.tfds.resume_like(make(), steps=2)) == elements(make())[2:]


@pytest.mark.filterwarnings("ignore:.*read again from its start")
def test_batches_made_anew_of_a_source_without_files_are_resumed(tf: Any) -> None:
    def make() -> Any:
        return tf.data.Dataset.from_tensor_slices(np.arange(6)).batch(4).rebatch(3)

    assert elements(shardctl.tfds.resume_like(make(), steps=1)) == elements(make())[1:]


@pytest.mark.filterwarnings("ignore:.*read again from its start")
def test_several_files_of_lines_behind_scan_are_resumed(tf: Any, tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in "ab"]
    for path in paths:
        Path(path).write_text("".join(f"{path}{i}\n" for i in range(4)))

    def make() -> Any:
        lines = tf.data.TextLineDataset(paths).scan(0, lambda count, line: (count + 1, line))
        return lines.concatenate(tf.data.Dataset.from_tensors("").repeat(2))

    assert elements(shardctl.tfds.resume_like(make(), steps=1)) == elements(make())[1:]


@pytest.mark.parametrize(
    "name",
    [
        *("zip", "enumerate"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("repeat", "mixture")),
    ],
)
def test_an_end_that_is_as_far_off_as_none_is_not_followed_to(tf: Any, name: str) -> None:
    def make() -> Any:
        numbers = tf.data.Dataset.range(200).shuffle(50, seed=1)
        many = tf.data.Dataset.range(1 << 60)
        made = {
            "zip": lambda: tf.data.Dataset.zip((many, numbers.repeat())),
            "repeat": lambda: numbers.repeat(10**8),
            "enumerate": lambda: numbers.repeat(10**8).enumerate(),
            "mixture": lambda: tf.data.Dataset.sample_from_datasets(
                [numbers.repeat(), many], [0.5, 0.5], seed=3, stop_on_empty_dataset=True
            ),
        }
        return made[name]().batch(16)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        rest = shardctl.tfds.resume_like(make(), steps=7)
    assert elements(rest.take(20)) == elements(make().take(27))[7:]
    if name in ("repeat", "enumerate"):
        with pytest.raises(UsageError, match=r"1,250,000,000 elements, .*; put a take\(N\) behind"):
            shardctl.tfds.inspect(make()).ids()


@pytest.mark.slow
def test_later_passes_and_epochs_of_fit(world: Any) -> None:
    make = own_pipelines(world)["chain"]
    dataset = make()
    passes = [elements(dataset) for _ in range(3)]
    for index, whole in enumerate(passes[1:], 1):
        rest = shardctl.tfds.resume_like(make(), steps=5, pass_index=index)
        assert elements(rest) == whole[5:]
    epochs = epochs_of_fit(make(), ("batch", ("example", "example"), False), 2)
    fitted = shardctl.tfds.resume_like(make(), steps=5, pass_index=1, loop="keras-fit")
    assert [i for batch in elements(fitted) for i in batch[0]] == epochs[1][2 * 5 * 4 :: 2]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    return Sources(root=build_datasets(tmp_path_factory.mktemp("random")))


def checker(sources: Sources) -> Callable[[RandomPipeline], int]:
    def check(case: RandomPipeline) -> int:
        def make() -> Any:
            return real_dataset(case.pipeline, sources.dataset)

        dataset = make()
        passes = [elements(dataset) for _ in range(2)]
        rng = random.Random(repr(case))
        done = 0
        for index, whole in enumerate(passes):
            for steps in (rng.randrange(len(whole) + 1), rng.randrange(len(whole) + 1)):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)
                    try:
                        rest = shardctl.tfds.resume_like(make(), steps=steps, pass_index=index)
                    except (UnpredictableOrderError, UsageError):
                        return done
                    assert elements(rest) == whole[steps:], (index, steps)
                done += 1
        return done

    return check


@pytest.mark.slow
def test_random_pipelines_go_on(sources: Sources) -> None:
    check_cases(pipelines(sources.draw, Habits()), checker(sources), 1)


@pytest.mark.fuzz
def test_random_pipelines_go_on_fuzzed(sources: Sources) -> None:
    check_cases(pipelines(sources.draw, Habits()), checker(sources), FUZZ // 40)


def test_only_what_is_left_is_read(tf: Any, tfds: Any, tmp_path: Path) -> None:
    from shardctl.tfds.inspecting.inspect import inspect
    from shardctl.tfds.training.own_elements import OwnElements

    folder = build_dataset(tmp_path, splits={"train": [5] * 20})
    decoded = []

    def noted(example: Any) -> Any:
        tf.py_function(lambda i: decoded.append(int(i)), [example["id"]], [])
        return example["id"]

    def make() -> Any:
        config = tfds.ReadConfig(shuffle_seed=1)
        read = tfds.builder_from_directory(folder).as_dataset(
            split="train", shuffle_files=True, read_config=config
        )
        return read.map(noted).shuffle(5, seed=1).batch(2)

    whole = elements(make())
    decoded.clear()
    dataset = make()
    rest = OwnElements.of(dataset, inspect(dataset), 0).rest(45)
    assert elements(rest.dataset()) == whole[45:]
    assert len(decoded) == 10


def test_a_count_in_the_middle_of_a_batch_is_refused(world: Any) -> None:
    dataset = own_pipelines(world)["cache"]()
    with pytest.raises(
        UsageError, match=r"consumed=26 .* step 7, .* examples 25 to 28; .* 25 and 29"
    ):
        shardctl.tfds.resume_like(dataset, consumed=26)
    shardctl.tfds.resume_like(dataset, consumed=25)
    both = {"steps": 1, "consumed": 4}
    wrong: Any
    for wrong in ({"consumed": 76}, {"consumed": -1}, {"steps": 22}, {}, both):
        with pytest.raises(UsageError):
            shardctl.tfds.resume_like(dataset, **wrong)


def test_what_is_open_is_named(world: Any) -> None:
    dataset = world().filter(lambda example: example["id"] > 3).batch(2)
    with pytest.raises(UnpredictableOrderError, match="filter"):
        shardctl.tfds.resume_like(dataset, steps=1)


def test_what_cannot_be_made_of_examples_is_read_again(world: Any) -> None:
    def make() -> Any:
        return world().shuffle(9, seed=2).enumerate().map(lambda n, e: (n, e["id"])).batch(4)

    dataset = make()
    elements(dataset)
    whole = elements(dataset)
    with pytest.warns(UserWarning, match=f"again from its start, {25 + 12} examples"):
        rest = shardctl.tfds.resume_like(make(), steps=3, pass_index=1)
    assert elements(rest) == whole[3:]


@pytest.mark.slow
def test_random_maps_are_named(tf: Any, world: Any) -> None:
    def make() -> Any:
        return world().map(lambda e: (e["id"], tf.random.uniform([]))).shuffle(6, seed=4).batch(4)

    whole = [element[0] for element in elements(make())]
    with pytest.warns(UserWarning, match=r"\(RandomUniform\) draws random numbers"):
        rest = shardctl.tfds.resume_like(make(), steps=2)
    assert [element[0] for element in elements(rest)] == whole[2:]


# Plans, positions and epochs of fit of pipelines with stages, beside the uninterrupted ones.


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
    elements(uninterrupted)
    whole = elements(uninterrupted)
    step = random.Random(stages).randrange(1, len(whole))
    plan = shardctl.resume(str(builder.data_dir), None, settings, steps=step)
    assert plan.continued_by == "shardctl.tfds"
    path = tmp_path / "plan.json"
    path.write_text("".join(to_json(plan_document(plan))))
    assert elements(shardctl.tfds.resume(builder, path, **how)) == whole[step:]
    if stages in STAGES[2:4]:  # which makes the same plan
        exact = shardctl.tfds.exact_order(builder, None, settings, consumed=plan.consumed, **how)
        assert elements(exact) == whole[step:]
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
    whole = elements(shardctl.tfds.pipeline(builder, None, settings, **how))
    position = shardctl.tfds.Position(builder, None, settings)
    for step, _ in enumerate(position.count(position.dataset(**how))):
        if step == 4:
            break
    assert position.consumed == 35
    position.save(tmp_path / "position.json")
    again = shardctl.tfds.Position(builder, None, settings)
    again.restore(tmp_path / "position.json")
    assert elements(again.dataset(**how)) == whole[5:]
    assert len(list(again.count(again.dataset(**how)))) == len(whole) - 5
    assert again.consumed == 63


@pytest.mark.slow
def test_epochs_of_fit_are_those_of_one_run(builder: Any) -> None:
    settings = staged("repeat(2) | shuffle(7, seed=2) | batch(5)")
    how: Any = {"transform": lambda example: example["id"]}
    uninterrupted = shardctl.tfds.pipeline(builder, None, settings, **how)
    passes = [elements(uninterrupted) for _ in range(5)]
    found = shardctl.tfds.keras_epochs(
        builder, None, settings, epochs=3, initial_epoch=1, steps=4, **how
    )
    made = {epoch: elements(dataset) for epoch, dataset in found}
    assert made == {1: passes[2][4:], 2: passes[4]}  # two iterators an epoch


def test_a_log_of_a_pipeline_with_stages_has_its_unseen_examples_left(builder: Any) -> None:
    dataset = shardctl.tfds.dataset_of(builder)
    settings = staged("repeat(2) | shuffle(7, seed=2) | batch(3)")
    total = shardctl.plan_order(dataset, "train").order.num_examples
    plan = shardctl.resume_unseen(dataset, "train", settings, seen=[0, 3])
    left = [int(e["id"]) for e in shardctl.tfds.resume(builder, plan).as_numpy_iterator()]
    assert left == [1, 2, *range(4, total)]
