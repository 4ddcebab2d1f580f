"""Positions in the checkpoints of Orbax: the item of the data beside the item of the model.

    import shardctl.orbax as shardctl_args

    ocp.args.Composite(
        state=ocp.args.StandardSave(state), data=shardctl_args.Save(position)
    )

Importing this imports Orbax, and so JAX: the arguments of a checkpoint are Orbax's own classes.
"""

from shardctl.base.install import missing as _missing

try:
    from orbax.checkpoint.future import CommitFutureAwaitingContractedSignals as _Needed  # noqa: F401
except ImportError as _error:
    raise _missing("Orbax", "orbax-checkpoint", _error) from _error

from shardctl.orbax.handler import Checkpointable, PositionHandler, Restore, Save, states

__all__ = ["Checkpointable", "PositionHandler", "Restore", "Save", "states"]
