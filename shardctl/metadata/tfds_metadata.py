"""The metadata TFDS writes beside a prepared dataset: dataset_info.json."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from shardctl.base import tfds_rules
from shardctl.base.text import choices, printable, quoted
from shardctl.dataset.dataset import Dataset, ExampleSize, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError, NotThereError
from shardctl.files import fields
from shardctl.files.parse import read_json
from shardctl.stores import stores

_STATE_OF_ARROW = "state.json"  # beside what Hugging Face's save_to_disk writes
_MAX_DEPTH = 3  # name/config/version under a data dir
_MAX_FOLDERS = 20_000


def read_tfds_folder(path: stores.AnyPath) -> Dataset:
    """Return the dataset whose dataset_info.json is in a folder, or in the only one below it.

    So `mnist/` means `mnist/3.0.1`, and so does a data dir that holds one dataset. Folders that
    TFDS is still writing (`3.0.1.incomplete..`) do not count.

    Raises:
        DatasetError: no folder, no dataset in it, or several, which are listed as the choices; or
            the metadata is broken.
    """
    return dataset_in(only_folder(tfds_folders(path), path))


def dataset_in(folder: stores.AnyPath) -> Dataset:
    """Return the dataset whose dataset_info.json is right in a folder.

    Raises:
        NotThereError: there is none, or one of Hugging Face Datasets, see `holds_tfds_metadata`.
        DatasetError: the metadata is broken, or cannot be read.
    """
    source = printable(str(folder / tfds_rules.DATASET_INFO_FILENAME))
    document = read_json(folder / tfds_rules.DATASET_INFO_FILENAME)
    if is_hugging_face_info(document):
        raise NotThereError(f"{source} is that of Hugging Face Datasets, not of TFDS")
    if not isinstance(folder, stores.RemotePath):
        folder = Path(stores.absolute(folder))
    with fields.said_about(source):
        dataset = dataset_from_info(document, data_dir=str(folder))
    return replace(dataset, features=partial(read_example_size, folder))


def only_folder(found: Sequence[stores.AnyPath], path: stores.AnyPath) -> stores.AnyPath:
    """Return the one folder that was found with a dataset at a path or below; raises as above."""
    if len(found) == 1:
        return found[0]
    if found:
        listed = choices(stores.way_below(path, folder) for folder in found)
        raise DatasetError(f"{quoted(path, 200)} holds {len(found)} datasets; choose one: {listed}")
    raise DatasetError(
        f"{quoted(path, 200)} holds no {tfds_rules.DATASET_INFO_FILENAME}, nor does a folder below "
        "it"
    )


def tfds_folders(path: stores.AnyPath) -> list[stores.AnyPath]:
    """Return the folders with dataset_info.json at `path`, or else up to three levels below it.

    Raises:
        DatasetError: `path` is not a folder that can be listed.
    """
    if holds_tfds_metadata(path):
        return [path]
    found: list[stores.AnyPath] = []
    at_once = isinstance(path, stores.RemotePath)
    level = [path / name for name in stores.subfolders(path) if ".incomplete" not in name]
    num_folders = 0
    # Level by level, so that remote folders of one level are asked at the same time.
    for depth in range(_MAX_DEPTH):
        num_folders += len(level)
        below: list[stores.AnyPath] = []
        for folder, is_dataset in zip(
            level, stores.answers(holds_tfds_metadata, level, at_once=at_once), strict=True
        ):
            # Below a dataset no other is looked for.
            (found if is_dataset else below).append(folder)
        if num_folders > _MAX_FOLDERS or depth == _MAX_DEPTH - 1:
            break
        names = stores.answers(_subfolders, below, at_once=at_once)
        level = [
            folder / name for folder, inner in zip(below, names, strict=True) for name in inner
        ]
    return sorted(found, key=lambda folder: str(folder).split("/"))


def holds_tfds_metadata(folder: stores.AnyPath) -> bool:
    """Return whether a folder has a dataset_info.json, and one of TFDS.

    Hugging Face Datasets writes a file of that name beside Arrow and Parquet files, see
    `is_hugging_face_info`. Broken metadata counts as TFDS's, whose reader says so. A remote one is
    not looked into: that is left to the reader of it.

    Raises:
        DatasetError: the place of a remote one cannot be asked.
    """
    path = folder / tfds_rules.DATASET_INFO_FILENAME
    if not stores.is_file(path):
        return False
    if isinstance(folder, stores.RemotePath):
        return True
    # Without files of theirs beside it the metadata is not even read.
    of_theirs = (
        file.path.endswith((".arrow", ".parquet"))
        for file in stores.listed(stores.files_in, folder)
    )
    if not (stores.is_file(folder / _STATE_OF_ARROW) or any(of_theirs)):
        return True
    try:
        info = read_json(path)
    except DatasetError:
        return True
    return not is_hugging_face_info(info)


def _subfolders(folder: stores.AnyPath) -> list[str]:
    return [name for name in stores.listed(stores.subfolders, folder) if ".incomplete" not in name]


def is_hugging_face_info(document: object) -> bool:
    """Return whether a parsed dataset_info.json is that of Hugging Face Datasets, not of TFDS.

    Theirs has features, and splits by their names; TFDS's has a list of splits.

    >>> is_hugging_face_info({"features": {}}), is_hugging_face_info({"name": "d", "splits": []})
    (True, False)
    """
    if not isinstance(document, Mapping):
        return False
    return "features" in document or isinstance(document.get("splits"), Mapping)


def dataset_from_info(document: object, *, data_dir: str | None) -> Dataset:
    """Return the dataset that a parsed dataset_info.json describes.

    Field names are read as protobuf's JSON parser does, `shardLengths` and `shard_lengths` alike,
    null being absent. Fields that say nothing about splits and files are not looked at.

    Raises:
        DatasetError: a field that is needed is missing or of the wrong kind.
    """
    info = fields.mapping(document, "the metadata")
    if is_hugging_face_info(info):
        raise DatasetError(
            "written by Hugging Face Datasets, not by TFDS; `shardctl index` counts the files"
        )
    name = fields.name(_field(info, "name") or "", "dataset name")
    file_format = fields.file_format(
        _field(info, "fileFormat") or tfds_rules.DEFAULT_FILE_FORMAT,
        tfds_rules.FILE_FORMATS,
        "TFDS has",
    )
    ordered = _field(info, "disableShuffling")
    splits = _field(info, "splits")
    if splits is None or splits == []:
        raise DatasetError(f"dataset {quoted(name)} has no splits; was it ever prepared?")
    return Dataset(
        name=name,
        config=fields.optional_name(_field(info, "configName") or None, "config name"),
        version=fields.optional_name(_field(info, "version") or None, "version"),
        file_format=file_format,
        data_dir=data_dir,
        ordered=ordered is not None and fields.flag(ordered, "disableShuffling"),
        splits=tuple(
            _split(fields.mapping(split, "a split"), name, file_format, data_dir)
            for split in fields.items(splits, "splits")
        ),
        origin=tfds_rules.DATASET_INFO_FILENAME,
    )


def _field(value: Mapping[str, object], name: str) -> object:
    """Return a field in any of its spellings; protobuf takes the last one it meets."""
    spellings = (name, re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name))
    found = [spelling for spelling in value if spelling in spellings]
    return value[found[-1]] if found else None


def _split(
    info: Mapping[str, object], dataset: str, file_format: str, data_dir: str | None
) -> Split:
    name = fields.split_name(_field(info, "name") or "")
    with fields.said_about(f"split {quoted(name)}"):
        lengths = _shard_lengths(_field(info, "shardLengths"))
        if not lengths:
            _refuse_unknown_lengths(info)
        template = _field(info, "filepathTemplate") or tfds_rules.DEFAULT_TEMPLATE
        if not isinstance(template, str):
            raise DatasetError(f"filepathTemplate must be text, not {fields.shown(template)}")
        if not template.isprintable():
            raise DatasetError(
                f"file name template {quoted(template)} holds characters that cannot be printed"
            )
        files = ShardFiles.from_template(
            template,
            dataset=dataset,
            split=name,
            file_format=file_format,
            num_shards=len(lengths),
            data_dir=data_dir,
        )
        stated = _field(info, "numBytes")
        num_bytes = fields.count(
            fields.proto_int64(0 if stated is None else stated, "numBytes"), "numBytes"
        )
    return Split(
        name=name,
        shard_lengths=lengths,
        files=(files,),
        # protobuf drops a 0, so to TFDS (units.Size) it says "unknown"; with no example it is 0.
        num_bytes=num_bytes if num_bytes or not any(lengths) else None,
    )


def _shard_lengths(value: object) -> Sequence[int]:
    """Return the shard lengths: protobuf writes int64 as text, some writers write numbers.

    Plain ones are taken the quick way, since there may be a million of them.
    """
    if value is None:
        return ()
    lengths = [
        number
        if type(number) is int
        # Python takes no more than thousands of digits.
        else int(number)
        if type(number) is str and number.isascii() and number.isdigit() and len(number) < 20
        else fields.proto_int64(number, f"length of shard {at}")
        for at, number in enumerate(fields.items(value, "shardLengths"))
    ]
    return fields.counts(lengths, "length of shard {}")


def _refuse_unknown_lengths(info: Mapping[str, object]) -> None:
    """Raise where a split counts its shards and not what is in them (TFDS before 2.0).

    TFDS 4 reads such a split as one without shards; a plan over it would be silently empty.
    """
    value = _field(info, "numShards")
    num_shards = 0 if value is None else fields.proto_int64(value, "numShards")
    if num_shards:
        raise DatasetError(
            f"{num_shards} shards and no shard lengths, as TFDS wrote before 2.0; "
            "prepare it with TFDS 4, or describe it in a layout.yaml"
        )


# The features TFDS describes beside a prepared dataset, features.json: what an example takes.
#
# The file is a proto `Feature` of TFDS as JSON (core/features/feature.py, `to_proto`).

_DTYPE_BYTES = {
    **dict.fromkeys(("bool", "bool_", "int8", "uint8"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}
_TFDS = "tensorflow_datasets."
_TENSORS = ("Tensor", "Scalar", "Image", "LabeledImage", "Video", "Audio")


def read_example_size(folder: stores.AnyPath) -> ExampleSize | None:
    """Return what the features.json of a folder says of an example's size.

    None where there is none, or where it cannot be read: no answer but a size depends on it.
    """
    try:
        return example_size(read_json(folder / tfds_rules.FEATURES_FILENAME))
    except DatasetError:
        return None


def example_size(document: object) -> ExampleSize | None:
    """Return what a parsed features.json says of an example's size, None where it says nothing.

    >>> image = {"pythonClassName": "tensorflow_datasets.core.features.image_feature.Image",
    ...          "image": {"shape": {"dimensions": ["28", "28", "1"]}, "dtype": "uint8"}}
    >>> text = {"pythonClassName": "tensorflow_datasets.core.features.text_feature.Text",
    ...         "text": {}}
    >>> example_size({"pythonClassName": "tensorflow_datasets.core.features.features_dict."
    ...               "FeaturesDict", "featuresDict": {"features": {"x": image, "name": text}}})
    ExampleSize(num_bytes=784, num_tensors=2, unknown=('name',))
    """
    try:
        leaves = list(_leaves(document, ""))
    except (DatasetError, RecursionError):
        return None
    return ExampleSize(
        num_bytes=sum(num_bytes or 0 for _, num_bytes in leaves),
        num_tensors=len(leaves),
        unknown=tuple(path or "the example" for path, size in leaves if size is None),
    )


def _leaves(value: object, path: str) -> Iterator[tuple[str, int | None]]:
    """Yield the path of each tensor of a feature, and its bytes if they are the same in all.

    What is no tensor (Text, Dataset, features of other libraries) is one of unknown size.
    """
    feature = fields.mapping(value, "a feature")
    name = fields.text(
        feature.get("pythonClassName", feature.get("python_class_name")), "the class of a feature"
    )
    kind = name.rpartition(".")[2] if name.startswith(_TFDS) else ""
    # A proto `oneof`: of a feature only the field of its own kind is there.
    content = next((one for one in feature.values() if isinstance(one, Mapping)), {})
    if kind == "FeaturesDict":
        inner = fields.mapping(content.get("features", {}), "the features")
        for key, one in inner.items():
            yield from _leaves(one, f"{path}/{key}" if path else key)
    elif kind == "Sequence":
        length = _dimension(content.get("length", 0))  # protobuf leaves out a 0
        for key, size in _leaves(content.get("feature"), path):
            yield key, None if length is None or size is None else size * length
    elif kind == "ClassLabel":
        yield path, _DTYPE_BYTES["int64"]
    elif kind in _TENSORS and not content.get("optional"):  # such a one may be None
        yield path, _array_bytes(content)
    else:
        yield path, None


def _array_bytes(content: Mapping[str, Any]) -> int | None:
    """Return the bytes of an array of a shape and dtype, None where one of them is unknown."""
    shape = fields.mapping(content.get("shape", {}), "a shape")
    size = _DTYPE_BYTES.get(str(content.get("dtype")))
    lengths = [_dimension(one) for one in fields.items(shape.get("dimensions", []), "dimensions")]
    known = [length for length in lengths if length is not None]
    return None if size is None or len(known) < len(lengths) else size * math.prod(known)


def _dimension(value: object) -> int | None:
    """Return a length, None where it is unknown: null or -1."""
    length = -1 if value is None else fields.proto_int64(value, "a length")
    return None if length < 0 else length
