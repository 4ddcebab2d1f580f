"""Batches of PyTorch's loaders beside those of the real tf.data pipeline over the TFRecord copy."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from shardctl import Host, ReadSettings
from shardctl.errors import DatasetError, UsageError
from shardctl.tfds import pipeline
from shardctl.torch import Sampler, collate_as_tf_data, consumed, data_loader
from tests.cases import FUZZ, counted, random_of_a_fuzz_run
from tests.golden import assert_evaluated
from tests.grain.toys import SPECS, in_two_formats, raises_in_one_line, random_settings, toy
from tests.late_modules import LateModule, needs

torch_data: Any = LateModule("torch.utils.data")
stateful: Any = LateModule("torchdata.stateful_dataloader")
pytestmark = needs(
    "torch", "torchdata", reason="PyTorch is not installed: pip install 'shardctl[torch]'"
)

SETTINGS = ReadSettings(shuffle_seed=5, buffer=20, buffer_seed=3, epochs=2, batch=8)
SOURCE, DATA = [*range(40)], toy(11, 13, 16)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return in_two_formats(tmp_path_factory)


# Without TensorFlow, in a process of its own: one in which it runs is no place to fork workers.
BATCHES = """\
import pickle
import sys
from importlib.machinery import PathFinder

found = PathFinder.find_spec
PathFinder.find_spec = staticmethod(
    lambda name, *rest: None if name in ("tensorflow", "keras") else found(name, *rest)
)
import tensorflow_datasets as tfds
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

from shardctl.torch import Sampler, collate_as_tf_data, data_loader


def loaders(source, builder, spec, settings, workers):
    yield data_loader(source, builder, spec, settings, workers=workers)
    for kind in (DataLoader, StatefulDataLoader):
        sampler = Sampler(builder, spec, settings)
        given = {"batch_size": settings.batch, "collate_fn": collate_as_tf_data(source)}
        yield kind(source, sampler=sampler, num_workers=workers, **given)


def plain(value):
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if hasattr(value, "numpy"):
        value = value.numpy()
    if hasattr(value, "dtype"):
        return value.tolist() if value.dtype == object else (
            value.dtype.str, value.shape, value.tobytes()
        )
    return value


builder = tfds.builder_from_directory(sys.argv[1])
for spec, settings, workers in pickle.loads(sys.stdin.buffer.read()):
    source = builder.as_data_source(split=spec)
    for loader in loaders(source, builder, spec, settings, workers):
        batches = [plain(batch) for batch in loader]
        assert len(loader) == len(batches)
        sys.stdout.buffer.write(pickle.dumps(batches))
