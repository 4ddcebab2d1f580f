"""Chains of PyTorch's calls at random, as text, over `n` examples."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from shardctl.loaders.loader_sequence import LoaderConfig, LoaderSource
from shardctl.loaders.vocabulary import calls_of
from shardctl.stages.pipelines import readers_of
from shardctl.stages.text import parse_stages

STOPS = ("CYCLE_UNTIL_ALL_DATASETS_EXHAUSTED", "ALL_DATASETS_EXHAUSTED", "FIRST_DATASET_EXHAUSTED")


class Chains:
    """Random chains of one loader; files of numbers lie in `folder`."""

    def __init__(self, loader: str, random: Random, folder: Path) -> None:
        self.loader, self.random, self.folder = loader, random, folder
        self.files = 0

    def seed(self) -> str:
        return self.random.choice(["", f"generator={self.random.randrange(2**32)}"])

    def file(self, numbers: Any, dtype: type = int) -> str:
        self.files += 1
        path = self.folder / f"{self.files}{self.random.choice(['.npy', '.txt'])}"
        save = np.save if path.suffix == ".npy" else lambda p, v: np.savetxt(p, v, fmt="%.17g")
        save(
            path, np.array(numbers, dtype).tolist() if path.suffix == ".txt" else np.array(numbers)
        )
        return str(path)

    def dataset(self, n: int, depth: int = 0) -> tuple[list[str], int]:
        """Return stages that make a dataset of one of `n` elements, and its number of elements."""
        random, found = self.random, []
        while random.random() < 0.4:
            kind = random.randrange(4)
            if kind == 0:
                indices = range(random.randrange(n), n, random.randrange(1, 4))
                found.append(f"Subset('range({indices.start}, {n}, {indices.step})')")
                n = len(indices)
            elif kind == 1:
                some = [random.randrange(-n, n) for _ in range(random.randrange(1, n + 3))]
                given = repr(some) if random.random() < 0.5 else repr(self.file(some))
                found.append(f"Subset({given})")
                n = len(some)
            else:
                cut = random.randrange(1, n + 1)
                lengths = [cut, n - cut] if kind == 2 and 1 < cut < n - 1 else [0.25, 0.5, 0.25]
                part = random.randrange(len(lengths))
                sizes = lengths if kind == 2 and len(lengths) == 2 else None
                if sizes is None:
                    sizes = [int(n * one) for one in lengths]
                    for extra in range(n - sum(sizes)):
                        sizes[extra % 3] += 1
                if not sizes[part]:
                    continue
                found.append(
                    f"random_split({lengths}, part={part}, {self.seed()})".replace(", )", ")")
                )
                n = int(sizes[part])
        return found, n

    def sampler(self, n: int) -> list[str]:
        random = self.random
        some = [random.randrange(n) for _ in range(random.randrange(1, n + 1))]
        weights = [random.choice([0.5, 1, 7, random.random()]) for _ in range(n)]
        count = random.randrange(1, 2 * n + 70)
        of = f"{self.file(weights, float)!r}, {min(count, n)}, replacement={random.random() < 0.6}"
        names = [
            "SequentialSampler",
            f"RandomSampler({self.seed()})",
            f"RandomSampler(num_samples={count}, {self.seed()})",
            f"RandomSampler(num_samples={count}, replacement=True, {self.seed()})",
            f"SubsetRandomSampler({some}, {self.seed()})",
            f"WeightedRandomSampler({of}, {self.seed()})",
        ]
        if self.loader != "accelerate":
            share = f"seed={random.randrange(99)}, drop_last={random.random() < 0.5}"
            calls = f"set_epoch={random.random() < 0.7}"
            names.append(f"DistributedSampler({share}, shuffle={random.random() < 0.8}, {calls})")
        return [random.choice(names).replace(", )", ")")]

    def batches(self, name: str) -> list[str]:
        drops = self.random.random() < 0.4
        return [f"{name}({self.random.randrange(1, 9)}, drop_last={drops})"]

    def node(self, n: int) -> list[str]:
        """Return a chain that ends with a node, of examples."""
        random = self.random
        stages, n = self.dataset(n)
        if random.random() < 0.2:
            return [*stages, "IterableWrapper"]
        kind = random.choice(["SamplerWrapper", "MapStyleWrapper", "SamplerWrapper(2)"])
        mapped = random.choice([[], ["Mapper"], ["Batcher(3)", "Unbatcher"]])
        return [*stages, *self.sampler(n), kind, *mapped]

    def chain(self, n: int) -> str:
        random = self.random
        first = (
            []
            if random.random() < 0.1
            else [f"manual_seed({random.randrange(2**33)}, {random.randrange(900)})"]
        )
        if self.loader == "stateful" and random.random() < 0.6:
            ahead = random.choice([[], ["Prefetcher(2)"], ["ParallelMapper(num_workers=2)"]])
            behind = [
                *random.choice([[], self.batches("Batcher")]),
                *ahead,
                *random.choice([[], ["Loader"]]),
            ]
            if random.random() < 0.5:
                return " | ".join([*first, *self.node(n), *behind])
            count = random.randrange(1, 4)
            inputs = [" | ".join(self.node(n)) for _ in range(count)]
            inputs[0] = " | ".join([*first, inputs[0]])
            weights = [random.choice([0.1, 0.5, 1.0, random.random()]) for _ in range(count)]
            how = f"stop_criteria={random.choice(STOPS)}, seed={random.randrange(99)}"
            mixed = f"MultiNodeWeightedSampler([{', '.join(inputs)}], {weights}, {how})"
            return " | ".join([mixed, *behind])
        if random.random() < 0.2:
            stages, n = self.dataset(n)
            other, m = self.dataset(n)
            joined = f"ConcatDataset([{' | '.join([*first, *stages, 'Subset(range(0))'[:0]]) or 'Subset([0])'}])"
        stages, n = self.dataset(n)
        loader = "StatefulDataLoader" if self.loader == "stateful" else "DataLoader"
        kind = random.random()
        is_stream = kind < 0.15
        if is_stream:
            shared = random.choice(["", "(stride)", "(block)"])
            stages.append(f"IterableDataset{shared}")
            if random.random() < 0.5:
                stages += self.batches(loader)
        elif kind < 0.3 and self.loader == "accelerate":
            pass
        elif kind < 0.5:
            drops = random.random() < 0.4
            size = random.choice(["", f"batch_size={random.randrange(1, 9)}, "])
            stages.append(
                f"{loader}({size}shuffle=True, drop_last={drops}, {self.seed()})".replace(
                    ", )", ")"
                )
            )
        else:
            stages += self.sampler(n)
            if random.random() < 0.5:
                stages += self.batches("BatchSampler")
            if random.random() < 0.3:
                stages.append(loader)
        if self.loader == "accelerate" and kind >= 0.15 and kind < 0.3:
            lengths = self.file([random.randrange(20) for _ in range(n)])
            how = random.choice(["random", "sequential", f"group_by_length, lengths={lengths!r}"])
            stages.append(
                f"Trainer({random.randrange(1, 6)}, {random.randrange(1, 5)}, data_seed=7, "
                f"train_sampling_strategy={how}, even_batches={random.random() < 0.7})"
            )
        elif self.loader == "accelerate":
            seedable = random.random() < 0.4
            stages.append(
                f"prepare(split_batches={random.random() < 0.3}, even_batches={random.random() < 0.6},"
                f" use_seedable_sampler={seedable}, dispatch_batches={False})"
            )
        return " | ".join([*first, *stages])

    def config(self, version: str, *, workers: bool) -> tuple[str, LoaderConfig]:
        """Return a chain, and the configuration of it."""
        random, n = self.random, self.random.choice([1, 2, 5, 16, 33, 60, 100])
        text = self.chain(n)
        chain = parse_stages(text, calls=calls_of(self.loader))
        lengths = np.array([n])
        sources = {one: LoaderSource(first=0, lengths=lengths) for one in readers_of(chain)}
        count = random.choice([1, 1, 2, 3])
        inner = {"BatchSampler", "Batcher", "batch_size", "Trainer", "Wrapper"}
        has = any(word in text for word in inner) or (
            "Loader(" in text and "drop_last" in text and "shuffle" not in text
        )
        nodes = "Wrapper" in text
        batch = None if has else random.choice([None, 1, 3, 4, 8])
        if batch is None and not has and self.loader == "accelerate":
            batch = 4
        return text, LoaderConfig(
            lengths=lengths,
            version=version,
            stages=chain,
            sources=sources,
            epochs=random.randrange(1, 4),
            first_epoch=random.choice([0, 0, 1, 2]),
            shares=count > 1,
            host=random.randrange(count),
            num_hosts=count,
            batch=batch,
            drop_remainder=batch is not None and random.random() < 0.3,
            workers=random.choice([1, 2, 3]) if workers and not nodes else 0,
            persistent_workers=(random.random() < 0.5 or None) if workers and not nodes else None,
        )
