"""Chains of PyTorch's calls at random, as a script may write them, with files that they name."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from shardctl.loaders.loader import calls_of
from shardctl.loaders.loader_sequence import LoaderConfig, LoaderSource
from shardctl.stages.pipelines import readers_of
from shardctl.stages.text import parse_stages

_STOPS = ("CYCLE_UNTIL_ALL_DATASETS_EXHAUSTED", "ALL_DATASETS_EXHAUSTED", "FIRST_DATASET_EXHAUSTED")


def config_of_chain(loader: str, text: str, n: int, **settings: Any) -> LoaderConfig:
    """Return a configuration of a chain over `n` examples."""
    chain, lengths = parse_stages(text, calls=calls_of(loader)), np.array([n])
    sources = {one: LoaderSource(first=0, lengths=lengths) for one in readers_of(chain)}
    return LoaderConfig(lengths=lengths, version="", stages=chain, sources=sources, **settings)


class Chains:
    """Random chains of one loader; the files that they name lie in the folder."""

    def __init__(self, loader: str, random: Random, folder: Path) -> None:
        self.loader, self.random, self.folder, self.files = loader, random, folder, 0

    def one_of(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def seed(self) -> str:
        draws = self.random.randrange(999)
        found: str = self.one_of("generator=None", f"generator={draws}", f"generator=[7, {draws}]")
        return found

    def file(self, numbers: list[Any]) -> str:
        self.files += 1
        path = self.folder / f"{self.files}{self.one_of('.npy', '.txt')}"
        if path.suffix == ".npy":
            np.save(path, numbers)
        else:
            path.write_text("\n".join(map(repr, numbers)))
        return repr(str(path))

    def some(self, n: int, most: int) -> list[int]:
        return [self.random.randrange(-n, n) for _ in range(self.random.randrange(1, most))]

    def dataset(self, n: int) -> tuple[list[str], int]:
        """Return stages that make a dataset of one, and its number of elements."""
        found: list[str] = []
        while self.random.random() < 0.4:
            some, cut = self.some(n, n + 3), self.random.randrange(1, n + 1)
            match self.random.randrange(3):
                case 0:
                    kept = range(cut - 1, n, self.one_of(1, 2, 3))
                    found, n = [*found, f"Subset('{kept!r}')"], len(kept)
                case 1:
                    given = self.one_of(repr(some), self.file(some))
                    found, n = [*found, f"Subset({given})"], len(some)
                case _ if 1 < cut < n - 1:
                    found.append(f"random_split([{n - cut}, {cut}], part=1, {self.seed()})")
                    n = cut
                case _ if n % 4 == 0:
                    found, n = [*found, f"random_split([0.25, 0.75], {self.seed()})"], n // 4
        return found, n

    def sampler(self, n: int) -> str:
        weights = [self.one_of(0.5, 1, self.random.random()) for _ in range(n)]
        count, seed = self.random.randrange(1, 2 * n + 70), self.seed()
        some, drawn = self.some(n, n + 1), f"num_samples={count}, replacement={self.one_of(True)}"
        few = f"{min(count, n)}, replacement={self.one_of(True, False)}"
        flags = [self.one_of(True, False) for _ in range(3)]
        share = "DistributedSampler(drop_last={}, shuffle={}, set_epoch={}, seed=5)".format(*flags)
        return str(
            self.one_of(
                "SequentialSampler",
                f"RandomSampler({seed})",
                f"RandomSampler(num_samples={count}, {seed})",
                f"RandomSampler({drawn}, {seed})",
                f"SubsetRandomSampler({some}, {seed})",
                f"WeightedRandomSampler({self.file(weights)}, {few}, {seed})",
                *([share] * (self.loader != "accelerate")),
            )
        )

    def node(self, n: int) -> str:
        stages, n = self.dataset(n)
        if self.random.random() < 0.2:
            return " | ".join([*stages, "IterableWrapper"])
        kind = self.one_of("SamplerWrapper", "MapStyleWrapper", "SamplerWrapper(2)")
        mapped = self.one_of([], ["Mapper"], ["Batcher(3)", "Unbatcher"])
        return " | ".join([*stages, self.sampler(n), kind, *mapped])

    def nodes(self, n: int) -> str:
        """Return a chain of nodes of torchdata."""
        ends = self.one_of([], ["Batcher(3, drop_last=False)"], ["Batcher(2)", "Prefetcher(2)"])
        first = f"manual_seed({self.random.randrange(2**33)}, {self.random.randrange(900)})"
        inputs = [self.node(n) for _ in range(self.random.randrange(1, 4))]
        if self.random.random() < 0.4:
            return " | ".join([first, inputs[0], *ends, "Loader"])
        weights = [self.one_of(0.1, 0.5, self.random.random()) for _ in inputs]
        inputs[0] = f"{first} | {inputs[0]}"
        how = f"{weights}, {self.one_of(*_STOPS)}, seed={self.random.randrange(99)}"
        return " | ".join([f"MultiNodeWeightedSampler([{', '.join(inputs)}], {how})", *ends])

    def chain(self, n: int) -> str:
        """Return a chain."""
        if self.loader == "stateful" and self.random.random() < 0.5:
            return self.nodes(n)
        first = f"manual_seed({self.random.randrange(2**33)}, {self.random.randrange(900)})"
        stages, n = self.dataset(n)
        name = "StatefulDataLoader" if self.loader == "stateful" else "DataLoader"
        drops, flag = self.one_of(True, False), self.one_of(True, False)
        batch = f"{self.random.randrange(1, 9)}, drop_last={drops}"
        lengths = self.file([self.random.randrange(20) for _ in range(n)])
        how = self.one_of("random", "sequential", f"group_by_length, lengths={lengths}")
        steps = f"{self.random.randrange(1, 6)}, {self.random.randrange(1, 5)}, data_seed=7"
        made = self.one_of(
            [f"IterableDataset({self.one_of('stride', 'block', 'ignored')})", f"{name}({batch})"],
            [f"{name}(batch_size={batch}, shuffle=True, {self.seed()})"],
            [self.sampler(n), f"BatchSampler({batch})"],
            [self.sampler(n), f"{name}({batch})"],
        )
        if self.loader == "accelerate" and self.random.random() < 0.3:
            made = [f"Trainer({steps}, train_sampling_strategy={how}, even_batches={flag})"]
        elif self.loader == "accelerate":
            options = f"split_batches={self.one_of(True, False, False)}, even_batches={flag}"
            seedable = f"use_seedable_sampler={self.one_of(True, False)}"
            made.append(f"prepare({options}, {seedable}, dispatch_batches=False)")
        return " | ".join([first, *stages, *made])

    def config(self, *, workers: bool) -> tuple[str, LoaderConfig]:
        """Return a chain, and a configuration of it."""
        n, count = self.one_of(4, 16, 33, 60), self.one_of(1, 1, 2, 3)
        text = self.chain(n)
        workers = workers and "Wrapper" not in text
        return text, config_of_chain(
            self.loader,
            text,
            n,
            epochs=self.one_of(1, 2, 3),
            first_epoch=self.one_of(0, 0, 2),
            shares=count > 1,
            host=self.random.randrange(count),
            num_hosts=count,
            workers=self.one_of(1, 2, 3) if workers else 0,
            persistent_workers=self.one_of(True, None) if workers else None,
        )
