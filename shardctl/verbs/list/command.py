# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl list`: the datasets that `--dataset` takes by name."""

import builtins
from typing import Annotated

import typer

from shardctl.cli import completion
from shardctl.cli.options.dataset import project_here
from shardctl.cli.options.shared import Text, argument, option
from shardctl.cli.output import OutputOptions, formats_of, warn

FORMATS = formats_of("list")


# A command is named like its module; nothing here needs the built-in of that name.
def list(
    out: OutputOptions,
    words: Annotated[builtins.list[str] | None, argument(offered=completion.datasets)] = None,
    data_dir: Text = None,
    every_row: Annotated[bool, option("--all")] = False,
) -> None:
    """List the datasets that --dataset takes by name: those in data dirs, then built-in layouts.

    Examples and bytes are those of all splits, from the metadata. A built-in layout is the shards
    of a well-known dataset, whose files need not be here.

    Arguments:
      words [WORD]...: Show datasets with all these words in their name, config, version or format.

    Options:
      --data-dir DIR: List this folder or URL too, before $TFDS_DATA_DIR and ~/tensorflow_datasets.
      --all: Show each config and version of the built-in layouts.

    Examples:
      # Every name that -d takes
      shardctl list
      # Also those in a folder of datasets
      shardctl list --data-dir ~/data
      # Datasets with these words in their name
      shardctl list imagenet v2
    """
    from shardctl.api.list_datasets import datasets_in
    from shardctl.draw.quantities import first_few
    from shardctl.metadata.dataset_names import data_dirs
    from shardctl.metadata.project_file import Project

    project = Project() if data_dir is not None else project_here()
    listed = datasets_in(data_dirs(data_dir, project), words or ())
    FORMATS.write(out, listed, every_layout=every_row)
    warn(first_few(listed.problems))
    if words and not listed.datasets:
        raise typer.Exit(1)
