"""A sampler and a DataLoader of PyTorch's in tf.data's order, and the states they continue by."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from types import FrameType
from typing import Annotated, Any

from shardctl.base.arguments import checked
from shardctl.base.text import choices, printable
from shardctl.errors import DatasetError, UsageError
from shardctl.files import fields
from shardctl.live import key_order
from shardctl.loaders.loader import LOADERS, library
from shardctl.saved.position_file import POSITION_KIND, PositionRecord, position_of_text
from shardctl.settings.keywords import LoaderSettings, Unpack
from shardctl.settings.read_settings import ReadSettings, SettingsLike

# Where torchdata's StatefulDataLoader 0.11 keeps the state of a sampler, without workers and with.
_OF_BATCHES = "_sampler_iter_state"
_OF_EXAMPLES = "_index_sampler_state"  # where it makes no batches
_OF_WORKERS = "_snapshot"


# What `state_dict` of a sampler or a loader returns, or `get_state` of a Position.
TorchState = Annotated[
    Any,
    key_order.kind_of_state(
        "what state_dict() returned, or a position's get_state()",
        "a state of a sampler or loader",
        "states",
    ),
]


@checked
def consumed(state: TorchState) -> int:
    """Return how many examples had been yielded, counted from the order's start.

    `state` is what `state_dict` returned of a `Sampler`, a `data_loader` or a StatefulDataLoader
    over a `Sampler`.

    Raises:
        DatasetError: it is of another sampler, damaged, or older than the last batch.
    """
    return record_of(state, source="the state").consumed


def record_of(state: Mapping[str, object], *, source: str) -> PositionRecord:
    """Return the position that a state holds; `source` names it in errors.

    Raises:
        DatasetError: it is of another sampler, damaged, or older than the last batch.
    """
    with fields.said_about(source):
        # A position's state as it is, or the sampler's within that of a loader.
        if state.get("kind") != POSITION_KIND:
            state = _of_sampler(state)
        try:
            # Through JSON, so that the state passes the checks of a file.
            text = json.dumps(dict(state)).encode("ascii")
        except (TypeError, ValueError) as error:
            raise DatasetError("it holds values that no state of shardctl.torch has") from error
    return position_of_text(text, source=source)


def continued_order(
    order: key_order.KeyOrder, states: Sequence[Mapping[str, object]]
) -> key_order.KeyOrder:
    """Return the order from where a run stopped, in the pass in which it was.

    Raises:
        DatasetError, UsageError: as for `record_of` and `continued`.
    """
    records = [record_of(state, source=f"states[{i}]") for i, state in enumerate(states)]
    # The pass of the first state; `continued` checks that all agree.
    settings = replace(order.settings, pass_index=records[0].settings.pass_index)
    if settings != order.settings:
        order = key_order.KeyOrder(order.dataset, order.spec, settings)
    return key_order.continued(order, records)


order_from = partial(key_order.order_from, after=continued_order)


def _of_sampler(state: Mapping[str, object]) -> Mapping[str, object]:
    """Return the sampler's state within that of a StatefulDataLoader."""
    # With workers: a snapshot of the main process, which may be older than the last batch.
    if _OF_WORKERS in state:
        late = fields.count(state.get("_steps_since_snapshot"), "_steps_since_snapshot")
        if late:
            raise DatasetError(
                f"it is {late} batches older than the last one; give StatefulDataLoader "
                "snapshot_every_n_steps=1, which is its default"
            )
        snapshot = fields.mapping(state[_OF_WORKERS], _OF_WORKERS)
        state = fields.mapping(snapshot.get("_main_snapshot"), "_main_snapshot")
    # In the batch sampler's state, or directly where no batches are made.
    of_batches = state.get(_OF_BATCHES)
    found = of_batches.get("sampler_state") if isinstance(of_batches, Mapping) else None
    found = state.get(_OF_EXAMPLES) if found is None else found
    if not isinstance(found, Mapping) or found.get("kind") != POSITION_KIND:
        raise DatasetError(
            "it is of no Sampler of shardctl.torch: give what its state_dict() returned, or that "
            "of data_loader or of a StatefulDataLoader(.., batch_size=B, sampler=it)"
        )
    return found


