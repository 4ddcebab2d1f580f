"""Every public function and value of shardctl, each with arguments that it takes.

A line of `TABLE` is a call, or `name: call` where the function is not found by its name alone; what
is in it is made anew for each call, in a `World`. Numbers are from 0 to 127, so that every type of
NumPy holds them.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import shardctl
import shardctl.grain
import shardctl.tfds
import shardctl.torch
from shardctl import Dataset, Host, PinnedOrder, ReadSettings, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.files.documents import to_yaml
from shardctl.metadata.index.answer import index_document
from shardctl.metadata.index.workers import LocalRunner
from shardctl.order.order import Order
from shardctl.saved.plan_file import plan_yaml
from shardctl.saved.snapshot_file import snapshot_yaml
from tests.record_files import framed

TABLE = """
Comparison.strategy: hosts(w.dataset, hosts=2).comparisons[0].strategy(name="even")
Dataset(name="toy", splits=w.dataset.splits, config="small", version="1.0.0", ordered=False,
    file_format="tfrecord", data_dir="/data", origin="metadata", features=same, compression="GZIP",
    folders=(w.dataset, w.dataset), notes=["counted"], reference="toy",
    damaged=(FileFinding(filename="toy", expected=None, found=None),))
Dataset.split: w.dataset.split(name="train")
Dataset.whole_splits: w.dataset.whole_splits(names=["train"], rule="they are whole")
Evaluation.num_steps: evaluate(w.dataset, batch=2, hosts=3).num_steps(remainder="drop")
Evaluation.distinct_shapes: evaluate(w.dataset, batch=2, hosts=3).distinct_shapes(remainder="drop")
Evaluation.hang: evaluate(w.dataset, batch=2, hosts=3).hang(remainder="drop")
DatasetList.having: list_datasets("mnist").having(words=["mnist"])
FileInstruction(filename="toy-0", split="train", skip=1, take=2, examples_in_shard=6, first_id=1)
Host(index=1, count=4)
Host.parse(text="1/4")
Order.read: w.order.read(start=3, stop=40)
Order.chunks: w.order.chunks(start=3, stop=40)
Order.blocks_at: w.order.blocks_at(positions=np.array([0, 3, 23, 3]))
Order.codes_at: w.order.codes_at(positions=np.array([0, 3, 23, 3]))
Order.positions_of: w.order.positions_of(codes=np.array([0, 3, 23, 3]), over=iter)
Order.positions_in_pieces: w.order.positions_in_pieces(codes=np.array([0, 3, 23, 3]), over=iter)
Order.steps_of: w.order.steps_of(positions=np.array([0, 3, 23, 3]))
Order.steps_in_epoch: w.order.steps_in_epoch(epoch=1)
Order.steps_up_to: w.order.steps_up_to(stop=4)
Order.examples_in_steps: w.order.examples_in_steps(start=1, stop=3)
Order.consumed: w.order.consumed(stop=9, advance=same)
Order.positions_in_step: w.order.positions_in_step(step=2)
Order.epoch_of: w.order.epoch_of(positions=np.array([0, 3, 23, 3]))
PinnedOrder(snapshot=w.pinned().snapshot, label="then", live=w.pinned().live)
PinnedOrder.holds: w.pinned().holds(cells=[b"1"], size=4, block=2)
Lint.fails: lint(w.dataset, "train").fails(fail_on="error")
ListedDataset.has: list_datasets("mnist").built_in[0].has(words=["m"])
PlannedOrder.with_settings: plan_order(w.dataset, "train").with_settings(
    settings=ReadSettings(block=2))
Query(kind="id", value=7)
Query(kind="id", value="train:7")
ReadSettings(cycle=3, block=2, shuffle_files=True, shuffle_seed=7, reshuffle=False, buffer=9,
    deterministic=True, buffer_seed=8, buffer_reshuffle=True, global_seed=5, epochs=3,
    repeat_files=False, reverse=True, host=Host(index=1, count=4), host_by="files", batch=6,
    drop_remainder=True, pass_index=2, loop="keras-fit")
ReadSettings(cycle="auto", cpus=8, file_order=["b", "a"])
ReadSettings(stages="repeat(2) | take(9)")
ReadSettings(stages=["cache", {"shuffle": {"buffer": 9, "seed": 3}}])
ReadSettings(loader="torch", loader_version="2.13.0", shuffle=True, global_seed=5, workers=2,
    persistent_workers=True, drop_shard_remainder=True)
