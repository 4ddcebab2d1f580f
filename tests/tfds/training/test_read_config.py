"""Plans as `ReadConfig`: ordinary TFDS pipelines read them, and what does not fit is refused."""

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
from shardctl.errors import DatasetError, UsageError
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.tfds.training.read_config import check_host, fitted, hosts_said
from shardctl.verbs.resume.answer import resume, resume_unseen
from shardctl.verbs.resume.hosts import resume_on_hosts
from tests.cases import FUZZ, check_cases
from tests.forked_scripts import forking_python
from tests.order.order_cases import changed
from tests.order.toy_pipelines import SPLITS, Case, Toy, Toys, as_line
from tests.tfds_datasets import build_dataset, read_ids
from tests.verbs.resume.stopped_pipelines import (
    from_a_file,
    lines_of,
    stopped,
    stopping_points,
    stops,
)

pytestmark = pytest.mark.tensorflow


def lines_read(toy: Toy, plan: ResumePlan, builder: Any = None, **which: Any) -> list[str]:
    """Return what `as_dataset` reads with the ReadConfig of a plan."""
    config = shardctl.tfds.read_config(plan, builder, add_tfds_id=True, **which)
    dataset = toy.builder.as_dataset(split=plan.spec, read_config=config).map(as_line)
    host = plan.settings.host
    if host is not None and plan.settings.host_by == "examples":
        dataset = dataset.shard(host.count, host.index)
    return lines_of(dataset)


def check(toys: Toys, case: Case, numbers: Sequence[int]) -> int:
    toy = toys[case.toy]
    found = stopped(toy, case, 0 if case.settings.repeat_files else numbers[0] % 2)
    if found is None:
        return 0
    order, whole = found
    places = stopping_points(order, numbers)
    for place in places:
        plan = resume(toy.dataset, case.spec, order.settings, consumed=place)
        plan = from_a_file(plan, toy.dataset, numbers[0])
        lines = lines_read(toy, plan, None if numbers[0] % 3 == 0 else toy.builder)
        assert len(lines) == plan.remaining
        stop = place + plan.remaining
        expected = whole[place:stop]  # a last batch that is dropped is dropped behind the reader
        assert lines[: len(expected)] == expected, (case, place)
        assert len(lines) == stop - place
    return len(places)


@pytest.mark.slow
def test_an_ordinary_pipeline_reads_the_rest(toys: Toys) -> None:
    check_cases(stops(buffered=False), lambda drawn: check(toys, *drawn), 1)


@pytest.mark.fuzz
def test_ordinary_pipelines_fuzzed(toys: Toys) -> None:
    check_cases(stops(buffered=False), lambda drawn: check(toys, *drawn), FUZZ // 8)


@pytest.mark.slow
def test_plans_for_hosts_and_of_a_log_read_every_example_once(toys: Toys) -> None:
    toy = toys["plain"]
    for_hosts = resume_on_hosts(toy.dataset, "train", hosts=1, to_hosts=3, consumed=[20])
    unseen = resume_unseen(toy.dataset, "train", seen=range(20))
    plain = resume(toy.dataset, "train", ReadSettings(cycle=1), consumed=20)
    by_hosts = [lines_read(toy, for_hosts, toy.builder, host=host) for host in range(3)]
    rest = lines_read(toy, plain, toy.builder)
    assert sorted(lines_read(toy, unseen, toy.builder)) == sorted(rest)
    whole = lines_read(toy, resume(toy.dataset, "train", consumed=0))
    assert sorted(line for lines in by_hosts for line in lines) == sorted(whole[20:])
    with pytest.raises(UsageError, match="the plan is for 3 hosts"):
        shardctl.tfds.read_config(for_hosts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shuffle_seed": 1}, "shuffle_seed: the plan says this"),
        ({"interleave_cycle_length": 4}, "the plan says this"),
        ({"input_context": None}, "the plan says this"),
        ({"host": 0}, "host=0: this plan is for one reader; leave host out"),
    ],
)
def test_options_that_the_plan_fixes_are_refused(
    toys: Toys, options: dict[str, Any], message: str
) -> None:
    plan = resume(toys["plain"].dataset, "train", consumed=3)
    with pytest.raises(UsageError, match=message):
        shardctl.tfds.read_config(plan, toys["plain"].builder, **options)


def test_an_unordered_decoding_is_refused(tf: Any, toys: Toys) -> None:
    options = tf.data.Options()
    options.deterministic = False
    with pytest.raises(UsageError, match="deterministic=False"):
        shardctl.tfds.read_config(resume(toys["plain"].dataset, consumed=3), options=options)


