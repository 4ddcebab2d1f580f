"""The options of an order are those of the table, over what shardctl.yaml says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args, get_origin

import pytest

from shardctl.cli.options.order import OrderOptions
from shardctl.core.settings.kinds import Switch
from shardctl.core.settings.table import SETTING_BY_FIELD
from shardctl.errors import UsageError


def test_each_setting_is_an_option_with_its_metavar_and_help() -> None:
    for parameter in OrderOptions.parameters():
        setting = SETTING_BY_FIELD[parameter.name]
        assert get_origin(parameter.annotation) is Annotated
        option = get_args(parameter.annotation)[1]
        names = option.default.split("/")  # inside Annotated that is Typer's first argument
        assert names[0] == setting.option
        if isinstance(setting.kind, Switch):
            assert names[1:] == [f"--no-{setting.option.removeprefix('--')}"]
        else:
            assert option.metavar == setting.kind.metavar
        assert option.help.split()[0] == setting.help.split()[0]
        assert "=" not in option.help.replace("even_splits", "")


def test_a_number_may_be_a_word_where_the_table_says_so() -> None:
    options = {p.name: get_args(p.annotation)[1] for p in OrderOptions.parameters()}
    assert options["cycle"].parser("auto") == "auto"
    assert options["cycle"].parser("1_000") == 1000
    assert options["shuffle_seed"].parser("-5") == -5
    assert options["buffer"].parser("-2") == -2
    with pytest.raises(UsageError, match=r"--cycle 'AUTO': a whole number, at least 1, is needed"):
        options["cycle"].parser("AUTO")
    with pytest.raises(UsageError, match=r"--block 'auto': a whole number, at least 1, is needed"):
        options["block"].parser("auto")


def test_options_win_over_the_file_which_wins_over_what_to_fall_back_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shardctl.yaml").write_text("read: {block: 3, file-order: list.txt, cycle: auto}\n")
    (tmp_path / "list.txt").write_text("b\n# of all\na\n")
    fallback = {"block": 2, "batch": 7, "reverse": True, "cpus": 4}
    settings = OrderOptions(batch=9).settings(fallback)
    assert (settings.block, settings.batch, settings.file_order) == (3, 9, ("b", "a"))
    assert (settings.cycle, settings.cpus, settings.reverse) == ("auto", 4, False)
    settings = OrderOptions(reverse=True, cycle=2, batch=None).settings(fallback)
    assert (settings.reverse, settings.file_order, settings.cpus) == (True, None, None)
    assert (settings.cycle, settings.batch) == (2, 7)


def test_options_that_contradict_each_other_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="contradict each other"):
        OrderOptions(shuffle_files=False, shuffle_seed=1).settings()
