"""How examples fill the batches of an evaluation where another loader than TFDS's reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shardctl.core.arguments.checked import checked
from shardctl.core.arrays import Int64s
from shardctl.core.instructions.subsplit import Resolved
from shardctl.core.order.loader_order import LoaderOrder
from shardctl.core.order.order import CHUNK_SIZE
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.planning.eval.evaluation import Evaluation, Remainder
from shardctl.planning.hosts.loaders import host_orders, shares_of
from shardctl.planning.loader_version import loader_version
from shardctl.planning.order import as_read_by, as_warnings


@dataclass(frozen=True, kw_only=True, eq=False)
class LoaderEvaluation(Evaluation):
    """The same for a loader, whose own batches count; columns are int64[num_hosts].

    steps: of each host where the last batch is ragged, and where it is dropped.
    sizes: the different sizes of a batch where it is ragged.
    lost: examples that nobody sees where partial batches are dropped, those of a device or of a
        host, besides what is left out in any case.
    num_repeated: examples that are handed out again and count twice in a metric, as it is set up.
    num_left_out: examples that no host hands out, whatever becomes of remainders.
    """

    steps: Mapping[Remainder, Int64s]
    sizes: tuple[int, ...]
    lost: tuple[int, int]
    num_repeated: int
    num_left_out: int

    @cached_property
    def num_batches(self) -> Int64s:
        """Batches of each host that hold an example, partial ones counted."""
        return self.steps["ragged"]

    @cached_property
    def remainders(self) -> Int64s:
        """Examples in each host's partial batches, 0 where there is none."""
        remainders: Int64s = self.num_examples - self.steps["drop"] * self.host_batch
        return remainders

    @cached_property
    def padding(self) -> Int64s:
        """Examples that each host's partial batches lack, 0 where there is none."""
        padding: Int64s = self.num_batches * self.host_batch - self.num_examples
        return padding

    @checked
    def num_steps(self, remainder: Remainder) -> Int64s:
        """Return how many steps each host makes, by what is done with the remainder."""
        if remainder == "pad":
            return self.num_batches + self.padding_batches
        return self.steps[remainder]

    @checked
    def distinct_shapes(self, remainder: Remainder) -> int:
        """Return how many shapes of a batch there are on all hosts, each of which XLA compiles."""
        if remainder == "drop":
            return int(self.host_batch in self.sizes)
        return int(bool(self.sizes)) if remainder == "pad" else len(self.sizes)

    @property
    def dropped_by_device_batch(self) -> int:
        """Examples lost where batches of one device are formed and a partial one is dropped."""
        return self.lost[0]

    @property
    def dropped_by_host_batch(self) -> int:
        """Examples lost where batches of a host are formed and a partial one is dropped."""
        return self.lost[1]

    @property
    def num_lost(self) -> int:
        """Examples that the evaluation as it is set up does not see."""
        return self.num_left_out + super().num_lost

    @property
    def differing_step(self) -> int | None:
        """First step, from 0, that all hosts make with ragged batches of different sizes, or None.

        It is known where the last batch of a host alone may be partial.
        """
        one_partial = bool((self.num_batches - self.steps["drop"] <= 1).all())
        return super().differing_step if one_partial else None


def evaluate_loader(
    resolved: Resolved,
    settings: ReadSettings,
    *,
    batch: int,
    hosts: int,
    devices: int,
    remainder: Remainder,
) -> LoaderEvaluation:
    """Return how the examples of a spec fill the batches of an evaluation; see `evaluate`.

    Raises:
        UsageError, UnpredictableOrderError: as for `plan_order`.
    """
    version = loader_version(settings)
    resolved = as_read_by(resolved, settings)
    settings = replace(
        settings,
        host=None,
        epochs=1,
        drop_remainder=False,
        batch=batch * devices,
        loader_version=version.version,
    )
    shares = shares_of(resolved, settings, hosts)
    assert shares.batches is not None
    dropping = replace(settings, drop_remainder=True)
    ragged = list(host_orders(resolved, settings, hosts))
    of_host = list(host_orders(resolved, dropping, hosts))
    of_device = host_orders(resolved, replace(dropping, batch=batch), hosts)
    left_out = shares.num_left_out
    unseen = _num_unseen(of_host, shares.reads.num_examples)
    # Who shares a stream decides how many examples a host has.
    shared = ragged[0].assumptions if settings.loader == "hf" else ()
    seen_again = sum(order.num_examples for order in of_host) + unseen - shares.reads.num_examples
    return LoaderEvaluation(
        dataset=resolved.dataset,
        spec=resolved.spec,
        settings=settings,
        num_devices=devices,
        device_batch=batch,
        remainder=remainder,
        reads=shares.reads,
        resolved=resolved,
        num_examples=shares.columns.num_examples,
        warnings=(
            *resolved.warnings,
            *version.warnings,
            *as_warnings(dict.fromkeys((*version.assumptions, *shared))),
        ),
        steps={
            "ragged": shares.batches,
            "drop": np.array([order.num_steps for order in of_host], np.int64),
        },
        sizes=tuple(sorted(set().union(*(_sizes(order) for order in ragged)))),
        lost=(
            _num_unseen(of_device, shares.reads.num_examples) - left_out,
            unseen - left_out,
        ),
        num_repeated=seen_again if remainder == "drop" else shares.num_repeated,
        num_left_out=left_out,
    )


def _num_unseen(orders: Iterable[LoaderOrder], num_examples: int) -> int:
    """Return how many examples none of the orders hands out."""
    seen = np.zeros(num_examples, np.bool_)
    for order in orders:
        for start in range(0, order.num_examples, CHUNK_SIZE):
            stop = min(start + CHUNK_SIZE, order.num_examples)
            seen[order.handed_out.indices_at(np.arange(start, stop))] = True
    return int((~seen).sum())


def _sizes(order: LoaderOrder) -> set[int]:
    """Return the different sizes of the batches of an order."""
    sizes: set[int] = set()
    first = rest = 0  # the batch that a piece may end in, and how much of it came before
    for start in range(0, order.num_examples, CHUNK_SIZE):
        stop = min(start + CHUNK_SIZE, order.num_examples)
        steps, _ = order.steps_of(np.arange(start, stop))
        found = np.bincount(steps - first)
        found[0] += rest
        sizes.update(np.unique(found[:-1]).tolist())
        first, rest = first + len(found) - 1, int(found[-1])
    sizes.add(rest)
    return sizes - {0}
