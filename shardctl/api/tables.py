"""Answers in Python as JSON, YAML, CSV, HTML, notebook tables and DataFrames."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from html import escape
from itertools import islice
from typing import Any

from shardctl.base.by_name import named
from shardctl.base.columns import RecordStream, listed
from shardctl.base.install import imported
from shardctl.base.text import either, printable, quoted, utf8
from shardctl.errors import UsageError
from shardctl.files.atomic import new_file

_ROWS_SHOWN = 30  # that a notebook shows of a long table

# The views of answers that are not made, or not called, like those of the verb that makes them: a
# module of verbs, and what its functions for documents and rows are named after.
# By name and not by class, so that importing this loads no verb.
_VIEWS = {
    "FilesVerification": "verify.view:verify_files",
    "Index": "index.view:index",
    "IndexCheck": "index.view:check",
    "LoaderComparison": "quality.view:loaders",
    "PlansDiff": "diff.view:plans",
    "Report": "report.page:report",
    "ReportComparison": "report.compare_page:comparison",
    "ResumePlan": "resume.view:resume",
    "TfdsMetadata": "index.view:tfds_metadata",
}


def view_of(kind: type) -> str:
    """Return where the documents and rows of a class of answers are, as "module:name".

    >>> from shardctl.verbs.plan.answer import Plans
    >>> view_of(Plans)
    'plan.view:plan'
    """
    *_, verb, _ = kind.__module__.split(".")
    return _VIEWS.get(kind.__name__, f"{verb}.view:{verb}")


def _made(answer: Any, what: str, *more: Any) -> Any:
    """Return the document of an answer, or its rows."""
    kind = type(answer).__name__
    module, _, verb = view_of(type(answer)).partition(":")
    # Several numbers of hosts make another table, a row for each number.
    if kind == "HostsPlan" and len(answer.comparisons) > 1:
        verb = "sweep"
    function = named(f"shardctl.verbs.{module}:{verb}_{what}")
    return function((answer,) if kind == "Inspection" else answer, *more)


def text_of(answer: Any, form: str, folder: str | None = None) -> Iterator[str]:
    """Yield an answer as JSON, YAML, CSV or HTML; `folder` is that of the file it is written to."""
    from shardctl.files import documents
    from shardctl.saved import snapshot_file
    from shardctl.verbs.inspect.view import project_yaml

    kind = type(answer).__name__
    if kind == "TakenSnapshot":
        answer, kind = answer.snapshot, "Snapshot"
    if kind == "Snapshot":
        yield from getattr(snapshot_file, f"snapshot_{form}")(answer)
    elif form == "html":
        yield answer.to_html()
    elif form == "csv":
        yield from documents.to_csv(table_of(answer))
    elif kind == "Inspection" and form == "yaml":  # a shardctl.yaml
        yield from project_yaml((answer,), "a dataset")
    else:
        if kind == "Index" and form == "yaml":
            named("shardctl.metadata.index.index:check_yaml")(answer)
        document = _made(answer, "document", *((folder,) if kind == "Index" else ()))
        yield from getattr(documents, f"to_{form}")(document)


# What files are called, and the method that answers have which can be such files.
_ENDINGS = {
    **dict.fromkeys((".json", ".yaml", ".yml"), "save"),
    ".csv": "to_pandas",
    ".html": "to_html",
}


def save(answer: Any, path: str) -> None:
    """Write an answer to a file, in the format of its ending.

    Raises:
        UsageError: no format of the answer has it, or the file cannot be written.
    """
    known = [ending for ending, method in _ENDINGS.items() if hasattr(answer, method)]
    ending = os.path.splitext(path)[1].lower()
    if ending not in known:
        raise UsageError(f"path={quoted(path)}: its ending is to be {either(known)}")
    form = ending[1:].replace("yml", "yaml")
    with new_file(path) as file:
        for text in text_of(answer, form, os.path.dirname(os.path.abspath(path))):
            file.write(utf8(text))


def table_of(answer: Any) -> RecordStream:
    """Return the rows of an answer.

    >>> import shardctl
    >>> table = table_of(shardctl.plan("mnist", "test", hosts=2))
    >>> [dict(zip(table.fields, row))["take"] for row in table.rows()]
    [5000, 5000]
    """
    try:
        found: RecordStream = _made(answer, "rows")
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
    # The iterator stands behind the rows shown: one more means that some are left out.
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
    pandas = imported("pandas", "pandas", "pandas", needs="to_pandas")
    found = table_of(answer)
    columns: list[list[Any]] = [[] for _ in found.fields]
    for count, cells in found.pieces():
        for column, cell in zip(columns, cells, strict=True):
            # A cell may be one value that all rows of the piece share.
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
