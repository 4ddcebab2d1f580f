"""Browsers are found or it is said why not; what a page does that it should not is noticed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import chromium, open_all, opened, started, violations

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
