"""How does every loader mix one dataset, how does it end, and can it be continued?"""

from __future__ import annotations

from dataclasses import dataclass

from shardctl.core.arguments.checked import checked
from shardctl.core.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.core.phrase import phrase
from shardctl.core.settings.read_settings import ReadSettings, SettingsLike, as_settings
from shardctl.core.tabular import Tabular
from shardctl.core.text import in_short
from shardctl.errors import UsageError
from shardctl.planning.file_formats import refuse_open_splits
from shardctl.planning.order import order_of, resolved_spec
from shardctl.planning.quality.loaders.ending import MAX_HOSTS
from shardctl.planning.quality.loaders.way_to_read import WayToRead, way_to_read
from shardctl.planning.quality.loaders.ways import DEFAULT_BATCH, ways_to_read
from shardctl.planning.quality.metrics import occupancy_moments
from shardctl.planning.quality.storage_order import storage_order


@dataclass(frozen=True, kw_only=True)
class LoaderComparison(Tabular):
    """All ways to read a spec, side by side.

    batch: examples in a batch of one host. uniform_shards: from how many shards a batch comes of a
    uniform permutation of all that the spec reads.
    """

    dataset: Dataset
    spec: str
    num_examples: int
    num_shards: int
    batch: int
    num_hosts: int
    uniform_shards: float
    ways: tuple[WayToRead, ...]
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        scored = [way for way in self.ways if way.mixing is not None]
        return in_short(
            self, f"{self.dataset.title} {self.spec}", f"{len(scored)} of {len(self.ways)} ways"
        )


@checked
def compare_loaders(
    dataset: DatasetLike, spec: str | None = None, settings: SettingsLike | None = None
) -> LoaderComparison:
    """Return how each loader that people use would read a spec: how well, to what end, how on.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings: what all of them are given; each takes what it knows. A buffer stands for the
            usual ones (1,000; with TFDS 10,000 too), a host for one of those that share the
            examples; without a batch 256 is meant, without seeds stand-ins.

    Returns:
        A LoaderComparison; `ways` are its rows, with the reason where a loader refuses the dataset.

    Raises:
        UsageError: a bad spec; stages; fewer than 2 examples; more than 1,024 hosts.

    >>> import shardctl
    >>> found = shardctl.compare_loaders("mnist", "test")
    >>> [(way.reader, way.mixing.verdict) for way in found.ways][3:5]
    [('HF 5.2.0: shuffle(1,000)', 'weak'), ('HF: Dataset.shuffle', 'as good as uniform')]
    """
    dataset, settings = as_dataset(dataset), as_settings(settings)
    num_hosts = 1 if settings.host is None else settings.host.count
    if settings.stages is not None:
        raise UsageError(
            phrase("{stages} are of tf.data, and other loaders have none; leave {stages} out")
        )
    if num_hosts > MAX_HOSTS:
        raise UsageError(
            phrase(
                "{num_hosts=}: the ends of at most {:,} are compared",
                MAX_HOSTS,
                num_hosts=num_hosts,
            )
        )
    resolved = resolved_spec(dataset, spec)
    refuse_open_splits(resolved)
    if resolved.num_examples < 2:
        raise UsageError(
            f"to compare loaders takes 2 examples at least, and {resolved.spec} has "
            f"{resolved.num_examples}"
        )
    batch = DEFAULT_BATCH if settings.batch is None else settings.batch
    storage = storage_order(order_of(resolved, ReadSettings()).order)  # kept: most ways read it
    sizes = storage.shard_sizes
    ways = tuple(
        way_to_read(resolved, way, num_hosts)
        for way in ways_to_read(settings, resolved.dataset.file_format)
    )
    said = (warning for way in ways for warning in way.warnings)
    return LoaderComparison(
        dataset=resolved.dataset,
        spec=resolved.spec,
        num_examples=resolved.num_examples,
        num_shards=len(sizes),
        batch=batch,
        num_hosts=num_hosts,
        uniform_shards=occupancy_moments(sizes, min(batch, int(sizes.sum())), 1).expected,
        ways=ways,
        warnings=tuple(dict.fromkeys((*resolved.warnings, *said))),
    )
