"""The metadata TFDS writes beside a prepared dataset: dataset_info.json."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardctl.base.text import choices, printable, quoted
from shardctl.base.tfds_rules import (
    DATASET_INFO_FILENAME,
    DEFAULT_FILE_FORMAT,
    DEFAULT_TEMPLATE,
    FEATURES_FILENAME,
)
from shardctl.dataset.dataset import Dataset, ExampleSize, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError, NotThereError
from shardctl.files import fields
from shardctl.files.parse import read_json
from shardctl.stores.stores import (
    AnyPath,
    RemotePath,
    absolute,
    answers,
    files_in,
    is_file,
    subfolders,
    way_below,
)

if TYPE_CHECKING:
    from shardctl.dataset.dataset import ExampleSize

_STATE_OF_ARROW = "state.json"  # beside what Hugging Face's save_to_disk writes
_MAX_DEPTH = 3  # name/config/version under a data dir
_MAX_FOLDERS = 20_000
_LENGTHS = ("shardLengths", "shard_lengths")


def read_tfds_folder(path: AnyPath) -> Dataset:
    """Return the dataset whose dataset_info.json is in a folder, or in the one version below it.

    Raises:
        DatasetError: no or several datasets are there, or the metadata is broken.
    """
    return dataset_in(find_tfds_folder(path))


def dataset_in(folder: AnyPath) -> Dataset:
    """Return the dataset whose dataset_info.json is right in a folder.

    Raises:
        NotThereError: there is none, or one of Hugging Face Datasets, see `holds_tfds_metadata`.
        DatasetError: the metadata is broken, or cannot be read.
    """
    source = printable(str(folder / DATASET_INFO_FILENAME))
    document = read_json(folder / DATASET_INFO_FILENAME)
    if is_hugging_face_info(document):
        raise NotThereError(f"{source} is that of Hugging Face Datasets, not of TFDS")
    if not isinstance(folder, RemotePath):
        folder = Path(absolute(folder))
    with fields.said_about(source):
        dataset = dataset_from_info(document, data_dir=str(folder))
    return replace(dataset, features=partial(read_example_size, folder))


def find_tfds_folder(path: AnyPath) -> AnyPath:
    """Return the folder that holds dataset_info.json: `path` or the only such folder below it.

    So `mnist/` means `mnist/3.0.1`, and so does a data dir that holds one dataset. Folders that
    TFDS is still writing (`3.0.1.incomplete..`) do not count.

    Raises:
        DatasetError: no folder, no dataset in it, or several; these are listed as the choices.
    """
    return only_folder(tfds_folders(path), path)


def only_folder(found: Sequence[AnyPath], path: AnyPath) -> AnyPath:
    """Return the one folder that was found with a dataset at a path or below; raises as above."""
    if len(found) == 1:
        return found[0]
    if found:
        listed = choices(way_below(path, folder) for folder in found)
        raise DatasetError(f"{quoted(path, 200)} holds {len(found)} datasets; choose one: {listed}")
    raise DatasetError(
        f"{quoted(path, 200)} holds no {DATASET_INFO_FILENAME}, nor does a folder below it"
    )


def tfds_folders(path: AnyPath) -> list[AnyPath]:
    """Return the folders with dataset_info.json at `path`, or else up to three levels below it.

    Raises:
        DatasetError: `path` is not a folder that can be listed.
    """
    if holds_tfds_metadata(path):
        return [path]
    found: list[AnyPath] = []
    at_once = isinstance(path, RemotePath)
    level, num_folders = [path / name for name in _subfolders(path, strict=True)], 0
    for depth in range(_MAX_DEPTH):
        num_folders += len(level)
        below: list[AnyPath] = []
        for folder, is_dataset in zip(
            level, answers(holds_tfds_metadata, level, at_once=at_once), strict=True
        ):
            (found if is_dataset else below).append(folder)
        if num_folders > _MAX_FOLDERS or depth == _MAX_DEPTH - 1:
            break
        names = answers(_subfolders, below, at_once=at_once)
        level = [
            folder / name for folder, inner in zip(below, names, strict=True) for name in inner
        ]
    return sorted(found, key=lambda folder: str(folder).split("/"))


def holds_tfds_metadata(folder: AnyPath) -> bool:
    """Return whether a folder has a dataset_info.json, and one of TFDS.

    Hugging Face Datasets writes a file of that name beside Arrow and Parquet files, see
    `is_hugging_face_info`. Broken metadata counts as TFDS's, whose reader says so. A remote one is
    not looked into: that is left to who reads it.

    Raises:
        DatasetError: the place of a remote one cannot be asked.
    """
    path = folder / DATASET_INFO_FILENAME
    if not is_file(path):
        return False
    if isinstance(folder, RemotePath):
        return True
    if not (is_file(folder / _STATE_OF_ARROW) or _has_files_of_hugging_face(folder)):
        return True
    try:
        info = read_json(path)
    except DatasetError:
        return True
    return not is_hugging_face_info(info)


def _has_files_of_hugging_face(folder: AnyPath) -> bool:
    try:
        return any(file.path.endswith((".arrow", ".parquet")) for file in files_in(folder))
    except DatasetError:
        return False


def _subfolders(folder: AnyPath, *, strict: bool = False) -> list[str]:
    try:
        names = subfolders(folder)
    except DatasetError:
        if strict or isinstance(folder, RemotePath):
            raise
        return []
    return [name for name in names if ".incomplete" not in name]


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
    file_format = fields.tfds_file_format(
        _field(info, "fileFormat", "file_format") or DEFAULT_FILE_FORMAT
    )
    ordered = _field(info, "disableShuffling", "disable_shuffling")
    splits = _field(info, "splits")
    if splits is None or splits == []:
        raise DatasetError(f"dataset {quoted(name)} has no splits; was it ever prepared?")
    return Dataset(
        name=name,
        config=fields.optional_name(
            _field(info, "configName", "config_name") or None, "config name"
        ),
        version=fields.optional_name(_field(info, "version") or None, "version"),
        file_format=file_format,
        data_dir=data_dir,
        ordered=ordered is not None and fields.flag(ordered, "disableShuffling"),
        splits=tuple(
            _split(fields.mapping(split, "a split"), name, file_format, data_dir)
            for split in fields.items(splits, "splits")
        ),
        origin=DATASET_INFO_FILENAME,
    )


def _field(value: Mapping[str, object], *spellings: str) -> object:
    """Return a field under any of its spellings; protobuf takes the last one it meets."""
    found = [spelling for spelling in value if spelling in spellings]
    return value[found[-1]] if found else None


def _split(
    info: Mapping[str, object], dataset: str, file_format: str, data_dir: str | None
) -> Split:
    name = fields.split_name(_field(info, "name") or "")
    with fields.said_about(f"split {quoted(name)}"):
        lengths = _shard_lengths(_field(info, *_LENGTHS))
        if not lengths:
            _refuse_unknown_lengths(info)
        template = _field(info, "filepathTemplate", "filepath_template") or DEFAULT_TEMPLATE
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
        stated = _field(info, "numBytes", "num_bytes")
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

    The quick way takes a million plain numbers in a tenth of a second; anything else goes one by
    one, so that the error names the shard.
    """
    if value is None:
        return ()
    items = fields.items(value, "shardLengths")
    if not _all_plain(items):
        items = [fields.proto_int64(n, f"length of shard {at}") for at, n in enumerate(items)]
    return fields.counts(list(map(int, items)), "length of shard {}")


