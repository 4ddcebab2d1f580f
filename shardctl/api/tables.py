"""Answers as tables in Python: for a notebook, and as a DataFrame of pandas.

The rows are those that the command line writes as CSV.
"""

from __future__ import annotations

import base64
import importlib
from html import escape
from itertools import islice
from typing import Any

from shardctl.base.columns import RecordStream, listed
from shardctl.base.install import to_install
from shardctl.base.text import printable
from shardctl.errors import MissingDependencyError, UsageError

_ROWS_SHOWN = 30  # that a notebook shows of a long table

# Where the rows of an answer are that the command line writes as CSV: a verb, whose view has
# them, and whose rows.
_ROWS = {
    "DatasetList": "list:list",
    "Evaluation": "eval:eval",
    "FilesVerification": "verify:verify_files",
    "HostsPlan": "hosts:hosts",
    "Index": "index:index",
    "IndexCheck": "index:check",
    "Inspection": "inspect:inspect",
    "Layout": "layout:layout",
    "Lint": "lint:lint",
    "LoaderComparison": "quality:loaders",
    "Located": "locate:locate",
    "Plan": "plan:plan",
    "Plans": "plan:plan",
    "Quality": "quality:quality",
    "ResumePlan": "resume:resume",
    "Simulation": "simulate:simulate",
    "TfdsMetadata": "index:tfds_metadata",
    "Verification": "verify:verify",
}


def table_of(answer: Any) -> RecordStream:
    """Return the rows of an answer.

    >>> import shardctl
    >>> table = table_of(shardctl.plan("mnist", "test", hosts=2))
    >>> [dict(zip(table.fields, row))["take"] for row in table.rows()]
    [5000, 5000]
    """
    kind = type(answer).__name__
    module, _, verb = _ROWS[kind].partition(":")
    if kind == "HostsPlan" and len(answer.comparisons) > 1:
        verb = "sweep"
    rows = getattr(importlib.import_module(f"shardctl.verbs.{module}.view"), f"{verb}_rows")
    try:
        found: RecordStream = rows((answer,) if kind == "Inspection" else answer)
    except ValueError as error:  # a plan of a file, whose dataset was not looked up
        raise UsageError(str(error)) from None
    return found


def html_of(answer: Any) -> str:
    """Return an answer as an HTML table for a notebook; of many rows the first.

    Above it are the pictures of answers that have some, see `pictures_html`. Nothing in it is read
    as markup, whatever a dataset is called.
    """
    found = table_of(answer)
    rows = found.rows()
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in islice(rows, _ROWS_SHOWN))
    if next(rows, None) is not None:
        more = "… more rows; to_pandas() has all"
        body += f'<tr><td colspan="{len(found.fields)}">{more}</td></tr>'
    heads = "".join(f"<th>{_escaped(name)}</th>" for name in found.fields)
    caption = f'<caption style="text-align:left">{_escaped(repr(answer)[1:-1])}</caption>'
    table = f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    return pictures_html(answer) + table


def _cell(value: object) -> str:
    side = "right" if isinstance(value, int | float) else "left"
    text = f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)
    return f'<td style="text-align:{side}">{_escaped(text)}</td>'


def _escaped(text: str) -> str:
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
            f"{to_install('pandas')}"
        ) from error
    found = table_of(answer)
    columns: list[list[Any]] = [[] for _ in found.fields]
    for count, cells in found.pieces():
        for column, cell in zip(columns, cells, strict=True):
            column.extend(listed(cell, count))
    typed = (_typed(pandas, values) for values in columns)
    return pandas.DataFrame(dict(zip(found.fields, typed, strict=True)))


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
    from shardctl.draw.picture import pictures_of
    from shardctl.draw.svg import MOST_LETTERS, svg_file

    pictures = pictures_of(answer)
    if not pictures:
        return ""
    svg = "".join(svg_file(pictures)).encode()
    said = " ".join(picture.alternative for picture in pictures)
    return (
        '<img style="display:block;max-width:100%;height:auto;margin:0 0 1em" '
        f'alt="{escape(printable(said, MOST_LETTERS))}" '
        f'src="data:image/svg+xml;base64,{base64.b64encode(svg).decode()}">'
    )
