"""A plan for one host, in a process that says that it is another."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import shardctl.tfds
from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.tfds.training.read_config import check_host, hosts_said
from shardctl.verbs.resume.answer import resume
from tests.forked_scripts import forking_python
from tests.tfds_datasets import build_dataset, read_ids

THREE = Host(index=3, count=8)


@pytest.fixture(autouse=True)
def nobody_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide JAX where it is imported."""
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.delitem(sys.modules, "jax", raising=False)


def jax_of(monkeypatch: pytest.MonkeyPatch, index: int, count: int) -> None:
    """Let JAX, with its backends started, say that this process is one of several.

    What it is asked has the names of the real one, which a slow test asks.
    """
    jax = SimpleNamespace(process_index=lambda: index, process_count=lambda: count)
    bridge = SimpleNamespace(backends_are_initialized=lambda: True)
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)


def test_what_the_caller_says_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    jax_of(monkeypatch, 4, 8)
    given: list[Any] = [3, np.int64(3), THREE]
    for host in given:
        check_host(THREE, host)
    for host in (4, 0, Host(index=3, count=4), Host(index=4, count=8)):
        with pytest.raises(UsageError, match="the plan is for host 3 of 8, and this process is"):
            check_host(THREE, host)


def test_jax_says_which_process_this_is(monkeypatch: pytest.MonkeyPatch) -> None:
    check_host(THREE, None)
    jax_of(monkeypatch, 3, 8)
    check_host(THREE, None)
    for index, count in ((4, 8), (3, 4), (0, 2)):
        jax_of(monkeypatch, index, count)
        words = rf"by jax.process_index\(\) this process is host {index} of {count}; give"
        with pytest.raises(UsageError, match=words):
            check_host(THREE, None)
    jax_of(monkeypatch, 0, 1)  # a process that is alone
    check_host(THREE, None)


