"""Options are understood with - or _, and by the names of TFDS, tf.data and Keras."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import shardctl as api
from shardctl.cli.app import application
from shardctl.cli.main import COMMANDS
from shardctl.cli.options.shared import main_name
from shardctl.errors import ShardctlError, UsageError
from shardctl.settings.table import SETTINGS
from tests.cli.conftest import Shardctl
from tests.golden import listed


def options_of(command: str) -> list[str]:
    group = application(command)
    params = group.commands[command].params
    names = [name for param in params for name in (*param.opts, *param.secondary_opts)]
    return [name[2:] for name in names if name.startswith("--")]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_long_option_of_every_command_takes_either_sign(command: str) -> None:
    names = options_of(command)
    assert names
    for name in names:
        assert main_name(names, name) == name
        assert main_name(names, name.replace("-", "_")) == name


@pytest.mark.parametrize("command", ["simulate", "diff", "lint"])
def test_every_alias_of_every_setting_is_an_option(command: str) -> None:
    names = options_of(command)
    for setting in SETTINGS:
        option = setting.option.removeprefix("--")
        for alias in setting.aliases:
            assert main_name(names, alias) == option
            assert main_name(names, alias.replace("_", "-")) == option
            if f"no-{option}" in names:
                assert main_name(names, f"no_{alias}") == f"no-{option}"
            else:
                assert main_name(names, f"no-{alias}") == f"no-{alias}"


def test_what_could_be_several_is_asked() -> None:
    names = options_of("simulate")
    with pytest.raises(
        UsageError, match=r"^--random_seed: it could be --shuffle-seed, --buffer-seed"
    ):
        main_name(names, "random_seed")
    assert main_name(options_of("plan"), "seed") == "seed"  # there is none to mean


SAME = listed(Path(__file__).with_name("same.txt"), globals())  # fmt: skip


@pytest.mark.parametrize(("line", "plain"), SAME)
def test_the_answer_is_the_same(line: str, plain: str, shardctl: Shardctl) -> None:
    ran, other = (shardctl(*words.split(), "-d", "mnist", "-f", "json") for words in (line, plain))
    assert ran == other
    assert ran.exit_code in (0, 1 if line.startswith("lint") else 0)
    json.loads(ran.stdout)


_NUMBERS = ("N", "S", "M", "N|auto", "N[,N..]", "N|A-B|A,B")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_that_takes_a_number_takes_grouped_digits(command: str) -> None:
    group = application(command)
    for param in group.commands[command].params:
        if command == "locate" and param.metavar in ("P", "S", "I"):
            continue  # texts that are read once the order is known; tested below
        if param.metavar in _NUMBERS:
            assert param.type.convert("1_0", param, None) == param.type.convert("10", param, None)


LAYOUT = "name: toy\nsplits: {train: {shard_lengths: [4, 0, 5]}}\n"


def test_every_least_value_is_enforced_alike(shardctl: Shardctl) -> None:
    Path("toy.yaml").write_text(LAYOUT)
    bounded = [(s, s.kind.least) for s in SETTINGS if s.kind.least is not None]
    assert len(bounded) > 5
    for setting, least in bounded:
        low = least - 1
        with pytest.raises(ShardctlError, match=f"^{setting.field}={low}: a number "):
            api.ReadSettings(**dict[str, Any]({setting.field: low}))
        ran = shardctl("simulate", "-d", "toy.yaml", setting.option, low)
        assert ran.stderr.startswith(f"error: {setting.option} '{low}': a ")
        Path("shardctl.yaml").write_text(f"read:\n\n  {setting.name}: {low}\n")
        ran = shardctl("simulate", "-d", "toy.yaml")
        assert f"shardctl.yaml:3: {setting.name}={low}: a number " in ran.stderr
        Path("shardctl.yaml").unlink()
