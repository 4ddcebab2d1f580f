"""A sampler, a `grain.DataLoader` and a `grain.MapDataset` in tf.data's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.install import imported
from shardctl.base.text import printable
from shardctl.errors import UsageError
from shardctl.grain.states import (
    ELASTIC,
    Deal,
    GrainState,
    consumed_of,
    elastic_index,
    elements_of_iterator,
    examples_of_elements,
    order_from,
    place_text,
)
from shardctl.live import key_order
from shardctl.loaders.loader import LOADERS, library
from shardctl.saved.position_file import position_text
from shardctl.settings.keywords import LoaderSettings, Unpack
from shardctl.settings.read_settings import ReadSettings, SettingsLike
from shardctl.spec.host import HostLike, as_host

_MOST_WORKERS = 10_000


class Sampler(key_order.HasOrder):
    """The order in which tf.data reads a spec, as `grain.DataLoader` asks for it.

    Record `i` of it is the one that tf.data yields as number `i`, by its key in
    `tfds.data_source(split=spec)`. Hosts, epochs, passes and whole batches are those of `settings`,
    so the loader is given `NoSharding()`. With two worker processes or more, which make their
    batches themselves, records are dealt so that the batches are tf.data's: `workers` is then the
    `worker_count` of the loader, and `settings.batch` the size of its batches. `data_loader` makes
    a loader with all of this; where the last round of batches is not full, it alone is exact.

    Args:
        dataset: a builder of TFDS, a reference, or a Dataset: whose order it is.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings, keywords: how tf.data reads it: a ReadSettings, a dict of its values, or keywords.
        workers: the worker processes of the loader.
        consumed: how many examples this host has had, from the order's start.
        states: of all processes of a run that stopped, in place of `consumed`: the states of its
            loaders, or of positions (`Position.get_state`), with any number of workers and hosts.
        seed: of the random generator that each record gets, for `RandomMapTransform`: it depends
            on the record and its epoch alone, not on hosts, workers or where a run was stopped.

    Raises:
        UsageError: a bad spec or settings, stages, another loader's order, or batches of workers
            that do not come out even.
        UnpredictableOrderError: the order is nondeterministic.
        DatasetError: states of another dataset, or that are none.

    >>> import shardctl
    >>> sampler = Sampler("mnist", "train", {"shuffle_seed": 7, "batch": 60}, workers=2)
    >>> len(sampler)
    60000
    """

    @checked
    def __init__(
        self,
        dataset: key_order.BuilderOrDataset,
        spec: str | None = None,
        settings: SettingsLike | None = None,
        *,
        workers: int = 0,
        consumed: int = 0,
        states: Sequence[bytes] = (),
        seed: int | None = None,
        **keywords: Unpack[LoaderSettings],
    ) -> None:
        # The order knows hosts, epochs and batches; Grain is only asked for records one by one.
        order = order_from(dataset, spec, settings, consumed=consumed, states=states)
        self._take(order, workers=workers, seed=seed)
        if not self._deal.is_even:
            raise UsageError(
                f"--workers {workers}: {self._deal.size} examples are no whole rounds of {workers} "
                f"batches of {self._deal.batch}, so Grain would end in another order than tf.data; "
                "use shardctl.grain.data_loader, which is exact"
            )

    def _take(self, order: key_order.KeyOrder, *, workers: int, seed: int | None) -> None:
        key_order.check_number("workers", workers, _MOST_WORKERS)
        key_order.check_number("seed", seed or 0, (1 << 32) - 1)  # as Grain's own samplers take it
        self._order, self._workers, self._seed = order, workers, seed
        # Fewer than two workers read in order, so nothing has to be dealt.
        batch = 1 if workers < 2 else order.settings.batch or 1
        self._deal = Deal(size=len(order), workers=workers, batch=batch)
        self._size = self._deal.num_padded  # asked for with each record

    def __len__(self) -> int:
        """Return how many records are left; Grain asks for that many."""
        return self._size

    def __getitem__(self, index: int) -> Any:
        """Return the `grain.RecordMetadata` of a record.

        Raises:
            IndexError: behind the last one, or below 0.
        """
        if not 0 <= index < self._size:
            raise IndexError(f"record {index}: there are {self._size}")
        # `position` is the one in tf.data's order; behind `size` comes padding, whose key no record
        # has.
        position, key, rng = self._deal.position_of(index), self._order.num_records, None
        if position < self._deal.size:
            key = self._order.key(position)
            rng = None if self._seed is None else self._generator(position, key)
        return _metadata()(index=index, record_key=key, rng=rng)

    def _generator(self, position: int, key: int) -> np.random.Generator:
        order, settings = self._order, self._order.settings
        # The epoch of the whole run: passes before, then the epoch within this pass.
        epoch = settings.pass_index * settings.epochs + order.epoch(position)
        # A number for each (epoch, record), the same on any host and with any workers; Philox takes
        # 64 bits.
        of_record = (epoch * order.num_records + key) % (1 << 64)
        words = np.array([self._seed, of_record], np.uint64)
        return np.random.Generator(np.random.Philox(key=words))

    @checked
    def position(self, state: GrainState) -> bytes:
        """Return a loader's state as that of a `shardctl.tfds.Position`, for tf.data to continue.

        Raises:
            DatasetError: no state of a DataLoader over a sampler of shardctl.
        """
        return position_text(
            key_order.record_at(self._order, consumed_of(state, source="the state"))
        )

    @checked
    def begin_epoch_of_fit(self, epoch: int) -> None:
        """Go to the order of an epoch of Keras `fit`; `fit_epochs` makes a callback that does so.

        Raises:
            UsageError: the sampler begins in the midst of an epoch, and this is another one.
        """
        # The same order with other settings; `_take` is what `__init__` does.
        self._take(order_of_fit(self._order, epoch), workers=self._workers, seed=self._seed)

    def __repr__(self) -> str:
        """Return what Grain compares when it restores: dataset, spec, settings, place, workers."""
        batch = self._deal.batch
        return place_text(self._order, workers=self._workers, batch=batch, seed=self._seed)


def order_of_fit(order: key_order.KeyOrder, epoch: int) -> key_order.KeyOrder:
    """Return the order of an epoch of `fit`, or the same where it begins in the midst of it.

    Raises:
        UsageError: it begins in the midst of another.
    """
    now = order.settings
    if now.loop == "keras-fit" and now.pass_index == epoch:
        return order
    # In the middle of an epoch, only that epoch can be continued.
    if order.consumed or order.stretches:
        raise UsageError(
            f"epoch {epoch} of fit: the order begins after {order.consumed} examples of epoch "
            f"{now.pass_index}; fit the rest of it with initial_epoch={now.pass_index} and "
            f"epochs={now.pass_index + 1}, and the next ones with an order from its start"
        )
    return order.of_pass(epoch, loop="keras-fit")


@cache
def _metadata() -> Any:
    return grain("python").RecordMetadata


def grain(submodule: str | None = None) -> Any:
    """Return the module `grain`, or one below it.

    Raises:
        MissingDependencyError: it is not installed.
    """
    return library("grain" if submodule is None else f"grain.{submodule}", LOADERS["grain"])


# A `grain.DataLoader` and a `grain.MapDataset` in tf.data's order.


_MOST_BUFFERED = 1_000_000


@checked
def data_loader(
    source: key_order.DataSource,
    dataset: key_order.BuilderOrDataset,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    operations: Sequence[object] = (),
    workers: int = 0,
    consumed: int = 0,
    states: Sequence[bytes] = (),
    seed: int | None = None,
    worker_buffer_size: int = 1,
    read_options: object = None,
    **keywords: Unpack[LoaderSettings],
) -> Any:
    """Return a `grain.DataLoader` that yields tf.data's examples, or batches of the settings.

    The batches are equal to tf.data's with any number of workers, the last one too, which is
    smaller, or left out where the settings drop it. Numbers have the types of their features, which
    `tfds.data_source` does not give them; texts are arrays of bytes, as tf.data's are.

    Args:
        source: `tfds.data_source(name, split=spec)`, or another sequence of the same records.
        dataset, spec, settings, keywords, consumed, states, seed: as for `Sampler`.
        operations: transformations of examples, and of batches behind a `grain.transforms.Batch`
            of the settings' batch; where none is among them, it is made at the end.
        workers, worker_buffer_size, read_options: those of `grain.DataLoader`.

    Raises:
        UsageError: operations whose batches are other ones; as for `Sampler`.
        DatasetError: the source is not of the dataset and spec; or as for `Sampler`.
        UnpredictableOrderError: the order is nondeterministic.
        MissingDependencyError: Grain is not installed.
    """
    key_order.check_number("worker_buffer_size", worker_buffer_size, _MOST_BUFFERED)
    order = order_from(dataset, spec, settings, consumed=consumed, states=states)
    key_order.check_source(source, order)
    library = grain()
    texts = key_order.may_have_texts(source)
    every = _with_batch(list(operations), order.settings, library.transforms, workers, texts)
    source = key_order.with_types(source)
    sampler = Sampler.__new__(Sampler)  # one whose last round is filled with padding
    sampler._take(order, workers=workers, seed=seed)
    # Longer than the order: padding fills the last round of the workers, and a filter drops it
    # again.
    if len(sampler) > len(order):
        source, every = PaddedSource(source), [_kind("DropPadding")(), *every]
    return library.DataLoader(
        data_source=source,
        sampler=sampler,
        operations=every,
        worker_count=workers,
        worker_buffer_size=worker_buffer_size,
        shard_options=library.sharding.NoSharding(),
        read_options=read_options,
    )


def _with_batch(
    operations: list[Any], settings: ReadSettings, transforms: Any, workers: int, texts: bool
) -> list[Any]:
    """Return operations that make the batches of the settings, whose texts are tf.data's.

    texts: whether examples may have some before any operation.
    """
    size, batches = settings.batch, [one for one in operations if _is(one, transforms, "Batch")]
    # No batch, or exactly one of the size of the settings.
    if [one.batch_size for one in batches] not in ([], [size]):
        sizes = ", then of ".join(str(batch.batch_size) for batch in batches)
        raise UsageError(
            f"operations make batches of {sizes}, and the settings of {size}: one Batch of "
            f"theirs is needed, or none, or --batch {int(batches[0].batch_size)}"
        )
    if not settings.drop_remainder and any(getattr(b, "drop_remainder", False) for b in batches):
        raise UsageError(
            "operations drop the last batch, and the settings do not: --drop-remainder"
        )
    # Filters change how many elements come of a record; with several workers the batches would then
    # differ.
    for one in operations:
        many = _is(one, transforms, *_MANY)
        if not many and not _is(one, transforms, *_ONE_FOR_ONE):
            raise UsageError(f"operations: {type(one).__name__} is no transformation of Grain")
        if many and workers > 1:
            raise UsageError(
                f"operations: {type(one).__name__} with --workers: each worker would batch "
                "what is left of its own records, and the batches be others than tf.data's; "
                "take one process, workers=0, or filter before the data is prepared"
            )
    if size is None:
        return operations
    if not batches:
        batches = [transforms.Batch(size, drop_remainder=False)]
        operations = [*operations, *batches]
    place = operations.index(batches[0])
    if not place and not texts:
        return operations  # a stage of Grain costs time for each example
    # Texts are protected just before the batch stacks them.
    return [*operations[:place], _kind("KeepTexts")(), *operations[place:]]


# What makes one element of each, or batches of the settings; and other numbers of elements.
_ONE_FOR_ONE = ("Map", "RandomMap", "MapWithIndex", "Batch", "TfRandomMap")
_MANY = ("Filter", "FlatMap")


def _is(operation: Any, transforms: Any, *names: str) -> bool:
    kinds = tuple(getattr(transforms, name) for name in names if hasattr(transforms, name))
    own = type(operation).__name__
    # By class, or by the name of an older class ("MapOperation").
    return isinstance(operation, kinds) or own.removesuffix("Operation") in names


# Records that fill the last round of the workers, and are dropped.


class Padding:
    """What lies under the key that no record has."""


class PaddedSource:
    """A data source with one more record behind the last, which is padding."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __len__(self) -> int:
        return len(self._source) + 1

    def __getitem__(self, key: int) -> Any:
        return Padding() if key == len(self._source) else self._source[key]

    def __repr__(self) -> str:
        """Return what Grain compares when it restores: the name of the source, not its data."""
        source = self._source
        # Of data in memory Grain would compare a text that is the data itself; its type is enough.
        in_memory = isinstance(source, list | tuple) or type(source).__module__ == "numpy"
        return str(type(source)) if in_memory else repr(source)


