"""Pictures as PNG, drawn by matplotlib where it is installed: the marks and colours of the SVG."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from shardctl.core.text import counted, printable
from shardctl.errors import MissingDependencyError, UsageError
from shardctl.rendering.pictures.palette import BAND_OPACITY, DASHES, LIGHT, LINE_WIDTHS
from shardctl.rendering.pictures.picture import (
    MOST_LETTERS,
    MOST_WORDS,
    NUM_LEVELS,
    TEXT,
    Anchor,
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
_TALLEST = 50_000  # pixels; matplotlib ends at 65,536
_POINT = 72  # units an inch, so that a size in units is one in points
_SIDES: dict[Anchor, Literal["left", "center", "right"]] = {
    "start": "left",
    "middle": "center",
    "end": "right",
}
_FONT = "DejaVu Sans"  # matplotlib brings it along, so a file is the same wherever it is made


def png_file(pictures: Sequence[Picture]) -> Iterator[bytes]:
    """Yield one PNG file: the pictures below each other, with what is said of them, on white.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        UsageError: there are too many of them.
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
    if sheet.height * _DOTS > _TALLEST:
        raise UsageError(
            f"{counted(len(pictures), 'picture')} below each other are {sheet.height * _DOTS:,.0f} "
            f"pixels high, more than the {_TALLEST:,} of a PNG file here; write an SVG file"
        )
    # A canvas of its own: no window, and nothing of the program's own figures is touched.
    figure = Figure(
        figsize=(sheet.width / _POINT, sheet.height / _POINT),
        dpi=_POINT * _DOTS,
        facecolor=LIGHT.page,
        edgecolor=LIGHT.page,
        linewidth=0,
        frameon=True,
    )
    figure.patch.set_sketch_params(None)
    canvas = FigureCanvasAgg(figure)
    draw = _Drawing(figure, sheet.height)
    for order, mark in enumerate(sheet.marks):
        draw.add(mark, order)
    file = io.BytesIO()
    about = {
        "Title": printable(sheet.title, MOST_WORDS),
        "Description": printable(sheet.alternative, MOST_WORDS),
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
            horizontalalignment=_SIDES[mark.anchor],
            verticalalignment="baseline",
            parse_math=False,
            antialiased=True,
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
                antialiased=True,
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
        # Whatever style the program has set for its own figures.
        artist.set_sketch_params(None)
        artist.set_path_effects([])
        self._figure.add_artist(artist)


def _dashes(mark: Line) -> tuple[float, ...]:
    """Return dashes as matplotlib counts them: in widths of the line, unless it is told not to."""
    from matplotlib import rcParams

    unit = LINE_WIDTHS.get(mark.role, 2) if rcParams["lines.scale_dashes"] else 1
    return tuple(units / unit for units in DASHES)
