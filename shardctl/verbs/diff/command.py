# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl diff`: where and why two orders, or two plans, differ."""

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shardctl.base.text import printable, public_url
from shardctl.cli import completion, output
from shardctl.cli.options import shared
from shardctl.cli.options.dataset import (
    DatasetOptions,
    comparable_of_file,
    dataset_of_snapshot,
    project_here,
    refs_to_keep,
    snapshot_of_file,
)
from shardctl.cli.options.order import OrderOptions
from shardctl.errors import ShardctlError, UsageError
from shardctl.settings.table import SETTING_BY_FIELD

if TYPE_CHECKING:
    from shardctl.metadata.project_file import Project
    from shardctl.metadata.reference import ChosenDataset
    from shardctl.saved.snapshot import Snapshot
    from shardctl.verbs.diff.answer import Diff
    from shardctl.verbs.diff.view import Hints


def _written(what: str) -> dict[str, output.Renderer]:
    return {
        "table": output.as_table(f"verbs.diff.view:{what}_table"),
        "json": output.as_json(f"verbs.diff.view:{what}_document"),
        "yaml": output.as_yaml(f"verbs.diff.view:{what}_document"),
    }


FORMATS, _SEVERAL = (
    output.Formats(
        renderers={**_written(what), "github": output.as_code(f"verbs.diff.view:{what}_annotation")}
    )
    for what in ("diff", "several")
)
_PLANS = output.Formats(renderers=_written("plans"))
_OF_THIS_RUN = ("--format", "--output", "--update", "--each", "--all", "--color")


def _label_of(path: str) -> str:
    """Return the name of a file for people; `-` is stdin."""
    return "stdin" if path == "-" else path


@dataclass(frozen=True, kw_only=True)
class Beside:
    """A snapshot beside the current order: where they differ, what helps, and what surprises."""

    path: str
    pinned: "Snapshot"
    current: "Snapshot"
    diff: "Diff"
    hints: "Hints"
    warnings: tuple[str, ...]

    def update(self) -> None:
        """Write the current order to the file, which is left alone where it says that already.

        Raises:
            UsageError: the file cannot be written; what it held is still there.
        """
        from shardctl.files.parse import is_json
        from shardctl.saved.snapshot_file import snapshot_json, snapshot_yaml

        rules = self.pinned.rules
        if rules.version != self.current.rules.version:
            rules = self.current.rules  # else more versions may have been compared: no other order
        if replace(self.current, rules=rules) != self.pinned:
            render = snapshot_json if is_json(Path(self.path).read_bytes()) else snapshot_yaml
            output.write(render(self.current), self.path)
            output.say(f"{self.path} now holds the current order")


