# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl layout`: the shards of a dataset's splits."""

from shardctl.cli.options.dataset import DatasetOptions, chosen_dataset, project_here
from shardctl.cli.options.shared import Splits
from shardctl.cli.output import AllOption, OutputOptions, PictureOption, formats_of, warn

FORMATS = formats_of("layout", pictures=True)


def layout(
    source: DatasetOptions,
    out: OutputOptions,
    splits: Splits = None,
    every_row: AllOption = False,
    picture: PictureOption = None,
) -> None:
    """Show the shards of each split: examples, bytes and ids of each, and how even they are.

    Bytes are the sizes of the files if they are on this machine, else as the metadata states.
    Files that disagree with the metadata are warnings. Imbalance is the largest shard divided by
    the mean: 1 if all are equal, 2 if the largest has twice the mean.

    Arguments:
      splits SPLIT...: Splits to show [default: all].

    Examples:
      # How the training split is cut into files
      shardctl layout train -d imagenet2012
      # A layout file, which -d takes on a machine without the dataset
      shardctl layout -d mnist -o layout.yaml
      # The largest, empty and missing shards, as a picture
      shardctl layout train -d imagenet2012 -o layout.svg
    """
    from shardctl.draw.quantities import first_few
    from shardctl.metadata.files_on_disk import check_files, not_listed, with_disk_bytes
    from shardctl.verbs.layout.answer import layout as lay_out

    dataset = chosen_dataset(source, project_here())
    files = check_files(dataset)
    shown = lay_out(with_disk_bytes(dataset, files), *splits or ())
    names = {None, *(split.split.name for split in shown.splits)}
    problems = [problem.reason or "" for problem in files.problems if problem.split in names]
    warn(not_listed(files))
    warn(first_few(problems))
    FORMATS.write(out, shown, every_row=every_row, picture=picture)
