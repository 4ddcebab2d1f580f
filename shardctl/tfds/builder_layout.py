"""The dataset that a TFDS builder reads, and a builder for record files without metadata."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Annotated, Any

from shardctl.base.arguments import Kind, checked
from shardctl.base.text import quoted
from shardctl.base.tfds_rules import DATASET_INFO_FILENAME
from shardctl.dataset.dataset import Dataset, DatasetLike, Split, as_dataset
from shardctl.dataset.folders import folders_of
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError, UsageError
from shardctl.metadata.tfds_metadata import read_example_size, read_tfds_folder
from shardctl.order.resolved_spec import refuse_unreadable
from shardctl.stores.stores import is_remote, path_of
from shardctl.tfds.imports import tensorflow_datasets


def _is_builder(value: Any) -> Any:
    # By what is used of it, since TFDS is not imported before it is needed.
    if not (hasattr(value, "info") and hasattr(value, "data_dir")):
        raise UsageError('a TFDS builder is needed, as tfds.builder("mnist")')
    return value


Builder = Annotated[Any, Kind(take=_is_builder, needed="a TFDS builder", several="TFDS builders")]


@checked
def dataset_of(builder: Builder) -> Dataset:
    """Return what `builder.info` says of the files, as `shardctl` reads it from the metadata.

    `builder` is any `tfds.core.DatasetBuilder` whose dataset is prepared, also one over several
    folders (`tfds.builder_from_directories`), whose splits TFDS lists in no fixed order.

    Raises:
        DatasetError: the builder has no splits, because nothing is prepared.
    """
    # Before `info` is used, which here has only what TFDS's reader asks for.
    if isinstance(builder, RecordFiles):
        return builder.dataset
    info = builder.info
    splits = list(info.splits.values())
    if not splits:
        raise DatasetError(
            f"{info.full_name} has no splits: it is not prepared in {os.fspath(builder.data_dir)}; "
            "call builder.download_and_prepare() first"
        )
    config = builder.builder_config
    dataset = Dataset(
        name=info.name,
        # `builder_config` is None for a dataset without configs.
        config=None if config is None else config.name,
        version=str(info.version),
        file_format=info.file_format.value,
        data_dir=os.fspath(builder.data_dir),
        ordered=bool(info.disable_shuffling),
        splits=tuple(_split(split) for split in splits),
        origin="builder",
        # Read only if asked: the feature size needs another file of the folder.
        features=partial(read_example_size, path_of(os.fspath(builder.data_dir))),
    )
    if not dataset.in_several_folders:
        return dataset
    return replace(dataset, folders=tuple(map(_with_metadata, folders_of(dataset))))


def _with_metadata(folder: Dataset) -> Dataset:
    """Return a folder as its metadata describes it, which a builder over several does not keep.

    Where that cannot be read, or says otherwise by now, it stays as the builder knows it.
    """
    if folder.data_dir is None:
        return folder
    try:
        found = read_tfds_folder(path_of(folder.data_dir))
    except DatasetError:
        return folder
    # Compared by the lengths of the shards: metadata that was written anew is not of these files.
    known, here = ({s.name: s.shard_lengths for s in d.splits} for d in (folder, found))
    return found if known == here else folder


def in_order_of(dataset: Dataset, names: Sequence[str]) -> Dataset:
    """Return the dataset with its splits in the order of `names`, those not named at the end."""
    # The sort is stable, so splits that are not named keep their order.
    rank = {name: index for index, name in enumerate(names)}
    splits = sorted(dataset.splits, key=lambda split: rank.get(split.name, len(rank)))
    return replace(dataset, splits=tuple(splits))


def _split(split: Any) -> Split:
    # A split over several folders lists its shards folder by folder.
    parts = list(_parts(split))
    return Split(
        name=split.name,
        shard_lengths=tuple(length for part in parts for length in part.shard_lengths),
        files=tuple(_files(part) for part in parts),
        num_bytes=int(split.num_bytes) or None,  # TFDS writes 0 where it does not know
    )


def _parts(split: Any) -> Iterator[Any]:
    """Yield the pieces of a split, one for each folder (TFDS core/splits.py, MultiSplitInfo)."""
    parts = getattr(split, "split_infos", None)
    if parts is None:
        yield split
        return
    for part in parts:
        yield from _parts(part)


def _files(split: Any) -> ShardFiles:
    template = split.filename_template
    if template is None:
        raise DatasetError(f"split {split.name!r} has no files that TFDS knows of")
    return ShardFiles.from_template(
        template.template,
        dataset=template.dataset_name or "",
        split=split.name,
        file_format=template.filetype_suffix or "",
        num_shards=len(split.shard_lengths),
        data_dir=os.fspath(template.data_dir),
    )


# Record files without metadata as what TFDS's reader needs of a builder; read as bytes.


RECORD = "record"  # the one feature of an example


@checked
def record_files(dataset: DatasetLike) -> RecordFiles:
    """Return what stands for a TFDS builder over record files without metadata.

    It goes wherever `shardctl.tfds` takes a builder, and TFDS's own reader opens the files. As
    what is in them is unknown, an example is `{"record": ..}`, the bytes as a string scalar,
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
    scalar as it lies in the file, since what is in it is unknown.
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
            # TFDS opens TFRecord files without a compression type (core/file_adapters.py).
            raise DatasetError(
                f"{dataset.title}: TFDS reads TFRecord files as they are, and these are "
                f"{dataset.compression}"
            )
        self.dataset = dataset
        splits = tensorflow_datasets("core.splits")
        self._splits = [_split_info(split) for split in dataset.splits]
        self.data_dir = dataset.data_dir
        # The attributes of `info` that TFDS's reader and this package use, and no more.
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
        # `Reader` parses with example specs of the features; there are none, so its parser is
        # replaced by one that keeps the bytes.
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
    # `location` is (folder, name) of a shard; the folder is None where only names are known.
    places = (split.location(shard) for shard in range(split.num_shards))
    paths = [os.path.join(folder, name) for folder, name in places if folder is not None]
    if len(paths) < split.num_shards:
        raise DatasetError(f"split {quoted(split.name)}: its files are not on this machine")
    splits = tensorflow_datasets("core.splits")
    # The property `filepaths` of SplitInfo makes paths of a template. These files may have any
    # names, so the list is given instead.
    kind = type("RecordFilesSplit", (splits.SplitInfo,), {"filepaths": property(lambda _: paths)})
    return kind(name=split.name, shard_lengths=list(split.shard_lengths), num_bytes=0)


def builder_of(dataset: Dataset) -> Any:
    """Return what reads the files of a dataset: a builder of TFDS, or `RecordFiles`.

    Metadata that lies beside files that were counted is left alone: it may be about others.

    Raises:
        DatasetError: its files are not on this machine, or of a compression that TFDS cannot read.
        MissingDependencyError: TFDS is not installed.
    """
    # In the order in which the folders come first, each once.
    lie_in = (folder.data_dir for folder in folders_of(dataset))
    folders = [folder for folder in dict.fromkeys(lie_in) if folder]
    # Files that were counted have no metadata, or metadata that may be about others.
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
