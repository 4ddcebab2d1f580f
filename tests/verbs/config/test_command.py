"""`shardctl config` shows what the other commands would use, and who says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.cli.main import main
from shardctl.settings.table import SETTING_BY_FIELD
from tests.cases import check_cases
from tests.cli.conftest import Shardctl
from tests.verbs.settings_options import as_options, settings_values

LAYOUT = "name: toy\nsplits: {train: {shard_lengths: [3, 4]}}\n"
NAMES = "toy-train.tfrecord-00001-of-00002\ntoy-train.tfrecord-00000-of-00002\n"


@pytest.fixture(autouse=True)
def layout(shardctl: Shardctl) -> None:
    """A dataset, and an order of its files."""
    Path("toy.yaml").write_text(LAYOUT)
    Path("order.txt").write_text(NAMES)


def replaced(name: str, given: dict[str, object]) -> bool:
    """Return whether an option takes away what the file says that contradicts it."""
    by = {"file_order": "reverse", "reverse": "file_order", "shuffle_files": "shuffle_seed"}
    if name == "cpus":
        return given.get("cycle", "auto") != "auto"
    return by.get(name) in given


def test_it_is_what_simulate_uses_whoever_sets_it(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """Against the pipeline of simulate and the lines of the file, for settings in two places."""

    def document(*words: str) -> dict[str, Any] | None:
        with pytest.raises(SystemExit):
            main([*words, "-f", "json"])
        out = capsysbinary.readouterr().out
        return json.loads(out) if out else None

    def check(case: tuple[dict[str, object], list[bool]]) -> None:
        values, in_file = case
        stated = {
            name: value for (name, value), yes in zip(values.items(), in_file, strict=False) if yes
        }
        given = {name: value for name, value in values.items() if name not in stated}
        lines = ["dataset: toy.yaml", "read:"]
        lines += [f"  {name}: {json.dumps(value)}" for name, value in stated.items()]
        Path("shardctl.yaml").write_text("\n".join(lines))
        config = document("config", *as_options(given))
        assert config is not None
        simulated = document("simulate", "--take", "1", *as_options(given))
        for setting in config["settings"]:
            section, _, name = setting["name"].partition(".")
            if section != "read":
                continue
            name = SETTING_BY_FIELD[name].name
            if simulated is not None and name != "cpus":
                default = "tfds" if name == "loader" else None
                assert setting["value"] == simulated["pipeline"].get(name, default), name
            is_left = name in stated and not replaced(name, given)
            origin = "option" if name in given else "file" if is_left else None
            if origin is None:
                assert setting["origin"] in ("default", "implied")
                assert setting["given"] is None
            else:
                assert setting["origin"] == origin
                by_file = origin == "file"
                line = lines.index(f"  {name}: {json.dumps(stated[name])}") + 1 if by_file else None
                assert setting["line"] == line

    cases = st.tuples(settings_values, st.lists(st.booleans(), min_size=30, max_size=30))
    check_cases(cases, check, 15)
