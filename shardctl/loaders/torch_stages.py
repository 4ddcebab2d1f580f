"""The calls of PyTorch, torchdata and Accelerate as stages of a chain, named as their own are.

    Subset('range(0, 800)') | RandomSampler(generator=5) | BatchSampler(4)

What a script makes first stands first: the dataset, its sampler, batches, the loader, and what
prepares it. `generator` is the seed of a generator of its own; without one a sampler draws from
PyTorch's default generator, which `manual_seed` or `set_rng_state` before it say. Each class has
what its call does, as `call`.

Sources: torch/utils/data/sampler.py, dataset.py and distributed.py, torchdata/nodes,
transformers/trainer_pt_utils.py (get_length_grouped_indices), transformers/trainer.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from shardctl.base.arguments import Kind, kind_of, whole_number
from shardctl.base.arrays import Int64s
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.loaders.loader_sequence import LoaderConfig, Permutation
from shardctl.loaders.torch_generator import (
    Generator,
    Seeds,
    num_draws,
    numbers_in,
    saved_generator,
    seeded,
)
from shardctl.stages import part as parts
from shardctl.stages.stages import Mixture

NODES = "torchdata.nodes"
_RANGE = re.compile(r"range\(\s*(-?\d+)\s*(?:,\s*(-?\d+)\s*)?(?:,\s*(-?[1-9]\d*)\s*)?\)")
_AT_ONCE = 32  # places that RandomSampler draws together, with replacement
_MOST_WEIGHTS = 1 << 24  # of torch.multinomial


def _listed(of: Any) -> Kind:
    """Return the kind of numbers that are listed, or are in a file."""
    numbers = kind_of(tuple[of, ...])

    def take(value: Any) -> Any:
        if isinstance(value, range):
            return repr(value)
        return value if isinstance(value, str) and value else numbers.take(value)

    return Kind(take=take, needed="numbers, or a file of them,", several="lists of numbers")


def _own_seed(value: Any) -> Seeds:
    """Return the seed of a generator, or (seed, draws): it was drawn from before."""
    if not isinstance(value, list | tuple):
        return whole_number(value)
    pair = tuple(map(whole_number, value))
    if len(pair) != 2 or pair[1] < 0:
        raise UsageError("a seed is needed, or [seed, draws], the draws that were made before")
    return pair[0], pair[1]


Numbers = Annotated[tuple[float, ...] | str, _listed(float)]
Indices = Annotated[tuple[int, ...] | str, _listed(int)]
OwnSeed = Annotated[Seeds, Kind(take=_own_seed, needed="a seed", several="seeds")]
_FUNCTION = parts.value("", "map_fn", takes="function")


def range_in(given: Sequence[int] | str) -> range | None:
    """Return the range that is written as text, None of anything else.

    >>> range_in("range(2, 8, 3)"), range_in("indices.npy")
    (range(2, 8, 3), None)
    """
    found = _RANGE.fullmatch(given) if isinstance(given, str) else None
    return range(*(int(number) for number in found.groups() if number)) if found else None


def _places(given: Sequence[int] | str, size: int) -> Int64s | range:
    """Return places of a dataset, counted from its end where they are below 0, as in Python."""
    found = range_in(given)
    if found is not None:
        ends = np.array([*found[:1], *found[-1:]])
        if all((ends >= 0) & (ends < size)):
            return found
        numbers = np.array(found[: 2 * size + 1], np.float64)  # of more, these hold a wrong one
    else:
        numbers = numbers_in(given, "places")
    wrong = numbers[(numbers >= size) | (numbers < -size) | (numbers % 1 != 0)]
    if len(wrong):
        raise UsageError(f"index {wrong[0]:g} is no place among the {size:,} of the dataset")
    places = numbers.astype(np.int64)
    return np.where(places < 0, places + size, places)


@dataclass(kw_only=True)
class Row:
    """What an iteration of a sampler yields: places of a dataset.

    size: how many. draws: how many draws of 32 bits it takes from its generator.
    pieces: what they are, drawn as they are asked for; None counts from 0.
    seed: of its own generator, or what is added to the epoch where `by_epoch`.
    seeds_itself: without a generator it makes one for each iteration, by a number it draws.
    """

    size: int
    draws: int = 0
    pieces: Callable[[Generator], Iterator[Permutation]] | None = None
    seed: Seeds | None = None
    by_epoch: bool = False
    seeds_itself: bool = False
    is_permutation: bool = False

    def order(self, generator: Generator) -> Permutation:
        """Return a whole row."""
        assert self.pieces is not None
        found = [*self.pieces(generator)]
        return found[0] if len(found) == 1 else np.concatenate(found)


def random_row(
    n: int, count: int | None = None, seed: Seeds | None = None, *, replacement: bool = False
) -> Row:
    """Return what RandomSampler yields of n places."""
    is_permutation, count = count is None and not replacement, n if count is None else count
    if not n:
        raise UsageError(
            "there are no examples to read, and torch's RandomSampler refuses an empty dataset"
        )

    def pieces(generator: Generator) -> Iterator[Permutation]:
        if replacement:
            for start in range(0, count, _AT_ONCE):
                yield generator.randint(n, min(_AT_ONCE, count - start))
            return
        for _ in range(count // n):
            yield generator.randperm(n)
        # At its end it draws another permutation, of which it takes what is left, if anything.
        if count % n:
            yield generator.randperm(n)[: count % n]
        else:
            generator.seek(generator.drawn + num_draws(n))

    return Row(
        size=count,
        draws=count if replacement else (count // n + 1) * num_draws(n),
        pieces=pieces,
        seed=seed,
        seeds_itself=True,
        is_permutation=is_permutation,
    )


def permuted_row(of: Callable[[Permutation], Permutation], n: int, seed: Seeds | None) -> Row:
    """Return what is made of one permutation of n places."""

    def pieces(generator: Generator) -> Iterator[Permutation]:
        yield of(generator.randperm(n))

    return Row(size=n, draws=num_draws(n), pieces=pieces, seed=seed)


@dataclass(kw_only=True)
class Script:
    """What the calls of a chain have made so far, as a script holds it.

    generators: PyTorch's default one, if its state is known.
    elements: of the dataset, as indices of the sources. row: what its sampler yields.
    share: the process among those that DistributedSampler shares with, and whether it drops.
    """

    config: LoaderConfig
    generators: list[Generator] = field(default_factory=list)
    elements: Int64s | range = range(0)
    stream: IterableDataset | None = None
    row: Row | None = None
    share: tuple[int, int, bool] = (0, 1, False)
    set_epoch: bool = True
    batch: int | None = None
    drops: bool = False
    made_by: DataLoader | None = None
    prepared: Prepare | None = None
    steps: int = 1
    mixture: MultiNodeWeightedSampler | None = None
    inputs: tuple[Script, ...] = ()
    nodes: list[NodeStage] = field(default_factory=list)

    def default(self, who: str) -> Generator:
        """Return PyTorch's default generator.

        Raises:
            UnpredictableOrderError: its state is not known.
        """
        if self.generators:
            return self.generators[0]
        raise UnpredictableOrderError(
            f"{who} draws from PyTorch's default generator, whose seed is not known; give it a "
            "generator, or write manual_seed(N) or set_rng_state('FILE') before it"
        )

    def choose(self, places: Int64s | range) -> None:
        """Keep the elements at some places."""
        whole = self.elements
        if isinstance(places, range) and isinstance(whole, range):
            # By sums, for a stop below 0 is no place from the end here.
            start, stop = (whole.start + at * whole.step for at in (places.start, places.stop))
            self.elements = range(start, stop, whole.step * places.step)
        else:
            self.elements = np.array(whole, np.int64)[np.array(places, np.int64)]


class TorchStage(parts.Stage, is_call=False):
    """A call of a script in Python.

    makes: what the script calls what it makes; "" where it is called for what it does alone.
    of: what its first argument is called, "" where it has none. at: the module that has it.
    """

    makes: ClassVar[str] = ""
    of: ClassVar[str] = ""
    at: ClassVar[str] = "torch.utils.data"

    def call(self, script: Script) -> None:
        """Do what the call does; what passes on its elements does nothing here."""


class ManualSeed(TorchStage):
    """`torch.manual_seed`, and how often 32 bits are drawn until the next call.

    A model that is made in between draws its weights.
    """

    name = "manual_seed"
    effect = "seeds PyTorch's default generator"
    seed: int
    draws_before: parts.Number = 0

    def call(self, script: Script) -> None:
        """Seed it."""
        script.generators[:] = [seeded((self.seed, self.draws_before), "the global seed")]


class SetRngState(TorchStage):
    """`torch.set_rng_state` of a state in a file: as torch.save or numpy.save wrote it."""

    name = "set_rng_state"
    effect = "sets PyTorch's default generator"
    file: parts.Word
    draws_before: parts.Number = 0

    def call(self, script: Script) -> None:
        """Set it."""
        script.generators[:] = [saved_generator(self.file).seek(self.draws_before)]


# Datasets.


class DatasetStage(TorchStage, is_call=False):
    """What makes a dataset of a dataset."""

    makes = of = "dataset"


class Subset(DatasetStage):
    """The elements at these places: listed, in a file, or of a range."""

    effect = "takes the elements at some places"
    indices: Indices

    def call(self, script: Script) -> None:
        """Take them."""
        script.choose(_places(self.indices, len(script.elements)))


class RandomSplit(DatasetStage):
    """One of the parts of `random_split`, by its place among them."""

    name = "random_split"
    effect = "takes one part of a random split"
    lengths: parts.Weights
    generator: OwnSeed | None = None
    part: parts.Number = parts.argument(by_name=True, default=0)

    def call(self, script: Script) -> None:
        """Draw a permutation, and take a piece of it."""
        n, total = len(script.elements), sum(self.lengths)
        lengths = [int(length) for length in self.lengths]
        if math.isclose(total, 1) and total <= 1:
            lengths = [math.floor(n * fraction) for fraction in self.lengths]
            for extra in range(n - sum(lengths)):
                lengths[extra % len(lengths)] += 1
        if sum(lengths) != n or self.part >= len(lengths):
            raise UsageError(
                f"random_split: {len(lengths)} parts of {sum(lengths):,} in all, part={self.part}, "
                f"for {n:,} examples; lengths add up to them or to 1, and parts count from 0"
            )
        own, start = self.generator, sum(lengths[: self.part])
        generator = script.default(self.name) if own is None else seeded(own, "its seed")
        order = generator.randperm(n)[start : start + lengths[self.part]]
        script.choose(order.astype(np.int64))


class IterableDataset(DatasetStage):
    """An `IterableDataset` that yields all elements in their order.

    worker_info: how workers share them; each repeats all of them where it is "ignored". Workers of
        all hosts share them where `hosts`.
    """

    effect = "yields all elements in their order, in each worker"
    worker_info: Literal["ignored", "stride", "block"] = "ignored"
    hosts: bool = False

    def call(self, script: Script) -> None:
        """Stream them."""
        script.stream = self


class ConcatDataset(Mixture):
    """`ConcatDataset`: one dataset behind the other."""

    at: ClassVar[str] = "torch.utils.data"
    effect = "puts one dataset behind the other"


# Samplers, and batches of what they yield.


class Sampler(TorchStage, is_call=False):
    """What yields places of a dataset."""

    makes, of = "sampler", "dataset"

    def call(self, script: Script) -> None:
        """Yield all in their order."""
        script.row = Row(size=len(script.elements))


class SequentialSampler(Sampler):
    """All places in their order."""

    effect = "yields the places in their order"


class RandomSampler(Sampler):
    """A permutation of the places in each iteration; or places one by one, with replacement."""

    effect = "permutes the places, anew in each iteration"
    replacement: bool = False
    num_samples: parts.PositiveCount | None = None
    generator: OwnSeed | None = None

    def call(self, script: Script) -> None:
        """Draw them."""
        n, count = len(script.elements), self.num_samples
        script.row = random_row(n, count, self.generator, replacement=self.replacement)


class SubsetRandomSampler(Sampler):
    """A permutation of some places."""

    of = ""
    effect = "permutes some places, anew in each iteration"
    indices: Indices
    generator: OwnSeed | None = None

    def call(self, script: Script) -> None:
        """Permute them."""
        places = np.array(_places(self.indices, len(script.elements)), np.int64)

        script.row = permuted_row(lambda row: places[row], len(places), self.generator)


class WeightedRandomSampler(Sampler):
    """Places by their weights."""

    of = ""
    effect = "draws places by their weights"
    weights: Numbers
    num_samples: parts.PositiveCount
    replacement: bool = True
    generator: OwnSeed | None = None

    def call(self, script: Script) -> None:
        """Draw them."""
        weights, count = numbers_in(self.weights, "weights"), self.num_samples
        most, above = min(len(script.elements), _MOST_WEIGHTS), np.count_nonzero(weights)
        enough = above >= (1 if self.replacement else count)
        if len(weights) > most or not enough or weights.min() < 0:
            raise UsageError(
                f"WeightedRandomSampler: {len(weights):,} weights, {above:,} other than 0, of "
                f"{len(script.elements):,} examples; num_samples={count} needs weights above 0, as "
                "many as it draws where replacement=False, and none below 0"
            )

        def pieces(generator: Generator) -> Iterator[Permutation]:
            yield generator.multinomial(weights, count, self.replacement)

        draws = 2 * (count if self.replacement and count > 1 else len(weights))
        script.row = Row(size=count, draws=draws, pieces=pieces, seed=self.generator)


class DistributedSampler(Sampler):
    """The share of a rank; `set_epoch`: whether the script calls it before each epoch."""

    at = "torch.utils.data.distributed"
    effect = "shares the places among hosts"
    num_replicas: parts.PositiveCount | None = None
    rank: parts.Number | None = None
    shuffle: bool = True
    seed: int = 0
    drop_last: bool = False
    set_epoch: bool = parts.argument(by_name=True, default=True)

    def call(self, script: Script) -> None:
        """Share them."""
        config, n = script.config, len(script.elements)
        rank = config.host if self.rank is None else self.rank
        count = self.num_replicas or config.num_hosts
        if rank >= count:
            raise UsageError(f"DistributedSampler: rank {rank} of {count}; ranks count from 0")
        script.share, script.set_epoch = (rank, count, self.drop_last), self.set_epoch
        script.row = Row(size=n)
        if self.shuffle and n:
            script.row = replace(random_row(n, seed=self.seed), by_epoch=True, seeds_itself=False)


class LengthGroupedSampler(Sampler):
    """The Trainer's `group_by_length`: elements of similar lengths come together."""

    of = ""
    at = "transformers.trainer_pt_utils"
    effect = "puts elements of similar lengths together"
    batch_size: parts.PositiveCount
    lengths: Numbers
    generator: OwnSeed | None = None

    def call(self, script: Script) -> None:
        """Permute all, and sort mega-batches of up to 50 batches by length."""
        lengths, n = numbers_in(self.lengths, "lengths"), len(script.elements)
        if len(lengths) != n or not n:
            raise UsageError(f"LengthGroupedSampler: {len(lengths):,} lengths of {n:,} examples")
        mega = max(min(n // (self.batch_size * 4), 50), 1) * self.batch_size

        def grouped(row: Permutation) -> Permutation:
            starts = np.arange(0, n, mega)
            for start in starts.tolist():
                piece = row[start : start + mega]
                # Longest first; `sorted(reverse=True)` keeps the order of equal ones.
                piece[:] = piece[np.argsort(-lengths[piece], kind="stable")]
            # The longest of all comes first, so that memory ends soon if it does.
            longest = starts[np.argmax(lengths[row[starts]])]
            row[[0, longest]] = row[[longest, 0]]
            return row

        script.row = permuted_row(grouped, n, self.generator)


class BatchSampler(TorchStage):
    """Batches of places."""

    makes, of = "batch_sampler", "sampler"
    effect = "puts places into batches"
    batch_size: parts.PositiveCount
    drop_last: bool = False

    def call(self, script: Script) -> None:
        """Cut them."""
        script.batch, script.drops = self.batch_size, self.drop_last


# Loaders.


class DataLoader(TorchStage):
    """`DataLoader`; its other arguments are settings beside the chain.

    batch_size, drop_last: those of `batch` and `drop_remainder` where they are not said here.
    """

    makes, of = "loader", "dataset"
    effect = "reads with workers and batches"
    batch_size: parts.PositiveCount | None = None
    shuffle: bool = False
    drop_last: bool = False
    generator: OwnSeed | None = None

    def call(self, script: Script) -> None:
        """Make it, with a sampler of its own where it shuffles."""
        is_other = (self.name == "StatefulDataLoader") is not (script.config.loader == "stateful")
        if script.made_by is not None or script.prepared is not None or is_other:
            raise UsageError(
                f"{self.name}: one loader is needed, and it stands before what prepares it; "
                "StatefulDataLoader is that of --loader stateful, DataLoader of others"
            )
        if self.shuffle:
            if script.row is not None or script.stream is not None:
                raise UsageError(f"{self.name}: shuffle=True beside a sampler, or of an iterable")
            own = getattr(self, "sampler_generator", None)
            seed = self.generator if own is None else own
            script.row = random_row(len(script.elements), seed=seed)
        if script.batch is not None and self.batch_size is not None:
            raise UsageError(f"{self.name}: batch_size beside a BatchSampler")
        script.batch = script.batch or self.batch_size
        script.made_by, script.drops = self, script.drops or self.drop_last


class StatefulDataLoader(DataLoader):
    """The same of torchdata.

    sampler_generator: of its own sampler where that took it from PyTorch's when it was made.
    """

    at = "torchdata.stateful_dataloader"
    sampler_generator: OwnSeed | None = parts.argument(by_name=True, default=None)


class Prepare(TorchStage):
    """`Accelerator.prepare`, with what its `DataLoaderConfiguration` says."""

    makes = of = "loader"
    at = "accelerate.data_loader"
    name = "prepare"
    effect = "shares batches among processes"
    split_batches: bool = False
    dispatch_batches: bool | None = None
    even_batches: bool = True
    use_seedable_sampler: bool = False
    data_seed: int | None = None

    def call(self, script: Script) -> None:
        """Share them; streams are dispatched by one process unless it is said otherwise."""
        if script.config.loader != "accelerate" or script.share[1] > 1 or script.prepared:
            raise UsageError(
                f"{self.name}: it is Accelerate's, --loader accelerate, and shares once, without "
                "a DistributedSampler"
            )
        by_default = self.dispatch_batches is None
        dispatches = script.stream is not None if by_default else self.dispatch_batches
        script.prepared = replace(self, dispatch_batches=dispatches)


class Trainer(TorchStage):
    """What `Trainer.get_train_dataloader` makes, and the steps in which `train` reads it.

    A step is one of the optimizer: `gradient_accumulation_steps` batches, the last one of an epoch
    those that are left. seed: PyTorch's at the start of `train`, where there is no data_seed.
    """

    makes, of = "loader", "dataset"
    effect = "shuffles by seed and epoch, shares batches, counts steps of the optimizer"
    per_device_train_batch_size: parts.PositiveCount | None = None
    gradient_accumulation_steps: parts.PositiveCount = 1
    seed: int = 42
    data_seed: int | None = None
    dataloader_drop_last: bool = False
    train_sampling_strategy: Literal["random", "sequential", "group_by_length"] = "random"
    lengths: Numbers | None = None
    split_batches: bool = False
    dispatch_batches: bool | None = None
    even_batches: bool = True
    use_seedable_sampler: bool = True
    ignore_data_skip: bool = False

    def call(self, script: Script) -> None:
        """Call what it calls."""
        for one in self.calls(script.config, streams=script.stream is not None):
            one.call(script)
        script.steps = self.gradient_accumulation_steps

    def calls(self, config: LoaderConfig, *, streams: bool) -> Iterator[TorchStage]:
        """Yield the calls that it makes; a stream has no sampler."""
        batch = self.per_device_train_batch_size
        if not streams and self.train_sampling_strategy == "group_by_length":
            if self.lengths is None or not (batch or config.batch):
                raise UsageError("Trainer: group_by_length needs lengths, a file, and a batch size")
            mega = (batch or config.batch or 1) * self.gradient_accumulation_steps
            yield LengthGroupedSampler(batch_size=mega, lengths=self.lengths)
        shuffles = not streams and self.train_sampling_strategy == "random"
        drops = self.dataloader_drop_last and not streams
        yield DataLoader(batch_size=batch, shuffle=shuffles, drop_last=drops)
        same = {one.name: getattr(self, one.name) for one in fields(Prepare)}
        seed = self.seed if self.data_seed is None else self.data_seed
        yield Prepare(**{**same, "data_seed": seed})


# Nodes of torchdata.


class NodeStage(TorchStage, is_call=False):
    """A node that yields what its source yields, in its order."""

    makes = of = "node"
    at = NODES

    def call(self, script: Script) -> None:
        """Add it to those that are followed."""
        is_first = not script.nodes and script.mixture is None
        needed = "node" if not is_first else "dataset" if script.row is None else "sampler"
        wrong = script.made_by is not None or script.batch is not None
        if self.of != needed or wrong or script.config.loader != "stateful":
            raise UsageError(
                f"{self.name}: nodes are those of --loader stateful, without DataLoader and "
                "BatchSampler; the first is SamplerWrapper or MapStyleWrapper behind a sampler, "
                "or IterableWrapper"
            )
        script.nodes.append(self)


class SamplerWrapper(NodeStage):
    """A sampler as a node, which calls `set_epoch`."""

    of = "sampler"
    initial_epoch: parts.Number = 0


class MapStyleWrapper(NodeStage):
    """The elements of a dataset at the places of a sampler."""

    of = "sampler"


class IterableWrapper(NodeStage):
    """An iterable as a node."""

    of = "dataset"


class Mapper(NodeStage):
    """A function of each element."""

    parameters = (_FUNCTION,)


class ThreadedNode(NodeStage, is_call=False):
    """A node that reads ahead in threads or processes."""


class ParallelMapper(ThreadedNode):
    """A function of each element, in workers."""

    parameters = (_FUNCTION, parts.value("num_workers"), parts.value("in_order"))
    num_workers: parts.PositiveCount
    in_order: bool = True

    def why_open(self, deterministic: bool | None, global_seed: int | None) -> str | None:
        """Return that workers yield in order of completion."""
        return None if self.in_order else "ParallelMapper(in_order=False) yields what is ready"


class Prefetcher(ThreadedNode):
    """Elements read ahead."""

    prefetch_factor: parts.PositiveCount


class PinMemory(ThreadedNode):
    """Elements in pinned memory."""


class Batcher(NodeStage):
    """Batches of elements."""

    effect = "puts elements into batches"
    batch_size: parts.PositiveCount
    drop_last: bool = True


class Unbatcher(NodeStage):
    """The elements of batches."""

    effect = "takes batches apart"


class NodeLoader(NodeStage):
    """`torchdata.nodes.Loader`, of which an iterator is an epoch."""

    name = "Loader"


class MultiNodeWeightedSampler(Mixture):
    """Elements of several nodes by weights; see `StopCriteria` of torchdata."""

    at: ClassVar[str] = NODES
    effect = "draws the next node by its weight"
    weights: parts.Weights
    stop_criteria: Literal[
        "CYCLE_UNTIL_ALL_DATASETS_EXHAUSTED",
        "ALL_DATASETS_EXHAUSTED",
        "FIRST_DATASET_EXHAUSTED",
        "CYCLE_FOREVER",
    ] = "CYCLE_UNTIL_ALL_DATASETS_EXHAUSTED"
    rank: parts.Number | None = None
    world_size: parts.PositiveCount | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.weights) != len(self.inputs) or not all(self.weights):
            raise UsageError(f"{self.name}: a weight above 0 of each input is needed")
