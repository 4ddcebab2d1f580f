# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl demo`: a folder of small datasets, on which the guides can be tried."""

from typing import Annotated

from shardctl.cli.options.shared import argument
from shardctl.cli.output import Formats, OutputOptions, as_table

FORMATS = Formats(renderers={"table": as_table("verbs.demo.view:demo_table")})


def demo(folder: Annotated[str, argument()] = "shardctl-demo") -> None:
    """Write small datasets on which every command of the guides can be tried.

    Datasets as TFDS writes them, record files without metadata, damaged files, a mixture, a
    shardctl.yaml, and the files that guides show. TensorFlow is not needed.

    Arguments:
      folder [FOLDER]: A new folder, or an empty one.

    Examples:
      # Then try: cd shardctl-demo && shardctl simulate --take 8
      shardctl demo
      # In another folder
      shardctl demo /tmp/demo
    """
    from shardctl.verbs.demo.answer import CONTENTS, write_demo

    num_files = write_demo(folder)
    FORMATS.write(OutputOptions(), CONTENTS, folder=folder, num_files=num_files)
