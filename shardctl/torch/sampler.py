"""A sampler of PyTorch's that hands out tf.data's order."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import cache
from types import FrameType
from typing import Any, NamedTuple

from shardctl.core.arguments.checked import checked
from shardctl.core.loaders.library import library
from shardctl.core.loaders.loader import LOADERS
from shardctl.core.phrase import phrase
from shardctl.core.settings.read_settings import ReadSettings, SettingsLike
from shardctl.errors import UsageError
from shardctl.feeding.key_order import KeyOrder, check_number, record_at
from shardctl.feeding.sources import BuilderOrDataset
from shardctl.torch.states import TorchState, continued_order, order_from


class Sampler:
    """The order in which tf.data reads a spec, as `torch.utils.data.DataLoader` asks for it.

    It yields the keys of `tfds.data_source(split=spec)`. Hosts, which are the ranks, epochs, passes
    and whole batches are those of `settings`: the loader is given `batch_size=settings.batch` and
    no `shuffle`, `drop_last` or DistributedSampler. Worker processes change nothing.

    Args:
        dataset: a builder of TFDS, a reference, or a Dataset: whose order it is.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings: how tf.data reads it: a ReadSettings, or a dict of its values.
        consumed: how many examples this rank has had, from the order's start.
        states: of all ranks of a run that stopped, in place of `consumed`: of samplers, loaders,
            StatefulDataLoaders, or of positions (`Position.get_state`), with any number of workers
            and ranks.

    Raises:
        UsageError: a bad spec or settings, stages, or another loader's order.
        UnpredictableOrderError: TensorFlow leaves the order open.
        DatasetError: states of another dataset, or that are none.

    >>> sampler = Sampler("mnist", "train", {"shuffle_seed": 7, "batch": 60}, consumed=59_998)
    >>> len(sampler), len(list(sampler)), sampler.state_dict()["consumed"]
    (2, 2, 60000)
    """

    @checked
    def __init__(
        self,
        dataset: BuilderOrDataset,
        spec: str | None = None,
        settings: SettingsLike | None = None,
        *,
        consumed: int = 0,
        states: Sequence[TorchState] = (),
    ) -> None:
        self._begin_at(order_from(dataset, spec, settings, consumed=consumed, states=states))
        _be_torchs(self)

    def _begin_at(self, order: KeyOrder) -> None:
        self._order = order
        self._drawn: int | None = None  # of the newest iteration that began there
        self._is_ahead = self._is_set = False

    @property
    def settings(self) -> ReadSettings:
        """The settings in force."""
        return self._order.settings

    @property
    def order(self) -> KeyOrder:
        """The order, from the place on at which the sampler begins."""
        return self._order

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
        if self._drawn:
            self._again()
        order, how = self._order, drawing()
        check_drawing(how, order.settings, len(order))
        self._drawn, self._is_ahead = 0, how.workers > 0
        for index in range(len(order)):
            if self._order is order:
                self._drawn = index + 1
            yield order.key(index)

    def _again(self) -> None:
        if not self._order.passes_are_alike:
            raise UsageError(
                phrase(
                    "the sampler is iterated a second time: tf.data's next pass is "
                    "set_epoch({}), the same one from its start set_epoch({})",
                    self.epoch + 1,
                    self.epoch,
                )
            )
        self._begin_at(self._order.of_pass(self.epoch))

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
                return
            if len(order) and (order.consumed or order.stretches):
                raise UsageError(
                    phrase(
                        "epoch {}: the sampler begins after {} examples of epoch {}; begin the "
                        "loop there, range(sampler.epoch, N)",
                        epoch,
                        order.consumed,
                        self.epoch,
                    )
                )
        self._begin_at(order.of_pass(epoch))
        self._is_set = True

    def state_dict(self) -> dict[str, Any]:
        """Return the place behind what was drawn: `consumed`, and which order it counts in.

        A loader with worker processes draws ahead of what it hands out. StatefulDataLoader keeps
        the state that goes with each batch; of a DataLoader with workers this is refused.

        Raises:
            UsageError: it would count examples that nobody has trained on.
        """
        if self._is_ahead and not asked_by_torchdata():
            raise UsageError(
                "state_dict of the sampler: its loader has workers, which have drawn examples that "
                "it has not handed out; take state_after(batches), state_dict() of "
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
        most = -(-len(self) // size)
        check_number("batches", batches, most)
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
                phrase(
                    "the state is of epoch {}, after {} of {} examples, and set_epoch({}) was "
                    "called before it is loaded; give it to the sampler, states=[state], then "
                    "call set_epoch",
                    order.settings.pass_index,
                    order.consumed,
                    order.total,
                    self.epoch,
                )
            )
        self._begin_at(order)

    def _state(self, drawn: int) -> dict[str, Any]:
        return record_at(self._order, self._order.consumed + drawn).document()


def sampler_at(order: KeyOrder) -> Sampler:
    """Return the sampler of an order, from its place on."""
    sampler = Sampler.__new__(Sampler)
    sampler._begin_at(order)
    _be_torchs(sampler)
    return sampler


def _be_torchs(sampler: Sampler) -> None:
    """Make it a `torch.utils.data.Sampler` too, where PyTorch is imported."""
    if type(sampler) is Sampler and hasattr(sys.modules.get("torch.utils.data"), "Sampler"):
        sampler.__class__ = _kind()


@cache
def _kind() -> type[Sampler]:
    base: Any = sys.modules["torch.utils.data"].Sampler
    return type("SamplerOfTorch", (Sampler, base), {"__module__": __name__})


def __getattr__(name: str) -> type:
    # Worker processes look for the class by its name.
    if name == "SamplerOfTorch":
        torch_data()
        return _kind()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# Who draws from a sampler, and who asks for its state: loaders do not say so, their calls do.
#
# A DataLoader with worker processes draws batches before it hands them out
# (`_MultiProcessingDataLoaderIter._try_put_index` of torch/utils/data/dataloader.py, 2.13); a
# StatefulDataLoader too, which keeps the state of the sampler behind each of them.

_FURTHEST = 12  # calls between a sampler and its loader; three in PyTorch 2.13


class Drawing(NamedTuple):
    """How a loader draws: its worker processes, and the batches that it makes, None of none."""

    workers: int = 0
    batch: int | None = None
    drop_last: bool = False


def check_drawing(how: Drawing, settings: ReadSettings, num_examples: int) -> None:
    """Refuse batches that are not those of the settings.

    Raises:
        UsageError: of another size, or without the last one where the settings keep it.
    """
    own = settings.batch or 1
    if how.batch is None or (how.batch == own and not (how.drop_last and num_examples % own)):
        return
    drops = " without the last one (drop_last)" * how.drop_last
    raise UsageError(
        phrase(
            "the DataLoader makes batches of {}{}, and the settings of {}; give it "
            "batch_size=sampler.settings.batch, or the settings {batch=} and {drop_remainder=}",
            how.batch,
            drops,
            own,
            batch=how.batch,
            drop_remainder=how.drop_last,
        )
    )


def drawing() -> Drawing:
    """Return how the loader of PyTorch draws by which the caller is iterated."""
    workers, batch, drop_last = 0, None, False
    for frame in _callers():
        if _library(frame) not in ("torch", "torchdata"):
            continue
        caller = frame.f_locals.get("self")
        workers = max(workers, _number(caller, "_num_workers") or 0)
        if batch is None and (batch := _number(caller, "batch_size")) is not None:
            drop_last = bool(getattr(caller, "drop_last", False))
    return Drawing(workers=workers, batch=batch, drop_last=drop_last)


def asked_by_torchdata() -> bool:
    """Return whether torchdata is among those who called the caller."""
    return any(_library(frame) == "torchdata" for frame in _callers())


def _callers() -> Iterator[FrameType]:
    frame = sys._getframe(2).f_back  # past who asks, and its caller
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