ReadSettings(loader="hf", streaming=True, arrow=False, buffer=9, input_shards=3)
ReadSettings.takes: w.settings.takes(name="buffer")
ReadSettings.cycle_length: w.settings.cycle_length(ordered=True)
ReadSettings.check_predictable: w.settings.check_predictable(ordered=False)
Split(name="test", shard_lengths=(5, 5), files=w.dataset.split("test").files, num_bytes=100,
    shard_bytes=(50, 60))
Split.even(name="test", num_examples=11, num_shards=2, files=w.dataset.split("test").files,
    num_bytes=100)
Split.shard_of: w.dataset.split("train").shard_of(example_id=13)
Split.location: w.dataset.split("train").location(shard_index=2)
Split.filename: w.dataset.split("train").filename(shard_index=2)
Split.filenames_between: w.dataset.split("train").filenames_between(start=1, stop=3)
SplitLayout.columns: layout(w.dataset, "train").splits[0].columns(start=1, stop=3)
SplitLayout.shards: layout(w.dataset, "train").splits[0].shards(start=1, stop=3)
Usage(hosts=2, take=9, as_data_source=False, assert_cardinality=True, try_autocache=False,
    seeds=(1, 2), max_open_files=100)
compare_loaders(**w.asked)
compare_reports(a=w.pinned(), b=w.pinned(block=2))
compare_reports(a=w.pinned(), b=w.settings_file, dataset=w.dataset, spec="train", watch=watch)
diff(expected=w.pinned(), actual=w.pinned(block=2), exact_limit=100)
diff(expected=w.pinned(), dataset=w.dataset, spec="train", settings=ReadSettings(block=2))
evaluate(**{**w.asked, "spec": "test"}, batch=2, hosts=3, devices=2, remainder="pad")
evaluate(**{**w.asked, "spec": "test"}, batch_per_device=2)
hosts(**w.asked, hosts=3)
hosts(**w.asked, hosts=[2, 3])
layout(dataset=w.dataset, splits=["test"])
lint(dataset=w.dataset, specs=["train"], evaluated=["test"], settings=w.settings,
    usage=Usage(hosts=2), select=["SC"], ignore=["SC001"])
list_datasets(words=["mnist"], data_dir=".")
locate(**w.asked, position=9, step=2, id=7, tfds_id="toy-train.tfrecord-00001-of-00004__3",
    queries=[Query(kind="position", value=9), Query(kind="step", value=2)])
locate(**w.asked, position=[9, 3], step=2, id=7)
plan(dataset=w.dataset, specs=["train[:9]"], hosts=4, drop_remainder=True)
plan(dataset=w.dataset, specs=["train"], host=Host(index=1, count=4))
plan_order(**w.asked)
prove(dataset=w.dataset, plan=resume_unseen(w.dataset, "train", seen=[0, 3, 23, 3]),
    seen=np.array([0, 3, 23, 3]), allow_version=False)
quality(**w.asked, target=0.5, what_if=False, memory=100, example_bytes=20)
read_dataset(refs=["mnist"], data_dir=".", cache=True)
read_plan(path=w.file_of("plan"))
read_snapshot(path=w.file_of("snapshot"))
report(**w.asked, hosts=4, devices=2, evaluated=["train[:9]"], usage=Usage(take=9), loaders=False)
report(**w.asked, evaluated="train[:9]")
resume(**w.asked, consumed=29, mode="exact-order")
resume(**w.asked, steps=7)
resume(**w.unseeded, consumed=9, mode="at-least-once", risk=0.5)
resume_loader(**{**w.asked, "settings": {"loader": "torch"}}, consumed=5)
resume_loader(**w.unseeded, consumed=9, mode="at-least-once", risk=0.5)
resume_loader(**{**w.asked, "settings": {"loader": "grain", "batch": 2}}, steps=2)
resume_on_hosts(**w.asked, hosts=2, to_hosts=3, consumed=5)
resume_on_hosts(**w.asked, hosts=2, to_hosts=3, consumed=[5, 14])
resume_on_hosts(**w.asked, hosts=2, to_hosts=3, steps=2)
resume_on_hosts(**w.unseeded, hosts=2, to_hosts=3, consumed=5, mode="at-least-once", risk=0.5)
resume_unseen(**w.asked, seen=np.array([0, 3, 23, 3]), to_hosts=2)
simulate(**w.asked, skip=3, take=30)
snapshot(**w.asked, watch=watch)
verify(**w.asked, take=30, watch=watch)
verify_files(dataset=index(w.records, cache=False).dataset, splits=["all"], jobs=2, watch=watch)
verify_files(dataset=w.records, splits=["all"], runner=LocalRunner())
index(paths=[w.records], split={"train": "a-*"}, name="toy", file_format="tfrecord", jobs=2,
    checksums=True, keep_going=True, cache=False, watch=watch)
