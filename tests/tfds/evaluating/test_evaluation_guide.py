"""The script of the guide on JAX devices and processes: the counts of NumPy, one shape, no hang."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import shardctl
from tests.cases import add_cases
from tests.forked_scripts import Ran, forking_python
from tests.killed_runs import guide_text, script_of_guide
from tests.tfds_datasets import build_dataset

NUM_HOSTS, BATCH = 3, 64
# Hosts hold 257, 256 and 256 examples of `test`, and 1, 1 and none of `validation`.
SPLITS = {"test": [300, 0, 400, 69], "validation": [1, 1]}


def write_world(folder: Path) -> tuple[Path, dict[str, int]]:
    """Write a dataset and weights; return its folder, and what NumPy counts as predicted right."""
    import tensorflow_datasets as tfds

    rng = np.random.default_rng(1)
    # Logits of any two classes are 0.02 apart at least: their sums are multiples of 51/255.
    images = 51 * rng.integers(0, 6, (max(map(sum, SPLITS.values())), 28, 28, 1), dtype=np.uint8)
    kernel = rng.integers(-9, 10, (28 * 28, 10)).astype(np.float32)
    bias = (0.02 * np.arange(10)).astype(np.float32)
    np.savez(folder / "weights.npz", kernel=kernel, bias=bias)
    logits = images.reshape(len(images), -1) / 255 @ kernel.astype(np.float64) + bias
    ranked = np.sort(logits)
    assert (ranked[:, -1] - ranked[:, -2]).min() > 0.01  # far more than float32 errs
    # Padding that repeats an example, and counts, would be seen: the first one is predicted right.
    labels = (logits.argmax(-1) + (rng.random(len(images)) < 0.4) * np.arange(len(images))) % 10
    assert labels[0] == logits[0].argmax()
    dataset = build_dataset(
        folder / "data",
        "mnist",
        SPLITS,
        features=tfds.features.FeaturesDict(
            {
                "image": tfds.features.Tensor(shape=(28, 28, 1), dtype=np.uint8),
                "label": tfds.features.ClassLabel(num_classes=10),
            }
        ),
        example=lambda i: {"image": images[i], "label": int(labels[i])},
    )
    right = np.cumsum(logits.argmax(-1) == labels)
    return dataset, {split: int(right[sum(sizes) - 1]) for split, sizes in SPLITS.items()}


def as_processes(script: Path, *arguments: str | Path) -> list[list[str | Path]]:
    with socket.create_server(("localhost", 0)) as server:
        address = f"localhost:{server.getsockname()[1]}"
    return [
        [script, *arguments, address, str(process), str(NUM_HOSTS)] for process in range(NUM_HOSTS)
    ]


def lines_of(ran: Ran) -> list[str]:
    """Return what a script printed, without what threads of the collectives of a CPU print."""
    noise = ("[Gloo]", "peer ranks")
    return [line for line in ran.out.splitlines() if not any(word in line for word in noise)]


def results_of(ran: Ran) -> list[str]:
    return [line for line in lines_of(ran) if " step " not in line]


def planned(dataset: Path, split: str, *, hosts: int, devices: int) -> shardctl.Evaluation:
    return shardctl.evaluate(dataset, split, batch_per_device=BATCH, hosts=hosts, devices=devices)


def steps_of(ran: Ran, split: str) -> int:
    return sum(line.startswith(split) and " step " in line for line in lines_of(ran))


def check_padded(
    all_ran: Sequence[Ran], dataset: Path, right: dict[str, int], devices: int
) -> None:
    """Check that every process counts what NumPy counts, in the steps planned, compiled once."""
    for ran in all_ran:
        assert ran.code == 0, ran.errors[-2000:]
        asked = [split for split in SPLITS if steps_of(ran, split)]
        for split in asked:
            plan = planned(dataset, split, hosts=len(all_ran), devices=devices)
            assert steps_of(ran, split) == plan.num_steps("pad")[0]
        assert results_of(ran) == [
            *(f"{split}: {right[split]} of {sum(SPLITS[split])} correct" for split in asked),
            "1 shape compiled",
        ]
        assert ran.errors.count("Compiling jit(eval_step)") == 1
        add_cases(len(asked))
    if len(all_ran) == NUM_HOSTS:
        assert asked == list(SPLITS)
        num_batches = planned(dataset, "validation", hosts=NUM_HOSTS, devices=devices).num_batches
        assert num_batches.tolist() == [1, 1, 0]  # a host with none is among them


def check_hang(
    all_ran: Sequence[Ran], plan: shardctl.Evaluation, remainder: Literal["ragged", "drop"]
) -> None:
    """Check that processes wait for others in the step that the plan says, and are cut off."""
    hang = plan.hang(remainder)
    assert hang is not None
    waiting = [index for index, ran in enumerate(all_ran) if not results_of(ran)]
    said = [ran.out for ran in all_ran]
    assert (len(waiting), waiting[0]) == (hang.waiting, hang.first_waiting), said
    seen = int(np.minimum(plan.num_examples, hang.step * plan.host_batch).sum())
    assert seen < plan.total
    for index, ran in enumerate(all_ran):
        assert ran.code == -6, ran.errors[-2000:]  # also those that have printed their result
        assert "Shutdown barrier has failed" in ran.errors
        assert f"# of tasks that reached the barrier: {hang.finished}/{NUM_HOSTS}." in ran.errors
        last_step = steps_of(ran, "test") - 1
        if index in waiting:
            assert last_step == hang.step
            if remainder == "ragged":
                assert (
                    ran.errors.count("Compiling jit(eval_step)")
                    == plan.distinct_shapes("ragged")
                    == 2
                )
        else:
            assert last_step == hang.step - 1
            # A result all the same, of all examples but those in the steps that not all made.
            result, _ = results_of(ran)
            assert result.endswith(f" of {seen} correct")
    add_cases()


@pytest.fixture
def scripts(tmp_path: Path) -> dict[str, Path]:
    """Return the script of the guide, and what tests make of it, by name."""
    if find_spec("flax") is None:
        pytest.skip("Flax is not installed")
    source = script_of_guide("evaluation", "evaluate.py")
    (padded,) = re.findall(r"^    batches = shardctl.*?\n(?=    correct)", source, re.M | re.S)
    lines = script_of_guide("evaluation", "unpadded.py").splitlines()
    unpadded = "".join(f"    {line}\n" for line in lines if "#" not in line)
    batched = "local_device_count())\n"
    assert unpadded.count(batched) == 1
    dropped = unpadded.replace(batched, "local_device_count(), drop_remainder=True)\n")
    seconds = "shutdown_timeout_seconds=60"
    assert seconds in source
    short = source.replace(seconds, "shutdown_timeout_seconds=4")
    texts = {
        "padded": source,
        "ragged": short.replace(padded, unpadded),
        "drop": short.replace(padded, dropped),
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    return {name: tmp_path / f"{name}.py" for name in texts}


def run(commands: Sequence[Sequence[str | Path]], folder: Path, devices: int) -> list[Ran]:
    """Run scripts on so many devices each, which note what XLA compiles."""
    flags = f"--xla_force_host_platform_device_count={devices}"
    return forking_python().run(commands, folder, XLA_FLAGS=flags, JAX_LOG_COMPILES="1")


@pytest.mark.slow
def test_evaluations_on_devices_and_processes_count_what_numpy_counts(
    tmp_path: Path, scripts: dict[str, Path]
) -> None:
    dataset, right = write_world(tmp_path)
    alone = run([[scripts["padded"], dataset, "test"]], tmp_path, 4)
    check_padded(alone, dataset, right, devices=4)
    together = as_processes(scripts["padded"], dataset, "test,validation")
    all_ran = run(together, tmp_path, 2)
    check_padded(all_ran, dataset, right, devices=2)
    told = guide_text("evaluation")
    result, _, shapes = results_of(all_ran[0])
    steps = f"{steps_of(all_ran[0], 'test')} steps"
    assert f"{steps} and prints `{result}` and `{shapes}`" in told

    hanging = as_processes(scripts["ragged"], dataset, "test")
    all_ran = run(hanging, tmp_path, 1)
    plan = planned(dataset, "test", hosts=NUM_HOSTS, devices=1)
    assert plan.num_examples.tolist() == [257, 256, 256]
    check_hang(all_ran, plan, "ragged")
    assert f"`{results_of(all_ran[1])[0].removeprefix('test: ')}`" in told
