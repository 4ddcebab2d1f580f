"""The formats that every command has: a table for people; json, yaml and csv for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from shardctl.cli.output import check_format, screen, write

if TYPE_CHECKING:
    from shardctl.cli.options.shared import OutputOptions
    from shardctl.files.documents import Document
    from shardctl.rendering.text.screen import Screen

FORMATS = ("table", "json", "yaml", "csv")


def check_answer(out: OutputOptions) -> None:
    """Refuse a format that `answer` does not write, before any work is done."""
    check_format(out.format, *FORMATS)


def answer(
    out: OutputOptions,
    *,
    table: Callable[[Screen], Iterable[str]],
    document: Callable[[], Document],
    header: Sequence[str],
    rows: Callable[[], Iterable[Sequence[object]]],
) -> None:
    """Write an answer in the format asked for; only that one is rendered."""
    if out.format == "table":
        write(table(screen(out.output)), out.output)
        return
    from shardctl.files.documents import to_csv, to_json, to_yaml

    if out.format == "csv":
        write(to_csv(header, rows()), out.output)
    elif out.format == "json":
        write(to_json(document()), out.output)
    else:
        write(to_yaml(document()), out.output)
