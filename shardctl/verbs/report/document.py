"""A report as a document: what it is about, then each part as its own command writes it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from itertools import chain
from typing import Any

from shardctl.base.columns import picked
from shardctl.base.phrase import option_name
from shardctl.dataset.dataset import Dataset, as_dataset
from shardctl.files.documents import Document
from shardctl.metadata.project_file import NOWHERE, SettingOrigins
from shardctl.metadata.reference import ref_from_anywhere
from shardctl.order.shard_map import Strips
from shardctl.saved.head import head
from shardctl.settings.read_settings import ReadSettings, settings_in_force
from shardctl.settings.table import SETTINGS
from shardctl.stages.stages import Pipeline, Read
from shardctl.verbs.config.view import setting_record
from shardctl.verbs.eval.view import eval_document
from shardctl.verbs.hosts.view import hosts_document
from shardctl.verbs.layout.answer import Layout
from shardctl.verbs.layout.view import size_record
from shardctl.verbs.lint.answer import LINT_KEYS
from shardctl.verbs.lint.view import lint_document
from shardctl.verbs.quality.answer import Quality
from shardctl.verbs.quality.view import loaders_document, quality_document
from shardctl.verbs.report.answer import Report
from shardctl.verbs.report.question import NotShown, ReportQuestion, shown


def report_document(report: Report) -> Document:
    """Return the document: a part that cannot be shown is `{not_shown: why}`.

    Shards are not listed one by one, which `layout` does.
    """
    quality, order = report.quality, report.order
    assumptions = () if isinstance(order, NotShown) else order.assumptions
    has_no_order = report.is_open is None and isinstance(order, NotShown)
    return {
        **head("report", report.dataset.identity, assumptions=assumptions),
        "spec": report.spec,
        "pipeline": settings_in_force(report.settings, ordered=report.dataset.ordered),
        **picked(report, "num_examples num_hosts num_devices"),
        "predictable": None if has_no_order else report.is_open is None,
        "open": report.is_open,
        "assumed": dict(quality.assumed) if isinstance(quality, Quality) else {},
        "settings": [setting_record(item) for item in report.in_force],
        "again": again(report.question),
        "notes": list(report.notes),
        "warnings": list(report.warnings),
        "layout": part_document(report.layout, _layout),
        "strips": part_document(report.strips, _strips),
        "opened": None if report.opened is None else _strips(report.opened),
        "quality": part_document(quality, quality_document),
        "hosts": part_document(report.hosts, hosts_document),
        "eval": part_document(report.evaluation, eval_document),
        "lint": part_document(report.lint, lambda lint: lint_document(lint, origins_of(report))),
        "loaders": None
        if report.loaders is None
        else part_document(report.loaders, loaders_document),
    }


def origins_of(report: Report) -> SettingOrigins:
    """Return where shardctl.yaml has the settings that it decides, for those who look at them."""
    decided = [item for item in report.in_force if item.origin.source == "file"]
    lines = {
        item.name.rpartition(".")[2]: item.origin.line
        for item in decided
        if item.origin.line is not None
    }
    file = next((item.origin.file for item in decided), None)
    return NOWHERE if file is None else SettingOrigins(file=os.path.relpath(file), lines=lines)


def part_document(part: Any, document: Callable[[Any], Document]) -> Document:
    """Return the document of a part of a report, or why it is not there."""
    if isinstance(part, NotShown):
        return {"not_shown": part.reason}
    return document(part)


def _layout(layout: Layout) -> Document:
    splits = [{**size_record(split), "balance": asdict(split.balance)} for split in layout.splits]
    return {"splits": splits}


def _strips(found: Strips) -> Document:
    return {
        "start": found.start,
        "stop": found.stop,
        "is_cut": found.is_cut,
        "visits": [asdict(visit) for visit in found.visits],
    }


# The command line that makes a report again, true in any folder of this machine.


def again(question: ReportQuestion) -> str:
    """Return the command line that makes a report again, for a POSIX shell.

    It says every setting itself, also those that a shardctl.yaml says here, and no secret of a URL.
    FILE stands for a list of files that is in no file.
    """
    words = ["shardctl", "report", *([] if question.spec is None else [question.spec])]
    options = chain(_dataset(question.dataset), _settings(question), _usage(question))
    for option, value in options:
        words += _words(option, value)
    return shlex.join([*words, "-o", "report.html"])


def _dataset(dataset: Dataset) -> Iterator[tuple[str, object]]:
    """Yield what finds a dataset again: where it lies, else its name with its version.

    REF stands for what no reference leads to, as it was made in Python.
    """
    for folder in dataset.folders or (dataset,):
        ref = folder.reference or folder.data_dir
        if ref is not None:
            ref = ref_from_anywhere(ref, is_path=True)
        elif shown(lambda title=folder.title: as_dataset(title)) == folder:  # type: ignore[misc]
            ref = folder.title
        yield "-d", ref or "REF"


def _settings(question: ReportQuestion) -> Iterator[tuple[str, object]]:
    """Yield the settings that are not as they are by default."""
    for setting in SETTINGS:
        value = getattr(question.settings, setting.field)
        if value == getattr(ReadSettings(), setting.field):
            continue
        if setting.field == "file_order":
            yield setting.option, question.file_order_list or "FILE"
        elif setting.field == "stages":
            from shardctl.stages.text import text_of

            yield setting.option, text_of(_from_anywhere(value))
        else:
            yield setting.option, setting.kind.to_document(value)


def _from_anywhere(stages: Pipeline) -> Pipeline:
    """Return stages whose files, and datasets of their own, are found from any folder."""
    from shardctl.stages.pipelines import with_changed

    def read(read: Read) -> Read:
        return read if read.data is None else replace(read, data=ref_from_anywhere(read.data))

    return with_changed(stages, read=read, kept=lambda path: ref_from_anywhere(path, is_path=True))


def _usage(question: ReportQuestion) -> Iterator[tuple[str, object]]:
    for name in LINT_KEYS:
        value = question.lint.get(name, ())
        if name == "seeds" and value:
            value = (",".join(map(str, value)),)
        if name not in ("specs", "fail_on"):  # which a report does not take
            # Texts are given once for each of them.
            for one in value if isinstance(value, tuple | list) else (value,):
                yield option_name(name), one
    if question.devices != 1:
        yield "--devices", question.devices
    if question.loaders:
        yield "--loaders", True


def _words(option: str, value: object) -> list[str]:
    """Return an option with its value; one that looks like another option is joined to it.

    >>> _words("--batch", 64), _words("--seeds", "-1,2"), _words("--autocache", False)
    (['--batch', '64'], ['--seeds=-1,2'], ['--no-autocache'])
    """
    if isinstance(value, bool):
        return [option if value else f"--no-{option.removeprefix('--')}"]
    text = str(value)
    return [f"{option}={text}"] if text.startswith("-") else [option, text]
