"""Every public function and value of shardctl, each with arguments that it takes.

A line of public_calls.txt is a call, or `name: call` where the function is not found by its name
alone; what is in it is made anew for each call, in a `World`. Numbers are from 0 to 127, so that
every type of NumPy holds them.
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
from shardctl.metadata.index.index import index_document
from shardctl.metadata.index.workers import LocalRunner
from shardctl.order.order import Order
from shardctl.saved.plan_file import plan_document
from shardctl.saved.snapshot_file import snapshot_yaml
from tests.record_files import framed

TABLE = Path(__file__).with_suffix(".txt").read_text("utf-8")

# Arguments that are handed on as they are: to TFDS, Grain or PyTorch, which know what they may be.
HANDED_ON = ("decoders", "example", "ids", "operations", "options", "over", "read_options")


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
    def parquet(self) -> Dataset:
        return replace(self.dataset, file_format="parquet")

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
        text = (
            to_yaml(plan_document(self.plan))
            if kind == "plan"
            else snapshot_yaml(self.pinned().snapshot)
        )
        return self._written(f"{kind}.yaml", *text)

    @cached_property
    def settings_file(self) -> str:
        return self._written("shardctl.yaml", "read:\n  block: 2\n")

    @property
    def steps_file(self) -> str:
        return self._written("steps.log", "0 1 2 3 4\n1 5 6 7 8\n")

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

    @cached_property
    def saved_item(self) -> str:
        """A folder of a checkpoint, in which Grain's handler saved a loader."""
        folder = Path(self._own_folder.name, "item")
        folder.mkdir()
        (folder / "process_0-of-1.json").write_bytes(grain_state(self))
        return str(folder)

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


def states(**given: Any) -> Any:
    return importlib.import_module("shardctl.orbax").states(**given)


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


def ordered(world: World) -> Any:
    """Return a MapDataset of Grain whose batches are those of all processes."""
    pytest.importorskip("grain", reason="grain is not installed")
    settings = {"batch": 4, "drop_remainder": True}
    asked = {**world.asked, "settings": settings}
    return shardctl.grain.map_dataset(list(range(24)), **asked)


def grain_order(world: World) -> Order:
    """Return the order of a chain of Grain."""
    settings = {"loader": "grain", "stages": "to_iter_dataset | batch(2)"}
    return shardctl.plan_order(**{**world.asked, "settings": settings}).order


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
    **{
        one.__name__: one
        for one in (
            grain_order,
            grain_state,
            ordered,
            states,
            torch_state,
            OfTFDS,
            collated,
            LocalRunner,
        )
    },
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
_MADE_BY_USERS |= {"Split", "StepLog", "Usage"}


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
