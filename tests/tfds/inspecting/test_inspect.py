"""Real pipelines: what `inspect` says of them beside what iterating them hands out."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl
from shardctl import ReadSettings, UnpredictableOrderError, UsageError
from shardctl.dataset.dataset import source_dataset
from shardctl.files.documents import to_yaml
from shardctl.metadata.project_file import find_project
from shardctl.settings.names import settings_from_document
from shardctl.stages.text import text_of
from shardctl.tfds.inspecting.inspect import inspect
from shardctl.verbs.inspect.answer import Inspection
from shardctl.verbs.inspect.view import is_without_metadata, layout_name, project_yaml
from shardctl.verbs.layout.view import layout_document
from tests.forked_scripts import forking_python
from tests.golden import rows
from tests.pipelines.real_pipelines import epochs_of_fit
from tests.tfds_datasets import build_dataset

NUM_PASSES = 3
TRAIN, TEST = [7, 5, 0, 9, 4], [4, 3]
RECORDS = [3, 6, 2, 5]  # of files without metadata


@dataclass(frozen=True)
class World:
    """Datasets on disk: `toy` (train and test), `one` (a single file), `parquet`, record files."""

    root: Path

    @functools.cache  # noqa: B019
    def builder(self, name: str = "toy") -> Any:
        import tensorflow_datasets as tfds

        return tfds.builder_from_directory(self.root / name / "1.0.0")

    def read(self, split: Any = "train", name: str = "toy", **arguments: Any) -> Any:
        """Return what `as_dataset` reads, under a ReadConfig of the arguments that it has."""
        import tensorflow_datasets as tfds

        own = ("shuffle_files", "as_supervised", "decoders", "batch_size")
        given = {key: arguments.pop(key) for key in own if key in arguments}
        options = arguments.pop("options", {})
        config = tfds.ReadConfig(**arguments)
        for key, value in options.items():
            setattr(config.options, key, value)
        return self.builder(name).as_dataset(split=split, read_config=config, **given)

    def files(self, pattern: str = "*") -> list[str]:
        return sorted(str(path) for path in (self.root / "plain").glob(pattern))


@pytest.fixture(scope="module")
def world(tf: Any, tmp_path_factory: pytest.TempPathFactory) -> World:
    root = tmp_path_factory.mktemp("inspect")
    build_dataset(root, "toy", {"train": TRAIN, "test": TEST})
    build_dataset(root, "one", {"train": [11]})
    build_dataset(root, "many", {"train": [41, 0, 57, 30]})
    build_dataset(root, "parquet", {"train": TRAIN}, file_format="parquet")
    build_dataset(root, "ordered", {"train": TRAIN}, disable_shuffling=True)
    (root / "plain").mkdir()
    first = 0
    for index, length in enumerate(RECORDS):
        with tf.io.TFRecordWriter(str(root / "plain" / f"part-{index}.tfrecord")) as writer:
            for number in range(first, first + length):
                writer.write(str(number).encode())
        first += length
    return World(root)


@pytest.fixture(autouse=True)
def no_global_seed() -> Iterator[None]:
    from tensorflow.python.eager import context

    def clear() -> None:
        context.context()._seed = None
        context.context()._rng = None

    clear()
    yield
    clear()


def flat(value: Any) -> list[int]:
    """Return the ids in an element, whatever holds them."""
    if isinstance(value, dict):
        return flat(value["id"])
    if isinstance(value, tuple | list):
        return [number for part in value for number in flat(part)]
    array = np.asarray(value)
    if array.dtype.kind in "SO":
        return [int(text) for text in array.reshape(-1)]
    return [int(number) for number in array.reshape(-1)]


def handed_out(dataset: Any) -> list[int]:
    """Return the ids that iterating a dataset once hands out."""
    return [number for element in dataset.as_numpy_iterator() for number in flat(element)]


def data() -> Any:
    import tensorflow as tf

    return tf.data


def sets() -> Any:
    return data().Dataset


def added(example: Any) -> Any:
    """Return an example by way of an operation, so that the map is no identity."""
    import tensorflow as tf

    return tf.nest.map_structure(
        lambda part: part + 0 if part.dtype.is_integer else tf.strings.join([part]), example
    )


def ids_of(examples: Any) -> Any:
    return examples.map(lambda example: example["id"])


def files(world: World, **more: Any) -> Any:
    return world.read(shuffle_files=True, shuffle_seed=3, **more)


def ids(world: World, **more: Any) -> Any:
    return ids_of(files(world, **more))


def train(world: World, piece: str = "", **more: Any) -> Any:
    return ids_of(world.read(f"train{piece}", **more))


def mixed(world: World, shuffled: int = 6) -> Any:
    return ids(world).shuffle(shuffled, seed=2)


def options(**values: Any) -> Any:
    """Return options; those of `experimental_optimization` are meant where there are no others."""
    made = data().Options()
    for name, value in values.items():
        setattr(made if hasattr(made, name) else made.experimental_optimization, name, value)
    return made


def tfds() -> Any:
    import tensorflow_datasets

    return tensorflow_datasets


def seeded(seed: int | None, make: Callable[[], Any]) -> Any:
    """Return what is made under a global seed."""
    import tensorflow as tf

    tf.random.set_seed(seed)
    return make()


def sample(inputs: Any, *weights: Any, **more: Any) -> Any:
    return sets().sample_from_datasets(inputs, *weights, **more)


def pieces(world: World, *starts: int) -> list[Any]:
    return [train(world, f"[{start}:]") for start in starts]


def asserted(dataset: Any, count: int) -> Any:
    return dataset.apply(data().experimental.assert_cardinality(count))


def records(world: World, **more: Any) -> Any:
    return data().TFRecordDataset(world.files(), **more)


def interleaved(listed: Any, **more: Any) -> Any:
    return listed.interleave(data().TFRecordDataset, **more)


def globbed(world: World, **more: Any) -> Any:
    return sets().list_files(str(world.root / "plain" / "*"), **more)


def sharded(dataset: Any, policy: str, count: int, index: int) -> Any:
    """Return what tf.distribute makes of a dataset for one of several workers."""
    from tensorflow.python.data.experimental.ops import distribute

    chosen = options()
    policies = data().experimental.AutoShardPolicy
    chosen.experimental_distribute.auto_shard_policy = getattr(policies, policy)
    return distribute._AutoShardDataset(dataset.with_options(chosen), count, index)


def noisy(number: Any) -> Any:
    import tensorflow as tf

    return number + tf.cast(tf.random.uniform([], 0, 1, tf.int32), tf.int64)


def use(one: Any, make: Callable[[Any], Any]) -> Any:
    """Return what is made of a dataset object that is used more than once."""
    return make(one)


def _numbers() -> Any:
    return sets().range(12)


def in_context(world: World) -> Any:
    import tensorflow as tf

    context = tf.distribute.InputContext(num_input_pipelines=2, input_pipeline_id=1)
    seeds: dict[str, Any] = {"shuffle_files": True, "shuffle_seed": 3}
    return world.read(input_context=context, interleave_block_length=2, **seeds)


def keras_seeds(world: World) -> Any:
    import keras

    keras.utils.set_random_seed(812)
    return world.read(shuffle_files=True, shuffle_seed=1).shuffle(7)


def seedless_after_others(world: World) -> Any:
    import tensorflow as tf

    tf.random.uniform([])
    world.read(shuffle_files=True).shuffle(3)
    return ids_of(world.read(shuffle_files=True, shuffle_seed=1)).shuffle(9)


def seeds_of_two_global_seeds(world: World) -> Any:
    before = ids_of(world.read(shuffle_files=True, shuffle_seed=1)).shuffle(4, seed=2)
    return seeded(11, lambda: before.shuffle(5, seed=3))


def options_of_the_reader(world: World) -> Any:
    config = tfds().ReadConfig(shuffle_seed=3, options=options(shuffle_and_repeat_fusion=False))
    read = world.builder().as_dataset(split="train", read_config=config, shuffle_files=True)
    return read.shuffle(6, seed=2).repeat(2)


def one_thread(world: World) -> Any:
    return world.read(num_parallel_calls_for_decode=1, options={"deterministic": False})


def many_stages(world: World) -> Any:
    read = ids(world).shard(2, 0).cache().shuffle(5, seed=4).batch(3)
    return read.repeat(2).shuffle(4, seed=6).unbatch().skip(3).take(20).batch(6).prefetch(1)


def made(text: str, world: World) -> Any:
    return eval(text, {**globals(), "w": world})


# Random pipelines have the ordinary ones: tests/pipelines/test_inspect_claim.py.
CASES = rows(Path(__file__).with_name("pipelines.txt"))

# A case of each kind, and the cheapest ones; the others take long.
QUICK = {
    *("plain_read", "even_split_of_even_splits", "input_context", "a_file_twice", "many_stages"),
    *("cache_before_shuffle", "two_shuffles_under_a_global_seed", "zipped_with_what_is_made_of_it"),
    *("repeated_and_not", "counted", "slices", "mixed_counts", "record_files"),
    *("record_files_read_side_by_side", "autosharded_by_file", "records_cached_and_cut"),
    "records_asserted_cached_and_cut",
}


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES],
)
def test_inspects_what_is_handed_out(
    world: World, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = made(CASES[name], world)
    found = inspect(dataset)
    assert found.predictable, found.open or found.refused
    passes = [list(found.ids(index)) for index in range(NUM_PASSES)]
    if passes[2] == passes[1] == passes[0]:
        del passes[2]  # of one order for ever two are enough
    if found.dataset is not None and name != "repeated_files_cut":
        monkeypatch.chdir(tmp_path)
        check_shardctl_yaml(found, passes)
    for index, expected in enumerate(passes):
        assert numbers(expected) == handed_out(dataset), (index, found.stages)


def numbers(ids: Sequence[Any]) -> list[int]:
    """Return ids without their splits."""
    return [int(str(each).rpartition(":")[2]) for each in ids]


# Orders that are open, each with the stage that leaves it so.


def _ready_first(dataset: Any) -> Any:
    return dataset.with_options(options(deterministic=False))


def _two(number: Any) -> Any:
    import tensorflow as tf

    return tf.stack([number, number])


def _generated() -> Any:
    import tensorflow as tf

    spec = tf.TensorSpec([], tf.int64)
    return sets().from_generator(lambda: iter([1, "b"]), output_signature=spec)


def _slices(world: World) -> Any:
    return sets().from_tensor_slices(world.files())


OPEN = {n: row.split(" => ") for n, row in rows(Path(__file__).with_name("open.txt")).items()}

# What TensorFlow traces longest.
SLOW_OPEN = ("files that a filter reads", "groups", "choices that are computed", "flat_map")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW_OPEN)) for name in OPEN]
)
def test_names_the_stage_that_leaves_an_order_open(world: World, name: str) -> None:
    text, call, reason = OPEN[name]
    found = inspect(made(text, world))
    assert not found.predictable
    assert [each.stage.call for each in found.open] == [call]
    assert reason in found.open[0].reason
    with pytest.raises(UnpredictableOrderError, match=re.escape(call)):
        found.ids()


def test_a_legacy_interleave_is_refused_where_a_file_ends_within_a_block(world: World) -> None:
    legacy = data().experimental.parallel_interleave
    for block, predictable in ((3, True), (2, False), (1, True)):
        listed = sets().from_tensor_slices(world.files()[:2])
        dataset = listed.apply(legacy(data().TFRecordDataset, 2, block))
        found = inspect(dataset)
        assert found.predictable is predictable
        if predictable:
            assert [int(each) for each in found.ids()] == handed_out(dataset)
        else:
            assert "timing decides what comes next" in (found.refused or "")


def test_ids_of_what_has_no_end_are_refused(world: World) -> None:
    for endless in (train(world).shuffle(3, seed=1).repeat(), _numbers().repeat()):
        assert inspect(endless).predictable
        with pytest.raises(UsageError, match="no end"):
            inspect(endless).ids()


def named(found: Inspection, index: int = 0) -> list[str]:
    """Return the tfds_ids of a pass by its ids."""
    codes = found.order(index).order.codes
    return codes.tfds_ids([codes.parse(each) for each in found.ids(index)])


def tfds_ids(dataset: Any) -> list[str]:
    return [example["tfds_id"].decode() for example in dataset.as_numpy_iterator()]


def test_ids_of_several_splits_name_their_split(world: World) -> None:
    dataset = world.read("test+train[:5]", add_tfds_id=True, interleave_block_length=2)
    found = inspect(dataset)
    assert found.spec == "test+train[:5]"
    assert found.ids()[:3] == ["test:0", "test:1", "test:4"]
    assert named(found) == tfds_ids(dataset)


@pytest.mark.slow
def test_ids_of_several_datasets_name_the_dataset(world: World) -> None:
    parts = [files(world, add_tfds_id=True, name=name) for name in ("toy", "many")]
    dataset = sample(parts, [0.4, 0.6], seed=3)
    found = inspect(dataset)
    for index in range(NUM_PASSES):
        assert named(found, index) == tfds_ids(dataset)


def test_folders_that_are_read_as_one_dataset(world: World) -> None:
    folders = [world.root / name / "1.0.0" for name in ("toy", "many")]
    config = tfds().ReadConfig(add_tfds_id=True, shuffle_seed=2)
    builder = tfds().builder_from_directories(folders)
    dataset = builder.as_dataset(split="train", shuffle_files=True, read_config=config)
    order = inspect(dataset).order().order
    assert order.codes.tfds_ids(order.read(0, order.num_examples)) == tfds_ids(dataset)


def test_seeds_and_settings_are_stated_as_a_script_states_them(world: World) -> None:
    found = inspect(seeded(11, lambda: ids(world).shuffle(4).shuffle(5, seed=3)))
    assert (found.settings.global_seed, found.settings.shuffle_seed) == (11, 3)
    calls = [stage.call for stage in found.stages]
    assert (calls[0], calls[-1]) == ("read(train, shuffle_seed=3)", "shuffle(5, seed=3)")
    # The short form where it is the same.
    found = seeded(None, lambda: inspect(made(CASES["canonical"], world)))
    settings = ReadSettings(shuffle_seed=3, buffer=6, buffer_seed=2, epochs=2, batch=4)
    assert found.settings == settings
    assert found.dataset is not None
    assert found.findings() == shardctl.lint(found.dataset, "train", settings).findings
    both = world.read({"a": "train[:5]", "b": "test"})
    assert [inspect(both[name]).spec for name in both] == ["train[:5]", "test"]


def test_several_readers_say_what_they_read(world: World) -> None:
    two = inspect(sample([files(world), world.read("train[:5]", "many")], seed=5))
    assert list(two.datasets) == [str(world.root / name / "1.0.0") for name in ("toy", "many")]
    assert two.settings.stages is not None
    assert re.search("shuffle_seed=3.*data=", text_of(two.settings.stages))
    alike = inspect(sample([files(world), world.read("test")], seed=5))
    assert (alike.datasets, alike.settings.stages is None) == ({}, False)
    assert text_of(alike.settings.stages) == (  # type: ignore[arg-type]
        "sample_from_datasets([read(train, shuffle_seed=3), test], seed=5)"
    )


def test_options_that_nothing_goes_by_leave_no_order_open(world: World) -> None:
    for calls, predictable in ((1, True), (2, False)):
        read = files(world, num_parallel_calls_for_decode=calls).skip(1)
        found = inspect(read.with_options(options(deterministic=False)))
        assert found.predictable is predictable


def test_the_function_that_makes_it_is_watched() -> None:
    def make() -> Any:
        numbers = sets().range(9)
        return numbers.shuffle(4).batch(2)

    first = make.__code__.co_firstlineno
    found = inspect(make)
    lines = [stage.line.line for stage in found.stages if stage.line is not None]
    assert lines == [first + 1, first + 2, first + 2]
    assert found.open[0].line is not None
    assert found.open[0].line.text == "return numbers.shuffle(4).batch(2)"
    with pytest.raises(UnpredictableOrderError, match=rf"test_inspect.py:{first + 2}"):
        found.ids()


@pytest.mark.slow
def test_distributed_datasets(tf: Any, world: World) -> None:
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    distributed = strategy.experimental_distribute_dataset(mixed(world, 4).batch(6))
    found = inspect(distributed)
    for index in range(NUM_PASSES):
        got = [number for batch in distributed for number in flat(batch.numpy())]
        assert list(found.ids(index)) == got


def check_shardctl_yaml(found: Inspection, passes: list[list[Any]]) -> None:
    """Check that a shardctl.yaml in the current folder reads what was found of each pass."""
    folder = Path.cwd()
    (folder / "shardctl.yaml").write_text("".join(project_yaml((found,), "train.py:make")))
    assert found.dataset is not None
    if is_without_metadata(found.dataset):
        text = "".join(to_yaml(layout_document(shardctl.layout(found.dataset))))
        (folder / layout_name(found.dataset)).write_text(text)
    project = find_project(folder)
    refs = (ref if source_dataset(ref) else str(folder / ref) for ref in project.dataset)
    dataset = shardctl.read_dataset(*refs)
    for index, expected in enumerate(passes):
        settings = ReadSettings(**settings_from_document(dict(project.read) | {"pass": index}))
        order = shardctl.plan_order(dataset, None, settings).order
        assert order.codes.ids(order.read(0, order.num_examples)) == expected


# What Keras trains on, epoch by epoch.


def check_fit(dataset: Any, found: Inspection | None = None, kind: Any = None) -> None:
    found = found or inspect(dataset, loop="keras-fit")
    told = [numbers(found.ids(index)) for index in range(NUM_PASSES)]
    batches: Any = kind or ("batch", "example", False)
    assert told == epochs_of_fit(dataset, batches, NUM_PASSES)


def _parsed(record: Any) -> Any:
    import tensorflow as tf

    return tf.strings.to_number(record, tf.int64)


def test_keras_fit(world: World) -> None:
    check_fit(many_stages(world))


@pytest.mark.slow
def test_keras_takes_one_iterator_an_epoch_where_nobody_knows_the_length(world: World) -> None:
    check_fit(records(world).map(_parsed).shuffle(5, seed=1).batch(4))


def test_a_reader_without_its_assertion_is_written_so(world: World) -> None:
    """As a command is told of the loop, who was given the settings alone."""
    for asserts in (True, False):
        dataset = train(world, assert_cardinality=asserts).shuffle(5, seed=1).batch(4)
        settings = replace(inspect(dataset).settings, loop="keras-fit")
        assert (settings.stages is None) is asserts
        check_fit(dataset, replace(inspect(dataset), settings=settings))


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_epochs_of_fit_end_where_the_first_did_if_nobody_knows_the_length(
    world: World, seed: int
) -> None:
    """A mixture that ends with its first empty input has passes of any length."""
    ends: dict[str, Any] = {"stop_on_empty_dataset": True, "rerandomize_each_iteration": True}
    made = sample([sets().range(5), sets().range(200)], [0.2, 0.8], seed=seed, **ends)
    check_fit(made.shuffle(2, seed=3), kind="example")
    check_fit(sample(pieces(world, 0, 9), seed=seed, **ends), kind="example")


def test_what_is_no_dataset_is_refused() -> None:
    with pytest.raises(UsageError, match=r"a tf\.data\.Dataset, an object of"):
        inspect(3)
    with pytest.raises(UsageError, match=r"returned int, no tf\.data\.Dataset"):
        inspect(lambda: 3)


def test_inside_a_function_that_tensorflow_traces(tf: Any) -> None:
    outside = sets().range(9).shuffle(4, seed=1)
    found: list[Any] = []

    @tf.function(autograph=False)
    def traced() -> None:
        found.append(inspect(outside).ids().tolist())
        with pytest.raises(UsageError, match=r"^the dataset is made inside a tf\.function or a "):
            inspect(sets().range(9))

    traced()
    assert found == [list(outside.as_numpy_iterator())]


def test_datasets_of_two_calls_are_not_taken_for_one() -> None:
    kept: list[Any] = []

    def shuffled() -> Any:
        kept.append(sets().range(9).shuffle(3, seed=1))
        return kept[-1]

    inspect(shuffled)
    found = inspect(lambda: sets().zip((sets().range(9).shuffle(3, seed=1), kept[0])))
    zipped = sets().zip((shuffled(), shuffled()))
    for pass_index in range(2):
        assert numbers(found.ids(pass_index)) == handed_out(zipped)


@pytest.mark.slow
def test_operations_that_are_made_deterministic(world: World, tmp_path: Path) -> None:
    """`enable_op_determinism` stands above every option; it cannot be taken back in a process."""
    script = tmp_path / "deterministic.py"
    script.write_text(f"""
import tensorflow as tf, tensorflow_datasets as tfds
tf.config.experimental.enable_op_determinism()
tf.random.set_seed(7)
from shardctl.tfds import inspect
builder = tfds.builder_from_directory({str(world.root / "toy" / "1.0.0")!r})
read = builder.as_dataset(split="train", shuffle_files=True)
ds = read.map(lambda e: e["id"] + 0, num_parallel_calls=4, deterministic=False).shuffle(5)
found = inspect(ds)
for index in range(3):
    assert found.ids(index).tolist() == [int(n) for n in ds.as_numpy_iterator()], found.stages
print("the same")
""")
    (ran,) = forking_python().run([[script]], tmp_path)
    assert ran.out == "the same\n", ran.errors[-2000:]