def _all_plain(value: Sequence[object]) -> bool:
    """Whether every item is an int, or every item text of ASCII digits only."""
    kinds = set(map(type, value))
    if kinds == {str}:
        text = "".join(value)  # type: ignore[arg-type]
        return text.isascii() and text.isdigit() and max(map(len, value)) < 20 and "" not in value  # type: ignore[arg-type]
    return kinds <= {int}


def _refuse_unknown_lengths(info: Mapping[str, object]) -> None:
    """Raise where a split counts its shards and not what is in them (TFDS before 2.0).

    TFDS 4 reads such a split as one without shards; a plan over it would be silently empty.
    """
    value = _field(info, "numShards", "num_shards")
    num_shards = 0 if value is None else fields.proto_int64(value, "numShards")
    if num_shards:
        raise DatasetError(
            f"{num_shards} shards and no shard lengths, as TFDS wrote before 2.0; "
            "prepare it with TFDS 4, or describe it in a layout.yaml"
        )


# The features TFDS describes beside a prepared dataset, features.json: what an example takes.
#
# The file is a proto `Feature` of TFDS as JSON (core/features/feature.py, `to_proto`). Older
# versions wrote mappings of `type` and `content` (`from_json`, "Legacy mode"), which are read as
# well.

_DTYPE_BYTES = {
    **dict.fromkeys(("bool", "bool_", "int8", "uint8"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}
_TFDS = "tensorflow_datasets."
_EXAMPLE = "the example"  # the name of a feature that has none, since it is all there is


def read_example_size(folder: AnyPath) -> ExampleSize | None:
    """Return what the features.json of a folder says of an example's size.

    None where there is none, or where it cannot be read: no answer but a size depends on it.
    """
    try:
        return example_size(read_json(folder / FEATURES_FILENAME))
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
    from shardctl.dataset.dataset import ExampleSize

    try:
        leaves = list(_leaves(document, ()))
    except (DatasetError, RecursionError):
        return None
    return ExampleSize(
        num_bytes=sum(num_bytes or 0 for _, num_bytes in leaves),
        num_tensors=len(leaves),
        unknown=tuple("/".join(path) or _EXAMPLE for path, size in leaves if size is None),
    )


_Content = Mapping[str, Any]
_Path = tuple[str, ...]
_Leaves = Iterator[tuple[_Path, int | None]]  # tensors: their paths, and their bytes if all agree


def _node(value: object) -> tuple[str | None, _Content]:
    """Return the class that decodes a feature, None where it is not TFDS's, and its own fields."""
    feature = fields.mapping(value, "a feature")
    if "type" in feature and "content" in feature:  # as older versions wrote it
        name, content = feature["type"], feature["content"]
    else:
        name = feature.get("pythonClassName", feature.get("python_class_name"))
        content = next((feature[key] for key in feature if isinstance(feature[key], Mapping)), {})
    text = fields.text(name, "the class of a feature")
    kind = text.rpartition(".")[2] if text.startswith(_TFDS) else None
    return kind, content if isinstance(content, Mapping) else {}


def _leaves(value: object, path: _Path) -> _Leaves:
    """Yield the tensors of a feature; one of unknown size for a class that is not known."""
    kind, content = _node(value)
    return _KINDS.get(kind or "", _sized(None))(content, path)


def _features_dict(content: _Content, path: _Path) -> _Leaves:
    inner = content.get("features", content)
    if isinstance(inner, Mapping) and "type" in inner and isinstance(inner["type"], str):
        inner = content  # an old mapping with a feature that is named `features`
    for name, feature in fields.mapping(inner, "the features").items():
        yield from _leaves(feature, (*path, name))


def _sequence(content: _Content, path: _Path) -> _Leaves:
    length = _dimension(content.get("length", 0))  # protobuf leaves out a 0
    for inner, num_bytes in _leaves(content.get("feature"), path):
        yield inner, None if length is None or num_bytes is None else num_bytes * length


def _tensor(content: _Content, path: _Path) -> _Leaves:
    # An optional one may be None in an example.
    yield path, None if content.get("optional") else _array_bytes(content)


def _translation(content: _Content, path: _Path) -> _Leaves:
    languages = content.get("languages")
    for name in languages if isinstance(languages, list) else ():
        yield (*path, str(name)), None


def _sized(num_bytes: int | None, *names: str) -> Callable[[_Content, _Path], _Leaves]:
    """Return what yields one tensor of a size, or one of each name."""
    ends: list[_Path] = [(name,) for name in names] or [()]
    return lambda content, path: ((path + end, num_bytes) for end in ends)


# What is not here (Text, Dataset, features of other libraries) is of unknown size.
_KINDS: dict[str, Callable[[_Content, _Path], _Leaves]] = {
    "FeaturesDict": _features_dict,
    "Sequence": _sequence,
    "Tensor": _tensor,
    "Scalar": _tensor,
    "Image": _tensor,
    "LabeledImage": _tensor,
    "Video": _tensor,
    "Audio": _tensor,
    "ClassLabel": _sized(_DTYPE_BYTES["int64"]),
    # Four float32, whatever is written (core/features/bounding_boxes.py, from_json_content).
    "BBoxFeature": _sized(4 * _DTYPE_BYTES["float32"]),
    "Translation": _translation,
    "TranslationVariableLanguages": _sized(None, "language", "translation"),
}


def _array_bytes(content: Mapping[str, Any]) -> int | None:
    """Return the bytes of an array of a shape and dtype, None where one of them is open."""
    shape = content.get("shape", {})
    dimensions = shape.get("dimensions", []) if isinstance(shape, Mapping) else shape
    size = _DTYPE_BYTES.get(str(content.get("dtype")))
    if size is None or not isinstance(dimensions, list):
        return None
    lengths = [_dimension(length) for length in dimensions]
    known = [length for length in lengths if length is not None]
    return size * math.prod(known) if len(known) == len(lengths) else None


def _dimension(value: object) -> int | None:
    """Return a length, None where it is open: null or -1."""
    if value is None:
        return None
    length = fields.proto_int64(value, "a length")
    return None if length < 0 else length
