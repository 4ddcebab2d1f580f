"""Whole numbers as options take them, and paths as annotations name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.cli.options.shared import path_from_repository, whole_number
from shardctl.errors import UsageError


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("1_000", 1000), (" 7 ", 7), ("-1", -1)])
def test_a_whole_number(text: str, number: int) -> None:
    assert whole_number()(text) == number


@pytest.mark.parametrize("text", ["", "x", "1.5", "1e3", "0x10", "1__0"])
def test_what_is_not_one_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^a whole number is needed$"):
        whole_number()(text)


@pytest.mark.parametrize(
    ("minimum", "maximum", "taken", "refused", "rule"),
    [
        (1, None, (1, 2**70), (0, -1), "a whole number, at least 1, is needed"),
        (0, 9, (0, 9), (-1, 10), "a whole number from 0 to 9 is needed"),
    ],
)
def test_bounds_are_taken_and_what_lies_beyond_is_not(
    minimum: int, maximum: int | None, taken: list[int], refused: list[int], rule: str
) -> None:
    parse = whole_number(minimum, maximum)
    assert [parse(number) for number in taken] == list(taken)
    for number in refused:
        with pytest.raises(UsageError, match=f"^{rule}$"):
            parse(str(number))


def test_a_path_that_cannot_be_looked_up_is_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "x" * 300 + "/order.yaml"
    assert path_from_repository(Path(long)) == long
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert path_from_repository(Path("order.yaml")) == "order.yaml"
