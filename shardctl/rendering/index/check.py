"""What has become of the files of a layout: as a table for people, a document and CSV rows."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict

from shardctl.core.columns import Records, picked, records_of
from shardctl.core.text import counted
from shardctl.files.documents import Document
from shardctl.files.head import head
from shardctl.readers.index.check import IndexCheck
from shardctl.rendering.text.tables import Screen, cells_of, columns, paragraph, table

_MAX_FILES = 20  # files that a table names on a terminal
_COLUMNS = columns("!kind=change *path=file then=examples now bytes_then=bytes bytes_now=now")
_PROBLEM = columns("<reason=problem")


def check_table(check: IndexCheck, screen: Screen) -> Iterator[str]:
    """Yield each file that changed, and how many of which kind."""
    where = check.dataset.data_dir or check.dataset.origin
    yield paragraph(f"{check.dataset.title}: {where}", screen, style="bold")
    files = counted(check.num_files, "file")
    if check.changes:
        reasons = any(change.reason for change in check.changes)
        shown = [*_COLUMNS, *(_PROBLEM if reasons else ())]
        yield table(shown, cells_of(shown, check.changes), screen, keep=_MAX_FILES)
        kinds = Counter(change.kind for change in check.changes)
        said = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
        yield paragraph(f"of {files}: {said}", screen)
    else:
        yield paragraph(f"{files}: all as {check.layout} says", screen)
    if check.num_touched:
        files = counted(check.num_touched, "file")
        yield paragraph(f"{files} written again, with as many bytes and examples", screen)
    if check.changes:
        path = shlex.quote(check.layout)
        yield paragraph(f"next: shardctl index PATH.. -o {path} counts what changed", screen)


def check_document(check: IndexCheck) -> Document:
    """Return the answer as a document."""
    return {
        **head("index", check.dataset.identity),
        **picked(check, "check=layout equal num_files num_touched"),
        "changes": list(map(asdict, check.changes)),
    }


def check_rows(check: IndexCheck) -> Records:
    """Return the record of each change."""
    return records_of("kind split path then now bytes_then bytes_now reason", check.changes)
