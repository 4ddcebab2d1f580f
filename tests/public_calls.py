"""Every public function and value of shardctl, each with arguments that it takes.

Numbers among them are from 0 to 127, so that every type of NumPy holds them.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import shardctl
import shardctl.grain
import shardctl.tfds
import shardctl.torch
from shardctl import Dataset, FileFinding, Host, PinnedOrder, Query, ReadSettings, Split, Usage
from shardctl.metadata.index.workers import LocalRunner
from tests.public_world import Call, World


def _call(function: Callable[..., Any], **arguments: Any) -> Call:
    return Call(lambda world: function, lambda world: dict(arguments))


def _planned(function: Callable[..., Any], **arguments: Any) -> Call:
    """Return a call on the dataset, the train split and settings."""
    return Call(
        lambda world: function,
        lambda world: {
            "dataset": world.dataset,
            "spec": "train",
            "settings": world.settings,
            **arguments,
        },
    )


def _of(attribute: str, **arguments: Any) -> Call:
    """Return a call of something of the world, as `order.read`."""

    def function(world: World) -> Callable[..., Any]:
        found: Any = world
        for name in attribute.split("."):
            found = getattr(found, name)
        return found  # type: ignore[no-any-return]

    return Call(function, lambda world: dict(arguments))


def _moved(method: str, **arguments: Any) -> Call:
    """Return a call of a position that answers where it is afterwards."""

    def function(world: World) -> Callable[..., Any]:
        position = world.position

        def call(**given: Any) -> Any:
            found = getattr(position, method)(**given)
            elements = None if found is None else list(found)
            return position.consumed, elements and len(elements)

        return call

    return Call(
        function, lambda world: {k: v(world) if callable(v) else v for k, v in arguments.items()}
    )


def _watch(what: str, done: int, total: int) -> None:
    pass


def _no_features() -> None:
    pass


def _same(example: Any) -> Any:
    return example


def _for_orbax(name: str, **arguments: Any) -> Call:
    """Return a call of what Orbax is given, that answers what it keeps."""

    def kept(**given: Any) -> Any:
        import shardctl.orbax

        return vars(getattr(shardctl.orbax, name)(**given))

    return Call(
        _always(kept),
        lambda world: {k: v(world) if callable(v) else v for k, v in arguments.items()},
    )


def _fed(call: Callable[..., Any], **arguments: Any) -> Call:
    """Return a call of what feeds Grain, that answers the keys of what it makes, or a state."""

    def answered(world: World) -> Callable[..., Any]:
        def answer(**given: Any) -> Any:
            if "source" in given:
                pytest.importorskip("grain", reason="Grain is not installed")
            made = call(world, **given)
            if isinstance(made, bytes | int):
                return made
            order = getattr(made, "_sampler", made).order
            return repr(getattr(made, "_sampler", None)), [order.key(i) for i in range(len(order))]

        return answer

    return Call(
        answered, lambda world: {k: v(world) if callable(v) else v for k, v in arguments.items()}
    )


def _sampler(world: World) -> Any:
    return shardctl.grain.Sampler(world.dataset, "train", world.settings)


def _begun(world: World, **given: Any) -> Any:
    sampler = shardctl.grain.Sampler(world.dataset, "train", {"shuffle_seed": 3})
    sampler.begin_epoch_of_fit(**given)
    return sampler


def _grain_state(world: World) -> bytes:
    """Return a state of a loader of Grain, after 8 examples."""
    state = {
        "version": 2,
        "last_seen_indices": {"0": 7},
        "worker_count": 0,
        "sampler": repr(_sampler(world)),
    }
    return json.dumps(state).encode()


def _for_torch(call: Callable[..., Any], **arguments: Any) -> Call:
    """Return a call of what feeds PyTorch, that answers what it yields, or a state."""

    def answered(world: World) -> Callable[..., Any]:
        def answer(**given: Any) -> Any:
            if "source" in given:
                pytest.importorskip("torch", reason="PyTorch is not installed")
            made = call(world, **given)
            sampler = getattr(made, "sampler", made)
            return made if isinstance(made, dict | int) else (sampler.epoch, [*sampler])

        return answer

    return Call(
        answered, lambda world: {k: v(world) if callable(v) else v for k, v in arguments.items()}
    )


def _of_torch(world: World) -> Any:
    return shardctl.torch.Sampler(world.dataset, "train", world.settings)


class _OfTFDS:
    """A data source that knows its features, of which there are none."""

    dataset_info = SimpleNamespace(features=SimpleNamespace(get_tensor_info=dict))

    def __len__(self) -> int:
        return 24

    def __getitem__(self, key: int) -> int:
        return key


def _collated(source: Any) -> Any:
    return type(shardctl.torch.collate_as_tf_data(source)).__name__


def _in_epoch(world: World, **given: Any) -> Any:
    sampler = _of_torch(world)
    sampler.set_epoch(**given)
    return sampler


def _loaded(world: World, **given: Any) -> Any:
    sampler = _of_torch(world)
    sampler.load_state_dict(**given)
    return sampler


def _torch_state(world: World) -> Any:
    """Return a state of a sampler of PyTorch, after 8 examples."""
    return _of_torch(world).state_after(2)


def _records(world: World) -> list[int]:
    return list(range(24))


def _dataset_of(world: World) -> Any:
    return world.dataset


def _settings_of(world: World) -> Any:
    return world.settings


_OF_ORDER: dict[str, Any] = {"dataset": _dataset_of, "spec": "train", "settings": _settings_of}


def _bridged(name: str, **arguments: Any) -> Call:
    """Return a call of the bridge; arguments that are functions are called with the world."""
    return Call(
        lambda world: getattr(shardctl.tfds, name),
        lambda world: {
            "builder": world.builder,
            **{key: value(world) for key, value in arguments.items()},
        },
    )


def _configured(**arguments: Callable[[World], Any]) -> Call:
    """Return a call of `read_config` that answers what TFDS reads with it."""

    def function(world: World) -> Callable[..., Any]:
        return lambda **given: world.builder.as_dataset(
            split="train", read_config=shardctl.tfds.read_config(**given)
        )

    return Call(function, _bridged("read_config", **arguments).arguments)


def _inspected(name: str) -> Call:
    """Return a call of `inspect` on a dataset of tf.data, or on what stands for one."""

    def function(world: World) -> Callable[..., Any]:
        return shardctl.tfds.inspect if name.startswith("tfds.") else shardctl.inspect

    return Call(function, lambda world: {"dataset": _counting, "loop": "keras-fit"})


def _own(name: str, dataset: Callable[[World], Any], **arguments: Any) -> Call:
    """Return a call of the bridge on a dataset of tf.data."""
    return Call(
        lambda world: getattr(shardctl.tfds, name),
        lambda world: {"dataset": dataset(world), **arguments},
    )


def _reading(world: World) -> Callable[[], Any]:
    return lambda: world.builder.as_dataset(split="train")


def _counting() -> Any:
    import tensorflow as tf

    return tf.data.Dataset.range(24).shuffle(4, seed=1)


def _always(value: Any) -> Callable[[World], Any]:
    return lambda world: value


def _position(world: World) -> Any:
    return world.position


_TRANSFORMED: dict[str, Callable[[World], Any]] = {
    "transform": _always(_same),
    "decoders": _always(None),
    "add_tfds_id": _always(True),
}
_TRAIN: dict[str, Callable[[World], Any]] = {
    "spec": _always("train"),
    "settings": lambda world: world.unbuffered,
}
_NUMBERS = [0, 3, 23, 3]

CALLS: Mapping[str, list[Call]] = {
    "Comparison.strategy": [
        Call(
            lambda w: shardctl.hosts(w.dataset, hosts=2).comparisons[0].strategy,
            lambda w: {"name": "even"},
        )
    ],
    "Dataset": [
        Call(
            lambda world: Dataset,
            lambda world: {
                "name": "toy",
                "splits": world.dataset.splits,
                "config": "small",
                "version": "1.0.0",
                "file_format": "tfrecord",
                "data_dir": "/data",
                "ordered": False,
                "origin": "metadata",
                "folders": (world.dataset, world.dataset),
                "damaged": (FileFinding(filename="toy", expected=None, found=None),),
                "features": _no_features,
                "compression": "GZIP",
                "notes": ["counted"],
                "reference": "toy",
            },
        )
    ],
    "Dataset.split": [_of("dataset.split", name="train")],
    "Dataset.whole_splits": [_of("dataset.whole_splits", names=["train"], rule="they are whole")],
    **{
        f"Evaluation.{method}": [
            Call(
                lambda w, method=method: getattr(  # type: ignore[misc]
                    shardctl.evaluate(w.dataset, batch=2, hosts=3), method
                ),
                lambda w: {"remainder": "drop"},
            )
        ]
        for method in ("num_steps", "distinct_shapes", "hang")
    },
    "DatasetList.having": [
        Call(lambda w: shardctl.list_datasets("mnist").having, lambda w: {"words": ["mnist"]})
    ],
    "FileInstruction": [
        _call(
            shardctl.FileInstruction,
            filename="toy-00000",
            split="train",
            skip=1,
            take=2,
            examples_in_shard=6,
            first_id=1,
        )
    ],
    "Host": [_call(Host, index=1, count=4)],
    "Host.parse": [_call(Host.parse, text="1/4")],
    "Order.read": [_of("order.read", start=3, stop=40)],
    "Order.chunks": [_of("order.chunks", start=3, stop=40)],
    "Order.blocks_at": [_of("order.blocks_at", positions=np.array(_NUMBERS))],
    "Order.codes_at": [_of("order.codes_at", positions=np.array(_NUMBERS))],
    "Order.positions_of": [_of("order.positions_of", codes=np.array(_NUMBERS), over=iter)],
    "Order.positions_in_pieces": [
        _of("order.positions_in_pieces", codes=np.array(_NUMBERS), over=iter)
    ],
    "Order.steps_of": [_of("order.steps_of", positions=np.array(_NUMBERS))],
    "Order.steps_up_to": [_of("order.steps_up_to", stop=4)],
    "Order.examples_in_steps": [_of("order.examples_in_steps", start=1, stop=3)],
    "Order.consumed": [_of("order.consumed", stop=9, advance=lambda _: None)],
    "Order.positions_in_step": [_of("order.positions_in_step", step=2)],
    "Order.epoch_of": [_of("order.epoch_of", positions=np.array(_NUMBERS))],
    "PinnedOrder": [
        Call(
            lambda world: PinnedOrder,
            lambda world: {
                "snapshot": world.pinned().snapshot,
                "label": "then",
                "live": world.pinned().live,
            },
        )
    ],
    "PinnedOrder.holds": [
        Call(lambda world: world.pinned().holds, lambda w: {"cells": [b"1"], "size": 4, "block": 2})
    ],
    "Lint.fails": [
        Call(lambda w: shardctl.lint(w.dataset, "train").fails, lambda w: {"fail_on": "error"})
    ],
    "ListedDataset.has": [
        Call(lambda w: shardctl.list_datasets("mnist").built_in[0].has, lambda w: {"words": ["m"]})
    ],
    "PlannedOrder.with_settings": [
        Call(
            lambda w: shardctl.plan_order(w.dataset, "train").with_settings,
            lambda w: {"settings": ReadSettings(block=2)},
        )
    ],
    "Query": [_call(Query, kind="id", value=7), _call(Query, kind="id", value="train:7")],
    "ReadSettings": [
        _call(
            ReadSettings,
            cycle=3,
            block=2,
            shuffle_files=True,
            shuffle_seed=7,
            reshuffle=False,
            deterministic=True,
            buffer=9,
            buffer_seed=8,
            buffer_reshuffle=True,
            global_seed=5,
            epochs=3,
            repeat_files=False,
            reverse=True,
            host=Host(index=1, count=4),
            host_by="files",
            batch=6,
            drop_remainder=True,
            pass_index=2,
            loop="keras-fit",
        ),
        _call(ReadSettings, cycle="auto", cpus=8, file_order=["b", "a"]),
        _call(ReadSettings, stages="repeat(2) | take(9)"),
        _call(ReadSettings, stages=["cache", {"shuffle": {"buffer": 9, "seed": 3}}]),
        _call(
            ReadSettings,
            loader="torch",
            loader_version="2.13.0",
            shuffle=True,
            global_seed=5,
            workers=2,
            persistent_workers=True,
            drop_shard_remainder=True,
        ),
        _call(
            ReadSettings,
            loader="hf",
            streaming=True,
            arrow=False,
            before_shuffle="map",
            buffer=9,
            input_shards=3,
        ),
    ],
    "ReadSettings.takes": [_of("settings.takes", name="buffer")],
    "ReadSettings.cycle_length": [_of("settings.cycle_length", ordered=True)],
    "ReadSettings.check_predictable": [_of("settings.check_predictable", ordered=False)],
    "Split": [
        Call(
            lambda world: Split,
            lambda world: {
                "name": "test",
                "shard_lengths": (5, 5),
                "files": world.dataset.split("test").files,
                "num_bytes": 100,
                "shard_bytes": (50, 60),
            },
        )
    ],
    "Split.even": [
        Call(
            lambda world: Split.even,
            lambda world: {
                "name": "test",
                "num_examples": 11,
                "num_shards": 2,
                "files": world.dataset.split("test").files,
                "num_bytes": 100,
            },
        )
    ],
    **{
        f"Split.{method}": [
            Call(
                lambda world, method=method: getattr(world.dataset.split("train"), method),  # type: ignore[misc]
                lambda world, arguments=arguments: dict(arguments),  # type: ignore[misc]
            )
        ]
        for method, arguments in {
            "shard_of": {"example_id": 13},
            "location": {"shard_index": 2},
            "filename": {"shard_index": 2},
            "filenames_between": {"start": 1, "stop": 3},
        }.items()
    },
    "SplitLayout.columns": [
        Call(
            lambda w: shardctl.layout(w.dataset, "train").splits[0].columns,
            lambda w: {"start": 1, "stop": 3},
        )
    ],
    "SplitLayout.shards": [
        Call(
            lambda w: shardctl.layout(w.dataset, "train").splits[0].shards,
            lambda w: {"start": 1, "stop": 3},
        )
    ],
    "Usage": [
        _call(
            Usage,
            hosts=2,
            take=9,
            as_data_source=False,
            assert_cardinality=True,
            try_autocache=False,
            seeds=(1, 2),
            max_open_files=100,
        )
    ],
    "compare_loaders": [_planned(shardctl.compare_loaders)],
    "compare_reports": [
        Call(
            lambda world: shardctl.compare_reports,
            lambda world: {
                "a": world.pinned(),
                "b": world.pinned(block=2),
            },
        ),
        Call(
            lambda world: shardctl.compare_reports,
            lambda world: {
                "a": world.pinned(),
                "b": world.settings_file,
                "dataset": world.dataset,
                "spec": "train",
                "watch": _watch,
            },
        ),
    ],
    "diff": [
        Call(
            lambda world: shardctl.diff,
            lambda world: {
                "expected": world.pinned(),
                "actual": world.pinned(block=2),
                "exact_limit": 100,
            },
        ),
        Call(
            lambda world: shardctl.diff,
            lambda world: {
                "expected": world.pinned(),
                "dataset": world.dataset,
                "spec": "train",
                "settings": ReadSettings(block=2),
            },
        ),
    ],
    "evaluate": [
        _planned(shardctl.evaluate, spec="test", batch=2, hosts=3, devices=2, remainder="pad")
    ],
    "hosts": [_planned(shardctl.hosts, hosts=3), _planned(shardctl.hosts, hosts=[2, 3])],
    "layout": [
        Call(lambda w: shardctl.layout, lambda w: {"dataset": w.dataset, "splits": ["test"]})
    ],
    "lint": [
        Call(
            lambda world: shardctl.lint,
            lambda world: {
                "dataset": world.dataset,
                "specs": ["train"],
                "evaluated": ["test"],
                "settings": world.settings,
                "usage": Usage(hosts=2),
                "select": ["SC"],
                "ignore": ["SC001"],
            },
        )
    ],
    "list_datasets": [_call(shardctl.list_datasets, words=["mnist"], data_dir=".")],
    "locate": [
        Call(
            lambda world: shardctl.locate,
            lambda world, position=position: {  # type: ignore[misc]
                "dataset": world.dataset,
                "spec": "train",
                "settings": world.settings,
                "position": position,
                "step": 2,
                "id": 7,
                "tfds_id": "toy-train.tfrecord-00001-of-00004__3",
                "queries": [Query(kind="position", value=9), Query(kind="step", value=2)],
            },
        )
        for position in (9, [9, 3])
    ],
    "plan": [
        Call(
            lambda world: shardctl.plan,
            lambda world: {
                "dataset": world.dataset,
                "specs": ["train[:9]"],
                "hosts": 4,
                "drop_remainder": True,
            },
        ),
        Call(
            lambda world: shardctl.plan,
            lambda world: {
                "dataset": world.dataset,
                "specs": ["train"],
                "host": Host(index=1, count=4),
            },
        ),
    ],
    "plan_order": [_planned(shardctl.plan_order)],
    "prove": [
        Call(
            lambda world: shardctl.prove,
            lambda world: {
                "dataset": world.dataset,
                "plan": shardctl.resume_unseen(world.dataset, "train", seen=_NUMBERS),
                "seen": np.array(_NUMBERS),
                "allow_version": False,
            },
        )
    ],
    "quality": [
        _planned(
            shardctl.quality,
            target=0.5,
            what_if=False,
            memory=100,
            example_bytes=20,
        )
    ],
    "read_dataset": [_call(shardctl.read_dataset, refs=["mnist"], data_dir=".", cache=True)],
    "read_plan": [Call(lambda w: shardctl.read_plan, lambda w: {"path": w.file_of("plan")})],
    "read_snapshot": [
        Call(lambda w: shardctl.read_snapshot, lambda w: {"path": w.file_of("snapshot")})
    ],
    "report": [
        _planned(
            shardctl.report,
            hosts=4,
            devices=2,
            evaluated=["train[:9]"],
            usage=shardctl.Usage(take=9),
            loaders=False,
        ),
        _planned(shardctl.report, evaluated="train[:9]"),
    ],
    "resume": [
        _planned(shardctl.resume, consumed=29, mode="exact-order"),
        _planned(shardctl.resume, steps=7),
        _planned(
            shardctl.resume,
            settings=ReadSettings(buffer=5),
            consumed=9,
            mode="at-least-once",
            risk=0.5,
        ),
    ],
    "resume_loader": [
        _planned(shardctl.resume_loader, settings={"loader": "torch"}, consumed=5),
        _planned(
            shardctl.resume_loader,
            settings=ReadSettings(buffer=5),
            consumed=9,
            mode="at-least-once",
            risk=0.5,
        ),
        _planned(shardctl.resume_loader, settings={"loader": "grain", "batch": 2}, steps=2),
    ],
    "resume_on_hosts": [
        _planned(shardctl.resume_on_hosts, hosts=2, to_hosts=3, consumed=5),
        _planned(shardctl.resume_on_hosts, hosts=2, to_hosts=3, consumed=[5, 14]),
        _planned(shardctl.resume_on_hosts, hosts=2, to_hosts=3, steps=2),
        _planned(
            shardctl.resume_on_hosts,
            settings=ReadSettings(buffer=5),
            hosts=2,
            to_hosts=3,
            consumed=5,
            mode="at-least-once",
            risk=0.5,
        ),
    ],
    "resume_unseen": [
        _planned(shardctl.resume_unseen, seen=np.array(_NUMBERS), to_hosts=2),
    ],
    "simulate": [_planned(shardctl.simulate, skip=3, take=30)],
    "snapshot": [_planned(shardctl.snapshot, watch=_watch)],
    "verify": [_planned(shardctl.verify, take=30, watch=_watch)],
    "verify_files": [
        Call(
            lambda world: shardctl.verify_files,
            lambda world: {
                "dataset": shardctl.index(world.records, cache=False).dataset,
                "splits": ["all"],
                "jobs": 2,
                "watch": _watch,
            },
        ),
        Call(
            lambda world: shardctl.verify_files,
            lambda world: {"dataset": world.records, "splits": ["all"], "runner": LocalRunner()},
        ),
    ],
    "index": [
        Call(
            lambda world: shardctl.index,
            lambda world: {
                "paths": [world.records],
                "split": {"train": "a-*"},
                "name": "toy",
                "file_format": "tfrecord",
                "checksums": True,
                "keep_going": True,
                "jobs": 2,
                "cache": False,
                "watch": _watch,
            },
        ),
        Call(
            lambda world: shardctl.index,
            lambda world: {"paths": [world.records], "runner": LocalRunner()},
        ),
    ],
    "check_index": [
        Call(
            lambda world: shardctl.check_index,
            lambda world: {
                "layout": world.layout_of_records,
                "paths": [world.records],
                "checksums": True,
                "jobs": 2,
                "cache": False,
                "watch": _watch,
            },
        ),
        Call(
            lambda world: shardctl.check_index,
            lambda world: {"layout": world.layout_of_records, "paths": [], "runner": LocalRunner()},
        ),
    ],
    "beam_runner": [_call(shardctl.beam_runner, options=["--direct_num_workers=2"])],
    "inspect": [_inspected("inspect")],
    "Inspection.ids": [_of("inspection.ids", pass_index=2)],
    "Inspection.order": [_of("inspection.order", pass_index=2)],
    "tfds.inspect": [_inspected("tfds.inspect")],
    "tfds.resume_like": [
        _own("resume_like", lambda _: _counting, consumed=4, pass_index=1, loop="python"),
        _own("resume_like", lambda _: _counting, steps=4),
    ],
    "tfds.verify_dataset": [
        _own("verify_dataset", _reading, pass_index=1, loop="python", take=6, watch=_watch)
    ],
    "tfds.dataset_of": [_bridged("dataset_of")],
    "tfds.evaluation": [
        _bridged(
            "evaluation",
            spec=_always("train"),
            settings=_always(ReadSettings(host_by="examples")),
            batch=_always(2),
            hosts=_always(3),
            host=_always(1),
            devices=_always(2),
            device_axis=_always(True),
            padding=_always("zeros"),
            sample_weight=_always(False),
            as_supervised=_always(False),
            **_TRANSFORMED,
        )
    ],
    "tfds.keras_epochs": [
        _bridged(
            "keras_epochs",
            spec=_always("train"),
            settings=_always(ReadSettings(batch=4, host=Host(index=1, count=2))),
            host=_always(1),
            epochs=_always(3),
            initial_epoch=_always(1),
            steps=_always(2),
            transform=_always(_same),
            decoders=_always(None),
        )
    ],
    "tfds.pipeline": [_bridged("pipeline", **_TRAIN, **_TRANSFORMED)],
    "tfds.exact_order": [
        _bridged(
            "exact_order",
            spec=_always("train"),
            settings=_always(ReadSettings(batch=4, host=Host(index=1, count=2))),
            consumed=_always(9),
            host=_always(1),
            **_TRANSFORMED,
        )
    ],
    "tfds.resume": [
        _bridged(
            "resume",
            plan=lambda world: world.plan_of_hosts,
            host=_always(2),
            allow_version=_always(False),
            **_TRANSFORMED,
        )
    ],
    "tfds.resume_epochs": [
        _bridged(
            "resume_epochs",
            plan=lambda world: world.plan_of_hosts,
            host=_always(2),
            allow_version=_always(False),
            **_TRANSFORMED,
        )
    ],
    "tfds.read_config": [
        _configured(plan=lambda world: world.plan_of_hosts, host=_always(2)),
        _configured(plan=lambda world: world.plan, epoch=_always(1), allow_version=_always(False)),
    ],
    "tfds.record_files": [
        Call(lambda world: shardctl.tfds.record_files, lambda world: {"dataset": world.dataset})
    ],
    "tfds.verify": [_planned(shardctl.tfds.verify, take=30, watch=_watch)],
    "tfds.verify_plan": [
        Call(
            lambda world: shardctl.tfds.verify_plan,
            lambda world: {
                "dataset": world.dataset,
                "plan": world.plan,
                "take": 9,
                "watch": _watch,
                "allow_version": False,
            },
        )
    ],
    "tfds.Position": [
        _bridged("Position", **_TRAIN, consumed=_always(9), allow_version=_always(False))
    ],
    "tfds.Position.advance": [_moved("advance", num_examples=5)],
    "tfds.Position.count": [
        _moved(
            "count",
            elements=lambda world: [np.zeros(3), np.zeros(2)],
            batch=3,
            step=_always(itertools.count().__next__),
        )
    ],
    "tfds.Position.dataset": [
        _moved("dataset", transform=_always(_same), add_tfds_id=True, host=1)
    ],
    "tfds.Position.save": [_moved("save", path=lambda world: f"{world.folder}/position.json")],
    "tfds.Position.restore": [
        _moved("restore", path=lambda world: f"{world.folder}/position.json", allow_version=False)
    ],
    "tfds.Position.set_state": [
        _moved("set_state", state=lambda world: world.state, allow_version=_always(False))
    ],
    "tfds.Position.set_states": [
        _moved("set_states", states=lambda world: [world.state], allow_version=_always(False))
    ],
    "tfds.Position.begin_epoch_of_fit": [_moved("begin_epoch_of_fit", epoch=0)],
    "tfds.ResumeFit": [
        Call(lambda world: shardctl.tfds.ResumeFit, lambda world: {"position": world.position})
    ],
    "orbax.Checkpointable": [
        _for_orbax("Checkpointable", position=_position, allow_version=False, host=1)
    ],
    "orbax.PositionHandler": [_for_orbax("PositionHandler", process="1/3")],
    "orbax.Restore": [_for_orbax("Restore", position=_position, allow_version=False, host=1)],
    "orbax.Save": [_for_orbax("Save", position=_position, host=1)],
    "grain.Sampler": [
        _fed(
            lambda world, **given: shardctl.grain.Sampler(**given),
            **_OF_ORDER,
            workers=2,
            consumed=8,
            seed=5,
        ),
        _fed(
            lambda world, **given: shardctl.grain.Sampler(**given),
            **_OF_ORDER,
            states=lambda world: [_grain_state(world)],
        ),
    ],
    "grain.Sampler.begin_epoch_of_fit": [_fed(_begun, epoch=2)],
    "grain.Sampler.position": [
        _fed(lambda world, **given: _sampler(world).position(**given), state=_grain_state)
    ],
    "grain.consumed": [
        _fed(
            lambda world, **given: shardctl.grain.consumed(**given),
            state={"next_index": 3},
            batch=4,
        )
    ],
    "grain.data_loader": [
        _fed(
            lambda world, **given: shardctl.grain.data_loader(**given),
            source=_records,
            **_OF_ORDER,
            operations=(),
            workers=2,
            consumed=8,
            seed=5,
            worker_buffer_size=1,
            read_options=None,
        ),
        _fed(
            lambda world, **given: shardctl.grain.data_loader(**given),
            source=_records,
            **_OF_ORDER,
            states=lambda world: [_grain_state(world)],
        ),
    ],
    "grain.fit_epochs": [
        Call(lambda world: shardctl.grain.fit_epochs, lambda world: {"dataset": _sampler(world)})
    ],
    "grain.keep_texts": [_call(shardctl.grain.keep_texts, example={"text": b"x"})],
    "grain.map_dataset": [
        _fed(
            lambda world, **given: shardctl.grain.map_dataset(**given),
            source=_records,
            **_OF_ORDER,
            consumed=8,
        ),
        _fed(
            lambda world, **given: shardctl.grain.map_dataset(**given),
            source=_records,
            **_OF_ORDER,
            states=lambda world: [_grain_state(world)],
        ),
    ],
    "torch.Sampler": [
        _for_torch(lambda world, **given: shardctl.torch.Sampler(**given), **_OF_ORDER, consumed=8),
        _for_torch(
            lambda world, **given: shardctl.torch.Sampler(**given),
            **_OF_ORDER,
            states=lambda world: [_torch_state(world)],
        ),
    ],
    "torch.Sampler.load_state_dict": [_for_torch(_loaded, state=_torch_state)],
    "torch.Sampler.set_epoch": [_for_torch(_in_epoch, epoch=2)],
    "torch.Sampler.state_after": [
        _for_torch(lambda world, **given: _of_torch(world).state_after(**given), batches=2)
    ],
    "torch.collate_as_tf_data": [
        Call(lambda world: _collated, lambda world: {"source": _OfTFDS()})
    ],
    "torch.consumed": [
        _for_torch(lambda world, **given: shardctl.torch.consumed(**given), state=_torch_state)
    ],
    "torch.data_loader": [
        _for_torch(
            lambda world, **given: shardctl.torch.data_loader(**given),
            source=_records,
            **_OF_ORDER,
            workers=2,
            consumed=8,
            options=None,
        ),
        _for_torch(
            lambda world, **given: shardctl.torch.data_loader(**given),
            source=_records,
            **_OF_ORDER,
            states=lambda world: [_torch_state(world)],
        ),
    ],
    "tfds.write_metadata": [
        Call(
            lambda world: shardctl.tfds.write_metadata,
            lambda world: {
                "dataset": world.dataset,
                "folder": world.folder,
                "features": f"{world.folder}/features.json",
                "force": False,
            },
        )
    ],
}

# Arguments that are handed on as they are: to TFDS, Grain or PyTorch, which know what they may be.
HANDED_ON = ("decoders", "example", "operations", "options", "over", "read_options")


# Public classes of which users make values; the others are answers, which functions make.
MADE_BY_USERS = {
    "Dataset",
    "FileInstruction",
    "Host",
    "PinnedOrder",
    "Query",
    "ReadSettings",
    "Split",
    "Usage",
}


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
                if of_type and not method and not prefix and name not in MADE_BY_USERS:
                    continue  # an answer
                parameters = dict(inspect.signature(function).parameters)
                parameters.pop("self", None)
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
