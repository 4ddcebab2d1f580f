# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl diff`: where and why two orders, or two plans, differ."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardctl.base.text import printable, quoted
from shardctl.cli.completion import values as completion
from shardctl.cli.options.dataset import DatasetOptions, text_on_stdin
from shardctl.cli.options.names import path_from_repository, typed_again
from shardctl.cli.options.order import OrderOptions
from shardctl.cli.options.shared import Flag, argument, option
from shardctl.cli.options.today import Beside, Today, label_of
from shardctl.cli.output import (
    AllOption,
    Formats,
    OutputOptions,
    as_code,
    as_json,
    as_table,
    as_yaml,
    fail,
    warn,
)
from shardctl.errors import ShardctlError, UsageError

if TYPE_CHECKING:
    from shardctl.saved.resume_plan import PlanListing
    from shardctl.saved.snapshot import Snapshot


def _formats(what: str) -> Formats:
    return Formats(
        renderers={
            "table": as_table(f"verbs.diff.view:{what}_table"),
            "json": as_json(f"verbs.diff.view:{what}_document"),
            "yaml": as_yaml(f"verbs.diff.view:{what}_document"),
            "github": as_code(f"verbs.diff.view:{what}_annotation"),
        }
    )


FORMATS = _formats("diff")
_PLANS = _formats("plans")
_SEVERAL = _formats("several")
_ABOUT_THIS_RUN = ("--format", "--output", "--update", "--each", "--all", "--color")


def diff(
    ctx: typer.Context,
    source: DatasetOptions,
    reading: OrderOptions,
    out: OutputOptions,
    files: Annotated[list[str], argument()],
    spec: Annotated[str | None, option(offered=completion.splits)] = None,
    update: Flag = False,
    each: Flag = False,
    every_row: AllOption = False,
) -> None:
    """Say where and why two orders differ; exits with 0 if equal, 1 if different, 2 for trouble.

    The dataset is chosen as in every command, else it is the one that A names; a setting that
    neither an option nor shardctl.yaml names is as in A. Of a loader the installed version
    reads, that of A where none is installed.

    Arguments:
      files A...: A snapshot; or a plan, with B another. Two snapshots are compared with each other,
        three and more (see --each) with the current order. - is stdin.

    Options:
      --spec SPEC: What the current order reads [default: as in A].
      --update: Write the current order to A where it differs.
      --each: Check each file against the current order, however many there are.

    Examples:
      # Is today's order still the one that was fixed?
      shardctl diff order.yaml
      # Every order that a project fixes
      shardctl diff --each *.order.yaml
      # What changed between two plans
      shardctl diff before.json after.json
    """
    if update and "-" in files:
        raise UsageError("--update writes the current order to A, which is stdin; name a file")
    if len(files) == 2 and not each:
        _refuse_options(source, reading, spec, update=update)
        equal = _with_file((files[0], files[1]), out, every_row=every_row)
    else:
        today = Today(
            source,
            reading,
            spec,
            command=lambda path: None if update else _update_of(ctx, path),
            from_here=out.format != "github",
        )
        if len(files) == 1 and not each:
            equal = _with_current(files[0], today, out, update=update)
        else:
            equal = _each_with_current(files, today, reading, out, update=update)
    if not equal:
        raise typer.Exit(1)


def _update_of(ctx: typer.Context, path: str) -> str:
    return typed_again(ctx, [path], "--update", leaving_out=_ABOUT_THIS_RUN)


def _read(path: str) -> "Snapshot | PlanListing":
    from shardctl.saved.comparable_file import parse_comparable, read_comparable

    if path == "-":
        return parse_comparable(text_on_stdin(), source="stdin")
    return read_comparable(Path(path))


def _refuse_options(
    source: DatasetOptions, reading: OrderOptions, spec: str | None, *, update: bool
) -> None:
    if update:
        raise UsageError(
            "--update writes the current order to A; leave out B, or check both with --each"
        )
    if reading.given() or source.is_given or spec is not None:
        raise UsageError(
            "options of datasets and settings are about the current order; leave them out, or B, "
            "or check both with --each"
        )


