"""The loops of CLU and MaxText in the guides, killed at random moments; stubs where neither is."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.guide.guides import guide_files
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.tfds import Position, pipeline
from shardctl.tfds.imports import tensorflow
from tests.cases import FUZZ, random_of_a_fuzz_run
from tests.forked_scripts import forking_python
from tests.grain.toys import needs_grain
from tests.killed_runs import (
    Script,
    WholeRun,
    build_images,
    check_killed_runs,
    check_other_processes,
    image_of,
    script_of_guide,
    whole_run,
)
from tests.tfds_datasets import build_dataset

LENGTHS, EPOCHS = [400, 0, 250, 617, 300, 333, 100], 3
KILLS = max(1, FUZZ // 1000)

pytestmark = pytest.mark.fuzz

# What the scripts use, as google/CommonLoopUtils and AI-Hypercomputer/maxtext have it.
STUBS = {
    "clu/checkpoint.py": """
import os
import flax
import jax
import tensorflow as tf

class MultihostCheckpoint:
    def __init__(self, multihost_base_directory, tf_state=None, *, host_id=None, max_to_keep=5):
        self.base, self.max_to_keep = multihost_base_directory, max_to_keep
        host = jax.process_index() if host_id is None else host_id
        self.base_directory = self.folder = f"{self.base}-{host}"
        self.checkpoint = tf.train.Checkpoint(**tf_state or {})
        self.manager = self.manager_of(self.checkpoint, self.folder)

    def manager_of(self, checkpoint, folder):
        return tf.train.CheckpointManager(checkpoint, folder, max_to_keep=self.max_to_keep)

    def get_latest_checkpoint_to_restore_from(self):
        every = []
        for folder in tf.io.gfile.glob(f"{self.base}-*"):
            names = self.manager_of(tf.train.Checkpoint(), folder).checkpoints
            every.append({int(name.rpartition("-")[2]) for name in names})
        common = set.intersection(*every) if every else set()
        return f"{self.folder}/ckpt-{max(common)}" if common else None

    def save(self, state):
        number = int(self.checkpoint.save_counter) + 1
        os.makedirs(self.folder, exist_ok=True)
        with open(f"{self.folder}/ckpt-{number}.flax", "wb") as file:
            file.write(flax.serialization.to_bytes(state))
        self.manager.save()

    def load_state(self, state, checkpoint):
        with open(f"{checkpoint}.flax", "rb") as file:
            return flax.serialization.from_bytes(state, file.read())

    def restore_or_initialize(self, state):
        newest = self.get_latest_checkpoint_to_restore_from()
        if newest is None:
            self.save(state)
            return state
        state = self.load_state(state, newest)
        self.checkpoint.restore(newest)
        return state
""",
    "maxtext/common/grain_utility.py": """
import dataclasses
import json
import jax
import orbax.checkpoint as ocp
from grain import python
from grain.experimental import ElasticIterator

class GrainCheckpointHandler(python.PyGrainCheckpointHandler, ocp.CheckpointHandler):
    def save(self, directory, item=None, args=None):
        assert isinstance(args.item, ElasticIterator)
        if jax.process_index() == 0:
            directory.mkdir(parents=True, exist_ok=True)
            (directory / "process_0.json").write_text(json.dumps(args.item.get_state(), indent=4))

    def restore(self, directory, item=None, args=None):
        args.item.set_state(json.loads((directory / "process_0.json").read_text()))
        return args.item

@ocp.args.register_with_handler(GrainCheckpointHandler, for_save=True)
@dataclasses.dataclass
class GrainCheckpointSave(ocp.args.CheckpointArgs):
    item: object

@ocp.args.register_with_handler(GrainCheckpointHandler, for_restore=True)
@dataclasses.dataclass
class GrainCheckpointRestore(ocp.args.CheckpointArgs):
    item: object

def restore_grain_iterator(manager, step, data_iterator, checkpoint_args, expansion_factor):
    assert isinstance(data_iterator.local_iterator, ElasticIterator)
    iterator = GrainCheckpointRestore(data_iterator.local_iterator)
    args = ocp.args.Composite(items=checkpoint_args, iter=iterator)
    return manager.restore(step, args=args), None
""",
    "maxtext/input_pipeline/multihost_dataloading.py": """
import jax
import numpy as np

class MultiHostDataLoadIterator:
    def __init__(self, dataloader, global_mesh):
        self.mesh, self.local_iterator = global_mesh, iter(dataloader)

    def __next__(self):
        spec = jax.sharding.PartitionSpec(self.mesh.axis_names)
        sharding = jax.sharding.NamedSharding(self.mesh, spec)

        def on_devices(array):
            shape = (jax.process_count() * len(array), *array.shape[1:])
            parts = np.split(array, len(self.mesh.local_devices))
            parts = jax.device_put(parts, self.mesh.local_devices)
            return jax.make_array_from_single_device_arrays(shape, sharding, parts)

        return jax.tree.map(on_devices, next(self.local_iterator))
