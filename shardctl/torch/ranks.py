"""The states of the loaders of all ranks, as one object of a checkpoint."""

from __future__ import annotations

import json
import sys
from typing import Any

from shardctl.base.arguments import checked
from shardctl.errors import DatasetError, UsageError
from shardctl.torch.loader import Sampler, TorchState, continued_order


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