@dataclass(frozen=True, kw_only=True)
class Today:
    """What options and shardctl.yaml make of the order now; a dataset is read once for all files.

    `command` returns the command that accepts the order for files; `from_here` says how origins
    are named, see `setting_origins`.
    """

    source: DatasetOptions
    reading: OrderOptions
    spec: str | None
    command: Callable[..., str | None]
    from_here: bool
    project: "Project" = field(default_factory=project_here)
    datasets: "dict[object, ChosenDataset]" = field(default_factory=dict)

    def beside(self, pinned: "Snapshot", path: str) -> "Beside":
        """Return the snapshot that a file holds beside the current order.

        Raises:
            ShardctlError: the dataset is not found, or settings or the spec do not fit it.
        """
        from shardctl.saved.snapshot import spec_as_pinned
        from shardctl.verbs.diff.answer import PinnedOrder, diff, settings_to_fall_back_on
        from shardctl.verbs.snapshot.answer import snapshot

        chosen = self._dataset(pinned, path)
        # What neither options nor shardctl.yaml set is as in the file.
        fallback = settings_to_fall_back_on(pinned, chosen.dataset)
        resolved = self.reading.resolved(self.project, fallback)
        kept = spec_as_pinned(pinned, resolved.settings)
        spec = kept if self.spec is None else self.spec
        current = snapshot(chosen.dataset, spec, resolved.settings)
        # How an updated file names its dataset: as before, or as it was chosen now.
        refs = pinned.refs if chosen.source == "fallback" else refs_to_keep(chosen, path)
        # Only settings of shardctl.yaml have a line that an annotation can point to.
        stated = {SETTING_BY_FIELD[f].name for f, by in resolved.sources.items() if by == "file"}
        if chosen.source == "file":
            stated.add("dataset")
        return Beside(
            path=path,
            pinned=pinned,
            current=replace(current.snapshot, refs=refs),
            diff=diff(
                PinnedOrder(snapshot=pinned, label=_label_of(path)),
                PinnedOrder(
                    snapshot=current.snapshot, label="the current order", live=current.live
                ),
            ),
            hints=replace(
                self.hints(path, stated), all_of_file=set(resolved.sources.values()) <= {"fallback"}
            ),
            warnings=current.warnings,
        )

    def hints(self, path: str, stated: Collection[str] = ()) -> "Hints":
        """Return what helps people with a file; `stated` are what shardctl.yaml decides."""
        from shardctl.verbs.diff.view import Hints

        origins = shared.setting_origins(
            self.project, stated.__contains__, from_here=self.from_here
        )
        if path == "-":  # it is nowhere, and nothing can be written to it
            return Hints(origins=origins)
        return Hints(
            file=shared.path_from_repository(Path(path)), origins=origins, update=self.command(path)
        )

    def _dataset(self, pinned: "Snapshot", path: str) -> "ChosenDataset":
        """Return the dataset of today: the one that is chosen for all, else that of the file."""
        own = pinned.refs or pinned.title, os.path.dirname(path)
        # Chosen by an option, a variable or shardctl.yaml it is the same for all files.
        for key in ("all", own):
            if key in self.datasets:
                return self.datasets[key]
        chosen = dataset_of_snapshot(pinned, path, self.source, self.project)
        self.datasets[own if chosen.source == "fallback" else "all"] = chosen
        return chosen


def diff(
    ctx: typer.Context,
    source: DatasetOptions,
    reading: OrderOptions,
    out: output.OutputOptions,
    files: Annotated[list[str], shared.argument()],
    spec: Annotated[str | None, shared.option(offered=completion.splits)] = None,
    update: shared.Flag = False,
    each: shared.Flag = False,
    every_row: output.AllOption = False,
) -> None:
    """Find where and why two orders differ. Exits with 0 if equal, 1 if different, 2 for an error.

    The dataset is chosen as in every command, else it is the one that A names. A setting that
    neither an option nor shardctl.yaml sets is as in A. The current order is predicted: see
    verify for the order that the installed TensorFlow reads.

    Arguments:
      files A...: A snapshot to check, as in shardctl diff order.yaml; or two files to compare. Two
        snapshots or plans are compared with each other; three and more snapshots (see --each) are
        checked against the current order. - is stdin.

    Options:
      --spec SPEC: The split or slice of the current order [default: as in A].
      --update: Write the current order to A where it differs.
      --each: Check each file against the current order, however many there are.

    Examples:
      # Is the current order still that of the snapshot?
      shardctl diff order.yaml
      # Check all snapshots of a project
      shardctl diff --each *.order.yaml
      # Compare two plans
      shardctl diff before.json after.json
    """
    files = [*map(public_url, files)]
    if update and "-" in files:
        raise UsageError("--update writes the current order to A, which is stdin; name a file")
    if len(files) == 2 and not each:
        if update:
            raise UsageError(
                "--update writes the current order to A; leave out B, or check both with --each"
            )
        if reading.given() or source.is_given or spec is not None:
            raise UsageError(
                "options of datasets and settings are for the current order; leave them out, or "
                "B, or check both with --each"
            )
        equal = _with_file((files[0], files[1]), out, every_row=every_row)
    else:

        def accepting(*paths: str) -> str | None:
            several = ["--each"] if len(paths) > 1 else []
            typed = shared.typed_again(ctx, paths, *several, "--update", leaving_out=_OF_THIS_RUN)
            return None if update else typed

        # Annotations of GitHub name files from the root of the repository.
        here = out.format != "github"
        today = Today(source=source, reading=reading, spec=spec, command=accepting, from_here=here)
        if len(files) == 1 and not each:
            equal = _with_current(files[0], today, out, update=update)
        else:
            equal = _each_with_current(files, today, out, update=update)
    if not equal:
        raise typer.Exit(1)


