"""What calls of public functions are given: a small dataset, its orders and plans, a builder."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import shardctl
import shardctl.tfds
from shardctl import Dataset, Host, PinnedOrder, ReadSettings, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.files.documents import to_yaml
from shardctl.metadata.index.answer import index_document
from shardctl.order.order import Order
from shardctl.saved.plan_file import plan_yaml
from shardctl.saved.snapshot_file import snapshot_yaml
from tests.record_files import framed

Arguments = dict[str, Any]


class World:
    """What the calls are given: a small dataset, its orders and plans, and a builder of TFDS."""

    def __init__(self, builder: Any = None, folder: str = "nowhere") -> None:
        self.builder: Any = _NoBuilder() if builder is None else builder
        self.folder = folder

    settings = ReadSettings(shuffle_seed=3, buffer=4, buffer_seed=5, epochs=2, batch=4)
    unbuffered = ReadSettings(shuffle_seed=3, epochs=2, batch=4)

    @cached_property
    def dataset(self) -> Dataset:
        return Dataset(name="toy", splits=(_split("train", 24, 4), _split("test", 10, 2)))

    @cached_property
    def order(self) -> Order:
        return shardctl.plan_order(self.dataset, "train", self.settings).order

    @cached_property
    def inspection(self) -> shardctl.Inspection:
        return shardctl.Inspection(
            stages=(), settings=self.settings, dataset=self.dataset, spec="train"
        )

    @cached_property
    def unbuffered_order(self) -> Order:
        return shardctl.plan_order(self.dataset, "train", self.unbuffered).order

    @cached_property
    def plan(self) -> Any:
        return shardctl.resume(self.dataset, "train", self.unbuffered, consumed=9)

    @cached_property
    def plan_of_hosts(self) -> Any:
        return shardctl.resume_on_hosts(
            self.dataset, "train", self.unbuffered, hosts=2, to_hosts=3, consumed=4
        )

    def file_of(self, kind: str) -> str:
        """Return the path of a plan file, or of a snapshot file."""
        path = Path(self.own_folder.name, f"{kind}.yaml")
        text = plan_yaml(self.plan) if kind == "plan" else snapshot_yaml(self.pinned().snapshot)
        path.write_text("".join(text), "utf-8")
        return str(path)

    @cached_property
    def settings_file(self) -> str:
        """The path of a shardctl.yaml."""
        path = Path(self.own_folder.name, "shardctl.yaml")
        path.write_text("read:\n  block: 2\n", "utf-8")
        return str(path)

    @cached_property
    def records(self) -> str:
        """A folder of record files without metadata."""
        folder = Path(self.own_folder.name, "records")
        folder.mkdir()
        for shard in range(2):
            (folder / f"a-{shard}.tfrecord").write_bytes(framed(b"x"))
        return str(folder)

    @cached_property
    def layout_of_records(self) -> str:
        """The layout that `index` writes of them."""
        path = Path(self.own_folder.name, "records.yaml")
        found = shardctl.index(self.records, cache=False)
        path.write_text("".join(to_yaml(index_document(found))), "utf-8")
        return str(path)

    @cached_property
    def own_folder(self) -> TemporaryDirectory[str]:
        return TemporaryDirectory()

    def pinned(self, **settings: Any) -> PinnedOrder:
        taken = shardctl.snapshot(self.dataset, "train", ReadSettings(batch=4, **settings))
        return PinnedOrder(snapshot=taken.snapshot, label="then", live=taken.live)

    @property
    def position(self) -> Any:
        """A position, or the shell of one where TensorFlow is not asked."""
        if isinstance(self.builder, _NoBuilder):
            return object.__new__(shardctl.tfds.Position)
        settings = dataclasses.replace(self.unbuffered, host=Host(index=1, count=2))
        return shardctl.tfds.Position(self.builder, "train", settings, consumed=4)

    @property
    def state(self) -> bytes:
        """A state that the position takes; none where TensorFlow is not asked."""
        return b"" if isinstance(self.builder, _NoBuilder) else self.position.get_state()


class _NoBuilder:
    """Looks like a builder from outside, and is none."""

    info = data_dir = None

    def as_dataset(self, **arguments: Any) -> None:
        raise NotImplementedError


def _split(name: str, num_examples: int, num_shards: int) -> Split:
    files = ShardFiles(pattern=f"toy-{name}.tfrecord-\0-of-0000{num_shards}", num_shards=num_shards)
    return Split.even(name=name, num_examples=num_examples, num_shards=num_shards, files=(files,))


@dataclasses.dataclass(frozen=True)
class Call:
    """A function and arguments that it takes; both may depend on the world."""

    function: Callable[[World], Callable[..., Any]]
    arguments: Callable[[World], Arguments]

    def __call__(self, world: World, **changed: Any) -> Any:
        """Return what the function returns, with some arguments changed."""
        function, arguments = self.function(world), self.arguments(world) | changed
        parameters = inspect.signature(function).parameters.values()
        first: list[Any] = []
        if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
            for parameter in parameters:  # `*specs`, and what stands before it
                if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                    first.append(arguments.pop(parameter.name))
                elif parameter.kind is parameter.VAR_POSITIONAL:
                    first += arguments.pop(parameter.name)
        return function(*first, **arguments)