index(paths=[w.records], runner=LocalRunner())
check_index(layout=w.layout_of_records, paths=[w.records], checksums=True, jobs=2, cache=False,
    watch=watch)
check_index(layout=w.layout_of_records, paths=[], runner=LocalRunner())
beam_runner(options=["--direct_num_workers=2"])
inspect(dataset=counting, loop="keras-fit", assume_seeds=True)
Inspection.ids: w.inspection.ids(pass_index=2)
Inspection.order: w.inspection.order(pass_index=2)
tfds.inspect(dataset=counting, loop="keras-fit", assume_seeds=True)
tfds.resume_like(dataset=counting, consumed=4, pass_index=1, loop="python")
tfds.resume_like(dataset=counting, steps=4)
tfds.verify_dataset(dataset=lambda: w.builder.as_dataset(split="train"), pass_index=1,
    loop="python", take=6, watch=watch)
tfds.dataset_of(builder=w.builder)
tfds.evaluation(builder=w.builder, spec="train", batch_per_device=2)
tfds.evaluation(builder=w.builder, spec="train", settings=ReadSettings(host_by="examples"), batch=2,
    hosts=3, host=1, devices=2, device_axis=True, padding="zeros", sample_weight=False,
    as_supervised=False, **TRANSFORMED)
tfds.keras_epochs(builder=w.builder, spec="train", settings=w.of_host, host=1, epochs=3,
    initial_epoch=1, steps=2, transform=same, decoders=None)
tfds.pipeline(builder=w.builder, spec="train", settings=w.unbuffered, **TRANSFORMED)
tfds.exact_order(builder=w.builder, spec="train", settings=w.of_host, consumed=9, host=1,
    **TRANSFORMED)
tfds.resume(builder=w.builder, plan=w.plan_of_hosts, host=2, allow_version=False, **TRANSFORMED)
tfds.resume_epochs(builder=w.builder, plan=w.plan_of_hosts, host=2, allow_version=False,
    **TRANSFORMED)
tfds.read_config: configured(w)(builder=w.builder, plan=w.plan_of_hosts, host=2)
tfds.read_config: configured(w)(builder=w.builder, plan=w.plan, allow_version=False)
tfds.record_files(dataset=w.dataset)
tfds.verify(**w.asked, take=30, watch=watch)
tfds.verify_plan(dataset=w.dataset, plan=w.plan, take=9, watch=watch, allow_version=False)
tfds.Position(builder=w.builder, spec="train", settings=w.unbuffered, consumed=9,
    allow_version=False)
tfds.Position.advance: moved(w, "advance")(num_examples=5)
tfds.Position.count: moved(w, "count")(elements=[np.zeros(3), np.zeros(2)], batch=3, step=count())
tfds.Position.dataset: moved(w, "dataset")(transform=same, add_tfds_id=True, host=1)
tfds.Position.save: moved(w, "save")(path=f"{w.folder}/position.json")
tfds.Position.restore: moved(w, "restore")(path=f"{w.folder}/position.json", allow_version=False)
tfds.Position.set_state: moved(w, "set_state")(state=w.state, allow_version=False)
tfds.Position.set_states: moved(w, "set_states")(states=[w.state], allow_version=False)
tfds.Position.begin_epoch_of_fit: moved(w, "begin_epoch_of_fit")(epoch=0)
tfds.ResumeFit(position=w.position)
orbax.Checkpointable: kept("Checkpointable")(position=w.position, allow_version=False, host=1)
orbax.PositionHandler: kept("PositionHandler")(process="1/3")
orbax.Restore: kept("Restore")(position=w.position, allow_version=False, host=1)
orbax.Save: kept("Save")(position=w.position, host=1)
grain.Sampler: fed(grain.Sampler)(**w.asked, workers=2, consumed=8, seed=5)
grain.Sampler: fed(grain.Sampler)(**w.asked, states=[grain_state(w)])
grain.Sampler.begin_epoch_of_fit: fed(after("begin_epoch_of_fit", grain.Sampler(
    w.dataset, "train", {"shuffle_seed": 3})))(epoch=2)