class _IsRecord:
    def filter(self, element: Any) -> bool:
        """Return whether an element is a record."""
        return not isinstance(element, Padding)


# Keras `fit` over a loader or a dataset of Grain, each epoch in its own order.


@checked
def fit_epochs(dataset: object) -> Any:
    """Return the callback with which each epoch of `fit` is in the order that tf.data's `fit` has.

    Keras makes an iterator an epoch, and would see one order again and again. With it epoch e of
    `fit` trains on the order that `shardctl simulate --loop keras-fit --pass-index e` shows.
    `dataset` is what `data_loader`, `map_dataset` or `Sampler` returned, before `map` and `batch`:

        examples = shardctl.grain.map_dataset(source, builder, "train", settings)
        model.fit(examples.map(prepare).batch(32), epochs=9, callbacks=[fit_epochs(examples)])

    Raises:
        UsageError: it is none of these; as `fit` begins, `steps_per_epoch`, with which fit reads
            one iterator on and on.
        MissingDependencyError: Keras is not installed.
    """
    # A DataLoader keeps the sampler in `_sampler`; a MapDataset is its own target.
    target: Any = getattr(dataset, "_sampler", dataset)
    if not hasattr(target, "begin_epoch_of_fit"):
        raise UsageError(
            "dataset: what shardctl.grain.data_loader, map_dataset or Sampler returned is needed, "
            "before Grain's own map, batch and to_iter_dataset"
        )
    callbacks = imported("keras", "Keras", "keras").callbacks

    class FitEpochs(callbacks.Callback):  # type: ignore[misc, name-defined]
        """Goes to the order of each epoch before Keras makes its iterator."""

        def on_train_begin(self, logs: Any = None) -> None:
            if self.params.get("steps") is not None:
                raise UsageError(
                    "steps_per_epoch: fit then reads one iterator on and on, which is the one "
                    "order of ReadSettings(epochs=N); leave fit_epochs out, or steps_per_epoch"
                )

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            target.begin_epoch_of_fit(epoch)

    return FitEpochs()


