"""Chains of PyTorch's calls: what real libraries yielded of them, and yield here."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from shardctl.errors import ShardctlError, UsageError
from shardctl.live.torch_objects import read_object
from shardctl.loaders.loader import LOADERS, library_of
from shardctl.loaders.loader_sequence import LoaderConfig, LoaderSource
from shardctl.loaders.torch_generator import Generator, draws_since, numbers_in, saved_generator
from tests.cases import FUZZ, add_cases, counted, seed_of_test
from tests.golden import assert_evaluated
from tests.late_modules import needs
from tests.loaders.agreement import check_agreement
from tests.loaders.torch_chains import Chains, config_of_chain

RECORDED = json.loads((Path(__file__).parent / "torch" / "chains.json").read_text())["cases"]
of_torchdata = needs("torchdata", reason="needs torchdata: pip install torchdata")


def order(loader: str, chain: str, n: int = 12, **settings: Any) -> list[int]:
    found = LOADERS[loader].sequence(config_of_chain(loader, chain, n, **settings))
    indices: list[int] = found.indices_at(np.arange(found.num_examples)).tolist()
    return indices


def test_orders_are_those_of_the_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one process, and of two and three that Accelerate and the Trainer ran on."""
    monkeypatch.chdir(tmp_path)
    for case in counted(RECORDED):
        for name, numbers in case["files"].items():
            Path(name).write_text("\n".join(map(repr, numbers)))
        config = config_of_chain(case["loader"], case["stages"], case["n"], **case["settings"])
        found, batches = LOADERS[case["loader"]].sequence(config), case["batches"]
        check_agreement(found, batches, case["n"], batched=found.batches is not None)


def test_what_has_no_order_or_no_meaning_is_refused() -> None:
    assert_evaluated(globals(), "refused_chains")


def test_steps_of_the_trainer_are_those_of_the_optimizer() -> None:
    """26 batches, 4 of them a step, are 7 steps an epoch, the last of 2."""
    config = config_of_chain("accelerate", "Trainer(2, 4, data_seed=3)", 52, epochs=2)
    batches = LOADERS["accelerate"].sequence(config).batches
    assert batches is not None
    sizes = [len(range(*batches.bounds(step))) for step in range(batches.num_batches)]
    assert sizes == [8, 8, 8, 8, 8, 8, 4] * 2


def test_the_state_of_a_generator_is_a_seed_and_draws(tmp_path: Path) -> None:
    """As `get_state` of torch 2.14.1 has it: a seed, how many words are left, and the words."""
    for draws in (0, 1, 623, 624, 625, 4000):
        bits = np.random.MT19937()
        np.random.RandomState(bits).seed(9)
        bits.random_raw(draws)
        state: Any = bits.state["state"]
        left = (625 - state["pos"]).to_bytes(4, "little") + bytes([1, 0, 0, 0])
        words = state["key"].astype("<u8").tobytes()
        whole = (9).to_bytes(8, "little") + left + bytes(8) + words
        whole += bytes(5056 - len(whole))
        (tmp_path / "state").write_bytes(whole)
        assert draws_since(whole) == (9, draws)
        drawn = Generator(9).draws(draws, draws + 700).tolist()
        assert saved_generator(str(tmp_path / "state")).draws(0, 700).tolist() == drawn
        chain = f"set_rng_state('{tmp_path / 'state'}') | DataLoader(shuffle=True)"
        assert order("torch", chain) == order(
            "torch", f"manual_seed(9, {draws}) | DataLoader(shuffle=True)"
        )


def test_a_file_that_holds_no_state_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    state = bytes(8) + (1).to_bytes(4, "little") + bytes(5044)
    saved, packed = tmp_path / "state", io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("archive/data/0", state)
    whole = packed.getvalue()
    for data in (state, whole):
        saved.write_bytes(data)
        assert saved_generator(str(saved)).words[1] == 624
    # A place beyond the words is memory of others to NumPy.
    for left in (0, 626, 1 << 31):
        saved.write_bytes(state[:8] + left.to_bytes(4, "little") + state[12:])
        with pytest.raises(UsageError, match="holds 0 states of PyTorch's generator"):
            saved_generator(str(saved))
    at = whole.index(b"archive/data/0") + 14
    for change in (b"\xff" * 9, b"\x06\x07" * 4):
        saved.write_bytes(whole[:at] + change + whole[at + len(change) :])
        with pytest.raises(UsageError, match="holds 0 states of PyTorch's generator"):
            saved_generator(str(saved))
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", ".", "a\0b"):
        with pytest.raises(UsageError, match="cannot be read: No such file or directory"):
            saved_generator(f"{tmp_path}/{name}")
    for odd in (np.zeros(2, [("a", "i4"), ("b", "i4")]), np.array(["x"])):
        np.save(tmp_path / "odd.npy", odd)
        with pytest.raises(UsageError, match="no list of places"):
            numbers_in(f"{tmp_path}/odd.npy", "places")


