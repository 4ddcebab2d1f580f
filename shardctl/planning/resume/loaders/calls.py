"""What a library is told to go on where a loader stopped, and what its own ways are worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shardctl.core.order.loader_order import LoaderOrder
from shardctl.core.text import counted


@dataclass(frozen=True, kw_only=True)
class LoaderCall:
    """A call of the library on the way to what is left, with its arguments."""

    call: str
    arguments: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Stop:
    """Where a loader stopped: after `consumed` examples, `in_epoch` of them of its epoch.

    epoch: from 0 in the pass. steps, steps_in_epoch: whole batches, None without batches.
    in_batch: examples of the next batch that were handed out.
    """

    consumed: int
    epoch: int
    in_epoch: int
    steps: int | None
    steps_in_epoch: int | None
    in_batch: int


def calls_of(order: LoaderOrder, stop: Stop) -> tuple[LoaderCall, ...]:
    """Return what the library is told before what is left comes, and how much it has to skip."""
    settings = order.settings
    epoch = settings.pass_index + stop.epoch
    calls = []
    if settings.loader == "grain":
        skipped, batches = stop.consumed, stop.steps
    else:
        skipped, batches = stop.in_epoch, stop.steps_in_epoch
        # A Dataset of Hugging Face has no set_epoch: all its epochs have one order.
        if not order.goes_on_drawing and (settings.loader != "hf" or order.asked.streams):
            calls.append(LoaderCall(call="set_epoch", arguments={"epoch": epoch}))
    if order.goes_on_drawing:
        if order.shuffles:
            # A seed of PyTorch's generator and that of a loader's own give different orders.
            own = settings.shuffle_seed
            name = "manual_seed" if own is None else "generator.manual_seed"
            seed = settings.global_seed if own is None else own
            calls.append(LoaderCall(call=name, arguments={"seed": seed or 0}))
        if epoch:
            calls.append(LoaderCall(call="iterations", arguments={"count": epoch}))
    if batches is None:
        calls.append(LoaderCall(call="skip", arguments={"examples": skipped}))
    else:
        name = "skip_first_batches" if settings.loader == "accelerate" else "skip"
        calls.append(LoaderCall(call=name, arguments={"batches": batches}))
        if stop.in_batch:
            calls.append(LoaderCall(call="skip_in_batch", arguments={"examples": stop.in_batch}))
    return tuple(calls)


def advice_of(order: LoaderOrder, stop: Stop) -> tuple[str, ...]:
    """Return what to know of the library's own ways to go on, each a sentence."""
    settings = order.settings
    found = []
    if settings.loader == "grain":
        found.append(
            "Grain's own get_state and set_state go on exactly too, with as many workers as before"
        )
    elif settings.loader == "torch":
        found.append(
            "a DataLoader keeps no position: -f python reads the batches that are left by index, "
            "and none of those before"
        )
    elif settings.loader == "stateful":
        found.append(
            "load_state_dict goes on too, from a state that was saved then and with as many "
            "workers; this plan needs no state"
        )
        if settings.host is None and settings.shuffle_seed is not None:
            found.append(
                "the loader draws other numbers from its own generator after load_state_dict, so "
                "the epochs that follow are others then; those of this plan are as if never stopped"
            )
    elif settings.loader == "accelerate":
        found.append(
            "accelerator.skip_first_batches(loader, N) goes on in this epoch; the epochs that "
            "follow are read whole"
        )
    elif order.asked.streams:
        found.append(
            "load_state_dict of an IterableDataset loses what its shuffle buffer held, and may "
            f"repeat examples; skip reads {counted(stop.in_epoch, 'example')} again and loses none"
        )
    return tuple(found)