# A sampler of PyTorch's that yields tf.data's order.


class Sampler(key_order.HasOrder):
    """The order in which tf.data reads a spec, as `torch.utils.data.DataLoader` asks for it.

    It yields the keys of `tfds.data_source(split=spec)`. Hosts, which are the ranks, epochs, passes
    and whole batches are those of `settings`: the loader is given `batch_size=settings.batch` and
    no `shuffle`, `drop_last` or DistributedSampler. Worker processes change nothing.

    Args:
        dataset: a builder of TFDS, a reference, or a Dataset: whose order it is.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings, keywords: how tf.data reads it: a ReadSettings, a dict of its values, or keywords.
        consumed: how many examples this rank has had, from the order's start.
        states: of all ranks of a run that stopped, in place of `consumed`: of samplers, loaders,
            StatefulDataLoaders, or of positions (`Position.get_state`), with any number of workers
            and ranks.

    Raises:
        UsageError: a bad spec or settings, stages, or another loader's order.
        UnpredictableOrderError: the order is nondeterministic.
        DatasetError: states of another dataset, or that are none.

    >>> sampler = Sampler("mnist", "train", {"shuffle_seed": 7, "batch": 60}, consumed=59_998)
    >>> len(sampler), len(list(sampler)), sampler.state_dict()["consumed"]
    (2, 2, 60000)
    """

    @checked
    def __init__(
        self,
        dataset: key_order.BuilderOrDataset,
        spec: str | None = None,
        settings: SettingsLike | None = None,
        *,
        consumed: int = 0,
        states: Sequence[TorchState] = (),
        **keywords: Unpack[LoaderSettings],
    ) -> None:
        self._begin_at(order_from(dataset, spec, settings, consumed=consumed, states=states))

    def _begin_at(self, order: key_order.KeyOrder) -> None:
        self._order = order
        # _drawn: None before the first iteration, else how many keys were drawn from the position
        # on. _is_ahead: workers draw before batches are yielded. _is_set: set_epoch was called
        # since.
        self._drawn: int | None = None  # of the newest iteration that began there
        self._is_ahead = self._is_set = False

    @property
    def is_begun(self) -> bool:
        """Whether examples are drawn, or were, from the place at which it begins."""
        return self._drawn is not None

    @property
    def epoch(self) -> int:
        """Which pass over the dataset it is in, as `set_epoch` takes it."""
        return self._order.settings.pass_index

    def __len__(self) -> int:
        """Return how many examples there are from the place on at which it begins."""
        return len(self._order)

    def __iter__(self) -> Iterator[int]:
        """Yield the keys, from the place on.

        Raises:
            UsageError: they were yielded before, and tf.data's next pass has another order; or the
                loader makes other batches than the settings.
        """
        # A generator: torchdata makes an iterator before it loads a state.
        # 0 and None: nothing was drawn, so the iteration may begin again.
        if self._drawn:
            if not self._order.passes_are_alike:
                raise UsageError(
                    "the sampler is iterated a second time: tf.data's next pass is "
                    f"set_epoch({self.epoch + 1}), the same one from its start "
                    f"set_epoch({self.epoch})"
                )
            self._begin_at(self._order.of_pass(self.epoch))
        order = self._order
        self._is_ahead = workers_drawing(order.settings, len(order)) > 0
        self._drawn = 0
        for index in range(len(order)):
            # A later `set_epoch` replaces the order; an old iterator then counts no more.
            if self._order is order:
                self._drawn = index + 1
            yield order.key(index)

    @checked
    def set_epoch(self, epoch: int) -> None:
        """Go to the start of a pass over the dataset: `epoch` times `for batch in ds` before it.

        In the pass at whose midst it was begun, and not iterated yet, it stays where it is.

        Raises:
            UsageError: it was begun in the midst of another pass; below 0.
            UnpredictableOrderError: files that repeat without end, whose passes have none.
        """
        order = self._order
        if self._drawn is None:
            if epoch == self.epoch:
                # In the pass where it resumes: stays in the middle.
                return
            if len(order) and (order.consumed or order.stretches):
                raise UsageError(
                    f"epoch {epoch}: the sampler begins after {order.consumed} examples of "
                    f"epoch {self.epoch}; begin the loop there, range(sampler.epoch, N)"
                )
        self._begin_at(order.of_pass(epoch))
        self._is_set = True

    def state_dict(self) -> dict[str, Any]:
        """Return the place behind what was drawn: `consumed`, and which order it counts in.

        A loader with worker processes draws ahead of what it yields. StatefulDataLoader keeps
        the state that goes with each batch; of a DataLoader with workers this is refused.

        Raises:
            UsageError: it would count examples that were not trained on.
        """
        # StatefulDataLoader stores the state with each batch itself, so it may ask.
        if self._is_ahead and not any(_library(frame) == "torchdata" for frame in _callers()):
            raise UsageError(
                "state_dict of the sampler: its loader has workers, which have drawn examples that "
                "it has not yielded; take state_after(batches), state_dict() of "
                "shardctl.torch.data_loader, or that of a StatefulDataLoader"
            )
        return self._state(self._drawn or 0)

    @checked
    def state_after(self, batches: int) -> dict[str, Any]:
        """Return the place behind so many batches of this iteration, whatever the workers drew.

        They are counted from where the sampler began, and are `settings.batch` examples each.

        Raises:
            UsageError: there are not so many.
        """
        size = self.settings.batch or 1
        # Rounded up: the last batch may be smaller.
        key_order.check_number("batches", batches, -(-len(self) // size))
        return self._state(min(batches * size, len(self)))

    @checked
    def load_state_dict(self, state: TorchState) -> None:
        """Go to the place that a state of this rank says, in the pass in which it was.

        Raises:
            UsageError: it is of other settings; of another rank: those of all ranks are `states=`
                of a new sampler; or `set_epoch` went to another pass since.
            DatasetError: of another dataset, or no state.
        """
        order = continued_order(self._order, [state])
        # A StatefulDataLoader loads when it is iterated, and would skip an epoch without a word.
        if self._is_set and not self._drawn and order.settings.pass_index != self.epoch:
            raise UsageError(
                f"the state is of epoch {order.settings.pass_index}, after {order.consumed} of "
                f"{order.total} examples, and set_epoch({self.epoch}) was called before it is "
                "loaded; give it to the sampler, states=[state], then call set_epoch"
            )
        self._begin_at(order)

    def _state(self, drawn: int) -> dict[str, Any]:
        return key_order.record_at(self._order, self._order.consumed + drawn).document()


# Who draws from a sampler, and who asks for its state: loaders do not say so, their calls do.
#
# A DataLoader with worker processes draws batches before it hands them out
# (`_MultiProcessingDataLoaderIter._try_put_index` of torch/utils/data/dataloader.py, 2.13); a
# StatefulDataLoader too, which keeps the state of the sampler behind each of them.

_FURTHEST = 12  # calls between a sampler and its loader; three in PyTorch 2.13


def workers_drawing(settings: ReadSettings, num_examples: int) -> int:
    """Return how many workers the loader of PyTorch has by which the caller is iterated.

    Raises:
        UsageError: its batches are of another size than those of the settings, or the last one is
            left out where the settings keep it.
    """
    workers, batch, drops, own = 0, None, False, settings.batch or 1
    for frame in _callers():
        if _library(frame) not in ("torch", "torchdata"):
            continue
        caller = frame.f_locals.get("self")
        # The caller's attributes, at whatever depth the loader calls the sampler from.
        workers = max(workers, _number(caller, "_num_workers") or 0)
        if batch is None and (batch := _number(caller, "batch_size")) is not None:
            drops = bool(getattr(caller, "drop_last", False))
    # Another batch size would make other batches than the order's, without an error.
    if batch not in (None, own) or (drops and num_examples % own):
        without = " without the last one (drop_last)" * drops
        raise UsageError(
            f"the DataLoader makes batches of {batch}{without}, and the settings of {own}; give "
            f"it batch_size=sampler.settings.batch, or the settings --batch {batch} and "
            f"--drop-remainder {drops}"
        )
    return workers


def _callers() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(2)  # past who asks
    for _ in range(_FURTHEST):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def _library(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _number(caller: object, name: str) -> int | None:
    found = getattr(caller, name, None)
    return found if isinstance(found, int) else None


def torch_data() -> Any:
    """Return the module `torch.utils.data`, imported now.

    Raises:
        MissingDependencyError: PyTorch is not installed.
    """
    return library("torch.utils.data", LOADERS["torch"])


# A DataLoader that yields tf.data's batches, and knows how many it has yielded.


_MOST_WORKERS = 10_000
# What the order fixes, or is an argument of its own.
_FIXED = (
    "batch_sampler",
    "batch_size",
    "dataset",
    "drop_last",
    "num_workers",
    "sampler",
    "shuffle",
)


@checked
def data_loader(
    source: key_order.DataSource,
    dataset: key_order.BuilderOrDataset,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    workers: int = 0,
    consumed: int = 0,
    states: Sequence[TorchState] = (),
    options: Mapping[str, Any] | None = None,
    **keywords: Unpack[LoaderSettings],
) -> Any:
    """Return a `torch.utils.data.DataLoader` that yields tf.data's batches.

    They are equal to tf.data's with any number of workers, the last one too, which is smaller, or
    left out where the settings drop it; without `settings.batch` it yields examples. Its
    `state_dict()` is the place behind the batches that it has yielded, with workers too, and
    `load_state_dict` goes there; `set_epoch` is that of its `sampler`.

    Args:
        source: `tfds.data_source(name, split=spec)`, or another map-style dataset of its records.
        dataset, spec, settings, keywords, consumed, states: as for `Sampler`.
        workers: worker processes.
        options: others of DataLoader's arguments, as {"pin_memory": True, "collate_fn": stack}.

    Raises:
        UsageError: options that the order fixes; as for `Sampler`.
        DatasetError: the source is not of the dataset and spec; or as for `Sampler`.
        UnpredictableOrderError: the order is nondeterministic.
        MissingDependencyError: PyTorch is not installed.
    """
    key_order.check_number("workers", workers, _MOST_WORKERS)
    given = dict(options or {})
    # An argument that the order fixes would contradict it.
    if wrong := [name for name in _FIXED if name in given]:
        raise UsageError(
            f"options: {choices(wrong)} of a DataLoader follows from the order, the settings or an "
            "argument of data_loader"
        )
    if given.get("in_order", True) is not True:
        raise UsageError("options: in_order=False yields batches in order of completion")
    order = order_from(dataset, spec, settings, consumed=consumed, states=states)
    key_order.check_source(source, order)
    if order.settings.batch is not None and key_order.says_types(source):
        given.setdefault("collate_fn", collate_as_tf_data(source))
    kind = _kind(torch_data().DataLoader)
    # `__init__` would plan the order again.
    sampler = Sampler.__new__(Sampler)
    sampler._begin_at(order)
    given |= {"batch_size": order.settings.batch, "sampler": sampler, "num_workers": workers}
    try:
        return kind(source, **given)
    # PyTorch's own words about an argument.
    except (TypeError, ValueError) as error:
        raise UsageError(f"options: {printable(str(error))}") from error


class _Counts:
    """What is put before a DataLoader: the count of the batches that it has yielded."""

    sampler: Sampler
    _count: list[int] | None = None  # of the newest iterator

    def __iter__(self) -> Iterator[Any]:
        """Return an iterator of batches, counted as they are yielded."""
        # A list of one number is shared with the iterator: it counts where the loader can see it.
        self._count = count = [0]
        return _counted(super().__iter__(), count)  # type: ignore[misc]

    def set_epoch(self, epoch: int) -> None:
        """Go to a pass over the dataset, as `Sampler.set_epoch`."""
        self.sampler.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return the place behind the batches that were yielded."""
        # Only what this sampler's position began; after set_epoch the count is another iteration's.
        begun = self.sampler.is_begun and self._count
        return self.sampler.state_after(self._count[0] if begun and self._count else 0)

    def load_state_dict(self, state: Any) -> None:
        """Go to the place of a state, as `Sampler.load_state_dict`."""
        self.sampler.load_state_dict(state)


def _counted(batches: Iterator[Any], count: list[int]) -> Iterator[Any]:
    for batch in batches:
        count[0] += 1
        yield batch


@cache
def _kind(base: Any) -> Any:
    # A subclass of the DataLoader: the count comes first in the order of methods.
    return type("DataLoader", (_Counts, base), {"__module__": __name__})


# Batches with tf.data's types: a data source yields Python numbers, whose types are lost.


@checked
def collate_as_tf_data(source: key_order.DataSource) -> Callable[[Sequence[Any]], Any]:
    """Return the `collate_fn` with which tensors have the types of a source's features, as tf.data.

    `tfds.data_source` yields scalars and sequences as Python's numbers and lists, of which
    PyTorch's default makes float64 and int64, and a tensor a place. Texts are lists of bytes.
    `data_loader` takes it by itself.

    Raises:
        UsageError: the source is not TFDS's, and says nothing of types.
    """
    if not key_order.says_types(source):
        raise UsageError(
            "source: what tfds.data_source returned is needed, which knows its features"
        )
    return Collate(key_order.types_of(source))


class Collate:
    """Makes a batch of examples; worker processes are handed it."""

    def __init__(self, types: Any) -> None:
        self._types = types

    def __call__(self, examples: Sequence[Any]) -> Any:
        return _batch(examples, self._types)


def _batch(examples: Sequence[Any], types: Any) -> Any:
    import numpy as np

    first = examples[0]
    if isinstance(types, dict) and isinstance(first, dict):
        return {name: _batch([one[name] for one in examples], types.get(name)) for name in first}
    if isinstance(types, str) and isinstance(first, bool | int | float | list):
        if key_order.is_text(types):
            return list(examples)
        import torch

        # All examples of a feature have one shape; the type is that of the feature.
        return torch.from_numpy(np.stack([np.asarray(one, types) for one in examples]))
    if isinstance(first, np.ndarray) and first.dtype == object:
        return [one.tolist() for one in examples]
    return torch_data().default_collate(examples)


# The states of the loaders of all ranks, as one object of a checkpoint.


class AllRanks:
    """The places of a loader in all ranks: an object with `state_dict` and `load_state_dict`.

    `Accelerator.register_for_checkpointing`, `torch.distributed.checkpoint` (as a Stateful),
    a Lightning module and a callback of Trainer save such objects. Of most checkpoints the first
    rank writes what is no tensor, so each state has the places of all ranks: `state_dict` is a
    collective call, to be made in every rank where `torch.distributed` is initialized. The same or
    another number of ranks loads it, and no example is lost or read twice.

    Args:
        loader: what `data_loader` returned, or a `Sampler` that no workers draw from.

    Raises:
        UsageError: another loader.
    """

    def __init__(self, loader: Any) -> None:
        sampler = getattr(loader, "sampler", loader)
        if not isinstance(sampler, Sampler):
            raise UsageError(
                f"loader: what shardctl.torch.data_loader returned is needed, or a Sampler, and "
                f"not {type(loader).__name__}"
            )
        self._loader, self._sampler = loader, sampler

    def state_dict(self) -> dict[str, str]:
        """Return the places of all ranks, as one text of JSON: no library takes it apart."""
        own = self._loader.state_dict()
        states, ranks = [own], sys.modules.get("torch.distributed")
        if ranks and ranks.is_available() and ranks.is_initialized() and ranks.get_world_size() > 1:
            states = [None] * ranks.get_world_size()
            ranks.all_gather_object(states, own)
        return {"states": json.dumps(states)}

    @checked
    def load_state_dict(self, state: TorchState) -> None:
        """Go to the place of this rank; ranks of another number share what those had left.

        Raises:
            DatasetError: it is no such state, or of another dataset.
            UsageError: it is of other settings.
        """
        try:
            states = json.loads(state["states"])
        except (KeyError, TypeError, ValueError) as error:
            raise DatasetError(
                "the state is none that state_dict() of AllRanks returned"
            ) from error
        self._sampler._begin_at(continued_order(self._sampler._order, states))