@of_torchdata
@pytest.mark.fuzz
@pytest.mark.parametrize("loader", ["torch", "stateful", "accelerate"])
def test_chains_at_random_are_those_of_the_library(loader: str, tmp_path: Path) -> None:
    if loader == "accelerate":
        pytest.importorskip("accelerate", reason="needs accelerate: pip install accelerate")
    chains = Chains(loader, Random(seed_of_test()), tmp_path)
    for number in range(FUZZ // 20):
        text, config = chains.config(workers=number % 40 == 39)
        try:
            found = LOADERS[loader].sequence(config)
        except ShardctlError:
            if "MultiNode" not in text:  # of an input without elements the library never ends
                with pytest.raises(UsageError):
                    list(library_of(LOADERS[loader]).batches(config))
            continue
        batches = [batch.tolist() for batch in library_of(LOADERS[loader]).batches(config)]
        batched = found.batches is not None
        check_agreement(found, batches, config.num_examples, batched=batched)
        add_cases()


def read_back(made: Any, epochs: int) -> list[int]:
    """Return what is predicted of an object that has one source, a range."""
    found = read_object(made)
    assert found is not None
    ((read, source),) = found.sources.items()
    lengths, settings = np.array([len(source)]), dict(found.settings)
    rank, _, count = settings.pop("host", "0/1").partition("/")
    config = LoaderConfig(
        lengths=lengths,
        version="",
        stages=found.stages,
        sources={read: LoaderSource(first=0, lengths=lengths)},
        epochs=epochs,
        shares=count != "1",
        host=int(rank),
        num_hosts=int(count),
        **settings,
    )
    sequence = LOADERS[found.loader].sequence(config)
    indices: list[int] = sequence.indices_at(np.arange(sequence.num_examples)).tolist()
    return indices


def objects() -> dict[str, Callable[[], Any]]:
    import torch
    import torchdata.nodes as nodes
    from torch.utils import data
    from torchdata.stateful_dataloader import StatefulDataLoader

    def drawn() -> Any:
        generator = torch.Generator().manual_seed(3)
        torch.rand(900, generator=generator)
        return generator

    def part() -> Any:
        return data.random_split(range(40), [30, 10], generator=drawn())[0]

    def loader(kind: Any, source: Any, **more: Any) -> Any:
        return kind(source, collate_fn=list, **more)

    weights = [1.0, 2, 5, 0.5] * 10
    shuffled = {"batch_size": 4, "shuffle": True}
    return {
        "shuffled": lambda: loader(data.DataLoader, part(), **shuffled, drop_last=True),
        "own": lambda: loader(data.DataLoader, range(40), **shuffled, generator=drawn()),
        "batches": lambda: loader(
            data.DataLoader,
            range(40),
            batch_sampler=data.BatchSampler(data.RandomSampler(range(40)), 7, drop_last=False),
        ),
        "weighted": lambda: loader(
            data.DataLoader, range(40), sampler=data.WeightedRandomSampler(weights, 50)
        ),
        "stateful": lambda: loader(StatefulDataLoader, range(40), **shuffled),
        "nodes": lambda: nodes.Loader(
            nodes.Batcher(nodes.SamplerWrapper(data.RandomSampler(range(40))), 4, drop_last=False)
        ),
    }


@of_torchdata
@pytest.mark.parametrize("name", ["shuffled", "own", "batches", "weighted", "stateful", "nodes"])
def test_an_object_is_read_back_as_what_it_yields(name: str) -> None:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        torch.rand(700)
        made = objects()[name]()
        predicted = read_back(made, epochs=2)
        assert predicted == [int(one) for _ in range(2) for batch in made for one in batch]
