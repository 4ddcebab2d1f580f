# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl index`: record files without metadata, counted and written as a layout."""

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardctl.cli.formats import AllOption, Formats, OutputOptions, verb_formats
from shardctl.cli.options.runner import RunnerOption, beam_runner
from shardctl.cli.options.shared import number_option
from shardctl.cli.output import ProgressBars, fail, say, warn
from shardctl.core.text import quoted
from shardctl.errors import UsageError

if TYPE_CHECKING:
    from shardctl.readers.index.answer import Index

_MOST_FAULTS = 20  # that are named on stderr; the answer has all

FORMATS = Formats(renderers=verb_formats("rendering.index.index", "index"))
_OF_CHECK = Formats(renderers=verb_formats("rendering.index.check", "check"))
_OF_TFDS = Formats(renderers=verb_formats("rendering.index.tfds_metadata", "tfds_metadata"))


def index(
    ctx: typer.Context,
    out: OutputOptions,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...",
            help="Record files, folders of them, globs, or prefix@1024; local or remote.",
        ),
    ] = None,
    split: Annotated[
        list[str] | None,
        typer.Option(
            "--split", metavar="NAME=GLOB", help="The files of a split, where names do not say it."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="NAME", help="What the dataset is called [default: by its files]."
        ),
    ] = None,
    format_of_files: Annotated[
        str | None,
        typer.Option(
            "--format-of-files",
            metavar="FORMAT",
            help="What the files are [default: by their names, or by how they begin].",
        ),
    ] = None,
    crc: Annotated[
        bool, typer.Option("--crc", help="Read the contents too, and check their checksums.")
    ] = False,
    jobs: Annotated[
        Any, number_option("--jobs", "Count with N processes [default: one a processor].")
    ] = None,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going",
            help="Name all that is broken or missing, and write what is whole.",
        ),
    ] = False,
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="LAYOUT",
            help="Name the files that changed since index wrote this layout, in PATH.. or where "
            "they were; exit with 1 if there are any.",
        ),
    ] = None,
    no_cache: Annotated[
        bool,
        typer.Option("--no-cache", help="Count every file anew, and keep no counts for next time."),
    ] = False,
    runner: RunnerOption = "local",
    tfds: Annotated[
        str | None,
        typer.Option(
            "--tfds",
            metavar="FOLDER",
            help="Write the metadata that TFDS reads the files by into their folder, or one above.",
        ),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            "--features",
            metavar="FEATURES",
            help="With --tfds, what examples hold: a features.json, module:function, "
            "module:Builder, or a dataset of TFDS with the same.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="With --tfds, replace metadata that is there already.")
    ] = False,
    every_row: AllOption = False,
) -> None:
    """Count the examples of record files without metadata, and write them as a layout.

    From framing or footers alone; contents are read where --crc asks for it. Splits and shard order
    come from the files' names. A file that is broken, missing between others or there twice is
    named, nothing is written, and index exits with 1; with --keep-going the layout of all that is
    whole is written nevertheless. Counts are kept in a cache: the next run reads what changed.

    Examples:
      # What do these files hold?
      shardctl index data/
      # As a layout, which -d takes
      shardctl index data/ -o layout.yaml
      # What changed since? Exits with 1 where something did
      shardctl index --check layout.yaml
    """
    from shardctl.readers.index.index import index as index_files

    if check is not None:
        others = {
            "--split": split,
            "--name": name,
            "--format-of-files": format_of_files,
            "--keep-going": keep_going,
            "--tfds": tfds,
            "--runner": runner != "local",
        }
        for option, value in others.items():
            if value:
                raise UsageError(f"{option} with --check, which compares files with a layout alone")
        _check(check, out, paths or [], crc=crc, jobs=jobs, cache=not no_cache, every_row=every_row)
        return
    if not paths:
        raise UsageError("no PATH; name record files, a folder of them, or a glob")
    _check_tfds(tfds, features, force=force)
    FORMATS.chosen(out)  # what is wrong there is said before anything is counted
    with ProgressBars() as bars:
        chosen = beam_runner(runner, paths, ctx.obj or (), jobs=jobs, watch=bars.show)
        if not paths:
            raise UsageError("no PATH before --; name record files, a folder of them, or a glob")
        found = index_files(
            *paths,
            split=_splits(split or []),
            name=name,
            file_format=format_of_files,
            checksums=crc,
            keep_going=keep_going,
            jobs=jobs,
            cache=not no_cache,
            earlier=None if no_cache else out.output,
            runner=chosen,
            watch=bars.show,
        )
    warn(found.warnings)
    if tfds is None or not found.whole or out.output not in (None, "-"):
        again = {"--split": split, "--name": name, "--format-of-files": format_of_files}
        _write(found, out, [*paths, *_words(again)], every_row=every_row)
    if not found.whole:
        raise typer.Exit(1)
    if tfds is not None:
        _write_tfds(found, out, tfds, features or "", force=force, every_row=every_row)


