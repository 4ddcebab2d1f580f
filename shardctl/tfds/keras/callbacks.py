"""The callbacks of a `fit`: which stand beside ResumeFit, and what they need of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from shardctl.errors import UsageError

_STATEFUL = {
    "EarlyStopping": "the epochs that it has waited for",
    "ReduceLROnPlateau": "the epochs that it has waited for",
    "SwapEMAWeights": "which of its two sets of weights are the averages",
}


def callbacks_of_fit() -> Sequence[Any]:
    """Return the callbacks of the `fit` that calls one of them; none is told of the others."""
    frame = sys._getframe(1).f_back
    while frame is not None:
        caller = frame.f_locals.get("self")
        if type(caller).__name__ == "CallbackList":
            return tuple(getattr(caller, "callbacks", ()))
        frame = frame.f_back
    raise UsageError("ResumeFit is a callback: model.fit(.., callbacks=[.., ResumeFit(position)])")


def backups_among(callbacks: Sequence[Any]) -> list[Any]:
    """Return the callbacks that are a BackupAndRestore."""
    import keras

    return [c for c in callbacks if isinstance(c, keras.callbacks.BackupAndRestore)]


def check_callbacks(callbacks: Sequence[Any], own: Any) -> None:
    """Refuse callbacks beside which a run cannot go on as one that nobody stopped.

    Raises:
        UsageError: BackupAndRestore is missing, or behind `own`; or a callback begins anew what it
            has to go on with.
    """
    backups = backups_among(callbacks)
    if len(backups) != 1:
        raise UsageError(
            f"{len(backups)} callbacks are a keras.callbacks.BackupAndRestore; ResumeFit keeps the "
            "position in the file that one saves: callbacks=[BackupAndRestore(..), ResumeFit(..)]"
        )
    if sum(isinstance(c, type(own)) for c in callbacks) > 1:
        raise UsageError("one fit has one position: one ResumeFit is needed, and there are more")
    if callbacks.index(backups[0]) > callbacks.index(own):
        raise UsageError(
            "ResumeFit goes on from what BackupAndRestore has restored, so it stands behind it: "
            "callbacks=[BackupAndRestore(..), ResumeFit(..)]"
        )
    for callback in callbacks:
        for kind in type(callback).__mro__:
            what = _STATEFUL.get(kind.__name__)
            if what is not None and kind.__module__.startswith("keras."):
                raise UsageError(
                    f"{kind.__name__} begins anew when a run is started again, for nothing keeps "
                    f"{what}; the run would end otherwise than one that nobody stopped: leave it "
                    "out"
                )


def show_length(callbacks: Sequence[Any], num_steps: int) -> None:
    """Tell progress bars, and whoever asks `params`, how long an epoch is, as Keras would."""
    import keras

    for callback in callbacks:
        if isinstance(callback, keras.callbacks.ProgbarLogger):
            callback.target = num_steps
        elif callback.params:
            callback.params["steps"] = num_steps


def learning_rate(model: Any) -> float | None:
    """Return the learning rate that was restored, None where it follows a schedule or is none."""
    import keras

    variable = getattr(model.optimizer, "learning_rate", None)
    return float(variable.numpy()) if isinstance(variable, keras.Variable) else None


def metrics_of_none(model: Any, element_spec: Any) -> dict[str, Any]:
    """Return the metrics of an epoch of which no batch is left.

    Those of `compile` have no variables before the first step, and Keras asks them all the same.
    """
    metrics = model._compile_metrics
    if metrics is not None and not metrics.built:
        model._symbolic_build(data_batch=element_spec)
    results: dict[str, Any] = model.get_metrics_result()
    return results
