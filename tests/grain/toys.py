"""Small datasets, random settings, and what Grain's workers hand out without their processes."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl import Dataset, Host, ReadSettings, Split
from tests.tfds_datasets import build_dataset

NO_GRAIN = "Grain is not installed: pip install 'shardctl[grain]'"


def needs_grain() -> Any:
    """Return the module `grain`, or skip with the reason; its workers ask for parsed flags."""
    grain = pytest.importorskip("grain", reason=NO_GRAIN)
    from absl import flags

    flags.FLAGS.mark_as_parsed()
    return grain


def toy(*lengths: int, name: str = "toy") -> Dataset:
    """Return a dataset whose train split has shards of these lengths, and a test split."""
    test = Split(name="test", shard_lengths=(4, 0, 3))
    return Dataset(name=name, splits=(Split(name="train", shard_lengths=lengths), test))


SPLITS = {"train": [9, 0, 14, 7, 11], "test": [5, 8]}
SPECS = ("train", "train", "train[10%:80%]", "train+test", "test+train[7:]", "train[30:]+train[:9]")


def in_two_formats(factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a dataset of numbers, texts and pictures: `tfrecord` and `array_record`."""
    import tensorflow_datasets as tfds

    features = tfds.features.FeaturesDict(
        {
            "id": np.int64,
            "text": tfds.features.Text(),
            "pixels": tfds.features.Tensor(shape=(3, 2), dtype=np.float32),
            "scale": np.float32,
            "small": np.uint8,
            "is_odd": np.bool_,
            "two": tfds.features.Sequence(np.float32, length=2),
        }
    )

    def example(i: int) -> dict[str, Any]:
        pixels = np.random.default_rng(i).random((3, 2), np.float32)
        numbers = {"id": i, "scale": i / 7, "small": i, "is_odd": i % 2 == 1, "two": [i / 7, -i]}
        return {**numbers, "text": f"example {i}" + "\0" * (i % 3), "pixels": pixels}

    made: dict[str, Any] = {"splits": SPLITS, "features": features, "example": example}
    return {
        form: build_dataset(factory.mktemp(form), file_format=form, **made)
        for form in ("tfrecord", "array_record")
    }


def random_settings(numbers: random.Random, *, hosts: bool = True) -> ReadSettings:
    """Return settings of any kind that tf.data reads in one order."""
    choose = numbers.choice
    given: dict[str, Any] = {
        "cycle": choose([1, 2, 3, 16]),
        "block": choose([1, 2, 5]),
        "epochs": choose([1, 1, 2, 3]),
        "batch": choose([None, 1, 2, 4, 7, 50]),
    }
    if choose([True, False]):
        given |= {"shuffle_seed": numbers.randrange(99)}
    if choose([True, False]):
        given |= {"buffer": choose([1, 3, 20, 999]), "buffer_seed": numbers.randrange(99)}
    if given["batch"] is not None:
        given["drop_remainder"] = choose([True, False])
    if choose([True, False]):
        given["pass_index"] = choose([0, 1, 2])
    if hosts and choose([True, False]):
        count = choose([1, 2, 3])
        host = Host(index=numbers.randrange(count), count=count)
        given |= {"host": host, "host_by": choose(["even", "examples", "files"])}
    return ReadSettings(**given)


def handed_out(loader: Any) -> Iterator[Any]:
    """Yield what a DataLoader hands out, each worker's share read here and taken in turn."""
    shares = shares_of(loader)
    ended: set[int] = set()
    while len(ended) < len(shares):
        for worker, share in enumerate(shares):
            if worker not in ended:
                try:
                    yield next(share)
                except StopIteration:
                    ended.add(worker)


def shares_of(loader: Any) -> list[Any]:
    """Return the iterators of a DataLoader's workers, made by Grain's own slices without them."""
    from grain._src.python.dataset.transformations import prefetch

    workers = loader.multiprocessing_options.num_workers
    node = loader._dataset
    while type(node).__name__ != "_DataLoaderStateIterDataset":
        (node,) = node._parents
    (node,) = node._parents
    if not workers:
        return [iter(node)]
    while not hasattr(node, "_datasets"):  # the interleave of the workers
        (node,) = node._parents
    (whole,) = _inputs_of_workers(node._datasets)
    shares = []
    for worker in range(workers):
        share = copy.deepcopy(whole)
        if workers > 1:
            prefetch._set_slice_iter_dataset(share, slice(worker, None, workers))
        shares.append(iter(share))
    return shares


def _inputs_of_workers(workers: Any) -> list[Any]:
    found = {}
    for node in workers:
        while type(node).__name__ in (
            "ProcessPrefetchIterDataset",
            "_MpContextIterDataset",
            "_LazyWorkerSliceIterDataset",
        ):
            (node,) = node._parents  # noqa: PLW2901  # down to what it reads
        found[id(node)] = node
    return list(found.values())


def state_of(sampler: Any, batches: int, workers: int, batch: int) -> bytes:
    """Return the state of a loader after so many batches, as Grain writes it."""
    read = [len(range(w, batches, max(workers, 1))) * batch for w in range(max(workers, 1))]
    return json.dumps(
        {
            "version": 2,
            "last_seen_indices": {str(w): w + (n - 1) * len(read) for w, n in enumerate(read)},
            "last_worker_index": -1,
            "worker_count": workers,
            "sampler": repr(sampler),
            "data_source": "<class 'list'>",
        }
    ).encode()


def keys_of(order: Any) -> list[int]:
    """Return the keys of an order, or of a sampler, from its place on."""
    order = getattr(order, "order", order) if hasattr(order, "_order") else order
    return [order.key(i) for i in range(len(order))]


def as_lists(batches: Any, batch: int | None) -> list[Any]:
    """Return numbers, or lists of them, as Python's own."""
    return [int(one) if batch is None else [int(i) for i in one] for one in batches]


def cut(ids: list[int], batch: int | None) -> list[Any]:
    """Return ids in batches, the last of them as it is."""
    if batch is None:
        return ids
    return [ids[start : start + batch] for start in range(0, len(ids), batch)]


def raises_in_one_line(call: Callable[[], object], kind: type[Exception], *words: str) -> None:
    """Check that a call is refused, in one line that has all the words."""
    with pytest.raises(kind) as caught:
        call()
    said = str(caught.value)
    assert said.isprintable()
    assert [word for word in words if word not in said] == []