# A `grain.MapDataset` in tf.data's order.


@checked
def map_dataset(
    source: key_order.DataSource,
    dataset: key_order.BuilderOrDataset,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    consumed: int = 0,
    states: Sequence[bytes] = (),
    **keywords: Unpack[LoaderSettings],
) -> Any:
    """Return a `grain.MapDataset` of the examples that tf.data reads, in its order.

    Behind it stand Grain's own `map`, `batch` and `to_iter_dataset`; batches that are made before
    `to_iter_dataset` are tf.data's, with `mp_prefetch` of any number of workers, and whole ones
    alone where the settings drop the rest. `repeat` and `shuffle` belong to the settings: all
    epochs are one dataset (`ReadSettings(epochs=N)`), and an index behind the last is refused.

    Args:
        source: `tfds.data_source(name, split=spec)`, or another sequence of the same records.
        dataset, spec, settings, keywords, consumed, states: as for `Sampler`. The states of
            iterators behind a MapDataset say nothing of their order: `position` of the dataset
            makes states of them.

    Raises:
        DatasetError: the source is not of the dataset and spec; or as for `Sampler`.
        UsageError, UnpredictableOrderError: as for `Sampler`.
        MissingDependencyError: Grain is not installed.
    """
    order = order_from(dataset, spec, settings, consumed=consumed, states=states)
    key_order.check_source(source, order)
    return _kind("OrderedMapDataset")(
        grain().MapDataset.source(key_order.with_types(source)), order
    )


