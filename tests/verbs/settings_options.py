"""Random settings of an order as options of the command line, all valid together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from shardctl.loaders.loader import LOADERS
from shardctl.settings.table import SETTING_BY_NAME

Values = Mapping[str, object]

_SEED = st.integers(-(2**70), 2**70) | st.integers(0, 50)
_COUNT = st.integers(1, 40)


def _valid(values: dict[str, object]) -> bool:
    """Return whether the rules of `ReadSettings` about two settings hold, written down again."""
    if (values.get("cycle") == "auto") != ("cpus" in values):
        return False
    if values.get("reverse") and "file_order" in values:
        return False
    if values.get("drop_remainder") and "batch" not in values:
        return False
    if values.get("shuffle_files") is False and "shuffle_seed" in values:
        return False
    behind = {"buffer", "epochs", "batch", "drop_remainder"} & values.keys()
    if "stages" in values and (behind or values.get("host_by") == "examples"):
        return False
    return "buffer" in values or not {"buffer_seed", "buffer_reshuffle"} & values.keys()


_EACH: dict[str, st.SearchStrategy[Any]] = {
    "cycle": _COUNT | st.just("auto"),
    "cpus": _COUNT,
    "block": _COUNT,
    "shuffle_files": st.booleans(),
    "shuffle_seed": _SEED,
    "reshuffle": st.booleans(),
    "deterministic": st.booleans(),
    "buffer": _COUNT | st.just(-2),
    "buffer_seed": _SEED,
    "buffer_reshuffle": st.booleans(),
    "global_seed": _SEED,
    "epochs": _COUNT,
    "repeat_files": st.booleans(),
    "reverse": st.booleans(),
    "file_order": st.just("order.txt"),
    "host": st.integers(1, 9).flatmap(
        lambda count: st.integers(0, count - 1).map(lambda index: f"{index}/{count}")
    ),
    "host_by": st.sampled_from(["even", "files", "examples"]),
    "batch": _COUNT,
    "drop_remainder": st.booleans(),
    # None is the chain that other settings say: an answer would show those.
    "stages": st.sampled_from(["repeat(2) | take(9)", "shuffle(5, seed=0) | map | repeat(2)"]),
    "pass": st.integers(0, 5),
    "loop": st.sampled_from(["python", "keras-fit"]),
    "loader": st.sampled_from(list(LOADERS)),
    "loader_version": st.sampled_from(["2.9", "0.2.18"]),
    "shuffle": st.booleans(),
    "workers": st.integers(0, 3),
    "persistent_workers": st.booleans(),
    "drop_shard_remainder": st.booleans(),
    "streaming": st.booleans(),
    "arrow": st.booleans(),
    "input_shards": _COUNT,
}


def _read_by(loader: str) -> dict[str, st.SearchStrategy[Any]]:
    return {
        name: values
        for name, values in _EACH.items()
        if name != "loader" and SETTING_BY_NAME[name].is_read_by(loader)
    }


def _of_loader(name: str) -> st.SearchStrategy[dict[str, object]]:
    read = st.fixed_dictionaries({"loader": st.just(name)}, optional=_read_by(name))
    return read.filter(_valid)


# Settings by their names, as a file of settings has them; `file_order` is a path.
settings_values: st.SearchStrategy[dict[str, object]] = st.one_of(
    st.fixed_dictionaries({}, optional=_read_by("tfds")).filter(_valid),
    st.sampled_from(list(LOADERS)).flatmap(_of_loader),
)


def as_options(values: Values) -> list[str]:
    """Return the settings as words of the command line."""
    assert SETTING_BY_NAME.keys() == _EACH.keys()  # a new setting needs its values here
    words = []
    for name, value in values.items():
        option = SETTING_BY_NAME[name].option
        if isinstance(value, bool):
            words.append(option if value else f"--no-{option.removeprefix('--')}")
        else:
            words.append(f"{option}={value}")
    return words
