"""Pictures as PNG, drawn by matplotlib where it is installed: the marks and colours of the SVG."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from shardctl.core.text import printable
from shardctl.errors import MissingDependencyError
from shardctl.rendering.pictures.palette import BAND_OPACITY, DASHES, LIGHT, LINE_WIDTHS
from shardctl.rendering.pictures.picture import (
    MOST_LETTERS,
    NUM_LEVELS,
    TEXT,
    Band,
    Box,
    Cells,
    Label,
    Line,
    Mark,
    Picture,
    one_sheet,
)

_DOTS = 2  # of the file, for each unit each way: sharp on a screen of twice the resolution
_POINT = 72  # units an inch, so that a size in units is one in points
_FONT = "DejaVu Sans"  # matplotlib brings it along, so a file is the same wherever it is made


def png_file(pictures: Sequence[Picture]) -> Iterator[bytes]:
    """Yield one PNG file: the pictures below each other, with what is said of them, on white.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError(
            f"matplotlib is needed to write PNG files and cannot be imported ({error}); install it "
            "with: pip install 'shardctl[png]', or write SVG files, which need nothing"
        ) from error
    sheet = one_sheet(pictures)
    # A canvas of its own: no window, and nothing of the program's own figures is touched.
    figure = Figure(
        figsize=(sheet.width / _POINT, sheet.height / _POINT),
        dpi=_POINT * _DOTS,
        facecolor=LIGHT.page,
        edgecolor=LIGHT.page,
        linewidth=0,
    )
    canvas = FigureCanvasAgg(figure)
    draw = _Drawing(figure, sheet.height)
    for order, mark in enumerate(sheet.marks):
        draw.add(mark, order)
    file = io.BytesIO()
    about = {
        "Title": printable(sheet.title, MOST_LETTERS),
        "Description": printable(sheet.alternative, MOST_LETTERS),
        "Software": "shardctl",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font does not have, drawn as boxes
        canvas.print_png(file, metadata=about)
    yield file.getvalue()


class _Drawing:
    """A figure whose (0, 0) is the upper left and whose units are those of pictures."""

    def __init__(self, figure: Any, height: float) -> None:
        from matplotlib.font_manager import FontProperties
        from matplotlib.transforms import Affine2D

        self._figure = figure
        self._place = Affine2D().scale(_DOTS, -_DOTS).translate(0, height * _DOTS)
        self._fonts = {
            bold: FontProperties(family=_FONT, weight="bold" if bold else "normal", size=TEXT)
            for bold in (False, True)
        }

    def add(self, mark: Mark, order: int) -> None:
        """Draw a mark above those before it; a spot has no ink."""
        if isinstance(mark, Label):
            self._text(mark, order)
        elif isinstance(mark, Line):
            self._line(mark, order)
        elif isinstance(mark, Band):
            color = LIGHT.color(mark.role)
            self._filled([mark.points], color, order, alpha=BAND_OPACITY)
        elif isinstance(mark, Box):
            stop, bottom = mark.x + mark.width, mark.y + mark.height
            corners = ((mark.x, mark.y), (stop, mark.y), (stop, bottom), (mark.x, bottom))
            if mark.width > 0 and mark.height > 0:
                self._filled([corners], LIGHT.color(mark.role, mark.slot), order)
        elif isinstance(mark, Cells):
            self._cells(mark, order)

    def _text(self, mark: Label, order: int) -> None:
        from matplotlib.text import Text

        color = LIGHT.quiet if mark.quiet else LIGHT.text
        if mark.on_slot is not None:
            color = LIGHT.on_slots[mark.on_slot % len(LIGHT.on_slots)]
        text = Text(
            mark.x,
            mark.y,
            printable(mark.text, MOST_LETTERS),
            color=color,
            fontproperties=self._fonts[mark.bold],
            horizontalalignment={"start": "left", "middle": "center", "end": "right"}[mark.anchor],
            verticalalignment="baseline",
            parse_math=False,
            usetex=False,
            zorder=order,
        )
        self._shown(text)

    def _line(self, mark: Line, order: int) -> None:
        from matplotlib.lines import Line2D

        self._shown(
            Line2D(
                *zip(*mark.points, strict=True),
                color=LIGHT.color(mark.role),
                linewidth=LINE_WIDTHS.get(mark.role, 2),
                linestyle=(0, _dashes(mark)) if mark.dashed else "-",
                marker="",
                dash_capstyle="butt",
                solid_capstyle="butt",
                solid_joinstyle="round",
                zorder=order,
            )
        )

    def _filled(
        self,
        polygons: Sequence[Sequence[tuple[float, float]]],
        color: str,
        order: int,
        *,
        alpha: float = 1,
        crisp: bool = False,
    ) -> None:
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        path = Path.make_compound_path(*(Path(points, closed=False) for points in polygons))
        patch = PathPatch(
            path,
            facecolor=color,
            linewidth=0,
            edgecolor="none",
            alpha=alpha,
            antialiased=not crisp,
            hatch=None,
            zorder=order,
        )
        self._shown(patch)

    def _cells(self, mark: Cells, order: int) -> None:
        for level in range(1, NUM_LEVELS + 1):
            places = np.argwhere(mark.levels == level)
            if len(places):
                origin = np.array([mark.x, mark.y])
                size = np.array([mark.cell_width, mark.cell_height])
                corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
                polygons = (places[:, None, ::-1] + corners) * size + origin
                self._filled(list(polygons), LIGHT.levels[level], order, crisp=True)

    def _shown(self, artist: Any) -> None:
        artist.set_transform(self._place)
        artist.set_snap(False)
        self._figure.add_artist(artist)


def _dashes(mark: Line) -> tuple[float, ...]:
    """Return dashes in widths of the line, as matplotlib counts them."""
    width = LINE_WIDTHS.get(mark.role, 2)
    return tuple(units / width for units in DASHES)