def test_a_jax_that_keeps_its_state_elsewhere_is_asked_by_its_functions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("jax._src.xla_bridge", "jax._src.distributed"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    jax = SimpleNamespace(process_index=lambda: 4, process_count=lambda: 8)
    monkeypatch.setitem(sys.modules, "jax", jax)
    with pytest.raises(UsageError, match="this process is host 4 of 8"):
        check_host(THREE, None)


@pytest.mark.parametrize(
    ("cluster", "task", "host"),
    [
        ({"worker": ["a", "b"]}, ("worker", 1), (1, 2)),
        ({"worker": ["a", "b"]}, ("worker", "1"), (1, 2)),
        ({"chief": ["c"], "worker": ["a", "b"]}, ("worker", 1), (2, 3)),
        ({"chief": ["c"], "worker": ["a", "b"]}, ("chief", 0), (0, 3)),
        ({"chief": ["c"], "worker": ["a", "b"], "evaluator": ["e"]}, ("evaluator", 0), None),
        ({"chief": ["c"], "worker": ["a", "b"], "ps": ["p"]}, ("worker", 1), None),
        ({"worker": ["a"]}, ("worker", 0), None),
    ],
)
def test_tf_config_says_which_worker_this_is(
    cluster: dict[str, list[str]],
    task: tuple[str, int],
    host: tuple[int, int] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = {"cluster": cluster, "task": {"type": task[0], "index": task[1]}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    found = [(said.index, said.count) for source, said in hosts_said() if source == "TF_CONFIG"]
    assert found == ([] if host is None else [host])
    if host is not None:  # as TensorFlow counts them
        from tensorflow.python.distribute import multi_worker_util

        assert multi_worker_util.id_in_cluster(cluster, task[0], int(task[1])) == host[0]
        assert multi_worker_util.worker_count(cluster, task[0]) == host[1]


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"cluster": {}}', '{"task": null}'])
def test_a_tf_config_of_something_else_says_nothing(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_CONFIG", text)
    assert list(hosts_said()) == []


def test_everything_that_takes_a_plan_refuses_another_host(
    tfds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = tfds.builder_from_directory(build_dataset(tmp_path, splits={"train": [8, 8]}))
    settings = ReadSettings(host=Host(index=1, count=2), batch=2)
    plan = resume(shardctl.tfds.dataset_of(builder), "train", settings, consumed=2)
    position = shardctl.tfds.Position(builder, "train", settings, consumed=2)

    def of_keras(**host: Any) -> Any:
        epochs = shardctl.tfds.keras_epochs(builder, "train", settings, epochs=1, **host)
        return next(epochs)[1].unbatch().skip(2)

    calls: dict[str, Any] = {
        "resume": lambda **host: shardctl.tfds.resume(builder, plan, **host).unbatch(),
        "resume_epochs": lambda **host: next(shardctl.tfds.resume_epochs(builder, plan, **host))[1],
        "exact_order": lambda **host: shardctl.tfds.exact_order(
            builder, "train", settings, consumed=2, **host
        ).unbatch(),
        "position": lambda **host: position.dataset(**host).unbatch(),
        "keras_epochs": of_keras,
        "read_config": lambda **host: builder.as_dataset(
            split="train", read_config=shardctl.tfds.read_config(plan, **host)
        ),
        "read_config with builder": lambda **host: builder.as_dataset(
            split="train", read_config=shardctl.tfds.read_config(plan, builder, **host)
        ),
    }
    rest = list(range(10, 16))
    jax_of(monkeypatch, 1, 2)
    assert read_ids(calls["resume"]()) == rest
    jax_of(monkeypatch, 0, 2)
    ways = (1, "1/2", Host(index=1, count=2))
    for number, (name, call) in enumerate(calls.items()):
        with pytest.raises(UsageError, match="the plan is for host 1 of 2, and by jax"):
            call()
        if number in (0, 5):  # the others make a dataset of the same plan
            assert read_ids(call(host=ways[number % 3])) == rest, name
        with pytest.raises(UsageError, match="said to be host 0"):
            call(host=0)


_JAX_CHILD = """
import sys
from shardctl.spec.host import Host
from shardctl.errors import UsageError
from shardctl.tfds.training.read_config import check_host, hosts_said

def say(when):
    print(when, *(f"{source} {host}" for source, host in hosts_said()), flush=True)

say("JAX is not loaded:")
assert "jax" not in sys.modules
import jax
from jax._src.xla_bridge import backends_are_initialized
say("loaded:")
jax.distributed.initialize(sys.argv[1], 2, int(sys.argv[2]))
say("distributed:")
assert not backends_are_initialized()  # who asks starts none
jax.devices()
say("started:")
check_host(Host(index=int(sys.argv[2]), count=2), None)
try:
    check_host(Host(index=1 - int(sys.argv[2]), count=2), None)
except UsageError as error:
    print(error)
"""


@pytest.mark.slow
def test_the_processes_of_a_real_jax_say_who_they_are() -> None:
    """Two processes that `jax.distributed` makes one run of."""
    pytest.importorskip("jax")
    with socket.create_server(("localhost", 0)) as server:
        address = f"localhost:{server.getsockname()[1]}"
    for index, (out, _) in enumerate(outputs(_JAX_CHILD, [[address, str(i)] for i in range(2)])):
        source = "jax.process_index()"
        assert out.splitlines() == [
            "JAX is not loaded:",
            "loaded:",
            f"distributed: {source} {index}/2",
            f"started: {source} {index}/2",
            f"the plan is for host {1 - index} of 2, and by {source} this process is host {index} "
            "of 2; give this host its own plan, or say who reads with host=I",
        ]


_CHILD = """
import sys
import tensorflow as tf
from shardctl.spec.host import Host
from shardctl.errors import UsageError
from shardctl.tfds.training.read_config import check_host, hosts_said

def said():
    return [(source, str(host)) for source, host in hosts_said()]

print(said())
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    print(said())
    check_host(Host(index=int(sys.argv[1]), count=2), None)
    try:
        check_host(Host(index=1 - int(sys.argv[1]), count=2), None)
    except UsageError as error:
        print(error)
"""


@pytest.mark.slow
@pytest.mark.tensorflow
def test_the_workers_of_a_real_strategy_say_who_they_are(tmp_path: Path) -> None:
    """Two processes that TensorFlow makes one cluster of."""
    sockets = [socket.create_server(("localhost", 0)) for _ in range(2)]
    workers = [f"localhost:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    configs = []
    for index in range(2):
        task = {"type": "worker", "index": index}
        configs.append({"TF_CONFIG": json.dumps({"cluster": {"worker": workers}, "task": task})})
    script = tmp_path / "worker.py"
    script.write_text(_CHILD)
    commands: list[list[str | Path]] = [[script, str(index)] for index in range(2)]
    all_ran = forking_python().run(commands, tmp_path, seconds=120, environments=configs)
    for index, ran in enumerate(all_ran):
        assert ran.code == 0, ran.errors
        source = "the tf.distribute strategy in scope"
        assert ran.out.splitlines() == [
            f"[('TF_CONFIG', '{index}/2')]",
            f"[('{source}', '{index}/2')]",
            f"the plan is for host {1 - index} of 2, and by {source} this process is host "
            f"{index} of 2; give this host its own plan, or say who reads with host=I",
        ]


def outputs(program: str, arguments: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """Run a program several times at once; return what each writes to stdout, and to stderr."""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", program, *own],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for own in arguments
    ]
    try:
        found = [child.communicate(timeout=120) for child in children]
        for child, (_, errors) in zip(children, found, strict=True):
            assert child.returncode == 0, errors
        return found
    finally:
        for child in children:
            child.kill()
            child.wait()
