# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""The options of every command that has an order, and how they go together with shardctl.yaml."""

from collections.abc import Mapping
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from shardctl.cli.options.numbers import whole_number
from shardctl.core.phrase import named_arguments
from shardctl.core.settings.kinds import BufferSize, Switch, WholeNumber
from shardctl.core.settings.table import SETTINGS, Setting
from shardctl.core.text import quoted
from shardctl.errors import ShardctlError, UsageError
from shardctl.rendering.text.command_line import as_options

if TYPE_CHECKING:
    from shardctl.core.settings.read_settings import ReadSettings
    from shardctl.readers.config_file import Config

Error = TypeVar("Error", bound=ShardctlError)


def _annotation(setting: Setting) -> Any:
    """Return what Typer makes the option of a setting from."""
    kind, text = setting.kind, as_options(setting.help)
    if isinstance(kind, Switch):
        both = f"{setting.option}/--no-{setting.option.removeprefix('--')}"
        return Annotated[bool | None, typer.Option(both, help=text)]
    if isinstance(kind, WholeNumber):
        parser = _parser(setting.option, kind)
        return Annotated[
            Any,
            typer.Option(setting.option, metavar=setting.kind.metavar, parser=parser, help=text),
        ]
    return Annotated[
        str | None, typer.Option(setting.option, metavar=setting.kind.metavar, help=text)
    ]


def _parser(option: str, kind: WholeNumber) -> Any:
    # The sizes of a buffer have a gap, which its own rule explains.
    number = whole_number(option, minimum=None if isinstance(kind, BufferSize) else kind.least)
    return lambda text: text if text in kind.words else number(text)


class OrderOptions:
    """The settings of TFDS's reader and of the pipeline behind it, by the fields of `ReadSettings`.

    `given` holds those that stand on the command line, as they stand there.
    """

    def __init__(self, **given: Any) -> None:
        self.given = {name: value for name, value in given.items() if value is not None}

    @staticmethod
    def parameters() -> list[Parameter]:
        """Return the parameters of a command that has these options, one a setting."""
        return [
            Parameter(
                setting.field,
                Parameter.KEYWORD_ONLY,
                default=None,
                annotation=_annotation(setting),
            )
            for setting in SETTINGS
        ]

    def settings(self, fallback: Mapping[str, Any] | None = None) -> "ReadSettings":
        """Return the settings in force: these options, over `read:` of the nearest shardctl.yaml.

        `fallback` holds arguments of `ReadSettings` for what neither of them names.

        Raises:
            UsageError: a value outside its range, or two that exclude each other.
        """
        from shardctl.core.hosts.host import Host
        from shardctl.core.settings.read_settings import ReadSettings
        from shardctl.readers.config_file import find_config

        config = find_config(Path.cwd())
        arguments = dict(fallback or {})
        given = dict(self.given)
        if "host" in given:
            given["host"] = Host.parse(given["host"])
        if "file_order" in given:
            given["file_order"] = _listed_files(Path(given["file_order"]))
        if given.get("shuffle_files") is False and "shuffle_seed" in given:
            raise UsageError("--no-shuffle-files and --shuffle-seed contradict each other")
        try:
            stated = {} if config is None else _from_config(config)
            for chosen in (stated, given):
                _give_way(arguments, chosen)
                arguments |= chosen
            return ReadSettings(**arguments)
        except UsageError as error:
            raise self.located(error) from None

    def located(self, error: Error) -> Error:
        """Return an error with its place in shardctl.yaml, if it is about a setting from there."""
        if not named_arguments(error):
            return error
        from shardctl.cli.options.config_faults import located
        from shardctl.readers.config_file import find_config

        config = find_config(Path.cwd())
        if config is None:
            return error
        return located(error, config.path, "read", config.read, self.given)


# An option replaces the settings of the file that would contradict it.
_REPLACES = {
    "reverse": ("file_order",),
    "file_order": ("reverse",),
    "shuffle_seed": ("shuffle_files",),
}


def _give_way(arguments: dict[str, Any], given: dict[str, Any]) -> None:
    for name in given:
        for other in _REPLACES.get(name, ()):
            if other not in given:
                arguments.pop(other, None)
    if given.get("cycle", "auto") != "auto" and "cpus" not in given:
        arguments.pop("cpus", None)


def _from_config(config: "Config") -> dict[str, Any]:
    from shardctl.core.settings.document import settings_from_document

    read = dict(config.read)
    for key in ("file_order", "file-order"):
        if isinstance(read.get(key), str):  # the name of a list, as the option has it
            read[key] = list(_listed_files(config.folder / str(read[key])))
    return settings_from_document(read)


def _listed_files(path: Path) -> tuple[str, ...]:
    """Return the names in a list of files: one a line, blank lines and `#` comments left out."""
    from shardctl.files.file_text import decode, read_file

    text = decode(read_file(path), source=str(path))
    lines = (line.strip() for line in text.splitlines())
    names = tuple(line for line in lines if line and not line.startswith("#"))
    if not names:
        raise UsageError(f"the file order {quoted(path)} names no files")
    return names
