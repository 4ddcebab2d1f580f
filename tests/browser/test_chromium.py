"""Browsers are found or it is said why not; what a page does or shows amiss is noticed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import chromium, open_all, opened, started, violations
from tests.browser.geometry import faults

pytestmark = pytest.mark.long


def test_a_program_that_is_named_is_the_one(tmp_path: Path) -> None:
    program = tmp_path / "my-chromium"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert chromium(str(program)) == str(program)
    assert chromium(str(tmp_path / "none")) is None


def test_without_a_browser_the_reason_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with started(str(tmp_path / "none")) as found:
        assert found == f"{tmp_path / 'none'} is no program"
    monkeypatch.setenv("PATH", str(tmp_path))
    with started(None) as found:
        assert found.startswith("none of chromium, chromium-browser")


def test_what_a_page_does_is_noticed(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(
        "<!DOCTYPE html><img src='https://example.org/a.png'><script>console.log('said');"
        "alert('asked'); throw new Error('thrown')</script>",
        encoding="utf-8",
    )
    with opened(browser, file) as found:
        found.page.wait_for_load_state()
        happened = "\n".join(found.happened)
        with pytest.raises(AssertionError):
            found.is_quiet()
    for said in ("request: https://example.org", "console: said", "dialog: asked", "error: thrown"):
        assert said in happened


def test_axe_is_asked(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text("<img src=''><details><summary>more</summary><p>text</p></details>")
    with opened(browser, file) as found:
        open_all(found.page)
        assert found.page.get_by_text("text", exact=True).is_visible()
        rules = {line.partition(":")[0] for line in violations(found.page)}
    assert {"image-alt", "html-has-lang", "document-title"} <= rules


_SVG = '<svg viewBox="0 0 200 100" style="width:200px">{}</svg>'
_FINE = {
    "lines": "<p>one</p><p>two</p>",
    "scroller": '<div role="group" tabindex="0" style="overflow:auto;width:99px">'
    f"<p style='width:2000px'>{'long ' * 80}</p></div>",
    "folded": f"<details><summary>s</summary><p style='white-space:nowrap'>{'x ' * 900}</p>"
    "</details>",
    "picture": _SVG.format('<text x="5" y="20">one</text><text x="5" y="40">two</text>'),
}
_FAULTY = {
    "wide": ("<p style='width:2000px'>wide</p>", "the page is"),
    "cut": (
        "<p style='overflow:hidden;width:50px;white-space:nowrap'>a long line of text</p>",
        "is cut by its P",
    ),
    "sticking out": (
        "<div style='width:60px'><p style='width:50px;white-space:nowrap'>a long line</p></div>",
        "sticks out of its P",
    ),
    "on another": ("<p>one</p><p style='margin-top:-30px'>two</p>", "overlap"),
    "labels": (
        _SVG.format('<text x="5" y="20">one</text><text x="12" y="20">two</text>'),
        "overlap",
    ),
    "label outside": (_SVG.format('<text x="190" y="20">outside</text>'), "leaves its picture"),
}


def found_in(browser: Any, folder: Path, body: str) -> list[str]:
    """Return the faults of a page with this body."""
    file = folder / "page.html"
    file.write_text(f"<!DOCTYPE html><title>t</title><body>{body}", encoding="utf-8")
    with opened(browser, file) as found:
        return faults(found.page)


@pytest.mark.parametrize("case", _FINE)
def test_what_is_fine_is_left_alone(browser: Any, tmp_path: Path, case: str) -> None:
    assert found_in(browser, tmp_path, _FINE[case]) == []


@pytest.mark.parametrize("case", _FAULTY)
def test_what_is_wrong_is_noticed(browser: Any, tmp_path: Path, case: str) -> None:
    body, said = _FAULTY[case]
    assert any(said in fault for fault in found_in(browser, tmp_path, body))
