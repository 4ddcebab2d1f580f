"""A guide on a terminal: nothing is lost, and no line is wider than the screen."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from shardctl.cli.help import guide_on_terminal
from shardctl.draw.tables import Screen
from shardctl.guide.guides import Guide, guide_questions, read_guide

GUIDE = Guide(
    subject="toy",
    text="""# Why?

Because of `--shuffle-seed` and [Keras](keras.md), *always*.

## A table

| option | meaning |
|---|---|
| `--interleave-cycle-length-of-a-reader` | how many files are open at a time, as many as that |
| `-b` | |

```console
$ shardctl plan 'train[40:]'
[red]brackets[/red] and a line that is much longer than forty columns
```

- one
- two
  1. nested
""",
)


def words(text: str) -> str:
    """Return what is read, without blanks, rules and bullets."""
    return re.sub(r"[\s─•]", "", text)


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_nothing_is_lost_at_any_width(width: int) -> None:
    text = guide_on_terminal(GUIDE, Screen(width=width))
    assert max(map(cell_len, text.splitlines())) <= min(width, 120)
    for part in (
        "Why?",
        "Because of --shuffle-seed and Keras (shardctl help keras), always.",
        "$ shardctl plan 'train[40:]'",
        "[red]brackets[/red] and a line that is much longer than forty columns",
        "1 nested",
    ):
        assert words(part) in words(text)
    assert all(word in text for word in ("how", "many", "files", "are", "open", "time,", "that"))
    assert "\x1b" not in text


@pytest.mark.parametrize("subject", guide_questions())
@pytest.mark.parametrize("width", [40, 80])
def test_every_guide_fits(subject: str, width: int) -> None:
    guide = read_guide(subject)
    text = guide_on_terminal(guide, Screen(width=width))
    assert max(map(cell_len, text.splitlines())) <= width
    assert "…" not in text or "…" in guide.text  # what Rich writes where it cuts
    for code in re.findall(r"```\w+\n(.*?)```", guide.text, re.DOTALL):
        assert words(code) in words(text)


def test_no_colour_where_none_is_asked_for() -> None:
    assert "\x1b[" in guide_on_terminal(GUIDE, Screen(width=80, color=True))
    assert "\x1b[" not in guide_on_terminal(GUIDE, Screen(width=80))
