"""The command line that makes a report again, true in any folder of this machine."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

from shardctl.core.dataset.dataset import Dataset, as_dataset
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.table import SETTINGS
from shardctl.core.stages.stages import Pipeline, Read
from shardctl.planning.lint.config_section import LINT_KEYS
from shardctl.planning.report.question import ReportQuestion
from shardctl.planning.report.shown import shown
from shardctl.readers.reference import ref_from_anywhere
from shardctl.rendering.text.command_line import option_name

_MOST_LISTED = 4096  # characters of file names that a line may carry itself
_STDIN = "-"
_TEXTS = ("eval", "select", "ignore")  # options that are given once for each of their values
_NOT_OPTIONS = ("specs", "fail_on")  # of `lint:`, which a report does not take


def again(question: ReportQuestion) -> str:
    """Return the command line that makes a report again, for a POSIX shell.

    It says every setting itself, also those that a shardctl.yaml says here, and no secret of a URL.
    Names of files that are in no list are piped in, where they are few; else FILE stands for one.
    """
    words = ["shardctl", "report"]
    if question.spec is not None:
        words.append(question.spec)
    words += _dataset(question.dataset)
    words += _settings(question)
    words += _usage(question)
    if question.devices != 1:
        words += _option("--devices", question.devices)
    if question.loaders:
        words.append("--loaders")
    line = shlex.join([*words, "-o", "report.html"])
    names = question.settings.file_order
    if names and _list_of_files(question) == _STDIN:
        listed = shlex.join(["printf", "%s\\n", *names])
        return f"{listed} | {line}"
    return line


def _dataset(dataset: Dataset) -> Iterator[str]:
    """Yield the options that find a dataset again: where it lies, else its name with its version.

    REF stands for what no reference leads to, as it was made in Python.
    """
    for folder in dataset.folders or (dataset,):
        ref = folder.reference or folder.data_dir
        if ref is None:
            found = shown(lambda folder=folder: as_dataset(folder.title))  # type: ignore[misc]
            ref = folder.title if found == folder else "REF"
            yield from _option("-d", ref)
        else:
            yield from _option("-d", ref_from_anywhere(ref, is_path=True))


def _settings(question: ReportQuestion) -> Iterator[str]:
    """Yield the options of the settings that are not as they are by default."""
    settings, bare = question.settings, ReadSettings()
    for setting in SETTINGS:
        value = getattr(settings, setting.field)
        if value == getattr(bare, setting.field):
            continue
        if setting.field == "file_order":
            yield from _option(setting.option, _list_of_files(question))
        elif setting.field == "stages":
            from shardctl.core.stages.text import text_of

            yield from _option(setting.option, text_of(_from_anywhere(value)))
        else:
            yield from _option(setting.option, setting.kind.to_document(value))


def _list_of_files(question: ReportQuestion) -> str:
    if question.file_order_list is not None:
        return question.file_order_list
    names = question.settings.file_order or ()
    short = sum(map(len, names)) + len(names) <= _MOST_LISTED
    return _STDIN if short and not any("\n" in name for name in names) else "FILE"


def _from_anywhere(stages: Pipeline) -> Pipeline:
    """Return stages whose files, and datasets of their own, are found from any folder."""
    from shardctl.core.stages.pipelines import with_changed

    def read(read: Read) -> Read:
        return read if read.data is None else replace(read, data=ref_from_anywhere(read.data))

    return with_changed(stages, read=read, kept=lambda path: ref_from_anywhere(path, is_path=True))


def _usage(question: ReportQuestion) -> Iterator[str]:
    said = {name: question.lint[name] for name in LINT_KEYS if name in question.lint}
    for name, value in said.items():
        option = option_name(name)
        if name in _TEXTS:
            for text in value:
                yield from _option(option, text)
        elif name == "seeds":
            yield from _option(option, ",".join(map(str, value)))
        elif name not in _NOT_OPTIONS:
            yield from _option(option, value)


def _option(option: str, value: object) -> list[str]:
    """Return an option with its value; one that looks like another option is joined to it.

    >>> _option("--batch", 64), _option("--seeds", "-1,2"), _option("--autocache", False)
    (['--batch', '64'], ['--seeds=-1,2'], ['--no-autocache'])
    """
    if isinstance(value, bool):
        return [option if value else f"--no-{option.removeprefix('--')}"]
    text = str(value)
    return [f"{option}={text}"] if text.startswith("-") and text != _STDIN else [option, text]
