"""The settings in force with their origins, as a table, a document or rows."""

from __future__ import annotations

import os
from collections.abc import Iterator

from shardctl.base.columns import RecordStream, picked, stream_of
from shardctl.base.text import counted
from shardctl.draw.tables import Screen, columns, paragraph, table
from shardctl.files.documents import Document, yaml_line
from shardctl.saved.head import head, kind_head
from shardctl.verbs.config.answer import Config, Origin, SettingInForce

_COLUMNS = columns("<setting <value <source")


def config_table(config: Config, screen: Screen) -> Iterator[str]:
    """Yield the dataset and the files, then a row a setting: its value and its source."""
    dataset = config.dataset
    title = "no dataset" if dataset is None else f"{dataset.title} ({dataset.origin})"
    yield paragraph(title, screen, style="bold")
    if not config.files:
        yield paragraph("no shardctl.yaml in this folder or one above it", screen)
    for at, file in enumerate(config.files):
        said = "settings of" if at == 0 else "not read, since another file is nearer:"
        yield paragraph(f"{said} {os.path.relpath(file)}", screen)
    for is_default, said in (
        (False, "you set, directly or by another setting"),
        (True, "at their defaults"),
    ):
        rows = [
            (item.name, value_words(item), origin_words(item.origin))
            for item in config.settings
            if (item.origin.source == "default") == is_default
        ]
        if rows:
            yield "\n"
            yield paragraph(f"{counted(len(rows), 'setting')} {said}", screen, style="bold")
            yield table(_COLUMNS, rows, screen)


def value_words(item: SettingInForce) -> str:
    """Return what a setting is, and what was written for it where it comes to something else."""
    value = value_text(item.value)
    if item.given is None or item.given == item.value:
        return value
    return (
        f"{value_text(item.given)} (not read)"
        if item.value is None
        else f"{value} ({value_text(item.given)})"
    )


def value_text(value: object) -> str:
    """Return a value of a setting as a file has it.

    >>> value_text(16), value_text(True), value_text(["a", "b"]), value_text(None)
    ('16', 'true', 'a, b', 'none')
    """
    if isinstance(value, list) and not all(isinstance(one, str) for one in value):
        return yaml_line(value)
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else str(value)


def origin_words(origin: Origin) -> str:
    """Return the source of a setting, as people read it.

    >>> origin_words(Origin(source="option", by="--cycle"))
    'option --cycle'
    >>> origin_words(Origin(by="TFDS"))
    "default (TFDS's)"
    """
    if origin.source == "file":
        place = os.path.relpath(origin.file or "")
        return place if origin.line is None else f"{place} line {origin.line}"
    if origin.source == "folder":
        return "this folder"
    if origin.source == "default":
        return "default" if origin.by is None else f"default ({origin.by}'s)"
    if origin.source == "argument":
        return f"argument {origin.by}="
    if origin.source == "implied":
        return f"follows from {origin.by or 'the others'}"
    return f"{origin.source} {origin.by}"


def config_document(config: Config) -> Document:
    """Return the document: the dataset, the files from here upwards, every setting."""
    if config.dataset is not None:
        beginning = head("config", config.dataset.identity)
    else:
        beginning = {**kind_head("config"), "dataset": None}
    return {
        **beginning,
        "problem": config.problem,
        "files": [{"path": path, "is_read": at == 0} for at, path in enumerate(config.files)],
        "settings": [setting_record(item) for item in config.settings],
    }


def setting_record(item: SettingInForce) -> Document:
    """Return a setting as a mapping: its value, what was written, and its source."""
    by = picked(item, "origin=origin.source by=origin.by file=origin.file line=origin.line")
    return {**picked(item, "name value given"), **by}


def config_rows(config: Config) -> RecordStream:
    """Return a row for each setting; its value as YAML has it, nothing for none."""
    rows = []
    for record in map(setting_record, config.settings):
        for name in ("value", "given"):
            record[name] = None if record[name] is None else yaml_line(record[name])
        rows.append(list(record.values()))
    return stream_of("name value given origin by file line", rows)