assert "tensorflow" not in sys.modules
"""
Case = tuple[str, ReadSettings, int]


def in_bytes(value: Any) -> Any:
    """Return a batch of tf.data with the very bytes of each of its parts; texts as lists."""
    if isinstance(value, dict):
        return {name: in_bytes(one) for name, one in value.items()}
    if value.dtype == object:
        return value.tolist()
    return value.dtype.str, value.shape, value.tobytes()


def check_as_tf_data(folders: dict[str, Path], cases: list[Case]) -> None:
    import tensorflow_datasets as tfds

    # A process that has read array_record files is none to fork workers from, see the guide.
    cases = sorted(cases, key=lambda case: -case[2])
    done = subprocess.run(
        [sys.executable, "-c", BATCHES, folders["array_record"]],
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "HOME": str(folders["tfrecord"])},
        input=pickle.dumps(cases),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    answers = io.BytesIO(done.stdout)
    tfrecord = tfds.builder_from_directory(folders["tfrecord"])
    for spec, settings, workers in cases:
        dataset = pipeline(tfrecord, spec, settings)
        for _ in range(settings.pass_index + 1):  # each pass is an iteration of one dataset object
            expected = [in_bytes(batch) for batch in dataset.as_numpy_iterator()]
        for kind in ("data_loader", "DataLoader", "StatefulDataLoader"):
            assert pickle.load(answers) == expected, (kind, spec, settings, workers)
    assert not answers.read()


def test_batches_are_those_of_tf_data_without_tensorflow(folders: dict[str, Path]) -> None:
    of_rank = ReadSettings(shuffle_seed=2, host=Host(index=1, count=3), batch=4, pass_index=1)
    cases: list[Case] = [("train", SETTINGS, workers) for workers in (0, 2, 3)]
    cases += [("test+train[7:]", of_rank, 0), ("train", ReadSettings(shuffle_seed=1, batch=1), 0)]
    check_as_tf_data(folders, [*cases, ("train", ReadSettings(batch=7, drop_remainder=True), 2)])


@pytest.mark.fuzz
@pytest.mark.filterwarnings("ignore:drop_remainder")
def test_batches_of_random_settings_are_those_of_tf_data(folders: dict[str, Path]) -> None:
    numbers = random_of_a_fuzz_run()
    cases = []
    for _ in counted(range(max(3, FUZZ // 100))):
        settings = random_settings(numbers)
        settings = replace(settings, batch=settings.batch or 3)
        spec = numbers.choice(SPECS)
        if settings.host_by == "files" and settings.host is not None:
            spec = "train+test"  # of as many files as hosts
        cases.append((spec, settings, numbers.choice((0, 0, 2, 3))))
    check_as_tf_data(folders, cases)


def loaders(workers: int) -> Iterator[Any]:
    """Yield each of the loaders over one order."""
    yield data_loader(SOURCE, DATA, "train", SETTINGS, workers=workers)
    for kind in (torch_data.DataLoader, stateful.StatefulDataLoader):
        sampler = Sampler(DATA, "train", SETTINGS)
        yield kind(SOURCE, batch_size=8, sampler=sampler, num_workers=workers)


def numbers_of(batches: Iterable[Any]) -> list[int]:
    return [int(i) for batch in batches for i in batch]


WHOLE = [*Sampler(DATA, "train", SETTINGS)]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_state_of_a_loader_counts_what_it_handed_out(workers: int) -> None:
    loader = data_loader(SOURCE, DATA, "train", SETTINGS, workers=workers)
    assert loader.state_dict()["consumed"] == 0
    batches = iter(loader)
    assert loader.state_dict()["consumed"] == 0
    head = numbers_of(next(batches) for _ in range(3))
    state = loader.state_dict()
    assert consumed(state) == 24
    other = data_loader(SOURCE, DATA, "train", SETTINGS, workers=2 - workers, states=[state])
    assert head + numbers_of(other) == WHOLE
    assert consumed(other.state_dict()) == 80
    other.load_state_dict(state)
    assert consumed(other.state_dict()) == 24
    assert head + numbers_of(other) == WHOLE
    other.set_epoch(1)
    assert consumed(other.state_dict()) == 0
    of_pass = Sampler(DATA, "train", {**vars(SETTINGS), "pass_index": 1})
    assert numbers_of(other) == [*of_pass]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_state_of_a_stateful_loader_goes_on_with_any_workers(workers: int) -> None:
    def loader(number: int, **place: Any) -> Any:
        sampler = Sampler(DATA, "train", SETTINGS, **place)
        return stateful.StatefulDataLoader(
            SOURCE, batch_size=8, sampler=sampler, num_workers=number
        )

    for stop in (0, 3, 10):
        first = loader(workers)
        batches = iter(first)
        head = numbers_of(next(batches) for _ in range(stop))
        state = first.state_dict()
        assert consumed(state) == 8 * stop
        same = loader(workers)
        same.load_state_dict(state)
        assert head + numbers_of(same) == WHOLE
        assert head + numbers_of(loader(3 - workers, states=[state])) == WHOLE


def test_the_sampler_of_a_loader_with_workers_does_not_say_what_it_drew() -> None:
    for loader in loaders(2):
        next(iter(loader))
        raises_in_one_line(loader.sampler.state_dict, UsageError, "state_after(batches)")
        assert loader.sampler.state_after(1)["consumed"] == 8
    for loader in loaders(0):
        next(iter(loader))
        assert loader.sampler.state_dict()["consumed"] == 8


def test_a_state_in_torchs_files(tmp_path: Path) -> None:
    import torch

    state = data_loader(SOURCE, DATA, "train", SETTINGS, consumed=24).state_dict()
    torch.save({"data": state}, tmp_path / "saved.pt")
    assert torch.load(tmp_path / "saved.pt", weights_only=True)["data"] == state


def test_other_ranks_go_on_where_workers_were_ahead() -> None:
    given = {**vars(SETTINGS), "host": None}
    seen, states = Counter[int](), []
    for rank in range(3):
        of_rank = {**given, "host": Host(index=rank, count=3)}
        loader = data_loader(SOURCE, DATA, "train", of_rank, workers=2)
        batches = iter(loader)
        seen.update(numbers_of(next(batches) for _ in range(rank + 1)))
        states.append(loader.state_dict())
    for rank in range(2):
        of_rank = {**given, "host": Host(index=rank, count=2)}
        loader = data_loader(SOURCE, DATA, "train", of_rank, workers=3, states=states)
        seen.update(numbers_of(loader))
    assert seen == dict.fromkeys(SOURCE, 2)


GIVEN: dict[str, Any] = {"source": SOURCE, "dataset": DATA, "spec": "train", "settings": SETTINGS}


def test_wrong_arguments_are_refused() -> None:
    assert_evaluated(globals(), "wrong")


def test_other_sources_are_refused() -> None:
    raises_in_one_line(lambda: data_loader(SOURCE[1:], DATA), DatasetError, "39 records")


def test_options_are_handed_on() -> None:
    loader = data_loader(SOURCE, DATA, "train", SETTINGS, options={"collate_fn": tuple})
    assert isinstance(next(iter(loader)), tuple)
    assert isinstance(loader, torch_data.DataLoader)


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_checked_where_a_loader_draws(workers: int) -> None:
    for kind in (torch_data.DataLoader, stateful.StatefulDataLoader):
        for batch, drops, size, settings, words in (
            (8, False, 40, {"batch": 8}, None),
            (None, False, 40, {}, None),
            (5, True, 40, {"batch": 5}, None),
            (8, False, 40, {}, "batches of 8, and the settings of 1"),
            (8, False, 40, {"batch": 4}, "batches of 8, and the settings of 4"),
            (7, True, 40, {"batch": 7}, "(drop_last)"),
        ):
            sampler = Sampler(DATA, "train", settings)
            given = {"batch_size": batch, "drop_last": drops, "num_workers": workers}
            loader = kind([*range(size)], sampler=sampler, **given)
            if words is not None:
                raises_in_one_line(lambda one=loader: next(iter(one)), UsageError, words)  # type: ignore[misc]
                continue
            next(iter(loader))
            assert sampler._is_ahead == (workers > 0)


class Source(list[Any]):
    """A source that says of which types its features are, as TFDS's do."""

    def __init__(self, types: dict[str, Any], examples: list[Any]) -> None:
        super().__init__(examples)
        info = {name: SimpleNamespace(np_dtype=kind) for name, kind in types.items()}
        features = SimpleNamespace(get_tensor_info=lambda: info)
        self.dataset_info = SimpleNamespace(features=features)


def test_python_numbers_get_the_types_of_their_features() -> None:
    import torch

    types = {"f": np.float32, "u": np.uint8, "s": np.int32, "t": np.object_}
    examples = [{"f": 0.1, "u": 3, "s": [i, 2], "t": [b"a", b"bc"]} for i in range(2)]
    collate = pickle.loads(pickle.dumps(collate_as_tf_data(Source(types, examples))))
    batch = collate(examples)
    assert (batch["f"].dtype, batch["u"].dtype) == (torch.float32, torch.uint8)
    assert (batch["s"].dtype, batch["s"].tolist()) == (torch.int32, [[0, 2], [1, 2]])
    assert batch["t"] == [[b"a", b"bc"]] * 2
    ragged = [{"s": [1]}, {"s": [1, 2]}]
    with pytest.raises(ValueError, match="same shape"):
        collate_as_tf_data(Source({"s": np.int32}, ragged))(ragged)
    with pytest.raises(UsageError, match=r"source: what tfds\.data_source returned"):
        collate_as_tf_data([1, 2])