grain.Sampler.position: grain.Sampler(**w.asked).position(state=grain_state(w))
grain.consumed(state={"next_index": 3}, batch=4)
grain.data_loader: fed(grain.data_loader)(source=records, **w.asked, operations=(), workers=2,
    consumed=8, seed=5, worker_buffer_size=1, read_options=None)
grain.data_loader: fed(grain.data_loader)(source=records, **w.asked, states=[grain_state(w)])
grain.fit_epochs(dataset=grain.Sampler(**w.asked))
grain.keep_texts(example={"text": b"x"})
grain.map_dataset: fed(grain.map_dataset)(source=records, **w.asked, consumed=8)
grain.map_dataset: fed(grain.map_dataset)(source=records, **w.asked, states=[grain_state(w)])
torch.Sampler: fed(torch.Sampler)(**w.asked, consumed=8)
torch.Sampler: fed(torch.Sampler)(**w.asked, states=[torch_state(w)])
torch.Sampler.load_state_dict: fed(after("load_state_dict", torch.Sampler(**w.asked)))(
    state=torch_state(w))
torch.Sampler.set_epoch: fed(after("set_epoch", torch.Sampler(**w.asked)))(epoch=2)
torch.Sampler.state_after: torch.Sampler(**w.asked).state_after(batches=2)
torch.collate_as_tf_data: collated(source=OfTFDS())
torch.consumed(state=torch_state(w))
torch.data_loader: fed(torch.data_loader)(source=records, **w.asked, workers=2, consumed=8,
    options=None)
torch.data_loader: fed(torch.data_loader)(source=records, **w.asked, states=[torch_state(w)])
tfds.write_metadata(dataset=w.dataset, folder=w.folder, features=f"{w.folder}/features.json",
    force=False)