def _check_tfds(tfds: str | None, features: str | None, *, force: bool) -> None:
    if tfds is None and (features is not None or force):
        given = "--force" if features is None else "--features"
        raise UsageError(f"{given} without --tfds FOLDER, where the metadata goes")
    if tfds is not None and features is None:
        raise UsageError(
            "--tfds without --features: TFDS decodes examples by their features, which no file "
            "tells; give a features.json, module:function, or a dataset of TFDS with the same"
        )


def _write_tfds(
    found: "Index", out: OutputOptions, folder: str, features: str, *, force: bool, every_row: bool
) -> None:
    """Write the metadata of TFDS, and say so on stdout, or in which way files are to be renamed."""
    from shardctl.tfds.imports import quiet_tensorflow

    with quiet_tensorflow():
        from shardctl.tfds.metadata.write import write_metadata

        written = write_metadata(found.dataset, folder, features, force=force)
    warn(written.warnings)
    to_stdout = out if out.output in (None, "-") else OutputOptions()
    _OF_TFDS.write(to_stdout, written, every_row=every_row)
    if not written.readable:
        raise typer.Exit(1)


def _check(
    layout: str,
    out: OutputOptions,
    paths: list[str],
    *,
    crc: bool,
    jobs: int | None,
    cache: bool,
    every_row: bool,
) -> None:
    from shardctl.readers.index.check import check_index

    with ProgressBars() as bars:
        found = check_index(layout, *paths, checksums=crc, jobs=jobs, cache=cache, watch=bars.show)
    warn(found.warnings)
    _OF_CHECK.write(out, found, every_row=every_row)
    if not found.equal:
        raise typer.Exit(1)


def _words(options: dict[str, Any]) -> list[str]:
    """Return options as they were given."""
    given = {option: value for option, value in options.items() if value}
    lists = {option: [one] if isinstance(one, str) else one for option, one in given.items()}
    return [word for option, values in lists.items() for one in values for word in (option, one)]


def _splits(words: list[str]) -> dict[str, str]:
    splits: dict[str, str] = {}
    for word in words:
        name, sign, glob = word.partition("=")
        if not (name and sign and glob):
            raise UsageError(f"--split {quoted(word)}: NAME=GLOB is needed, as train='train-*'")
        if name in splits:
            raise UsageError(f"--split {quoted(name)} is there twice")
        splits[name] = glob
    return splits


def _name_faults(found: "Index") -> None:
    from shardctl.rendering.text.quantities import first_few

    for fault in first_few(list(found.faults()), _MOST_FAULTS):
        fail(fault)


def _write(found: "Index", out: OutputOptions, paths: list[str], *, every_row: bool) -> None:
    from shardctl.rendering.index.index import written

    form = FORMATS.chosen(out)
    if not found.whole and not found.keep_going:
        _name_faults(found)
        return
    to_file = out.output not in (None, "-")
    if form == "table":
        FORMATS.write(out, found, every_row=every_row, refs=paths)
    elif form == "csv":
        FORMATS.write(out, found)
    else:
        beside = os.path.dirname(os.path.abspath(out.output or "")) if to_file else None
        FORMATS.write(out, found, beside)
    if to_file:
        _name_faults(found)
        for line in written(found, out.output or ""):
            say(line)
