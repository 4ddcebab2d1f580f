# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""Metadata that TFDS reads counted files by: where it goes, and what examples hold."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from shardctl.cli.options.shared import Flag, Text
from shardctl.cli.output import TFDS, Formats, OutputOptions, verb_formats, warn
from shardctl.errors import UsageError
from shardctl.stores.paths import is_remote

if TYPE_CHECKING:
    from shardctl.dataset.dataset import Dataset

FORMATS = Formats(renderers=verb_formats("verbs.index.view", "tfds_metadata"))


@dataclass(frozen=True, kw_only=True)
class TfdsOptions:
    """The folder of the metadata, the features, and whether others may be replaced.

    Options:
      --tfds FOLDER: Write dataset_info.json and features.json into the files' folder, or one above.
      --features FEATURES: What examples hold: a features.json, module:function, module:Builder, or
        a dataset of TFDS with the same.
      --force: Replace metadata that is there already.
    """

    panel: ClassVar[str] = TFDS

    tfds: Text = None
    features: Text = None
    force: Flag = False

    @property
    def wanted(self) -> bool:
        """Whether metadata is to be written.

        Raises:
            UsageError: one of the options without another that it needs, or a folder that TFDS
                would not read.
        """
        if self.tfds is None and (self.features is not None or self.force):
            given = "--force" if self.features is None else "--features"
            raise UsageError(f"{given} without --tfds FOLDER, where the metadata goes")
        if self.tfds is not None and self.features is None:
            raise UsageError(
                "--tfds without --features: TFDS decodes examples by their features, which no file "
                "tells; give a features.json, module:function, or a dataset of TFDS with the same"
            )
        if self.tfds is not None and is_remote(self.tfds):
            from shardctl.tfds.imports import quiet_tensorflow

            with quiet_tensorflow(warn):
                from shardctl.tfds.metadata import check_folder

                check_folder(self.tfds)  # before a million files are counted
        return self.tfds is not None

    def write(self, dataset: "Dataset", out: OutputOptions, *, every_row: bool) -> bool:
        """Write the metadata and say so, or in which way files are to be renamed first.

        Returns whether TFDS reads the files now.
        """
        from shardctl.tfds.imports import quiet_tensorflow

        with quiet_tensorflow(warn):
            from shardctl.tfds.metadata import write_metadata

            done = write_metadata(dataset, self.tfds or "", self.features, force=self.force)
        warn(done.warnings)
        FORMATS.write(out, done, every_row=every_row)
        return done.readable
