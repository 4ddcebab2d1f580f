# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl list`: the datasets that `--dataset` takes by name."""

import builtins
import os
from typing import TYPE_CHECKING, Annotated

import typer

from shardctl.cli.completion import values as completion
from shardctl.cli.formats import Formats, OutputOptions, verb_formats
from shardctl.cli.options.dataset import project_here
from shardctl.cli.options.shared import DatasetOptions
from shardctl.cli.output import warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardctl.planning.list import DatasetList, ListedDataset
    from shardctl.readers.data_dirs import DataDirs, FoundDataset

FORMATS = Formats(renderers=verb_formats("rendering.list", "list"))


# A command is named like its module; nothing here needs the built-in of that name.
def list(
    out: OutputOptions,
    words: Annotated[
        builtins.list[str] | None,  # `list` is the command
        typer.Argument(
            metavar="[WORD]...",
            help="Show what has each of these words in its name, config, version or format.",
            autocompletion=completion.datasets,
        ),
    ] = None,
    data_dir: Annotated[
        str | None,
        typer.Option(
            "--data-dir",
            metavar="DIR",
            help="List this folder too, before $TFDS_DATA_DIR and ~/tensorflow_datasets.",
        ),
    ] = None,
    every_row: Annotated[
        bool,
        typer.Option("--all", help="Show each config and version of the built-in layouts."),
    ] = False,
) -> None:
    """List the datasets that --dataset takes by name: those in data dirs, then built-in layouts.

    Of each the examples and bytes of all splits are shown, as its metadata states them, and the
    format of its files. A built-in layout says how a dataset is cut into shards; its files need not
    be here.

    Examples:
      # Every name that -d takes
      shardctl list
      # Those in a folder of datasets, too
      shardctl list --data-dir ~/data
      # What is called so
      shardctl list imagenet v2
    """
    from shardctl.readers.data_dirs import data_dirs
    from shardctl.readers.project_file import Project
    from shardctl.rendering.text.quantities import first_few

    only_data_dir = DatasetOptions(dataset=[""])  # no dataset is taken from a project
    project = Project() if data_dir is not None else project_here(only_data_dir)
    listed = _datasets_in(data_dirs(data_dir, os.environ, project), words or ())
    FORMATS.write(out, listed, every_layout=every_row)
    warn(first_few(listed.problems))


def _datasets_in(dirs: "DataDirs", words: "Sequence[str]") -> "DatasetList":
    """Return the datasets in some data dirs, and the built-in layouts, that have all words."""
    from shardctl.planning.list import DatasetList, ListedDataset
    from shardctl.readers.catalog import catalog_datasets, catalog_names
    from shardctl.readers.data_dirs import list_datasets

    listed = DatasetList(
        data_dirs=tuple(map(str, dirs.local())),
        in_data_dirs=tuple(_read(found, words) for found in list_datasets(dirs)),
        built_in=tuple(
            ListedDataset(
                name=dataset.name, config=dataset.config, version=dataset.version, dataset=dataset
            )
            for name in catalog_names()
            for dataset in catalog_datasets(name)
        ),
    )
    return listed.having(words) if words else listed


def _read(found: "FoundDataset", words: "Sequence[str]") -> "ListedDataset":
    """Return a dataset with its metadata, or with what is broken in it.

    What cannot have the words is not read, as it is not shown.
    """
    from shardctl.errors import DatasetError
    from shardctl.planning.list import ListedDataset, may_have
    from shardctl.readers.tfds_metadata import read_tfds_folder

    dataset, problem = None, None
    if may_have(str(found), words):
        try:
            dataset = read_tfds_folder(found.path)
        except DatasetError as error:
            problem = str(error)
    return ListedDataset(
        name=found.name,
        config=found.config,
        version=found.version,
        path=str(found.path),
        dataset=dataset,
        problem=problem,
    )
