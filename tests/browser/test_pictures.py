"""Pictures in a real browser: files that stand alone, images of a page and of a notebook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import shardctl
from shardctl.draw.picture import Picture, pictures_of
from shardctl.draw.svg import svg_file
from tests.browser.chromium import NARROW, WIDE, Scheme, faults, opened, violations, widen
from tests.draw.drawn import HOSTILE, picture

pytestmark = pytest.mark.long

_ORDER = {"shuffle_seed": 3, "buffer": 10_000, "buffer_seed": 1}
_DARK, _LIGHT = (24, 24, 24), (255, 255, 255)  # the backgrounds of `picture.css`

ANSWERS: dict[str, Callable[[], object]] = {
    "eval": lambda: shardctl.evaluate("imagenet2012", batch=64, hosts=16),
    "hosts": lambda: shardctl.hosts("imagenet2012", "train", hosts=96),
    "layout": lambda: shardctl.layout("imagenet2012"),
    "loaders": lambda: shardctl.compare_loaders("mnist", "train"),
    "quality": lambda: shardctl.quality("imagenet2012", "train", _ORDER),
    "simulate": lambda: shardctl.simulate("imagenet2012", "train", _ORDER),
    "hostile": lambda: None,
}


def drawn(name: str) -> Sequence[Picture]:
    """Return the pictures of an answer, or those that hostile names have."""
    answer = ANSWERS[name]()
    return pictures_of(answer) if answer else [picture(text=text) for text in HOSTILE]


def svg(name: str) -> str:
    """Return the file of an answer's pictures."""
    return "".join(svg_file(drawn(name)))


def page(folder: Path, body: str) -> Path:
    """Return a page that has this body."""
    file = folder / "page.html"
    file.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Pictures</title>'
        '<meta name="viewport" content="width=device-width"><style>svg{max-width:100%;height:auto}'
        f"body{{margin:0}}</style><main><h1>Pictures</h1>{body}</main>",
        encoding="utf-8",
    )
    return file


@pytest.mark.parametrize("name", ANSWERS)
def test_nothing_of_a_file_overlaps_or_is_cut(name: str, browser: Any, tmp_path: Path) -> None:
    """At its own size and on a telephone, where it is smaller and its letters have other widths."""
    with opened(browser, page(tmp_path, svg(name))) as found:
        assert faults(found.page) == []
        widen(found.page, NARROW)
        assert faults(found.page) == []
        assert found.is_quiet()


@pytest.mark.parametrize(
    ("name", "width"),
    [
        pytest.param(
            name, width, marks=[] if name == "loaders" and width == WIDE else pytest.mark.slow
        )
        for name in ANSWERS
        for width in (WIDE, NARROW)
    ],
)
def test_axe_finds_no_violation(name: str, width: int, browser: Any, tmp_path: Path) -> None:
    with opened(browser, page(tmp_path, svg(name)), width=width) as found:
        assert violations(found.page) == []


@pytest.mark.parametrize("name", ["quality", "hostile"])
def test_a_file_stands_alone_light_or_dark(browser: Any, tmp_path: Path, name: str) -> None:
    file = tmp_path / "a.svg"
    file.write_text(svg(name), encoding="utf-8")
    schemes: dict[Scheme, tuple[int, int, int]] = {"light": _LIGHT, "dark": _DARK}
    for scheme, background in schemes.items():
        with opened(browser, file, scheme=scheme) as found:
            fill = "getComputedStyle(document.querySelector('rect')).fill"
            assert found.page.evaluate(fill) == f"rgb{background}"
            assert faults(found.page) == []
            assert found.page.locator("script, foreignObject, image, a").count() == 0
            assert found.page.locator("svg > title").text_content()
            assert found.is_quiet()


_PIXEL = """image => {
  const canvas = document.createElement('canvas'), context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  return [...context.getImageData(3, 3, 1, 1).data];
}"""


def test_two_answers_of_a_notebook_leave_each_other_and_the_page_alone(
    browser: Any, tmp_path: Path
) -> None:
    answers = [shardctl.layout("mnist"), shardctl.evaluate("mnist", batch=64, hosts=3)]
    body = '<p class="text page quiet">Text of the page</p>' + "".join(
        answer._repr_html_() for answer in answers
    )
    with opened(browser, page(tmp_path, body), width=NARROW) as found:
        images = found.page.locator("img")
        assert images.count() == 2
        for at in range(2):
            image = images.nth(at)
            assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 640
            assert image.evaluate("image => image.getBoundingClientRect().right") <= NARROW
            assert image.evaluate(_PIXEL) == [*_LIGHT, 255]
        styled = "getComputedStyle(document.querySelector('p')).color"
        assert found.page.evaluate(styled) == "rgb(0, 0, 0)"
        assert found.page.locator("[id]").count() == 0
        assert found.is_quiet()
