"""A place in `fit` inside the weights file of a Keras model, and files that are written whole."""

from __future__ import annotations

import contextlib
import json
import os
import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

_ATTRIBUTE = "_shardctl_place"
_ENTRY, _RANDOM = "place", "random"
_ENDING = ".weights.h5"
_METADATA = "training_metadata.json"


class PlaceInWeights:
    """What a model saves and loads besides its weights, in the same file: a place, as bytes.

    Weights and place are then of the same moment, whichever file is loaded. So are the states of
    random numbers, of dropout for one, which Keras leaves out. `found` says whether weights were
    loaded, `loaded` what place they had.
    """

    def __init__(self, place: Callable[[], bytes | None]) -> None:
        self.place = place
        self.found = False
        self.loaded: bytes | None = None

    def put_into(self, model: Any) -> None:
        """Let a model save and load it."""
        setattr(model, _ATTRIBUTE, _saveable_class()(self, model))

    def take_out_of(self, model: Any) -> None:
        """Let a model be as it was."""
        if hasattr(model, _ATTRIBUTE):
            delattr(model, _ATTRIBUTE)


@cache
def _saveable_class() -> Any:
    # What saving_lib saves of the attributes of a model; Keras exports no public name of it.
    from keras.src.saving.keras_saveable import KerasSaveable

    class Saveable(KerasSaveable):  # type: ignore[misc]
        def __init__(self, of: PlaceInWeights, model: Any) -> None:
            self._of, self._model = of, weakref.ref(model)

        def _obj_type(self) -> str:
            return "Loss"  # saving_lib knows a few kinds; one without variables of its own

        def save_own_variables(self, store: Any) -> None:
            place = self._of.place()
            if place is not None:
                store[_ENTRY] = np.frombuffer(place, np.uint8)
            for index, state in enumerate(_random_states(self._model())):
                store[f"{_RANDOM}{index}"] = state.numpy()

        def load_own_variables(self, store: Any) -> None:
            self._of.found = True
            has_one = _ENTRY in list(store.keys())
            self._of.loaded = bytes(np.asarray(store[_ENTRY], np.uint8)) if has_one else None
            if has_one:
                for index, state in enumerate(_random_states(self._model())):
                    state.assign(np.asarray(store[f"{_RANDOM}{index}"]))

    return Saveable


def _random_states(model: Any) -> list[Any]:
    """Return the variables of random numbers that the layers of a model draw from."""
    others = {id(variable) for variable in (*model.weights, *model.metrics_variables)}
    return [variable for variable in model.variables if id(variable) not in others]


def save_weights_whole(model: Any) -> None:
    """Let a model write its weights files beside their place first, and then move them there.

    Keras writes over the file that is there, so that one who is killed has none. A place that is no
    local path is left to Keras.
    """
    if getattr(model.save_weights, "_is_whole", False):
        return
    save = model.save_weights

    def save_whole(filepath: Any, overwrite: bool = True, **options: Any) -> Any:
        path = os.fspath(filepath)
        asks_first = not overwrite and os.path.exists(path)
        if "://" in path or not path.endswith(_ENDING) or options or asks_first:
            return save(filepath, overwrite=overwrite, **options)
        new = f"{path.removesuffix(_ENDING)}.new{_ENDING}"
        save(new, overwrite=True)
        os.replace(new, path)
        return None

    save_whole._is_whole = True  # type: ignore[attr-defined]
    model.save_weights = save_whole


def drop_torn_metadata(folder: str) -> None:
    """Delete a `training_metadata.json` that was not written to its end, without which Keras fails.

    It says which epoch comes next, which the weights file does too.
    """
    file = Path(folder, _METADATA)
    with contextlib.suppress(OSError):
        try:
            json.loads(file.read_text("utf-8"))["epoch"]
        except (ValueError, KeyError, TypeError):
            file.unlink()
