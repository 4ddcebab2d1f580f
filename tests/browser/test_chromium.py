"""What a page does or shows amiss is noticed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import faults, open_all, opened, violations

pytestmark = pytest.mark.long


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


@pytest.mark.parametrize("case", [*_FINE, *_FAULTY])
def test_what_is_wrong_is_noticed_and_nothing_else(browser: Any, tmp_path: Path, case: str) -> None:
    body, said = _FAULTY.get(case) or (_FINE[case], None)
    file = tmp_path / "page.html"
    file.write_text(f"<!DOCTYPE html><title>t</title><body>{body}", encoding="utf-8")
    with opened(browser, file) as found:
        noticed = faults(found.page)
    assert noticed == [] if said is None else any(said in fault for fault in noticed)
