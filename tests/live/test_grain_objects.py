"""Datasets as MaxText, Gemma and Grain's guides write them: read back, predicted, continued."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest

from shardctl.errors import UsageError
from shardctl.live.grain import read_object
from shardctl.loaders.grain import grain_sequence
from shardctl.loaders.grain_states import elements_of, state_of
from shardctl.loaders.loader import calls_of
from shardctl.loaders.loader_sequence import LoaderConfig, LoaderSource
from shardctl.metadata.loader_versions import installed_version
from shardctl.stages.text import parse_stages, text_of
from tests.cases import counted

grain = pytest.importorskip("grain")
SOURCES = [range(40), range(40, 57), range(57, 90)]
MapDataset = grain.MapDataset
of = MapDataset.source


def same(element: Any, rng: Any = None) -> Any:
    return element


def maxtext() -> Any:
    ds = of(SOURCES[0]).shuffle(seed=7).repeat(3)[1::2].to_iter_dataset().map(same)
    return ds.batch(4, drop_remainder=False)


def maxtext_blend() -> Any:
    parts = [of(one).seed(5).shuffle().repeat(None)[0::2].to_iter_dataset() for one in SOURCES]
    return grain.IterDataset.mix(parts, [0.5, 0.2, 0.3]).map(same).batch(4, drop_remainder=True)


def maxtext_windows() -> Any:
    ds = grain.experimental.WindowShuffleMapDataset(of(SOURCES[0]), window_size=8, seed=3)
    return ds.repeat(2).to_iter_dataset().batch(8)


def maxtext_files() -> Any:
    files = [of(one).shuffle(seed=1).to_iter_dataset() for one in SOURCES]
    ds = grain.experimental.InterleaveIterDataset(files, cycle_length=3)
    return grain.experimental.WindowShuffleIterDataset(ds, window_size=10, seed=4).batch(3)


def gemma() -> Any:
    ds = of(SOURCES[0]).seed(42).shuffle().repeat().slice(slice(1, None, 2)).map(same)
    return ds.random_map(same).to_iter_dataset().batch(5, drop_remainder=True)


def gemma_mixture() -> Any:
    parts = [of(one).seed(1).shuffle().repeat() for one in SOURCES[:2]]
    return MapDataset.mix(parts, weights=[0.75, 0.25]).seed(3).random_map(same).batch(4)


def guide_transformations() -> Any:
    ds = of(SOURCES[0]).seed(10).map(same).shuffle()[:20].repeat(2, reseed_each_epoch=False)
    return ds.batch(batch_size=3, drop_remainder=True)


def guide_concatenate() -> Any:
    ds = MapDataset.concatenate([of(one) for one in SOURCES]).shuffle(seed=2)
    return MapDataset.mix([ds, MapDataset.range(30).map_with_index(same)])[::3].to_iter_dataset()


def guide_iterators() -> Any:
    ds = grain.experimental.LimitIterDataset(of(SOURCES[0]).to_iter_dataset(), 11)
    ds = grain.experimental.RepeatIterDataset(ds.random_map(same, seed=1), 3)
    return grain.experimental.ThreadPrefetchIterDataset(ds, prefetch_buffer_size=2)


def guide_zip() -> Any:
    pairs = [of(SOURCES[0]).to_iter_dataset(), of(SOURCES[0]).shuffle(seed=1).to_iter_dataset()]
    return grain.experimental.ZipIterDataset(pairs)


def guide_data_loader(worker_count: int = 0) -> Any:
    sampler = grain.samplers.IndexSampler(
        40,
        grain.sharding.ShardOptions(1, 3, drop_remainder=True),
        shuffle=True,
        num_epochs=2,
        seed=9,
    )
    return grain.DataLoader(
        data_source=SOURCES[0],
        sampler=sampler,
        operations=[grain.transforms.Batch(3)],
        worker_count=worker_count,
    )


PIPELINES: list[Callable[[], Any]] = [
    *(maxtext, maxtext_blend, maxtext_windows, maxtext_files, gemma, gemma_mixture),
    *(guide_transformations, guide_concatenate, guide_iterators, guide_zip, guide_data_loader),
]
_TAKEN = 40  # elements


def config_of(made: Any) -> LoaderConfig:
    found = read_object(made)
    assert found is not None
    sources = {}
    for read, source in found.sources.items():
        first = source.start if isinstance(source, range) else 90
        sources[read] = LoaderSource(first=first, lengths=np.array([len(source)]))
    version = installed_version("grain")
    assert version is not None
    written = text_of(found.stages)
    assert text_of(parse_stages(written, calls_of("grain"))) == written
    lengths = np.array([120])
    return LoaderConfig(lengths=lengths, version=version, stages=found.stages, sources=sources)


def flat(element: Any) -> Iterator[int]:
    if isinstance(element, tuple | list | np.ndarray):
        for one in element:
            yield from flat(one)
    else:
        yield int(element)


@pytest.mark.parametrize("made", PIPELINES, ids=lambda made: made.__name__)
def test_a_pipeline_yields_what_is_read_of_it(made: Callable[[], Any]) -> None:
    config = config_of(made())
    found = grain_sequence(config)
    real = [[*flat(element)] for element in islice(iter(made()), _TAKEN)]
    indices = found.indices_at(np.arange(sum(map(len, real)))).tolist()
    # Numbers from 0 that are no source are counted behind those above.
    indices = [index - 90 if index >= 90 else index for index in indices]
    assert indices == [index for element in real for index in element]
    if len(real) < _TAKEN:
        assert found.num_examples == len(indices)
    if found.batches is not None:
        assert found.batches.bounds(1) == (len(real[0]), len(real[0]) + len(real[1]))


@pytest.mark.parametrize("made", PIPELINES, ids=lambda made: made.__name__)
def test_a_state_is_read_and_one_that_is_written_continues(made: Callable[[], Any]) -> None:
    config, real = config_of(made()), [[*flat(one)] for one in islice(iter(made()), _TAKEN)]
    for at in counted((0, 1, 5, min(len(real), 12))):
        iterator, other = iter(made()), iter(made())
        like = state(iterator)
        for _ in range(at):
            next(iterator)
        assert elements_of(config, state(iterator)) == at
        written = state_of(config, at, like)
        is_loader = isinstance(iterator.get_state(), bytes)
        other.set_state(json.dumps(written).encode() if is_loader else written)
        assert [[*flat(one)] for one in islice(other, 6)] == real[at : at + 6]


def state(iterator: Any) -> Any:
    found = iterator.get_state()
    return json.loads(found) if isinstance(found, bytes) else found


class Own(MapDataset):  # type: ignore[misc, valid-type]
    """A dataset of the user's."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: Any) -> Any:
        return self if isinstance(index, slice) else index % 3


def test_what_has_no_order_here_is_named() -> None:
    base = MapDataset.range(9)
    chosen = MapDataset.select_from_datasets([base], selection_map=[(0, 1), (0, 0)])
    packed = grain.experimental.FirstFitPackIterDataset(
        base.map(lambda n: {"a": np.arange(3)}).to_iter_dataset(),
        length_struct={"a": 9},
        num_packing_bins=2,
        shuffle_bins=False,
    )
    for made, named in (
        (Own(), "a class of its own"),
        (chosen, "a selection map of its own"),
        (packed, "FirstFitPackIterDataset"),
    ):
        with pytest.raises(UsageError, match="its order is not known here, of Grain") as refused:
            read_object(made)
        assert named in str(refused.value)
    assert read_object([1, 2]) is None
    assert read_object(iter([])) is None