def _with_file(paths: tuple[str, str], out: OutputOptions, *, every_row: bool) -> bool:
    from shardctl.saved.snapshot import KIND, Snapshot
    from shardctl.verbs.diff.answer import PinnedOrder
    from shardctl.verbs.diff.answer import diff as compare
    from shardctl.verbs.diff.plans import diff_plans
    from shardctl.verbs.diff.view import Hints

    first, second = map(_read, paths)
    labels = label_of(paths[0]), label_of(paths[1])
    file = path_from_repository(Path(labels[0]))
    if isinstance(first, Snapshot) and isinstance(second, Snapshot):
        found = compare(
            PinnedOrder(snapshot=first, label=labels[0]),
            PinnedOrder(snapshot=second, label=labels[1]),
        )
        FORMATS.write(out, found, hints=Hints(file=file, each_other=True))
        return found.equal
    if isinstance(first, Snapshot) or isinstance(second, Snapshot):
        kinds = [KIND if isinstance(side, Snapshot) else side.kind for side in (first, second)]
        raise UsageError(
            f"{quoted(labels[0])} is a {kinds[0]} and {quoted(labels[1])} a {kinds[1]}; files of "
            "one kind are compared"
        )
    plans = diff_plans(first, second, labels=labels)
    for_github: dict[str, Any] = {"file": file} if out.format == "github" else {}
    _PLANS.write(out, plans, every_row=every_row, **for_github)
    return plans.equal


def _snapshot_in(path: str) -> "Snapshot":
    from shardctl.saved.snapshot import Snapshot

    found = _read(path)
    if not isinstance(found, Snapshot):
        raise UsageError(f"{quoted(path)} is a {found.kind}; name a second one to compare it with")
    return found


def _with_current(path: str, today: "Today", out: OutputOptions, *, update: bool) -> bool:
    checked = today.beside(_snapshot_in(path), path)
    warn(checked.warnings)
    FORMATS.write(out, checked.diff, hints=checked.hints)
    if update:
        checked.update()
    return update or checked.diff.equal


def _each_with_current(
    paths: list[str], today: "Today", reading: OrderOptions, out: OutputOptions, *, update: bool
) -> bool:
    """Check each file, whatever becomes of the others; what cannot be checked is said at the end.

    Raises:
        Exit: with 2, since a file could not be checked, or not be written.
    """
    from shardctl.verbs.diff.view import CheckedFile

    checked: dict[str, Beside] = {}
    failed: dict[str, ShardctlError] = {}
    for path in dict.fromkeys(paths):
        try:
            checked[path] = today.beside(_snapshot_in(path), path)
        except ShardctlError as error:
            failed[path] = reading.located(error)
    warn(warning for one in checked.values() for warning in one.warnings)
    said = _said(failed)
    if checked:
        files = []
        for path in dict.fromkeys(paths):
            one = checked.get(path)
            files.append(
                CheckedFile(label=label_of(path), hints=today.hints(path), error=said[path])
                if one is None
                else CheckedFile(label=label_of(path), hints=one.hints, diff=one.diff)
            )
        _SEVERAL.write(out, files)
    if update:
        unwritten = {}
        for path, one in checked.items():
            try:
                one.update()
            except ShardctlError as error:
                unwritten[path] = error
        said |= _said(unwritten)
    if said:
        for line in dict.fromkeys(said.values()):
            fail(line)
        raise typer.Exit(2)
    return update or all(one.diff.equal for one in checked.values())


def _said(failed: dict[str, ShardctlError]) -> dict[str, str]:
    """Return in words why each file failed, with its name where the reason has none.

    What is wrong with all of them, an option as a rule, is said without names.
    """
    said = {path: str(error) for path, error in failed.items()}
    if len(said) > 1 and len(set(said.values())) == 1:
        return said
    return {
        path: text if printable(label_of(path)) in text else f"{printable(label_of(path))}: {text}"
        for path, text in said.items()
    }