""",
}

MISSING = [stub for stub in STUBS if importlib.util.find_spec(stub.partition("/")[0]) is None]


def script_in(folder: Path, guide: str, name: str) -> Path:
    """Write a script of a guide, and beside it what it imports and nobody has installed."""
    for stub in MISSING:
        (folder / stub).parent.mkdir(parents=True, exist_ok=True)
        (folder / stub).write_text(STUBS[stub])
    (folder / name).write_text(script_of_guide(guide, name))
    return folder / name


# CLU.


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_images(tmp_path_factory.mktemp("data"), train=LENGTHS)


def last_of_clu(run: Path) -> Mapping[str, Any]:
    from flax import serialization

    found: dict[str, Any] = {}
    for folder in run.glob("checkpoints-of-*"):
        # The number of a checkpoint counts those before it, the one of the start as well.
        last = max(folder.glob("*.flax"), key=lambda path: int(path.stem[5:]))
        found |= {
            f"{folder.name}, {name}": value
            for name, value in serialization.msgpack_restore(last.read_bytes()).items()
        }
    return found


@pytest.mark.parametrize("processes", [1, 2])
def test_the_loop_of_clu_killed_at_random_moments_ends_as_if_it_was_not(
    folder: Path, tmp_path: Path, processes: int
) -> None:
    import tensorflow_datasets as tfds

    path = script_in(tmp_path, "flax-loops", "clu_train.py")
    script = Script(path=path, arguments=(folder,), outcome=last_of_clu, processes=processes)
    whole = whole_run(script, tmp_path / "whole")
    assert len(whole.outcome) == 2 * processes
    builder, read = tfds.builder_from_directory(folder), []
    for index in range(processes):
        host = Host(index=index, count=processes)
        settings = ReadSettings(
            shuffle_seed=32, buffer=1000, buffer_seed=7, epochs=3, batch=64, host=host
        )
        names = pipeline(builder, "train", settings, add_tfds_id=True, transform=_name)
        read.append([b" ".join(batch).decode() for batch in names.as_numpy_iterator()])
    assert [*whole.steps.values()] == [", ".join(parts) for parts in zip(*read, strict=True)]
    report = check_killed_runs(script, whole, tmp_path / "killed", kills=KILLS)
    print(report)


def _name(example: Any) -> Any:
    return example["tfds_id"]


def test_clu_continues_with_another_number_of_processes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tensorflow_datasets as tfds
    from flax import struct

    script_in(tmp_path, "flax-loops", "clu_train.py")
    monkeypatch.syspath_prepend(tmp_path)
    checkpoint = importlib.import_module("clu.checkpoint")
    builder = tfds.builder_from_directory(folder)
    state_of = struct.dataclass(type("State", (), {"__annotations__": {"step": int}}))

    def position_of(index: int, count: int) -> Position:
        host = Host(index=index, count=count)
        settings = ReadSettings(shuffle_seed=3, epochs=2, batch=50, host=host)
        return Position(builder, "train", settings)

    def read(position: Position, batches: int) -> list[str]:
        rest = position.dataset(add_tfds_id=True, transform=_name).as_numpy_iterator()
        taken = zip(range(batches), position.count(rest), strict=False)
        return [name.decode() for _, batch in taken for name in batch]

    seen: list[str] = []
    for index in range(8):
        position = position_of(index, 8)
        base = f"{tmp_path}/checkpoints-of-8"
        saved = checkpoint.MultihostCheckpoint(base, {"data": position}, host_id=index)
        seen += read(position, 3)
        saved.save(state_of(3))
        if index == 5:  # this one comes further than the others
            read(position, 1)
            saved.save(state_of(4))
    script = script_of_guide("flax-loops", "clu_train.py")
    given: dict[str, Any] = {"tf": tensorflow(), "Path": Path, "run": tmp_path}
    exec(script[script.index("def whole(") : script.index("class Checkpoints")], given)
    for index in range(3):
        position, base = position_of(index, 3), f"{tmp_path}/checkpoints-of-3"
        saves = checkpoint.MultihostCheckpoint(base, {"data": position}, host_id=index)
        names = given | {"position": position, "checkpoints": saves, "state": state_of(0)}
        exec(guide_files()["clu_moved.py"], names)
        assert names["state"].step == 3
        seen += read(position, 1000)
    assert sorted(seen) == sorted([*set(seen)] * 2)
    assert len(seen) == 2 * sum(LENGTHS)


def test_a_checkpoint_of_clu_without_a_position_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = script_in(tmp_path, "flax-loops", "clu_train.py")
    monkeypatch.syspath_prepend(tmp_path)
    checkpoint = importlib.import_module("clu.checkpoint")
    (tmp_path / "run").mkdir()
    before = checkpoint.MultihostCheckpoint(f"{tmp_path}/run/checkpoints-of-1", host_id=0)
    before.save({"step": 10, "weights": np.zeros((28 * 28, 10), np.float32)})
    (done,) = forking_python().run([[path, folder, tmp_path / "run"]], tmp_path)
    assert done.code == 1
    assert "the checkpoint is from before the position was in it" in done.errors


def test_settings_have_the_order_of_clu(folder: Path) -> None:
    data = pytest.importorskip("clu.deterministic_data", reason="CLU is not installed")
    import jax
    import tensorflow_datasets as tfds

    names: dict[str, Any] = {}
    exec(guide_files()["clu_settings.py"], names)
    builder, rng = tfds.builder_from_directory(folder), jax.random.key(42)
    real = data.create_dataset(
        builder, split="train", rng=rng, batch_dims=[8, 8], num_epochs=2, preprocess_fn=None
    )
    ours = pipeline(builder, "train", names["settings_of"](rng, 64, 2))
    read = [batch["image"].reshape(64, -1) for batch in real.as_numpy_iterator()]
    expected = [batch["image"].reshape(64, -1) for batch in ours.as_numpy_iterator()]
    assert len(read) == 62
    np.testing.assert_array_equal(read, expected)
    for index in range(7):
        share = data.get_read_instruction_for_host(
            "train",
            dataset_info=builder.info,
            host_id=index,
            host_count=7,
            remainder_options=data.RemainderOptions.BALANCE_ON_PROCESSES,
        )
        assert share.to_absolute(builder.info.splits) == tfds.even_splits("train", 7)[
            index
        ].to_absolute(builder.info.splits)


# MaxText.


def last_of_maxtext(run: Path) -> Mapping[str, Any]:
    import orbax.checkpoint as ocp

    with ocp.CheckpointManager(run / "checkpoints") as checkpoints:
        wanted = {"step": np.zeros((), np.int32), "weights": np.zeros(28 * 28, np.float32)}
        items = ocp.args.Composite(items=ocp.args.StandardRestore(wanted))
        restored = checkpoints.restore(checkpoints.latest_step(), args=items)["items"]
        return {name: np.asarray(value) for name, value in restored.items()}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Return a dataset whose labels are its ids in two formats; tf.data reads the first alone."""
    import tensorflow_datasets as tfds

    image = tfds.features.Tensor(shape=(28, 28, 1), dtype=np.uint8)
    made: dict[str, Any] = {
        "features": tfds.features.FeaturesDict({"image": image, "label": np.int64}),
        "example": lambda i: {**image_of(i), "label": i},
    }
    return {
        form: build_dataset(
            tmp_path_factory.mktemp(form), "mnist", {"train": LENGTHS}, file_format=form, **made
        )
        for form in ("tfrecord", "array_record")
    }