class _Ordered(key_order.HasOrder):
    """The records of a source in an order, each by its index from the place on."""

    _parent: Any  # of MapDataset, as are the next
    _stats: Any
    slice: Any

    def __init__(self, records: Any, order: key_order.KeyOrder) -> None:
        super().__init__(records)  # type: ignore[call-arg]
        self._order = order

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.slice(index)
        key = self._key(index)
        # Grain's own statistics of the time that a stage takes.
        with self._stats.record_self_time():
            return self._parent[key]

    def _getitems(self, indices: Sequence[int]) -> Sequence[Any]:
        found: Sequence[Any] = self._parent._getitems([self._key(index) for index in indices])
        return found

    @checked
    def position(self, state: GrainState, *, batch: int | None = None) -> bytes:
        """Return where an iterator behind this dataset is, as the state of a position.

        `batch` is the size of the batches that the iterator yields, made by `batch` before
        `to_iter_dataset`; None is that of the settings.

        Raises:
            DatasetError: no state of such an iterator.
        """
        if ELASTIC in state:
            consumed = consumed_of(state, source="the state")
            return position_text(key_order.record_at(self._order, consumed))
        width = (self._order.settings.batch or 1) if batch is None else batch
        # The last batch may be smaller, hence `min`.
        consumed = min(examples_of_elements(elements_of_iterator(state), width), len(self))
        return position_text(key_order.record_at(self._order, self._order.consumed + consumed))

    @checked
    def begin_epoch_of_fit(self, epoch: int) -> None:
        """Go to the order of an epoch of Keras `fit`; `fit_epochs` makes a callback that does so.

        Raises:
            UsageError: the dataset begins in the midst of an epoch, and this is another one.
        """
        self._order = order_of_fit(self._order, epoch)

    def _key(self, index: int) -> int:
        size = len(self._order)
        if -size <= index < size:
            # Negative indices count from the end, as in a list.
            return self._order.key(index % size)
        raise UsageError(
            f"index {index}: the order has {size} examples; where a dataset is "
            "repeated, tf.data reads each epoch in an order of its own, so leave repeat() out and "
            "give the settings epochs=N"
        )

    def __str__(self) -> str:
        return f"OrderedMapDataset({self._order.dataset.title} {self._order.spec})"


