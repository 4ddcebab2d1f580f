"""A plan for one host, in a process that says that it is another."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import shardctl.tfds
from shardctl.core.hosts.host import Host
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import UsageError
from shardctl.planning.resume.resume import resume
from shardctl.tfds.training.process_host import check_host, hosts_said
from tests.tfds_datasets import build_dataset, read_ids

THREE = Host(index=3, count=8)


@pytest.fixture(autouse=True)
def nobody_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    for name in ("jax", "jax._src.xla_bridge", "jax._src.distributed"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def jax_of(monkeypatch: pytest.MonkeyPatch, index: int, count: int) -> list[str]:
    """Put a stand-in in the place of JAX, with the functions of its API; return what is called."""
    called: list[str] = []

    def says(name: str, value: int) -> Any:
        def said() -> int:
            called.append(name)
            return value

        return said

    jax = SimpleNamespace(
        process_index=says("process_index", index), process_count=says("process_count", count)
    )
    monkeypatch.setitem(sys.modules, "jax", jax)
    return called


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


def test_no_backend_of_jax_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    called = jax_of(monkeypatch, 4, 8)
    started = False
    bridge = SimpleNamespace(backends_are_initialized=lambda: started)
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)
    check_host(THREE, None)
    state = SimpleNamespace(client=None, process_id=0, num_processes=None)
    distributed = SimpleNamespace(global_state=state)
    monkeypatch.setitem(sys.modules, "jax._src.distributed", distributed)
    check_host(THREE, None)
    state.client, state.process_id, state.num_processes = object(), 5, 8
    with pytest.raises(UsageError, match="this process is host 5 of 8"):
        check_host(THREE, None)
    assert not called
    started = True
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tensorflow_datasets as tfds

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
    for name, call in calls.items():
        jax_of(monkeypatch, 1, 2)
        assert read_ids(call()) == rest, name
        jax_of(monkeypatch, 0, 2)
        with pytest.raises(UsageError, match="the plan is for host 1 of 2, and by jax"):
            call()
        for host in (1, "1/2", Host(index=1, count=2)):
            assert read_ids(call(host=host)) == rest, name
        with pytest.raises(UsageError, match="said to be host 0"):
            call(host=0)


_CHILD = """
import sys
import tensorflow as tf
from shardctl.core.hosts.host import Host
from shardctl.errors import UsageError
from shardctl.tfds.training.process_host import check_host, hosts_said

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


def test_the_workers_of_a_real_strategy_say_who_they_are() -> None:
    """Two processes that TensorFlow makes one cluster of."""
    sockets = [socket.create_server(("localhost", 0)) for _ in range(2)]
    workers = [f"localhost:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    children = []
    for index in range(2):
        task = {"type": "worker", "index": index}
        config = json.dumps({"cluster": {"worker": workers}, "task": task})
        children.append(
            subprocess.Popen(
                [sys.executable, "-c", _CHILD, str(index)],
                env={**os.environ, "TF_CONFIG": config},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        for index, child in enumerate(children):
            out, errors = child.communicate(timeout=120)
            assert child.returncode == 0, errors
            source = "the tf.distribute strategy in scope"
            assert out.splitlines() == [
                f"[('TF_CONFIG', '{index}/2')]",
                f"[('{source}', '{index}/2')]",
                f"the plan is for host {1 - index} of 2, and by {source} this process is host "
                f"{index} of 2; give this host its own plan, or say who reads with host=I",
            ]
    finally:
        for child in children:
            child.kill()
            child.wait()