@pytest.fixture(scope="module")
def scripts(
    folders: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Mapping[int, Script]:
    needs_grain()
    path = script_in(tmp_path_factory.mktemp("script"), "maxtext", "maxtext_train.py")
    names: dict[str, Any] = {"path": path, "outcome": last_of_maxtext}
    arguments = (folders["array_record"],)
    return {count: Script(**names, arguments=arguments, processes=count) for count in (1, 2, 3)}


@pytest.fixture(scope="module")
def whole(scripts: Mapping[int, Script], tmp_path_factory: pytest.TempPathFactory) -> WholeRun:
    return whole_run(scripts[2], tmp_path_factory.mktemp("whole"))


def rows(steps: Mapping[int, str]) -> list[list[int]]:
    """Return the global batches: row i is that of process i % N."""
    found = []
    for line in steps.values():
        parts = [list(map(int, part.split())) for part in line.split(",")]
        found.append([part[row] for row in range(len(parts[0])) for part in parts])
    return found


def test_the_loop_of_maxtext_killed_at_random_moments_ends_as_if_it_was_not(
    scripts: Mapping[int, Script], whole: WholeRun, folders: Mapping[str, Path], tmp_path: Path
) -> None:
    import tensorflow_datasets as tfds

    settings = ReadSettings(
        shuffle_seed=32, buffer=1000, buffer_seed=7, epochs=EPOCHS, batch=48, drop_remainder=True
    )
    dataset = pipeline(tfds.builder_from_directory(folders["tfrecord"]), "train", settings)
    read = [batch["label"].tolist() for batch in dataset.as_numpy_iterator()]
    assert len(read) == 125
    assert rows(whole.steps) == read
    report = check_killed_runs(scripts[2], whole, tmp_path, kills=KILLS)
    print(report)


def test_other_numbers_of_processes_train_on_the_same_global_batches(
    scripts: Mapping[int, Script], whole: WholeRun, tmp_path: Path
) -> None:
    numbers = random_of_a_fuzz_run()
    for number in range(max(1, FUZZ // 4000)):
        counts: Sequence[int] = [3, 1] if FUZZ <= 2000 else numbers.choices([1, 2, 3], k=5)
        run = tmp_path / str(number)
        trained = check_other_processes(scripts, whole, run, counts, numbers)
        assert rows(trained) == rows(whole.steps)
        weights = last_of_maxtext(run)["weights"]
        np.testing.assert_allclose(weights, whole.outcome["weights"], rtol=1e-5)
