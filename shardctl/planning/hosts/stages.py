"""How many steps does each host make, where stages are behind the reader that hosts share?"""

from __future__ import annotations

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import Dataset, as_dataset
from shardctl.core.iteration.build import build
from shardctl.core.iteration.iteration import EVERYTHING
from shardctl.core.iteration.nodes.source import Source
from shardctl.core.phrase import phrase
from shardctl.core.progress import Progress
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.reads import settings_of_read
from shardctl.core.stages.pipelines import parts_of
from shardctl.core.stages.stages import Filter, Opaque, Pipeline, Shard
from shardctl.core.stages.text import text_of
from shardctl.core.text import printable
from shardctl.errors import UsageError
from shardctl.planning.sources import (
    refuse_unread_spec,
    single_reader,
    spec_of_reader,
    without_own,
)


def shared_reader(
    dataset: Dataset, spec: str | None, settings: ReadSettings
) -> tuple[Dataset, str | None, ReadSettings]:
    """Return what the one reader of stages reads, and the settings, of which hosts share it.

    Raises:
        UsageError: there are several readers, or the stages pick one host or examples by name.
    """
    assert settings.stages is not None
    refuse_unread_spec(spec, settings)
    reader = single_reader(settings)
    if reader is None:
        raise UsageError(
            phrase(
                "{stages} {} do not read one dataset, and hosts compares the ways to share one; "
                "give the readers their own host, as in read(train, host=0/8)",
                printable(text_of(settings.stages), 60),
            )
        )
    for part in parts_of(settings.stages):
        if isinstance(part, Shard) and part.num_shards > 1:
            raise UsageError(
                phrase(
                    "{stages}: shard({}, {}) picks one host, and hosts compares them all; leave it "
                    "out, for right behind the reader it is the strategy examples",
                    part.num_shards,
                    part.index,
                )
            )
        if isinstance(part, Filter | Opaque):
            raise UsageError(
                phrase(
                    "{stages}: how many examples of a host pass {} depends on which they are; ask "
                    "simulate for one host after the other",
                    part.name if isinstance(part, Filter) else part.call,
                )
            )
    if reader.data is not None:
        dataset, spec = as_dataset(reader.data), None
    spec = spec_of_reader(reader, dataset, spec) if reader.listed else reader.spec or spec
    short = without_own(settings)
    if short.stages is None:
        return dataset, spec, short
    own = settings_of_read(settings, reader)
    kept = Pipeline(stages=settings.stages.stages)
    shuffles = {
        "shuffle_files": own.shuffle_files,
        "shuffle_seed": own.shuffle_seed,
        "reverse": own.reverse,
        "file_order": own.file_order,
    }
    return dataset, spec, ReadSettings(stages=kept, **shuffles)  # type: ignore[arg-type]


def steps_of(stages: Pipeline, num_examples: Int64s) -> Int64s | None:
    """Return the steps of hosts whose reader yields so many examples each, int64[num_hosts].

    None where elements are no batches, or the stages have no end.

    >>> from shardctl.core.stages.text import parse_stages
    >>> steps_of(parse_stages("batch(4) | repeat(2)"), np.array([5, 4])).tolist()
    [4, 2]
    """
    sizes, which = np.unique(num_examples, return_inverse=True)
    progress = Progress(None, "sizes of hosts", len(sizes), per_second=1000)
    steps = np.empty(len(sizes), np.int64)
    for index, size in enumerate(progress.over(sizes.tolist(), lambda _: 1)):
        node = build(stages, lambda _, size=size: Source(range(size)))  # type: ignore[misc]
        if node.is_infinite or not node.shape:
            return None
        steps[index] = node.iterate().pull(EVERYTHING)
    return steps[which]
