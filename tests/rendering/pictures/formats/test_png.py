"""PNG by matplotlib: the marks where the SVG has them, the same bytes each time."""

from __future__ import annotations

import io
import sys
import warnings
from typing import Any

import numpy as np
import pytest

from shardctl.errors import MissingDependencyError, UsageError
from shardctl.rendering.pictures.formats.png import png_file
from shardctl.rendering.pictures.palette import LIGHT
from shardctl.rendering.pictures.picture import Band, Box, Cells, Label, Line, Mark, one_sheet
from tests.rendering.pictures.drawn import HOSTILE, picture


def pixels(*marks: Mark, text: str = "") -> np.ndarray:
    """The pixels of a picture of these marks, uint8[height, width, 3], without its margin."""
    pytest.importorskip("matplotlib")
    from PIL import Image

    shown = picture(*marks, text=text)
    with Image.open(io.BytesIO(b"".join(png_file([shown])))) as image:
        sheet = one_sheet([shown])
        assert image.size == (int(sheet.width * 2), int(sheet.height * 2))
        left, top = 16 * 2, int(sheet.height - 16 - 100) * 2
        return np.asarray(image.convert("RGB"))[top : top + 200, left : left + 960]


def at(image: np.ndarray, x: float, y: float) -> str:
    """The colour at a place in units."""
    return "#" + bytes(image[int(y * 2), int(x * 2)].tolist()).hex()


def test_marks_are_where_they_are_said_to_be() -> None:
    levels = np.array([[0, 8], [3, 0]], dtype=np.int64)
    image = pixels(
        Box(x=10, y=20, width=30, height=10, role="alarm"),
        Box(x=50, y=20, width=30, height=10, role="slot", slot=9),
        Line(points=((100, 25), (140, 25)), role="data"),
        Cells(x=200, y=10, cell_width=10, cell_height=20, levels=levels),
        Box(x=1, y=1, width=0, height=5),
    )
    alarm, slot, data = LIGHT.roles["alarm"], LIGHT.slots[1], LIGHT.roles["data"]
    assert [at(image, x, 25) for x in (9, 11, 39, 41)] == [LIGHT.page, alarm, alarm, LIGHT.page]
    assert [at(image, 20, y) for y in (19, 21, 29, 31)] == [LIGHT.page, alarm, alarm, LIGHT.page]
    assert [at(image, x, 25) for x in (51, 79, 120)] == [slot, slot, data]
    assert at(image, 205, 20) == at(image, 215, 40) == LIGHT.page
    assert [at(image, 215, 20), at(image, 205, 40)] == [LIGHT.levels[8], LIGHT.levels[3]]
    assert at(image, 210.5, 10.5) == at(image, 219.5, 29.5) == LIGHT.levels[8]  # edge to edge


def test_what_is_under_a_band_is_seen() -> None:
    corners = ((0.0, 0.0), (50.0, 0.0), (50.0, 50.0), (0.0, 50.0))
    image = pixels(Box(x=0, y=0, width=20, height=20), Band(points=corners))
    assert len({at(image, 10, 10), at(image, 40, 40), LIGHT.page}) == 3


def test_labels_stand_on_their_baselines() -> None:
    image = pixels(Label(x=100, y=50, text="HHH", anchor="end"), Label(x=200, y=50, text="HHH"))
    rows, columns = np.nonzero((image < 128).all(axis=2))
    assert rows.max() / 2 == pytest.approx(50, abs=1)
    assert rows.min() / 2 == pytest.approx(50 - 14 * 0.73, abs=1)  # DejaVu's capitals are 0.729 em
    left = columns[columns < 300]
    assert left.max() / 2 == pytest.approx(99, abs=1.5)
    assert columns[columns > 300].min() / 2 == pytest.approx(201, abs=1.5)


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_is_drawn_without_a_word(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        image = pixels(Label(x=10, y=50, text=text), text=text)
    assert (image < 128).any()
    assert capfd.readouterr() == ("", "")


def test_files_are_the_same_each_time_and_say_what_they_show() -> None:
    pytest.importorskip("matplotlib")
    from PIL import Image

    shown = [picture(Label(x=0, y=14, text="a"), text="Hosts <&> 数")]
    first, second = (b"".join(png_file(shown)) for _ in range(2))
    assert first == second
    with Image.open(io.BytesIO(first)) as image:
        assert image.info["Title"] == image.info["Description"] == "Hosts <&> 数"
        assert image.info["dpi"] == pytest.approx((144, 144), abs=0.1)


def test_the_program_s_own_matplotlib_is_left_alone() -> None:
    matplotlib: Any = pytest.importorskip("matplotlib")
    shown = [picture(Label(x=0, y=14, text="a"), Line(points=((0, 20), (90, 60)), dashed=True))]
    before = dict(matplotlib.rcParams)
    style = {
        "text.usetex": True,
        "font.size": 40,
        "text.antialiased": False,
        "lines.linewidth": 9,
        "lines.antialiased": False,
        "lines.marker": "o",
        "path.sketch": (1, 100, 2),
        "figure.facecolor": "red",
        "savefig.dpi": 9,
        "lines.scale_dashes": False,
        "figure.frameon": False,
        "font.family": "serif",
    }
    with matplotlib.rc_context(style):
        strange = b"".join(png_file(shown))
    assert strange == b"".join(png_file(shown))
    assert dict(matplotlib.rcParams) == before
    assert (
        "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
    )


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [name for name in sys.modules if name.startswith("matplotlib.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(
        MissingDependencyError, match=r"pip install 'shardctl\[png\]', or write SVG"
    ):
        next(png_file([picture()]))


def test_more_than_a_file_holds_is_refused_with_a_way_out() -> None:
    pytest.importorskip("matplotlib")
    said = r"^300 pictures below each other are [\d,]+ pixels high, more than .* write an SVG file$"
    with pytest.raises(UsageError, match=said):
        next(png_file([picture()] * 300))