# Global batches, whose order is the same with any number of processes.

_MAPS = ("MapMapDataset", "MapWithIndexMapDataset", "RandomMapMapDataset", "_WithSeedMapDataset")


@checked
def elastic_iterator(examples: object, *, host: HostLike | None = None, workers: int = 0) -> Any:
    """Return a `grain.experimental.ElasticIterator` of global batches in tf.data's order.

    A batch of the settings is that of all processes together, of which each yields its part: row
    `i` is that of process `i % count`. So the batches are the same ones whatever the number of
    processes, which may change at each start. Its state is the same in all of them, and is checked
    as that of a position; Grain's and MaxText's handlers save and restore it.

    Args:
        examples: what `map_dataset` returned, or Grain's own `map` and `random_map` of it.
        host: which of the processes this is, `I/N`; None asks JAX.
        workers: the worker processes of each.

    Raises:
        UsageError: another dataset; settings with a host, without a batch, or without
            `drop_remainder`, as Grain drops the last batch; or a batch that the processes cannot
            share.
        MissingDependencyError: Grain is not installed.
    """
    key_order.check_number("workers", workers, _MOST_WORKERS)
    ordered, library = examples, grain()
    # Maps alone keep each example at its index.
    while type(ordered).__name__ in _MAPS and isinstance(ordered, library.MapDataset):
        (ordered,) = ordered.parents
    if not isinstance(ordered, _Ordered):
        raise UsageError(
            "examples: what shardctl.grain.map_dataset returned is needed, behind which stand "
            f"Grain's map and random_map alone, not {printable(type(ordered).__name__)}"
        )
    settings, shard = ordered.settings, library.sharding.ShardByJaxProcess()
    if host is not None:
        shard = library.sharding.ShardOptions(as_host(host).index, as_host(host).count)
    if settings.host is not None:
        raise UsageError(
            "settings with a host: each process takes its part of every batch, so the order is "
            "that of all of them; leave host out, and say it as elastic_iterator(.., host=)"
        )
    if settings.batch is None or not settings.drop_remainder:
        raise UsageError(
            "Grain's ElasticIterator has batches of one size, of all processes together; give the "
            "settings batch=N and drop_remainder=True"
        )
    if settings.batch % shard.shard_count:
        raise UsageError(
            f"--batch {settings.batch} is that of all processes together, and {shard.shard_count} "
            "of them cannot share it evenly"
        )
    options = grain("multiprocessing").MultiprocessingOptions(workers) if workers else None
    kind, batch = _kind("OrderedElasticIterator"), settings.batch
    made = kind(examples, batch, shard, multiprocessing_options=options)
    made._ordered = ordered
    return made


