"""The command line that makes a report again, true in any folder of this machine."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

from shardctl.core.secrets import public_url
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.table import SETTINGS
from shardctl.core.stages.stages import Pipeline, Read
from shardctl.planning.report.question import ReportQuestion

_MOST_LISTED = 4096  # characters of file names that a line may carry itself
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
    words += question.found_by
    words += _settings(question)
    words += _usage(question)
    if question.devices != 1:
        words.append(f"--devices={question.devices}")
    if question.loaders:
        words.append("--loaders")
    line = shlex.join([*words, "-o", "report.html"])
    names = question.settings.file_order
    if names and "--file-order=-" in words:
        return f"{shlex.join(['printf', '%s\\n', *names])} | {line}"
    return line


def _settings(question: ReportQuestion) -> Iterator[str]:
    """Yield the options of the settings that are not as they are by default."""
    settings, bare = question.settings, ReadSettings()
    for setting in SETTINGS:
        value = getattr(settings, setting.field)
        if value == getattr(bare, setting.field):
            continue
        if setting.field == "file_order":
            yield f"{setting.option}={_list_of_files(question)}"
        elif setting.field == "stages":
            from shardctl.core.stages.text import text_of

            yield f"{setting.option}={text_of(_public(value))}"
        else:
            yield _option(setting.option, setting.kind.to_document(value))


def _list_of_files(question: ReportQuestion) -> str:
    if question.file_order_list is not None:
        return question.file_order_list
    names = question.settings.file_order or ()
    short = sum(map(len, names)) + len(names) <= _MOST_LISTED
    return "-" if short and not any("\n" in name for name in names) else "FILE"


def _public(stages: Pipeline) -> Pipeline:
    from shardctl.core.stages.changed import with_changed

    def read(read: Read) -> Read:
        return read if read.data is None else replace(read, data=public_url(read.data))

    return with_changed(stages, read=read)


def _usage(question: ReportQuestion) -> Iterator[str]:
    for name, value in question.lint.items():
        option = f"--{name.replace('_', '-')}"
        if name in _TEXTS:
            yield from (_option(option, text) for text in value)
        elif name == "seeds":
            yield _option(option, ",".join(map(str, value)))
        elif name not in _NOT_OPTIONS:
            yield _option(option, value)


def _option(option: str, value: object) -> str:
    """Return an option with its value as one word, which may begin with a dash."""
    if isinstance(value, bool):
        return option if value else f"--no-{option.removeprefix('--')}"
    return f"{option}={value}"