"""

# Arguments that are handed on as they are: to TFDS, Grain or PyTorch, which know what they may be.
HANDED_ON = ("decoders", "example", "operations", "options", "over", "read_options")


class World:
    """What the calls are given: a small dataset, its orders and plans, and a builder of TFDS."""

    def __init__(self, builder: Any = None, folder: str = "nowhere") -> None:
        self.builder: Any = _NoBuilder() if builder is None else builder
        self.folder = folder

    settings = ReadSettings(shuffle_seed=3, buffer=4, buffer_seed=5, epochs=2, batch=4)
    unbuffered = ReadSettings(shuffle_seed=3, epochs=2, batch=4)
    of_host = ReadSettings(batch=4, host=Host(index=1, count=2))

    @cached_property
    def dataset(self) -> Dataset:
        return Dataset(name="toy", splits=(_split("train", 24, 4), _split("test", 10, 2)))

    @property
    def asked(self) -> dict[str, Any]:
        return {"dataset": self.dataset, "spec": "train", "settings": self.settings}

    @property
    def unseeded(self) -> dict[str, Any]:
        return {**self.asked, "settings": ReadSettings(buffer=5)}

    @cached_property
    def order(self) -> Order:
        return shardctl.plan_order(self.dataset, "train", self.settings).order

    @cached_property
    def inspection(self) -> shardctl.Inspection:
        return shardctl.Inspection(
            stages=(), settings=self.settings, dataset=self.dataset, spec="train"
        )

    @cached_property
    def plan(self) -> Any:
        return shardctl.resume(self.dataset, "train", self.unbuffered, consumed=9)

    @cached_property
    def plan_of_hosts(self) -> Any:
        asked = (self.dataset, "train", self.unbuffered)
        return shardctl.resume_on_hosts(*asked, hosts=2, to_hosts=3, consumed=4)

    def _written(self, name: str, *text: str) -> str:
        path = Path(self._own_folder.name, name)
        path.write_text("".join(text), "utf-8")
        return str(path)

    def file_of(self, kind: str) -> str:
        """Return the path of a plan file, or of a snapshot file."""
        text = plan_yaml(self.plan) if kind == "plan" else snapshot_yaml(self.pinned().snapshot)
        return self._written(f"{kind}.yaml", *text)

    @cached_property
    def settings_file(self) -> str:
        return self._written("shardctl.yaml", "read:\n  block: 2\n")

    @cached_property
    def records(self) -> str:
        """A folder of record files without metadata."""
        folder = Path(self._own_folder.name, "records")
        folder.mkdir()
        for shard in range(2):
            (folder / f"a-{shard}.tfrecord").write_bytes(framed(b"x"))
        return str(folder)

    @cached_property
    def layout_of_records(self) -> str:
        found = shardctl.index(self.records, cache=False)
        return self._written("records.yaml", *to_yaml(index_document(found)))

    @cached_property
    def _own_folder(self) -> TemporaryDirectory[str]:
        return TemporaryDirectory()

    def pinned(self, **settings: Any) -> PinnedOrder:
        taken = shardctl.snapshot(self.dataset, "train", ReadSettings(batch=4, **settings))
        return PinnedOrder(snapshot=taken.snapshot, label="then", live=taken.live)

    @property
    def position(self) -> Any:
        """A position, or the shell of one where TensorFlow is not asked."""
        if isinstance(self.builder, _NoBuilder):
            return object.__new__(shardctl.tfds.Position)
        settings = replace(self.unbuffered, host=self.of_host.host)
        return shardctl.tfds.Position(self.builder, "train", settings, consumed=4)

    @property
    def state(self) -> bytes:
        return b"" if isinstance(self.builder, _NoBuilder) else self.position.get_state()


class _NoBuilder:
    """Looks like a builder from outside, and is none."""

    info = data_dir = None

    def as_dataset(self, **arguments: Any) -> None:
        raise NotImplementedError


def _split(name: str, num_examples: int, num_shards: int) -> Split:
    files = ShardFiles(pattern=f"toy-{name}.tfrecord-\0-of-0000{num_shards}", num_shards=num_shards)
    return Split.even(name=name, num_examples=num_examples, num_shards=num_shards, files=(files,))


# What the table names besides.


def watch(what: str, done: int, total: int) -> None:
    pass


def same(example: Any = None) -> Any:
    return example


def counting() -> Any:
    import tensorflow as tf

    return tf.data.Dataset.range(24).shuffle(4, seed=1)


def moved(world: World, method: str) -> Callable[..., Any]:
    """Return a method of a position that answers where it is afterwards."""
    position = world.position

    def call(**given: Any) -> Any:
        found = getattr(position, method)(**given)
        elements = None if found is None else list(found)
        return position.consumed, elements and len(elements)

    return call


def configured(world: World) -> Callable[..., Any]:
    """Return `read_config` that answers what TFDS reads with it."""
    return lambda **given: world.builder.as_dataset(
        split="train", read_config=shardctl.tfds.read_config(**given)
    )


def kept(name: str) -> Callable[..., Any]:
    """Return what Orbax is given, that answers what it keeps."""
    return lambda **given: vars(getattr(importlib.import_module("shardctl.orbax"), name)(**given))


def after(method: str, made: Any) -> Callable[..., Any]:
    """Return a method that answers what it was called on."""
    return lambda **given: (getattr(made, method)(**given), made)[1]


def fed(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call of what feeds Grain or PyTorch, that answers the keys of what it makes."""

    def answer(**given: Any) -> Any:
        if "source" in given:
            library = "torch" if call is shardctl.torch.data_loader else "grain"
            pytest.importorskip(library, reason=f"{library} is not installed")
        made = call(**given)
        sampler = getattr(made, "sampler", made)
        if isinstance(sampler, shardctl.torch.Sampler):
            return sampler.epoch, [*sampler]
        order = getattr(made, "_sampler", made).order
        return repr(getattr(made, "_sampler", None)), [order.key(i) for i in range(len(order))]

    return answer


def grain_state(world: World) -> bytes:
    """Return a state of a loader of Grain, after 8 examples."""
    state = {"version": 2, "last_seen_indices": {"0": 7}, "worker_count": 0}
    return json.dumps({**state, "sampler": repr(shardctl.grain.Sampler(**world.asked))}).encode()


def torch_state(world: World) -> Any:
    """Return a state of a sampler of PyTorch, after 8 examples."""
    return shardctl.torch.Sampler(**world.asked).state_after(2)


