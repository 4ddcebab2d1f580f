"""Answers as tables in Python: for a notebook, and as a DataFrame of pandas.

The rows are those that the command line writes as CSV.
"""

from __future__ import annotations

import base64
import importlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import islice
from typing import Any

from shardctl.core.columns import RecordStream
from shardctl.core.text import printable
from shardctl.errors import MissingDependencyError, UsageError

_HEAD, _TAIL = 20, 10  # rows that a notebook shows of a long table
_MOST_COUNTED = 20_000  # rows that are made to count them and to show the last

_Rows = tuple[Sequence[str], Iterable[Sequence[object]]]

# Where the header and the rows of an answer are; rows of resume and of lint take more than that.
_CSV = {
    "DatasetList": "list:list",
    "Evaluation": "eval:eval",
    "FilesVerification": "verify_files:verify_files",
    "Index": "index.index:index",
    "IndexCheck": "index.check:check",
    "Layout": "layout:layout",
    "LoaderComparison": "quality.loaders:loaders",
    "Located": "locate:locate",
    "Plans": "plan:plan",
    "Quality": "quality.quality:quality",
    "Simulation": "simulate:simulate",
    "TfdsMetadata": "index.tfds_metadata:tfds_metadata",
    "Verification": "verify:verify",
}


def table_of(answer: Any) -> _Rows:
    """Return the header and the rows of an answer, the rows as an iterator where they are many.

    >>> import shardctl
    >>> header, rows = table_of(shardctl.plan("mnist", "test", hosts=2))
    >>> [dict(zip(header, row))["take"] for row in rows]
    [5000, 5000]
    """
    kind = type(answer).__name__
    if kind in _CSV:
        module, _, verb = _CSV[kind].partition(":")
        rendering = importlib.import_module(f"shardctl.rendering.{module}")
        return rendering.CSV_HEADER, _one_by_one(getattr(rendering, f"{verb}_rows")(answer))
    return _OTHERS[kind](answer)


def _one_by_one(rows: Iterable[Sequence[object]] | RecordStream) -> Iterable[Sequence[object]]:
    return rows.rows() if isinstance(rows, RecordStream) else rows


def _of_plan(plan: Any) -> _Rows:
    from shardctl.rendering.plan import CSV_HEADER, rows_of_plan

    return CSV_HEADER, rows_of_plan(plan)


def _of_resume(plan: Any) -> _Rows:
    from shardctl.rendering.resume import CSV_HEADER, resume_rows

    try:
        return CSV_HEADER, _one_by_one(resume_rows(plan, None))
    except ValueError as error:  # a plan of a file, whose dataset was not looked up
        raise UsageError(str(error)) from None


def _of_hosts(plan: Any) -> _Rows:
    several = len(plan.comparisons) > 1
    name = "sweep" if several else "hosts"
    rendering = importlib.import_module(f"shardctl.rendering.hosts.{name}")
    return rendering.CSV_HEADER, getattr(rendering, f"{name}_rows")(plan)


def _of_lint(lint: Any) -> _Rows:
    # No shardctl.yaml is behind it, and settings are spelled as in Python.
    header = ("code", "severity", "title", "specs", "why", "fix")
    return header, (
        (one.rule.code, one.severity, one.rule.title, " ".join(one.specs), one.why, one.fix)
        for one in lint.findings
    )


def _of_inspection(inspection: Any) -> _Rows:
    from shardctl.rendering.inspect import CSV_HEADER, inspect_rows

    return CSV_HEADER, inspect_rows((inspection,))


_OTHERS = {
    "HostsPlan": _of_hosts,
    "Inspection": _of_inspection,
    "Lint": _of_lint,
    "Plan": _of_plan,
    "ResumePlan": _of_resume,
}


