"""A sampler of Grain's that hands out tf.data's order."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from shardctl.core.arguments.checked import checked
from shardctl.core.loaders.library import library
from shardctl.core.loaders.loader import LOADERS
from shardctl.core.phrase import phrase
from shardctl.core.settings.read_settings import ReadSettings, SettingsLike
from shardctl.errors import MissingDependencyError, UsageError
from shardctl.feeding.key_order import KeyOrder, check_number, record_at
from shardctl.feeding.sources import BuilderOrDataset
from shardctl.files.position_file import position_text
from shardctl.grain.states import Deal, GrainState, consumed_of, order_from, place_text

_MOST_WORKERS = 10_000


class Sampler:
    """The order in which tf.data reads a spec, as `grain.DataLoader` asks for it.

    Record `i` of it is the one that tf.data hands out as number `i`, by its key in
    `tfds.data_source(split=spec)`. Hosts, epochs, passes and whole batches are those of `settings`,
    so the loader is given `NoSharding()`. With two worker processes or more, which make their
    batches themselves, records are dealt so that the batches are tf.data's: `workers` is then the
    `worker_count` of the loader, and `settings.batch` the size of its batches. `data_loader` makes
    a loader with all of this; where the last round of batches is not full, it alone is exact.

    Args:
        dataset: a builder of TFDS, a reference, or a Dataset: whose order it is.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings: how tf.data reads it: a ReadSettings, or a dict of its values.
        workers: the worker processes of the loader.
        consumed: how many examples this host has had, from the order's start.
        states: of all processes of a run that stopped, in place of `consumed`: the states of its
            loaders, or of positions (`Position.get_state`), with any number of workers and hosts.
        seed: of the random generator that each record gets, for `RandomMapTransform`: it depends
            on the record and its epoch alone, not on hosts, workers or where a run was stopped.

    Raises:
        UsageError: a bad spec or settings, stages, another loader's order, or batches of workers
            that do not come out even.
        UnpredictableOrderError: TensorFlow leaves the order open.
        DatasetError: states of another dataset, or that are none.

    >>> import shardctl
    >>> sampler = Sampler("mnist", "train", {"shuffle_seed": 7, "batch": 60}, workers=2)
    >>> len(sampler)
    60000
    """

    @checked
    def __init__(
        self,
        dataset: BuilderOrDataset,
        spec: str | None = None,
        settings: SettingsLike | None = None,
        *,
        workers: int = 0,
        consumed: int = 0,
        states: Sequence[bytes] = (),
        seed: int | None = None,
    ) -> None:
        order = order_from(dataset, spec, settings, consumed=consumed, states=states)
        self._take(order, workers=workers, seed=seed)
        if not self._deal.is_even:
            raise UsageError(
                phrase(
                    "{workers=} that make batches of {}: the last {} of {} examples are no whole "
                    "round of {} batches, and Grain would deal them otherwise than tf.data; use "
                    "shardctl.grain.data_loader, which is exact there too",
                    self._deal.batch,
                    self._deal.size % (workers * self._deal.batch),
                    self._deal.size,
                    workers,
                    workers=workers,
                )
            )

    def _take(self, order: KeyOrder, *, workers: int, seed: int | None) -> None:
        check_number("workers", workers, _MOST_WORKERS)
        check_number("seed", seed or 0, (1 << 32) - 1)  # as Grain's own samplers take it
        self._order, self._workers, self._seed = order, workers, seed
        batch = 1 if workers < 2 else order.settings.batch or 1
        self._deal = Deal(size=len(order), workers=workers, batch=batch)

    @property
    def settings(self) -> ReadSettings:
        """The settings in force."""
        return self._order.settings

    @property
    def order(self) -> KeyOrder:
        """The order, from the place on at which the sampler begins."""
        return self._order

    def __len__(self) -> int:
        """Return how many records are left; Grain asks for that many."""
        return self._deal.num_padded

    def __getitem__(self, index: int) -> Any:
        """Return the `grain.RecordMetadata` of a record.

        Raises:
            IndexError: behind the last one, or below 0.
        """
        if not 0 <= index < self._deal.num_padded:
            raise IndexError(f"record {index}: there are {self._deal.num_padded}")
        position = self._deal.position_of(index)
        if position >= self._deal.size:
            return _metadata()(index=index, record_key=self._order.num_records)
        key = self._order.key(position)
        rng = None if self._seed is None else self._generator(position, key)
        return _metadata()(index=index, record_key=key, rng=rng)

    def _generator(self, position: int, key: int) -> np.random.Generator:
        settings = self._order.settings
        epoch = settings.pass_index * settings.epochs + self._order.epoch(position)
        of_record = (epoch * self._order.num_records + key) % (1 << 64)
        words = np.array([self._seed, of_record], np.uint64)
        return np.random.Generator(np.random.Philox(key=words))

    @checked
    def position(self, state: GrainState) -> bytes:
        """Return a loader's state as that of a `shardctl.tfds.Position`, for tf.data to go on.

        Raises:
            DatasetError: no state of a DataLoader over a sampler of shardctl.
        """
        return position_text(record_at(self._order, consumed_of(state, source="the state")))

    @checked
    def begin_epoch_of_fit(self, epoch: int) -> None:
        """Go to the order of an epoch of Keras `fit`; `fit_epochs` makes a callback that does so.

        Raises:
            UsageError: the sampler begins in the midst of an epoch, and this is another one.
        """
        self._take(order_of_fit(self._order, epoch), workers=self._workers, seed=self._seed)

    def __repr__(self) -> str:
        """Return what Grain compares when it restores: dataset, spec, settings, place, workers."""
        batch = self._deal.batch
        return place_text(self._order, workers=self._workers, batch=batch, seed=self._seed)


def padded_sampler(order: KeyOrder, *, workers: int, seed: int | None) -> Sampler:
    """Return a sampler whose last round is filled with records to be dropped.

    Their key is the number of records in the data source; see `shardctl.grain.data_loader`.
    """
    sampler = Sampler.__new__(Sampler)
    sampler._take(order, workers=workers, seed=seed)
    return sampler


def order_of_fit(order: KeyOrder, epoch: int) -> KeyOrder:
    """Return the order of an epoch of `fit`, or the same where it begins in the midst of it.

    Raises:
        UsageError: it begins in the midst of another.
    """
    now = order.settings
    if now.loop == "keras-fit" and now.pass_index == epoch:
        return order
    if order.consumed or order.stretches:
        raise UsageError(
            phrase(
                "epoch {} of fit: the order begins after {} examples of epoch {}; fit the rest of "
                "it with initial_epoch={} and epochs={}, and the next ones with an order from its "
                "start",
                epoch,
                order.consumed,
                now.pass_index,
                now.pass_index,
                now.pass_index + 1,
            )
        )
    return order.of_fit(epoch)


@cache
def _metadata() -> Any:
    return grain("python").RecordMetadata


# Grain and Keras, imported when a call needs them and not before.


def grain(submodule: str | None = None) -> Any:
    """Return the module `grain`, or one below it.

    Raises:
        MissingDependencyError: it is not installed.
    """
    return library("grain" if submodule is None else f"grain.{submodule}", LOADERS["grain"])


def keras() -> Any:
    """Return the module `keras`, whatever its backend.

    Raises:
        MissingDependencyError: it is not installed.
    """
    try:
        return importlib.import_module("keras")
    except ImportError as error:
        raise MissingDependencyError(
            f"Keras is needed for this and cannot be imported ({error}); "
            "install it with: pip install keras"
        ) from error