class OfTFDS:
    """A data source that knows its features, of which there are none."""

    dataset_info = SimpleNamespace(features=SimpleNamespace(get_tensor_info=dict))

    def __len__(self) -> int:
        return 24

    def __getitem__(self, key: int) -> int:
        return key


def collated(source: Any) -> Any:
    return type(shardctl.torch.collate_as_tf_data(source)).__name__


_NAMES = {
    **{name: getattr(shardctl, name) for name in shardctl.__all__},
    "tfds": shardctl.tfds,
    "grain": shardctl.grain,
    "torch": shardctl.torch,
    "np": np,
    **{one.__name__: one for one in (watch, same, counting, moved, configured, kept, after, fed)},
    **{one.__name__: one for one in (grain_state, torch_state, OfTFDS, collated, LocalRunner)},
    "TRANSFORMED": {"transform": same, "decoders": None, "add_tfds_id": True},
    "records": list(range(24)),
    "count": lambda: itertools.count().__next__,
}


@dataclass(frozen=True)
class Call:
    """A line of the table: a function and arguments that it takes."""

    node: ast.Call

    def _value(self, node: ast.expr, world: World) -> Any:
        code = compile(ast.Expression(node), "<table>", "eval")
        return eval(code, {**_NAMES, "w": world})

    def arguments(self, world: World) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for keyword in self.node.keywords:
            value = self._value(keyword.value, world)
            found |= value if keyword.arg is None else {keyword.arg: value}
        return found

    def __call__(self, world: World, **changed: Any) -> Any:
        """Return what the function returns, with some arguments changed."""
        function, arguments = self._value(self.node.func, world), self.arguments(world) | changed
        parameters = inspect.signature(function).parameters.values()
        first: list[Any] = []
        if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
            for parameter in parameters:  # `*specs`, and what stands before it
                if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                    first.append(arguments.pop(parameter.name))
                elif parameter.kind is parameter.VAR_POSITIONAL:
                    first += arguments.pop(parameter.name)
        return function(*first, **arguments)


def _calls() -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = {}
    for line in ast.parse(TABLE).body:
        named = isinstance(line, ast.AnnAssign)
        node = line.annotation if isinstance(line, ast.AnnAssign) else line.value  # type: ignore[attr-defined]
        assert isinstance(node, ast.Call)
        name = ast.unparse(line.target if named else node.func)  # type: ignore[attr-defined]
        found.setdefault(name, []).append(Call(node))
    return found


CALLS = _calls()

# Public classes of which users make values; the others are answers, which functions make.
_MADE_BY_USERS = {"Dataset", "FileInstruction", "Host", "PinnedOrder", "Query", "ReadSettings"}
_MADE_BY_USERS |= {"Split", "Usage"}


@functools.cache
def public_parameters() -> dict[str, dict[str, inspect.Parameter]]:
    """Return the parameters of every public function, constructor and method, by name."""
    found: dict[str, dict[str, inspect.Parameter]] = {}
    modules = {"": shardctl, "tfds.": shardctl.tfds}
    modules |= {"grain.": shardctl.grain, "torch.": shardctl.torch}
    if find_spec("orbax") is not None:
        modules["orbax."] = importlib.import_module("shardctl.orbax")  # imports JAX
    for prefix, module in modules.items():
        for name in module.__all__:
            one = getattr(module, name)
            of_type = isinstance(one, type)
            if of_type and (issubclass(one, Exception) or (prefix and name in shardctl.__all__)):
                continue
            for method, function in _callables(one):
                if prefix == "orbax." and method:
                    continue  # which Orbax calls
                if of_type and not method and not prefix and name not in _MADE_BY_USERS:
                    continue  # an answer
                parameters = dict(inspect.signature(function).parameters)
                parameters.pop("self", None)
                parameters.pop("keywords", None)  # settings, see tests/api/test_keywords.py
                if parameters:
                    found[prefix + name + method] = parameters
    return found


def _callables(one: Any) -> Iterator[tuple[str, Any]]:
    yield "", one
    for name, method in vars(one).items() if isinstance(one, type) else ():
        if not name.startswith("_") and (
            inspect.isfunction(method) or isinstance(method, classmethod)
        ):
            yield f".{name}", getattr(one, name)