def html_of(answer: Any) -> str:
    """Return an answer as an HTML table for a notebook; of many rows the first and the last.

    Above it are the pictures of answers that have some, see `pictures_html`. Nothing in it is read
    as markup, whatever a dataset is called.
    """
    header, rows = table_of(answer)
    body = "".join(
        f"<tr>{_cells(row)}</tr>" if row else f'<tr><td colspan="{len(header)}">{said}</td></tr>'
        for row, said in _shown(iter(rows))
    )
    heads = "".join(f"<th>{_escaped(name)}</th>" for name in header)
    caption = f'<caption style="text-align:left">{_escaped(repr(answer)[1:-1])}</caption>'
    table = f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    return pictures_html(answer) + table


def _shown(rows: Iterator[Sequence[object]]) -> Iterator[tuple[Sequence[object], str]]:
    """Yield rows, and between them an empty one with a sentence about those that are left out."""
    for row in islice(rows, _HEAD):
        yield row, ""
    last: deque[Sequence[object]] = deque(maxlen=_TAIL)
    count = 0
    for row in islice(rows, _MOST_COUNTED):
        last.append(row)
        count += 1
    if next(rows, None) is not None:
        yield (), "… more rows; to_pandas() has all"
        return
    if count > _TAIL:
        yield (), f"… {count - _TAIL:,} more rows; to_pandas() has all"
    yield from ((row, "") for row in last)


def _cells(row: Sequence[object]) -> str:
    return "".join(
        f'<td style="text-align:{_side(value)}">{_escaped(_text(value))}</td>' for value in row
    )


def _side(value: object) -> str:
    return "right" if isinstance(value, int | float) else "left"


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _escaped(text: str) -> str:
    from html import escape

    return escape(printable(text, 1000))


def to_pandas(answer: Any) -> Any:
    """Return the rows of an answer as a `pandas.DataFrame`; whole numbers stay whole.

    Raises:
        MissingDependencyError: pandas is not installed.
    """
    try:
        import pandas
    except ImportError as error:
        raise MissingDependencyError(
            f"pandas is needed for to_pandas and cannot be imported ({error}); install it with: "
            "pip install pandas"
        ) from error
    header, rows = table_of(answer)
    columns: list[list[Any]] = [[] for _ in header]
    for row in rows:
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    typed = (_typed(pandas, values) for values in columns)
    return pandas.DataFrame(dict(zip(header, typed, strict=True)))


def _typed(pandas: Any, values: list[Any]) -> Any:
    if not values:  # pandas takes nothing for floats
        return pandas.array(values, dtype=object)
    kinds = set(map(type, values))
    if kinds == {int, type(None)}:  # as floats, which pandas makes of them, large ones are others
        return pandas.array(values, dtype="Int64")
    plain = kinds <= {int, float, bool, str, type(None)}
    return values if plain else [None if value is None else str(value) for value in values]


# Pictures of answers in a notebook, above their tables.


def pictures_html(answer: Any) -> str:
    """Return the pictures of an answer for a notebook; nothing where it has none.

    They are one image: its ids, styles and background are its own, so neither a theme nor another
    answer on the page changes it, and it is light or dark as the browser is. What fails to draw
    leaves the table as it is.
    """
    try:
        return _image(answer)
    except Exception:  # a picture is an extra: whatever is wrong with it, the numbers are not
        return ""


def _image(answer: Any) -> str:
    from shardctl.core.text import printable
    from shardctl.rendering.pictures.svg import MOST_WORDS, svg_file
    from shardctl.rendering.text.drawers import pictures_of

    pictures = pictures_of(answer)
    if not pictures:
        return ""
    svg = "".join(svg_file(pictures)).encode()
    said = " ".join(f"{picture.title}: {picture.alternative}" for picture in pictures)
    return (
        '<img style="display:block;max-width:100%;height:auto;margin:0 0 1em" '
        f'alt="{escape(printable(said, MOST_WORDS))}" '
        f'src="data:image/svg+xml;base64,{base64.b64encode(svg).decode()}">'
    )
