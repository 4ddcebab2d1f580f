"""Whole numbers as options take them, and paths as annotations name them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shardctl.cli.options.shared import path_from_repository, whole_number
from shardctl.errors import UsageError

_BOUNDED, _NEEDED = whole_number(0, 9), "a whole number is needed"


@pytest.mark.parametrize(
    ("parse", "text", "found"),
    [
        *((whole_number(), text, n) for text, n in (("0", 0), ("1_000", 1000), (" 7 ", 7))),
        *((whole_number(), text, _NEEDED) for text in ("", "x", "1.5", "1e3", "0x10", "1__0")),
        (whole_number(), "-1", -1),
        *((whole_number(1), number, number) for number in (1, 2**70)),
        *((whole_number(1), n, "a whole number, at least 1, is needed") for n in ("0", "-1")),
        *((_BOUNDED, number, number) for number in (0, 9)),
        *((_BOUNDED, n, "a whole number from 0 to 9 is needed") for n in ("-1", "10")),
    ],
)
def test_a_whole_number_within_bounds(
    parse: Callable[[str], int], text: str, found: int | str
) -> None:
    if isinstance(found, int):
        assert parse(text) == found
    else:
        with pytest.raises(UsageError, match=f"^{found}$"):
            parse(text)


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
