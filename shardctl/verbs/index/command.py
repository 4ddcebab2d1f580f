# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl index`: record files without metadata, counted and written as a layout."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from shardctl.base.text import public_url, quoted
from shardctl.cli import output
from shardctl.cli.options import shared
from shardctl.errors import UsageError

if TYPE_CHECKING:
    from shardctl.dataset.dataset import Dataset
    from shardctl.metadata.index.index import Index

_MOST_FAULTS = 20  # that are named on stderr; the answer has all

FORMATS = output.formats_of("index")
_OF_CHECK = output.formats_of("index", "check")
_OF_TFDS = output.formats_of("index", "tfds_metadata")


@dataclass(frozen=True, kw_only=True)
class TfdsOptions:
    """The folder of the metadata, the features, and whether existing metadata is replaced.

    Options:
      --tfds FOLDER: Write dataset_info.json and features.json into the folder of the files, or one
        above.
      --features FEATURES: The features of an example: a features.json, module:function,
        module:Builder, or a TFDS dataset with the same features.
      --force: Replace existing metadata.
    """

    panel: ClassVar[str] = output.TFDS

    tfds: shared.Text = None
    features: shared.Text = None
    force: shared.Flag = False

    @property
    def wanted(self) -> bool:
        """Whether metadata is to be written.

        Raises:
            UsageError: one of the options without another that it needs.
        """
        if self.tfds is None and (self.features is not None or self.force):
            given = "--force" if self.features is None else "--features"
            raise UsageError(f"{given} needs --tfds FOLDER, where the metadata is written")
        if self.tfds is not None and self.features is None:
            raise UsageError(
                "--tfds needs --features: a features.json, module:function, or a TFDS dataset with "
                "the same features"
            )
        return self.tfds is not None

    def write(self, dataset: "Dataset", out: output.OutputOptions, *, every_row: bool) -> None:
        """Write the metadata and say so."""
        from shardctl.tfds.imports import quiet_tensorflow

        with quiet_tensorflow(output.warn):
            from shardctl.tfds.metadata_files import write_metadata

            done = write_metadata(dataset, self.tfds or "", self.features, force=self.force)
        output.warn(done.warnings)
        _OF_TFDS.write(out, done, every_row=every_row)


def index(
    ctx: typer.Context,
    out: output.OutputOptions,
    metadata: TfdsOptions,
    paths: Annotated[list[str] | None, shared.argument()] = None,
    split: shared.Texts = None,
    name: shared.Text = None,
    format_of_files: shared.Text = None,
    crc: shared.Flag = False,
    digest: shared.Flag = False,
    jobs: shared.Number = None,
    keep_going: shared.Flag = False,
    check: shared.Text = None,
    no_cache: shared.Flag = False,
    runner: shared.Word = "local",
    every_row: output.AllOption = False,
) -> None:
    """Count the examples of record files without metadata, and write them as a layout.

    Counts come from framing or footers; contents are read only with --crc. Splits and shard order
    come from the file names. If a file is broken, missing or there twice, it is named, nothing is
    written, and the exit code is 1. With --keep-going the layout of the other files is written.
    Counts are cached: the next run reads only what changed.

    Arguments:
      paths PATH...: Record files, folders of them, globs, or prefix@1024; local or remote.

    Options:
      --split NAME=GLOB: The files of a split, if their names do not show it.
      --name NAME: Name of the dataset [default: from its files].
      --format-of-files FORMAT: Format of the files [default: from their names or first bytes].
      --crc: Also read the contents and check their checksums.
      --digest: Also read all bytes of each file, and keep their SHA-256 in the layout: verify
        --files then finds every changed byte, in any format.
      --jobs N: Number of processes that count [default: one per processor].
      --keep-going: Name every broken or missing file, and write the layout of the others.
      --check LAYOUT: Name the files that changed since index wrote this layout; exit with 1 if
        there are any. Without PATH the files are looked for where they were.
      --no-cache: Count every file again, and keep no counts.

    Examples:
      # What do these files hold?
      shardctl index ~/data/toy
      # As a layout, which -d takes
      shardctl index ~/data/toy -o layout.yaml
      # What changed since? Exits with 1 where something did
      shardctl index --check layout.yaml
    """
    from shardctl.metadata.index.index import index as index_files

    words, to_tfds = paths or [], metadata.wanted
    counting = shared.chosen_runner(runner, words, ctx.obj or (), jobs=jobs)
    how: dict[str, Any] = {"checksums": crc, "jobs": jobs, "cache": not no_cache}
    how["runner"] = counting
    by_hand = {"--split": split, "--name": name, "--format-of-files": format_of_files}
    if check is not None:
        for option, value in (
            by_hand | {"--digest": digest, "--keep-going": keep_going, "--tfds": to_tfds}
        ).items():
            if value:
                raise UsageError(f"{option} cannot be used with --check")
        _check(check, out, words, how, every_row=every_row)
        return
    if not words:
        raise UsageError("index needs PATH: record files, a folder of them, or a glob")
    FORMATS.chosen(out)  # what is wrong there is said before anything is counted
    with output.ProgressBars() as bars:
        found = index_files(
            *words,
            split=_splits(split) if split else None,
            name=name,
            file_format=format_of_files,
            digest=digest,
            keep_going=keep_going,
            watch=bars.show,
            **how,
        )
    output.warn(found.warnings)
    to_file = out.output not in (None, "-")
    if to_file or not to_tfds or not found.whole:
        typed = [*map(public_url, words), *_words(by_hand)]  # no path begins with - here
        _write(found, out, typed, every_row=every_row)
    if not found.whole:
        if to_tfds:
            output.say("nothing is written for TFDS, which needs every file of a split")
        raise typer.Exit(1)
    if to_tfds:
        out = output.OutputOptions() if to_file else out
        metadata.write(found.dataset, out, every_row=every_row)


def _check(
    layout: str,
    out: output.OutputOptions,
    paths: list[str],
    how: dict[str, Any],
    *,
    every_row: bool,
) -> None:
    from shardctl.verbs.index.check import check_index

    if out.output is not None and os.path.realpath(out.output) == os.path.realpath(layout):
        raise UsageError(
            f"--output {quoted(out.output, 200)} is the layout that is checked; name another file"
        )
    with output.ProgressBars() as bars:
        found = check_index(layout, *paths, **how, watch=bars.show)
    output.warn(found.warnings)
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
    from shardctl.draw.quantities import first_few

    for fault in first_few(list(found.faults()), _MOST_FAULTS):
        output.fail(fault)


def _write(found: "Index", out: output.OutputOptions, paths: list[str], *, every_row: bool) -> None:
    from shardctl.metadata.index.index import check_yaml
    from shardctl.verbs.index.view import written

    form = FORMATS.chosen(out)
    if not found.whole and not found.keep_going:
        _name_faults(found)
        output.say("nothing is written; --keep-going names every such file and writes the others")
        return
    to_file = out.output not in (None, "-")
    if form == "table":
        FORMATS.write(out, found, every_row=every_row, refs=paths)
    elif form == "csv":
        FORMATS.write(out, found)
    else:
        if form == "yaml":
            check_yaml(found)
        beside = os.path.dirname(os.path.abspath(out.output or "")) if to_file else None
        FORMATS.write(out, found, beside)
    if to_file:
        _name_faults(found)
        for line in written(found, out.output or ""):
            output.say(line)