def test_shuffled_files_another_split_and_another_dataset_are_refused(
    tfds: Any, toys: Toys, tmp_path: Path
) -> None:
    builder = toys["plain"].builder
    plan = resume(toys["plain"].dataset, "train", consumed=3)
    for config in (shardctl.tfds.read_config(plan), shardctl.tfds.read_config(plan, builder)):
        with pytest.raises(UsageError, match="shuffle_files=True would shuffle the plan"):
            builder.as_dataset(split="train", read_config=config, shuffle_files=True)
        with pytest.raises(DatasetError, match="ask TFDS for split='train' of toy"):
            builder.as_dataset(split="test", read_config=config)
    folder = build_dataset(tmp_path, splits={**SPLITS, "train": [3, 0, 5, 17, 16, 1, 34]})
    other = tfds.builder_from_directory(folder)
    with pytest.raises(DatasetError, match="now 76 examples in 7"):
        shardctl.tfds.read_config(plan, other)
    with pytest.raises(DatasetError, match="now 76 examples in 7"):
        other.as_dataset(split="train", read_config=shardctl.tfds.read_config(plan))


def test_a_plan_through_a_buffer_is_for_resume(toys: Toys) -> None:
    toy, settings = toys["plain"], ReadSettings(buffer=5, buffer_seed=1)
    plan = resume(toy.dataset, "train", settings, consumed=3, mode="exact-order")
    with pytest.raises(UsageError, match="a shuffle buffer that held 4 examples"):
        shardctl.tfds.read_config(plan, toy.builder)
    # Before the first example nothing is held, and behind the last nothing is left.
    for consumed, left in ((0, 75), (75, 0)):
        plan = resume(toy.dataset, "train", settings, consumed=consumed, mode="exact-order")
        assert len(lines_read(toy, plan, toy.builder)) == left
    of_host = changed(settings, host=Host(index=1, count=2), host_by="examples")
    plan = resume(toy.dataset, "train", of_host, consumed=3, mode="exactly-once")
    with pytest.raises(UsageError, match="resume reads them one after"):
        shardctl.tfds.read_config(plan, toy.builder)


@pytest.mark.parametrize("host", [None, 2, -1])
def test_a_host_is_chosen_where_there_are_several(toys: Toys, host: int | None) -> None:
    toy = toys["plain"]
    plan = resume_on_hosts(toy.dataset, "train", hosts=1, to_hosts=2, consumed=[4])
    with pytest.raises(UsageError, match="choose one of 0 to 1"):
        fitted(toy.builder, plan, host=host)


def test_a_plan_of_another_loader_is_left_to_its_library(toys: Toys) -> None:
    toy = toys["plain"]
    settings = ReadSettings(loader="torch", shuffle_seed=1, loader_version="2.14.1")
    plan = resume(toy.dataset, "train", settings, consumed=3)
    for call in (
        lambda: shardctl.tfds.resume(toy.builder, plan),
        lambda: shardctl.tfds.read_config(plan),
        lambda: shardctl.tfds.verify_plan(toy.dataset, plan),
    ):
        with pytest.raises(UsageError, match="the plan is of PyTorch's DataLoader"):
            call()


# A plan for one host, in a process that says that it is another.


THREE = Host(index=3, count=8)


@pytest.fixture(autouse=True)
def nobody_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.delitem(sys.modules, "jax", raising=False)


def jax_of(monkeypatch: pytest.MonkeyPatch, index: int, count: int) -> None:
    """Let JAX say that this process is one of several, by names that a slow test asks for real."""
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
    # Another version may keep its state elsewhere.
    for name in ("jax._src.xla_bridge", "jax._src.distributed"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(UsageError, match="this process is host 0 of 2"):
        check_host(THREE, None)
    jax_of(monkeypatch, 0, 1)  # a process that is alone
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


_JAX_CHILD = Path(__file__).with_name("jax_child.txt").read_text("utf-8")


@pytest.mark.slow
def test_the_processes_of_a_real_jax_say_who_they_are() -> None:
    """Two processes that `jax.distributed` makes one run of."""
    pytest.importorskip("jax")
    with socket.create_server(("localhost", 0)) as server:
        address = f"localhost:{server.getsockname()[1]}"
    command = [sys.executable, "-c", _JAX_CHILD, address]
    how: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True}
    children = [subprocess.Popen([*command, str(index)], **how) for index in range(2)]
    source = "jax.process_index()"
    for index, child in enumerate(children):
        out, _ = child.communicate(timeout=120)
        assert out.splitlines() == [
            "JAX is not loaded:",
            "loaded:",
            f"distributed: {source} {index}/2",
            f"started: {source} {index}/2",
            f"the plan is for host {1 - index} of 2, and by {source} this process is host {index} "
            "of 2; give this host its own plan, or name the host with host=I",
        ]


_CHILD = Path(__file__).with_name("child.txt").read_text("utf-8")


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
            f"{index} of 2; give this host its own plan, or name the host with host=I",
        ]
