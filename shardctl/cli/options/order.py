# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""The options of every command that has an order, and how they go together with shardctl.yaml."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardctl.cli.options.numbers import whole_number
from shardctl.core.hosts.modes import DEFAULT_HOST_MODE, HOST_MODES
from shardctl.core.text import quoted
from shardctl.errors import UsageError

if TYPE_CHECKING:
    from shardctl.core.settings.read_settings import ReadSettings
    from shardctl.readers.project_file import Project


def _number(flag: str, text: str, minimum: int | None = None, metavar: str = "N") -> Any:
    return typer.Option(
        flag, metavar=metavar, parser=whole_number(flag, minimum=minimum), help=text
    )


_HOST_CALLS = [mode.call for mode in HOST_MODES.values()]
HOST_BY = typer.Option(
    "--host-by",
    metavar="|".join(HOST_MODES),
    help=f"{', '.join(_HOST_CALLS[:-1])} or {_HOST_CALLS[-1]} [default: {DEFAULT_HOST_MODE}].",
)


def _cycle(text: str) -> int | str:
    return "auto" if text == "auto" else whole_number("--cycle", minimum=1)(text)


@dataclass(frozen=True, kw_only=True)
class OrderOptions:
    """The settings of TFDS's reader and of the pipeline behind it; None where not given."""

    cycle: Annotated[
        Any,
        typer.Option(
            "--cycle",
            metavar="N|auto",
            parser=_cycle,
            help="ReadConfig.interleave_cycle_length [default: 16, or 1 for an ordered dataset].",
        ),
    ] = None
    block: Annotated[
        Any, _number("--block", "ReadConfig.interleave_block_length [default: 16].", 1)
    ] = None
    cpus: Annotated[Any, _number("--cpus", "CPUs of the machine, for --cycle auto.", 1)] = None
    shuffle_files: Annotated[
        bool | None,
        typer.Option("--shuffle-files/--no-shuffle-files", help="Shuffle the files."),
    ] = None
    shuffle_seed: Annotated[
        Any, _number("--shuffle-seed", "ReadConfig.shuffle_seed; implies --shuffle-files.")
    ] = None
    reshuffle: Annotated[
        bool | None,
        typer.Option(
            "--reshuffle/--no-reshuffle",
            help="Shuffle the files anew each epoch [default: as TFDS, yes].",
        ),
    ] = None
    deterministic: Annotated[
        bool | None,
        typer.Option(
            "--deterministic/--no-deterministic",
            help="ReadConfig.options.deterministic; off leaves the order open [default: TFDS's].",
        ),
    ] = None
    buffer: Annotated[Any, _number("--buffer", "ds.shuffle(N) after the read.")] = None
    buffer_seed: Annotated[Any, _number("--buffer-seed", "Seed of that shuffle.")] = None
    buffer_reshuffle: Annotated[
        bool | None,
        typer.Option(
            "--buffer-reshuffle/--no-buffer-reshuffle",
            help="Its reshuffle_each_iteration [default: yes].",
        ),
    ] = None
    global_seed: Annotated[Any, _number("--global-seed", "tf.random.set_seed(N).")] = None
    epochs: Annotated[
        Any, _number("--epochs", "ds.repeat(N) after the shuffle [default: 1].", 1)
    ] = None
    repeat_files: Annotated[
        bool | None,
        typer.Option(
            "--repeat-files/--no-repeat-files",
            help="ReadConfig.repeat_filenames: the files repeat for ever, of which as many "
            "examples are followed as --epochs N hold.",
        ),
    ] = None
    reverse: Annotated[
        bool | None, typer.Option("--reverse/--no-reverse", help="Files back to front.")
    ] = None
    file_order: Annotated[
        str | None,
        typer.Option(
            "--file-order", metavar="FILE", help="Files as a list names them, a line each."
        ),
    ] = None
    host: Annotated[
        str | None, typer.Option("--host", metavar="I/N", help="Host I of N, from 0.")
    ] = None
    host_by: Annotated[
        str | None,
        HOST_BY,
    ] = None
    batch: Annotated[Any, _number("--batch", "ds.batch(N).", 1)] = None
    drop_remainder: Annotated[
        bool | None,
        typer.Option("--drop-remainder/--no-drop-remainder", help="Drop a last partial batch."),
    ] = None
    pass_index: Annotated[
        Any,
        _number("--pass", "Which iteration of the same dataset object, from 0 [default: 0].", 0),
    ] = None
    loop: Annotated[
        str | None,
        typer.Option(
            "--loop",
            metavar="python|keras-fit",
            help="Who iterates; Keras takes two iterators an epoch [default: python].",
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """Return what is given here, by the names of the settings."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def settings(
        self, project: "Project", fallback: Mapping[str, Any] | None = None
    ) -> "ReadSettings":
        """Return the settings in force: these options, over `read:` of the project.

        `fallback` holds arguments of `ReadSettings` for what neither of them names.

        Raises:
            UsageError: a value outside its range, or two that exclude each other.
        """
        from shardctl.core.hosts.host import Host
        from shardctl.core.settings.read_settings import ReadSettings

        stated = _stated(project)
        arguments = dict(fallback or {})
        _give_way(arguments, stated)
        arguments |= stated
        given = self.given()
        if "host" in given:
            given["host"] = Host.parse(given["host"])
        if "file_order" in given:
            given["file_order"] = _listed_files(Path(given["file_order"]))
        if given.get("shuffle_files") is False and "shuffle_seed" in given:
            raise UsageError("--no-shuffle-files and --shuffle-seed contradict each other")
        _give_way(arguments, given)
        try:
            return ReadSettings(**{**arguments, **given})
        except UsageError as error:
            if not stated or not _is_fine(given):
                raise
            raise UsageError(f"{project.shown_path}, read: {error}") from None


def _is_fine(given: dict[str, Any]) -> bool:
    """Return whether the options alone would be taken, so that a fault is the file's."""
    from shardctl.core.settings.read_settings import ReadSettings

    try:
        ReadSettings(**given)
    except UsageError:
        return False
    return True


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


def _stated(project: "Project") -> dict[str, Any]:
    """Return the settings under `read:` of a project."""
    from shardctl.core.settings.document import settings_from_document

    if project.path is None:
        return {}
    read = dict(project.read)
    order = read.get("file_order", read.get("file-order"))
    if isinstance(order, str):  # the name of a list, as the option has it
        read.pop("file-order", None)
        read["file_order"] = list(_listed_files(project.path.parent / order))
    return settings_from_document(read, f"{project.shown_path}, read")


def _listed_files(path: Path) -> tuple[str, ...]:
    """Return the names in a list of files: one a line, blank lines and `#` comments left out."""
    from shardctl.files.file_text import decode, read_file

    text = decode(read_file(path), source=str(path))
    lines = (line.strip() for line in text.splitlines())
    names = tuple(line for line in lines if line and not line.startswith("#"))
    if not names:
        raise UsageError(f"the file order {quoted(path)} names no files")
    return names
