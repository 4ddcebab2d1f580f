# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""The options of every command that has an order, and how they go together with shardctl.yaml."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from shardctl.base.text import counted, quoted
from shardctl.cli import completion
from shardctl.cli.options.dataset import DatasetOptions, chosen_dataset, project_here, text_on_stdin
from shardctl.cli.options.shared import whole_number
from shardctl.cli.output import HOSTS, LOADER, ORDER, say
from shardctl.errors import ShardctlError, UsageError
from shardctl.settings import table

if TYPE_CHECKING:
    from shardctl.dataset.dataset import Dataset
    from shardctl.metadata.project_file import Project
    from shardctl.settings.read_settings import ReadSettings

Error = TypeVar("Error", bound=ShardctlError)


# A parameter of a command: its name, annotation, default and panel.
Declared = tuple[str, Any, None, str]
_PANELS = {"order": ORDER, "hosts": HOSTS, "loader": LOADER}


def _parameter(setting: table.Setting) -> Declared:
    """Return the option of a setting."""
    kind, name = setting.kind, setting.option.removeprefix("--")
    # The help of a setting: its first clause, the call of TFDS or tf.data it stands for, the rest.
    clause, more, rest = setting.help.rstrip(".").partition("; ")
    text = f"{clause} ({setting.stands_for}){more}{rest}."
    text += f" [default: {setting.default}]" if setting.default else ""
    if isinstance(kind, table.Switch):
        info: Any = Annotated[bool | None, typer.Option(f"--{name}/--no-{name}", help=text)]
    else:
        parse = _parser(kind)
        made = typer.Option(
            setting.option,
            metavar=kind.metavar,
            help=text,
            parser=parse,
            autocompletion=completion.stages if isinstance(kind, table.StageList) else None,
        )
        info = Annotated[str | None if parse is None else Any, made]
    return setting.field, info, None, _PANELS[setting.about]


def _parser(kind: table.SettingKind) -> Any:
    if isinstance(kind, table.FileNames):
        return None
    if isinstance(kind, table.StageList):
        # Stages stay text here: they are parsed with the settings, which may name other datasets.
        return lambda text: kind.take(text) and text
    if isinstance(kind, table.WholeNumber):
        # The sizes of a buffer have a gap, which its own rule explains.
        number = whole_number(None if isinstance(kind, table.BufferSize) else kind.least)
        return lambda text: kind.take(text if text in kind.words else number(text))
    return lambda text: kind.take(kind.from_document(text))


class OrderOptions:
    """The settings of TFDS's reader and of the pipeline after it, by the fields of `ReadSettings`.

    Values are those of the command line; what was not given is None or left out.
    """

    def __init__(self, **values: Any) -> None:
        self._values = values
        self._project: Project | None = None  # that the settings were taken from

    @staticmethod
    def parameters() -> list[Declared]:
        """Return the parameters of a command that has these options, one a setting."""
        return [_parameter(setting) for setting in table.SETTINGS]

    def given(self) -> dict[str, Any]:
        """Return what is given here, by the fields of the settings."""
        return {name: value for name, value in self._values.items() if value is not None}

    def settings(
        self, project: "Project", fallback: Mapping[str, Any] | None = None
    ) -> "ReadSettings":
        """Return the settings in force: these options, over `read:` of the project.

        `fallback` holds arguments of `ReadSettings` for what neither of them names.

        Raises:
            UsageError: a value outside its range, or two that exclude each other.
        """
        return self.resolved(project, fallback).settings

    def resolved(
        self, project: "Project", fallback: Mapping[str, Any] | None = None
    ) -> "ResolvedSettings":
        """Return the settings in force, see `settings`, and who set them."""
        from shardctl.api.settings_file import stated_settings
        from shardctl.settings.read_settings import ReadSettings

        self._project = project
        # Precedence: options, then the project file, then the fallback (a snapshot's settings).
        arguments = dict(fallback or {})
        given = self.given()
        if "file_order" in given:
            given["file_order"] = _file_order(given["file_order"])
        if given.get("shuffle_files") is False and "shuffle_seed" in given:
            raise UsageError("--no-shuffle-files and --shuffle-seed contradict each other")
        try:
            chosen = stated_settings(project)
        except UsageError as error:
            from shardctl.metadata.project_file import located

            raise located(error, project, "read") from None
        try:
            _give_way(chosen, given)
            # Later entries replace earlier ones, so an option is the source where both set a field.
            sources = {**dict.fromkeys(chosen, "file"), **dict.fromkeys(given, "option")}
            chosen |= given
            _give_way(arguments, chosen)
            # A snapshot's stages give way to settings of the short form, and the reverse.
            if any(name in chosen for name in _REPLACES["stages"]):
                arguments.pop("stages", None)  # of a snapshot that had them
            return ResolvedSettings(
                settings=ReadSettings(**arguments | chosen),
                sources=dict.fromkeys(arguments, "fallback") | sources,
            )
        except UsageError as error:
            raise self.located(error) from None

    def located(self, error: Error) -> Error:
        """Return an error with its place in shardctl.yaml, if it is about a setting from there."""
        if self._project is None:
            return error
        from shardctl.metadata.project_file import located

        return located(error, self._project, "read", self.given())