def _with_file(paths: tuple[str, str], out: output.OutputOptions, *, every_row: bool) -> bool:
    from shardctl.api.diff import diff_of
    from shardctl.saved.snapshot import Snapshot
    from shardctl.verbs.diff.answer import Diff, PinnedOrder
    from shardctl.verbs.diff.view import Hints

    labels = _label_of(paths[0]), _label_of(paths[1])
    first, second = (
        PinnedOrder(snapshot=held, label=label) if isinstance(held, Snapshot) else held
        for held, label in zip(map(comparable_of_file, paths), labels, strict=True)
    )
    found = diff_of(first, second, labels)
    if isinstance(found, Diff):
        file = shared.path_from_repository(Path(labels[0]))
        FORMATS.write(out, found, hints=Hints(file=file, each_other=True))
    else:
        _PLANS.write(out, found, every_row=every_row)
    return found.equal


def _snapshot_in(path: str) -> "Snapshot":
    return snapshot_of_file(path, "name a second one to compare it with")


def _with_current(path: str, today: Today, out: output.OutputOptions, *, update: bool) -> bool:
    checked = today.beside(_snapshot_in(path), path)
    output.warn(checked.warnings)
    FORMATS.write(out, checked.diff, hints=checked.hints)
    if update:
        checked.update()
    # A difference that was accepted is none.
    return update or checked.diff.equal


def _each_with_current(
    paths: list[str], today: Today, out: output.OutputOptions, *, update: bool
) -> bool:
    """Check each file, whatever becomes of the others; what cannot be checked is said at the end.

    Raises:
        Exit: with 2, since a file could not be checked, or not be written.
    """
    from shardctl.verbs.diff.view import CheckedFile

    checked: dict[str, Beside] = {}

    def check(path: str) -> None:
        checked[path] = today.beside(_snapshot_in(path), path)

    unchecked = _failures(dict.fromkeys(paths), check, today.reading)
    output.warn(warning for one in checked.values() for warning in one.warnings)
    if checked:
        files = []
        for path in dict.fromkeys(paths):
            one, error = checked.get(path), unchecked.get(path, "")
            hints, found = (today.hints(path), None) if one is None else (one.hints, one.diff)
            files.append(CheckedFile(label=_label_of(path), hints=hints, diff=found, error=error))
        # Stdin cannot be written.
        differ = [p for p, one in checked.items() if not one.diff.equal and p != "-"]
        _SEVERAL.write(out, files, update=today.command(*differ) if differ else None)
    unwritten = {}
    if update:
        unwritten = _failures(checked, lambda path: checked[path].update(), today.reading)
    if failed := {**unchecked, **unwritten}:
        for line in dict.fromkeys(failed.values()):
            output.fail(line)
        raise typer.Exit(2)
    return update or all(one.diff.equal for one in checked.values())


def _failures(
    paths: Iterable[str], attempt: Callable[[str], None], reading: OrderOptions
) -> dict[str, str]:
    """Return in words why each file failed, with its name where the reason has none.

    What is wrong with all of them, an option as a rule, is said without names.
    """
    said = {}
    for path in paths:
        try:
            attempt(path)
        except ShardctlError as error:
            said[path] = str(reading.located(error))
    # The same reason for every file is in the options, not in the files.
    if len(said) > 1 and len(set(said.values())) == 1:
        return said
    names = {path: printable(_label_of(path)) for path in said}
    return {
        path: text if names[path] in text else f"{names[path]}: {text}"
        for path, text in said.items()
    }
