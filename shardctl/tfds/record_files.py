"""Record files without metadata as what TFDS's reader needs of a builder; read as bytes."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

from shardctl.core.arguments.checked import checked
from shardctl.core.dataset.dataset import Dataset, DatasetLike, Split, as_dataset
from shardctl.core.dataset.folders import folders_of
from shardctl.core.text import quoted
from shardctl.core.tfds_rules import DATASET_INFO_FILENAME
from shardctl.errors import DatasetError
from shardctl.files.stores.stores import is_remote
from shardctl.planning.file_formats import refuse_unreadable
from shardctl.tfds.imports import tensorflow_datasets

RECORD = "record"  # the one feature of an example


@checked
def record_files(dataset: DatasetLike) -> RecordFiles:
    """Return what stands for a TFDS builder over record files without metadata.

    It goes wherever `shardctl.tfds` takes a builder, and TFDS's own reader opens the files. As
    nobody has said what is in them, an example is `{"record": ..}`, the bytes as a string scalar,
    and `transform` parses it.

    Args:
        dataset: what `-d` takes, as "data/train-*.tfrecord", a list of these, or a Dataset.

    Raises:
        DatasetError: there are no such files, they are not on this machine, or TFDS does not read
            them.
        MissingDependencyError: TFDS is not installed.

        builder = shardctl.tfds.record_files("data/train-*.tfrecord")
        dataset = shardctl.tfds.resume(builder, "plan.yaml", transform=parse)
    """
    return RecordFiles(as_dataset(dataset))


class RecordFiles:
    """A builder of files that have no metadata, for whatever reads a builder in this room.

    TFDS's own reader opens the files, in its order; an example is `{"record": bytes}`, a string
    scalar as it lies in the file, since nobody has said what is in it.
    """

    builder_config = None

    def __init__(self, dataset: Dataset) -> None:
        """Take a dataset as `shardctl.read_dataset` returns it.

        Raises:
            DatasetError: it has no files, or they are compressed, which TFDS does not read.
            MissingDependencyError: TFDS is not installed.
        """
        refuse_unreadable(dataset)
        if dataset.compression is not None:
            raise DatasetError(
                f"{dataset.title}: TFDS reads TFRecord files as they are, and these are "
                f"{dataset.compression}"
            )
        self.dataset = dataset
        splits = tensorflow_datasets("core.splits")
        self._splits = [_split_info(split) for split in dataset.splits]
        self.data_dir = dataset.data_dir
        self.info = SimpleNamespace(
            name=dataset.name,
            full_name=dataset.title,
            version=dataset.version,
            features=_Bytes(),
            disable_shuffling=dataset.ordered,
            file_format=tensorflow_datasets("core.file_adapters").FileFormat.from_value(
                dataset.file_format
            ),
            splits=splits.SplitDict(self._splits),
        )

    def __repr__(self) -> str:
        return repr(self.dataset).replace("Dataset", "RecordFiles", 1)

    def as_dataset(
        self,
        *,
        split: Any,
        read_config: Any = None,
        shuffle_files: bool = False,
        decoders: Any = None,
    ) -> Any:
        """Return what `DatasetBuilder.as_dataset` returns; there is nothing to decode."""
        reader = tensorflow_datasets("core.reader").Reader({}, file_format=self.info.file_format)
        reader._parser = _Bytes()
        return reader.read(
            instructions=split,
            split_infos=self._splits,
            read_config=read_config or tensorflow_datasets().ReadConfig(),
            shuffle_files=shuffle_files,
            disable_shuffling=self.info.disable_shuffling,
        )


class _Bytes:
    """The features of such files, and the parser of their examples."""

    def parse_example(self, record: Any) -> dict[str, Any]:
        return {RECORD: record}

    def deserialize_example(self, record: Any, decoders: Any = None) -> dict[str, Any]:
        return {RECORD: record}


def _split_info(split: Split) -> Any:
    """Return a split as TFDS's reader takes it, with the paths of its files in shard order.

    TFDS sorts the paths that it makes of a template, since their numbers are padded.
    """
    places = (split.location(shard) for shard in range(split.num_shards))
    paths = [os.path.join(folder, name) for folder, name in places if folder is not None]
    if len(paths) < split.num_shards:
        raise DatasetError(f"split {quoted(split.name)}: its files are not on this machine")
    splits = tensorflow_datasets("core.splits")
    kind = type("RecordFilesSplit", (splits.SplitInfo,), {"filepaths": property(lambda _: paths)})
    return kind(name=split.name, shard_lengths=list(split.shard_lengths), num_bytes=0)


def builder_of(dataset: Dataset) -> Any:
    """Return what reads the files of a dataset: a builder of TFDS, or `RecordFiles`.

    Metadata that lies beside files that were counted is left alone: it may be about others.

    Raises:
        DatasetError: its files are not on this machine, or of a compression that TFDS cannot read.
        MissingDependencyError: TFDS is not installed.
    """
    lie_in = (folder.data_dir for folder in folders_of(dataset))
    folders = [folder for folder in dict.fromkeys(lie_in) if folder]
    if dataset.is_counted or not all(map(_has_metadata, folders)):
        return RecordFiles(dataset)
    tfds = tensorflow_datasets()
    if len(folders) == 1:
        return tfds.builder_from_directory(folders[0])
    return tfds.builder_from_directories(folders)


def _has_metadata(folder: str) -> bool:
    if is_remote(folder):  # TFDS says what is wrong there
        return True
    return os.path.isfile(os.path.join(folder, DATASET_INFO_FILENAME))