class SharingOptions(OrderOptions):
    """The settings that decide what each host gets of an evaluation, and who reads."""

    @staticmethod
    def parameters() -> list[Declared]:
        """Return the parameters of a command that has these options, one a setting."""
        fields = ("host_by", *_OF_LOADERS, *_OF_EVALUATION)
        return [_parameter(table.SETTING_BY_FIELD[field]) for field in fields]


# What another loader reads besides hosts, epochs and batches.
_OF_LOADERS = (
    "shuffle_seed",
    "global_seed",
    "buffer",
    "buffer_seed",
    *(setting.field for setting in table.SETTINGS if setting.about == "loader"),
)

# What an evaluation may have of its own, besides what training has.
_OF_EVALUATION = (*table.OF_EPOCHS, "pass_index", "loop")


@dataclass(frozen=True, kw_only=True)
class ResolvedSettings:
    """The settings in force; `sources` says who set a field: "option", "file" or "fallback"."""

    settings: "ReadSettings"
    sources: Mapping[str, str]


# An option replaces the settings of the file that would contradict it.
_REPLACES = {
    "reverse": ("file_order",),
    "file_order": ("reverse",),
    "shuffle_seed": ("shuffle_files",),
    "stages": ("buffer", "buffer_seed", "buffer_reshuffle", "epochs", "batch", "drop_remainder"),
}


def asked_for(source: DatasetOptions, reading: OrderOptions) -> "tuple[Dataset, ReadSettings]":
    """Return the dataset and the settings that options, or the project here, choose."""
    project = project_here()
    settings = reading.settings(project)
    return chosen_dataset(source, project, settings=settings), settings


def steps_of_epoch(
    epoch: int,
    steps: Iterable[int | str],
    settings: "ReadSettings",
    dataset: "Dataset",
    spec: str | None,
    *,
    at_end: bool = False,
) -> "tuple[ReadSettings, list[int]]":
    """Return the settings of the pass with an epoch, and steps of the epoch as steps of the pass.

    Without --epochs each epoch is an iteration of the dataset object, as in most loops and in
    `fit`; this is said. Seeds do not change how many steps there are. The end of the epoch counts
    as a step where it is `at_end` that a job may stop.

    Raises:
        UsageError: no such epoch or step, or a number of steps that is not fixed.
    """
    from shardctl.order.plan_order import plan_order
    from shardctl.settings.read_settings import with_stand_in_seeds

    # Without --epochs, each epoch of a script is a new iteration of the dataset object.
    is_pass = settings.epochs == 1 and settings.stages is None and not settings.is_endless
    how, within = "epochs and steps count from 0", epoch
    if epoch and is_pass and settings.takes("pass_index"):
        if settings.pass_index:
            raise UsageError("--epoch with --pass-index: without --epochs both say which; keep one")
        settings, within = replace(settings, pass_index=epoch), 0
        how += (
            f". Epoch {epoch} is --pass-index {epoch}, a new iteration of the dataset, which the "
            "answer calls epoch 0. With ds.repeat(N), give --epochs N"
        )
    # Only the number of steps is needed, so example seeds will do.
    seeded, _ = with_stand_in_seeds(settings)
    there = plan_order(dataset, spec, seeded).order.steps_in_epoch(within)
    found = []
    for text in steps:
        step = _whole_step(text)
        # The end of an epoch counts as a step only where a job can stop there.
        if step >= len(there) + at_end:
            raise UsageError(
                f"--step {step}: epoch {epoch} has {counted(len(there), 'step')}, counted from 0"
            )
        found.append(there.start + step)
    say(how)
    return settings, found


def _whole_step(text: object) -> int:
    try:
        return whole_number(0)(text)
    except UsageError as error:
        raise UsageError(f"--step {quoted(text)}: {error}") from None


def _give_way(arguments: dict[str, Any], given: dict[str, Any]) -> None:
    loader = str(given.get("loader", "tfds"))
    if given.get("loader") not in (None, arguments.get("loader", "tfds")):
        other_version = ("loader_version",) if "loader" in arguments else ()
        for name in tuple(arguments):
            is_read = name not in other_version and table.SETTING_BY_FIELD[name].is_read_by(loader)
            if name not in given and not is_read:
                del arguments[name]
    for name in given:
        for other in _REPLACES.get(name, ()):
            if other not in given:
                arguments.pop(other, None)
    # `cpus` explains a cycle of "auto"; a number needs no explanation.
    if given.get("cycle", "auto") != "auto" and "cpus" not in given:
        arguments.pop("cpus", None)


def _file_order(name: str) -> tuple[str, ...]:
    """Return the names in the list that the option names, `-` for stdin."""
    from shardctl.api.settings_file import listed_files
    from shardctl.stores.stores import path_of

    if name != "-":
        return listed_files(path_of(name))
    return listed_files(Path("stdin"), text_on_stdin())
