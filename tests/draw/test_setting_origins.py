"""The first setting that has a line is the place to look at."""

from __future__ import annotations

from shardctl.draw.setting_origins import NOWHERE, SettingOrigins


def test_the_first_name_that_has_a_line_is_the_place() -> None:
    origins = SettingOrigins(file="a/shardctl.yaml", lines={"block": 3, "epochs": 9})
    assert origins.place(["cycle", "epochs", "block"]) == ("a/shardctl.yaml", 9)
    assert origins.place(iter(["cycle"])) == (None, None)
    assert NOWHERE.place(["block"]) == (None, None)
