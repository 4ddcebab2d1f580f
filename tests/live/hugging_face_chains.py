"""Random chains of Hugging Face Datasets: as the text of stages, and made by the library itself."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

from shardctl.live.hugging_face import _rows, _tables
from shardctl.loaders.loader_sequence import LoaderConfig, LoaderSource
from shardctl.loaders.vocabulary import calls_of
from shardctl.stages.pipelines import readers_of
from shardctl.stages.text import parse_stages

STRATEGIES = ("first_exhausted", "all_exhausted", "all_exhausted_without_replacement")


def passes(index: Any) -> Any:
    return index % 3 != 1


def _passes_in(example: dict[str, int]) -> bool:
    return bool(passes(example["index"]))


def _same(example: dict[str, int]) -> dict[str, int]:
    return example


class Chain:
    """A random chain: its text, and what the library makes when it is given the same calls."""

    def __init__(self, random: Random, version: tuple[int, ...]) -> None:
        import datasets

        self.random, self.version, self._library = random, version, datasets
        self.streams, self.tables = random.random() < 0.7, random.random() < 0.5
        self.lengths: list[list[int]] = []
        self.has_batches = self.has_split = self.is_cut = self.mixes = False
        self.text, self.real = self._mixture() if random.random() < 0.4 else self._input()
        for _ in range(random.randrange(3)):
            self._stage()
        if self.streams and not self.has_split and random.random() < 0.3:
            self._behind(*self._split())

    def _input(self, *, top: bool = True) -> tuple[str, Any]:
        name = "abc"[len(self.lengths)]
        sizes = [self.random.choice((1, 2, 3, 7, 15)) for _ in range(self.random.randrange(1, 7))]
        first = sum(map(sum, self.lengths))
        self.lengths.append(sizes)
        library = self._library
        ends = [first + int(end) for end in np.cumsum(sizes)]
        shards = [(end - size, end) for size, end in zip(sizes, ends, strict=True)]
        if not self.streams:
            made = library.Dataset.from_dict({"index": list(range(first, ends[-1]))})
        elif not self.tables:
            made = library.IterableDataset.from_generator(_rows, gen_kwargs={"shards": shards})
        else:
            from datasets.iterable_dataset import ArrowExamplesIterable

            info = library.DatasetInfo(features=library.Features({"index": library.Value("int64")}))
            made = library.IterableDataset(
                ArrowExamplesIterable(_tables, {"shards": shards}), info=info
            )
        self.text, self.real = name, made
        for _ in range(self.random.randrange(1 if not top else 4)):
            self._stage()
        return self.text, self.real

    def _mixture(self) -> tuple[str, Any]:
        self.mixes = True
        inputs = []
        for _ in range(self.random.randrange(2, 4)):
            self._input(top=False)
            for _ in range(self.random.randrange(3)):
                self._stage(inner=True)
            inputs.append((self.text, self.real))
        texts, made = zip(*inputs, strict=True)
        listed = f"[{', '.join(texts)}]"
        if self.random.random() < 0.4:
            return f"concatenate_datasets({listed})", self._library.concatenate_datasets(list(made))
        strategy = self.random.choice(STRATEGIES if self.version >= (4, 3) else STRATEGIES[:2])
        given: dict[str, Any] = {"stopping_strategy": strategy}
        if self.random.random() < 0.6:
            weights = [self.random.randrange(1, 9) for _ in made]
            given["probabilities"] = [weight / sum(weights) for weight in weights]
            given["seed"] = self.random.randrange(99)
        said = ", ".join(f"{name}={value!r}" for name, value in given.items())
        mixed = self._library.interleave_datasets(list(made), **given)
        return f"interleave_datasets({listed}, {said})", mixed

    def _behind(self, text: str, made: Any) -> None:
        self.text, self.real = f"{self.text} | {text}", made

    def _split(self) -> tuple[str, Any]:
        from datasets.distributed import split_dataset_by_node

        self.has_split, count = True, self.random.randrange(1, 4)
        rank = self.random.randrange(count)
        made = split_dataset_by_node(self.real, rank=rank, world_size=count)
        return f"split_dataset_by_node({rank}, {count})", made

    def _stage(self, *, inner: bool = False) -> None:
        random, ds = self.random, self.real
        n = random.randrange(9)
        kinds = ["shuffle", "shuffle", "skip", "take", "map", "shard", "repeat", "filter"]
        if not inner:
            kinds += ["batch"]
        kinds += [] if self.streams else ["select", "ttsplit", "to_iterable", "node", "slice"]
        kind = random.choice(kinds)
        if kind == "shuffle" and self.streams:
            given: dict[str, Any] = {"seed": n, "buffer_size": random.choice((1, 2, 5, 13, 40))}
            if self.version >= (5,) and random.random() < 0.6:
                given["max_buffer_input_shards"] = random.randrange(1, 5)
            said = ", ".join(f"{name}={value}" for name, value in given.items())
            self._behind(f"shuffle({said})", ds.shuffle(**given))
        elif kind == "shuffle":
            self._behind(f"shuffle({n})", ds.shuffle(seed=n))
        elif kind in ("skip", "take"):
            self.is_cut = True
            self._behind(f"{kind}({n})", getattr(ds, kind)(n))
        elif kind == "map":
            batched = random.random() < 0.5
            self._behind(f"map(batched={batched})", ds.map(_same, batched=batched))
        elif kind == "filter" and not self.has_batches:
            self._behind("filter(kept='k')", ds.filter(_passes_in))
        elif kind == "shard":
            shards = ds.num_shards if self.streams else len(ds)
            if shards and not (self.streams and self.has_split):
                count = random.randrange(1, min(shards, 4) + 1)
                index, how = random.randrange(count), random.choice(("", ", contiguous=False"))
                made = ds.shard(count, index, contiguous=not how)
                self._behind(f"shard({count}, {index}{how})", made)
        elif kind == "repeat":
            self._behind(f"repeat({n % 3 + 1})", ds.repeat(n % 3 + 1))
        elif kind == "batch" and not self.has_batches:
            self.has_batches = True
            drops = random.random() < 0.5
            made = ds.batch(batch_size=n + 1, drop_last_batch=drops)
            self._behind(f"batch({n + 1}, drop_last_batch={drops})", made)
        elif kind == "select" and len(ds):
            chosen = [random.randrange(len(ds)) for _ in range(n)]
            self._behind(f"select({chosen})", ds.select(chosen))
        elif kind == "slice" and len(ds) > n:
            self._behind(f"select('{n}:{len(ds)}:2')", ds.select(range(n, len(ds), 2)))
        elif kind == "ttsplit" and len(ds) > 6:
            part, size = random.choice(("train", "test")), random.choice((0.3, 2))
            mixes = random.random() < 0.7
            given = {"test_size": size, "shuffle": mixes, "seed": n}
            if random.random() < 0.3:
                given["train_size"] = 0.4
            said = ", ".join(f"{name}={value}" for name, value in given.items())
            made = ds.train_test_split(**given)[part]
            self._behind(f"train_test_split({said}, split={part})", made)
        elif kind == "to_iterable" and len(ds) > 4 and not inner and not self.has_batches:
            made = ds.to_iterable_dataset(num_shards=n % 4 + 1)
            self._behind(f"to_iterable_dataset({n % 4 + 1})", made)
            self.streams = True
        elif kind == "node" and len(ds) > 3:
            self._behind(*self._split())
            self.has_split = False

    def config(self, version: str, streams: bool, **more: Any) -> LoaderConfig:
        """Return the question of a process."""
        pipeline = parse_stages(self.text, calls_of("hf"))
        sources, first = {}, 0
        for read in readers_of(pipeline):
            lengths = np.array(self.lengths["abc".index(read.spec or "")])
            sources[read] = LoaderSource(first=first, lengths=lengths)
            first += int(lengths.sum())
        whole = np.array([size for sizes in self.lengths for size in sizes])
        kept: Any = lambda stage: passes  # noqa: E731
        return LoaderConfig(
            lengths=whole,
            version=version,
            stages=pipeline,
            sources=sources,
            kept=kept,
            streaming=streams,
            arrow=self.tables,
            **more,
        )


def yielded(real: Any, batch: int | None, workers: int, drops: bool) -> list[list[int]]:
    """Return what a DataLoader yields, batch by batch."""

    def flat(example: Any) -> list[int]:
        index = example["index"]
        return list(index) if isinstance(index, list) else [index]

    def batches() -> Iterator[list[Any]]:
        if not workers:
            examples = list(real)
            for at in range(0, len(examples), batch or 1):
                yield examples[at : at + (batch or 1)]
            return
        from torch.utils.data import DataLoader

        yield from DataLoader(
            real, batch_size=batch or 1, num_workers=workers, drop_last=drops, collate_fn=list
        )

    found = [[one for example in each for one in flat(example)] for each in batches()]
    return found
