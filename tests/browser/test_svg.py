"""SVG files of pictures in a real browser: whole, quiet, light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shardctl.draw.picture import Picture, pictures_of
from shardctl.draw.svg import svg_file
from shardctl.verbs.report.answer import Report
from shardctl.verbs.report.question import NotShown
from tests.browser.chromium import opened
from tests.browser.geometry import faults
from tests.browser.pages import hang, hostile

pytestmark = pytest.mark.long


def sheets(made: Report) -> Iterator[tuple[str, tuple[Picture, ...]]]:
    """Yield the pictures of each answer of a report, as its command writes them."""
    for name in ("quality", "hosts", "layout", "evaluation"):
        part = getattr(made, name)
        assert not isinstance(part, NotShown)
        yield name, pictures_of(part)


@pytest.mark.parametrize("made", [hang, hostile])
def test_files_stand_alone_and_their_text_is_whole(browser: Any, tmp_path: Path, made: Any) -> None:
    for name, pictures in sheets(made()):
        file = tmp_path / f"{name}.svg"
        file.write_text("".join(svg_file(pictures)), encoding="utf-8")
        grounds = []
        with opened(browser, file) as found:
            for scheme in ("light", "dark"):
                found.page.emulate_media(color_scheme=scheme)
                assert faults(found.page) == []
                grounds.append(
                    found.page.evaluate("getComputedStyle(document.querySelector('.page')).fill")
                )
            assert found.page.locator("script, foreignObject, image, a").count() == 0
            assert found.page.locator("svg > title").text_content()
            assert found.is_quiet()
        assert grounds[0] == "rgb(255, 255, 255)"
        assert grounds[1] != grounds[0]