class _Elastic(key_order.HasOrder):
    """Its own iterator, so that what asks for one finds an `ElasticIterator`."""

    _ordered: _Ordered

    @property
    def _order(self) -> key_order.KeyOrder:  # type: ignore[override]
        return self._ordered.order  # which `begin_epoch_of_fit` changes

    def __iter__(self) -> Any:
        return self

    def get_state(self) -> dict[str, Any]:
        state: dict[str, Any] = super().get_state()  # type: ignore[misc]
        # Grain's is the count alone, and would continue in any order.
        return {"sampler": place_text(self._order), **state}

    def set_state(self, state: dict[str, Any]) -> None:
        index = elastic_index(state, self._order)
        super().set_state({ELASTIC: index})  # type: ignore[misc]


# Texts in batches as tf.data has them, where Grain's own stacking would change them.


@checked
def keep_texts(example: object) -> Any:
    """Return an example whose bytes come out of Grain's batch as they went in, as in tf.data.

    NumPy stacks bytes as a type of fixed width, which drops zero bytes at the end of each and
    differs from batch to batch; as objects they stay what they are. `data_loader` does this by
    itself; behind `map_dataset` it is a map before the batch: `.map(keep_texts).batch(32)`.

    >>> import numpy as np
    >>> examples = [{"text": b"a"}, {"text": bytes(2)}]
    >>> np.stack([keep_texts(one)["text"] for one in examples]).tolist()
    [b'a', b'\\x00\\x00']
    """
    return _kept(example)


def _kept(example: Any) -> Any:
    # Runs for each value of each example, so arrays, which most are, are asked for first.
    kind = type(example)
    if kind is np.ndarray:
        return example
    if kind is dict:
        return {key: _kept(value) for key, value in example.items()}
    if isinstance(example, bytes):
        kept = np.empty((), object)
        # An object array of shape () keeps the bytes whole, zeros at the end included.
        kept[()] = example
        return kept
    return kind(map(_kept, example)) if kind in (list, tuple) else example


class _KeepsTexts:
    def map(self, element: Any) -> Any:
        """Return the element with its texts as objects."""
        return _kept(element)


# Classes of Grain's kinds, made when it is there; worker processes look for them by their names.

_KINDS: dict[str, tuple[type, Callable[[], tuple[Any, ...]]]] = {
    "DropPadding": (_IsRecord, lambda: (grain().transforms.Filter,)),
    "OrderedMapDataset": (_Ordered, lambda: (grain().MapDataset,)),
    "OrderedElasticIterator": (
        _Elastic,
        # Grain's handler writes the states of a DatasetIterator.
        lambda: (grain("experimental").ElasticIterator, grain().DatasetIterator),
    ),
    "KeepTexts": (_KeepsTexts, lambda: (grain().transforms.Map,)),
}


@cache
def _kind(name: str) -> Any:
    ours, bases_of = _KINDS[name]
    bases = bases_of()
    named = {"__module__": __name__, "__doc__": ours.__doc__}
    # `type(bases[0])` is Grain's metaclass. The name and module let worker processes find the class
    # by pickle.
    return type(bases[0])(name, (ours, *bases), named)


def __getattr__(name: str) -> Any:
    # Reached by pickle in a worker, where the class was not made yet.
    if name in _KINDS:
        return _kind(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
