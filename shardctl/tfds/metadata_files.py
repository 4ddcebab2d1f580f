"""Writes TFDS's metadata for record files that have none, and tries the features on the records."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from shardctl.base.arguments import Kind, checked
from shardctl.base.text import choices, printable, quoted
from shardctl.base.tfds_rules import DATASET_INFO_FILENAME, DEFAULT_TEMPLATE, FEATURES_FILENAME
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.errors import DatasetError, ShardctlError, UsageError
from shardctl.files.atomic import new_file
from shardctl.metadata.index.planned_metadata import TfdsMetadata, plan_tfds_metadata
from shardctl.stores.stores import is_remote, store_of
from shardctl.tfds.imports import quiet_tensorflow, tensorflow, tensorflow_datasets
from shardctl.tfds.inspecting.script import ScriptFunction
from shardctl.tfds.training.records import file_adapter, path_of_shard

# Limit of a features.json: a file of another kind is refused before it fills memory.
_MAX_NUM_BYTES = 1 << 26
# What a builder says of its dataset besides the features, and `write_metadata` keeps.
_SAID = ("description", "citation", "supervised_keys", "homepage")


def _is_features(value: Any) -> Any:
    # By what is used of it, since TFDS is not imported before it is needed.
    if isinstance(value, str | os.PathLike | Mapping) or hasattr(value, "deserialize_example"):
        return value
    raise UsageError("features of TFDS, or where they are, are needed: a features.json")


FeaturesLike = Annotated[
    Any,
    Kind(
        take=_is_features,
        needed="features of TFDS, a features.json, or module:function",
        several="features of TFDS",
    ),
]


@dataclass(frozen=True, kw_only=True)
class FoundFeatures:
    """Features, where they were found, and what was said there of the dataset besides."""

    features: Any
    source: str
    said: Mapping[str, Any] = field(default_factory=dict)


def find_features(given: FeaturesLike) -> FoundFeatures:
    """Return the features that a value is, or that a text names.

    A text is the path of a features.json or of a folder that has one, `module:function` or
    `script.py:Builder`, or the name of a dataset of TFDS, which is not downloaded.

    Raises:
        UsageError: it names nothing that has features.
        DatasetError: the file has none that TFDS understands.
    """
    if not isinstance(given, str | os.PathLike):
        return _of_value(given, "the features")
    text = os.fspath(given)
    # The order of the ways: a file that is there, then module:function, then a path that is
    # missing, then the name of a dataset. A Windows path or a URL has ":" too, hence after the
    # file.
    path = _file_of(text)
    if path is not None:
        return FoundFeatures(features=_read(path), source=path)
    if ":" in text and not is_remote(text):
        return _of_script(text)
    if text.endswith(".json") or "/" in text:
        raise UsageError(f"no file {quoted(text, 200)} with features of TFDS")
    return _of_tfds(text)


def _file_of(text: str) -> str | None:
    """Return the path of the file that a text names, itself or in the folder that it names."""
    path = text if is_remote(text) else os.path.expanduser(text)
    store, inside = store_of(path), f"{path.rstrip('/')}/{FEATURES_FILENAME}"
    # The path itself first, then the file in it: a store reports no status for a folder.
    return next((place for place in (path, inside) if store.status(place) is not None), None)


def _read(path: str) -> Any:
    """Return the features of a file, with the names of labels that lie beside it."""
    data = store_of(path).read(path, max_num_bytes=_MAX_NUM_BYTES)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        # RecursionError: JSON that is nested too deeply.
        raise DatasetError(f"{quoted(path, 200)} is no JSON: {_line(error)}") from None
    if not isinstance(document, dict):
        raise DatasetError(f"{quoted(path, 200)} has no features of TFDS: {_WRITTEN}")
    # `from_json` imports the class that the file names; any exception of its code may come out.
    feature = tensorflow_datasets("core.features.feature")
    try:
        features = feature.FeatureConnector.from_json(document)
        # Names of labels are in text files beside features.json, by TFDS's convention.
        features.load_metadata(os.path.dirname(path) or ".", feature_name=None)
    except ShardctlError:
        raise
    except Exception as error:
        raise DatasetError(
            f"{quoted(path, 200)} has no features that TFDS understands: {_line(error)}; {_WRITTEN}"
        ) from error
    return _top_level(features, path)


_WRITTEN = "TFDS writes such a file by features.save_config(FOLDER), and beside what it prepares"


def _of_script(text: str) -> FoundFeatures:
    script = ScriptFunction.parsed(text)
    # TFDS refuses a second builder of a name, as a script makes that is imported twice.
    with tensorflow_datasets("core.registered").skip_registration(), script.running():
        found = script.called(_is_answer)
    return _of_value(found, text)


def _is_answer(value: Any) -> bool:
    return isinstance(value, Mapping | type) or hasattr(value, "deserialize_example")


def _of_tfds(name: str) -> FoundFeatures:
    tfds = tensorflow_datasets()
    try:
        builder = tfds.builder_cls(name)
    # `builder_cls` imports the module of the dataset, which may fail in any way.
    except Exception:
        raise UsageError(
            f"{quoted(name, 200)} names no features: it is no file, no dataset of TFDS, and no "
            "module:function"
        ) from None
    return _of_value(builder, name)


def _of_value(value: Any, source: str) -> FoundFeatures:
    # A class of a builder: what it says is in `info`, which needs an instance.
    if isinstance(value, type):
        value = _made(value, source)
    info = getattr(value, "info", None)
    # A builder has `info`; features are given as they are.
    if info is None:
        return FoundFeatures(features=_top_level(value, source), source=source)
    said = {name: getattr(info, name, None) for name in _SAID}
    return FoundFeatures(
        features=_top_level(info.features, source),
        source=source,
        said={name: value for name, value in said.items() if value},
    )


def _made(builder: type, source: str) -> Any:
    """Return a builder of a class, which looks for no data that may be prepared already."""
    # An empty folder: a builder finds there no older version of its data.
    with tempfile.TemporaryDirectory() as nowhere:
        try:
            made = builder(data_dir=nowhere)
            _ = made.info.features
        except Exception as error:
            raise UsageError(
                f"{source} is a class that makes no builder: {_line(error)}"
            ) from error
        return made


def _top_level(features: Any, source: str) -> Any:
    """Return features as TFDS takes them for whole examples, a dict as `FeaturesDict`."""
    features_dict = tensorflow_datasets("core.features.features_dict")
    try:
        # Lets a plain dict or a dtype count as features, as TFDS does
        # (core/features/features_dict.py, to_feature).
        made = features_dict.to_feature(features)
    except Exception as error:
        raise UsageError(f"{source}: these are no features of TFDS: {_line(error)}") from error
    if not hasattr(made, "deserialize_example"):
        raise UsageError(
            f"{source}: an example of TFDS is a FeaturesDict or a Sequence, not "
            f"{printable(type(made).__name__, 60)}"
        )
    return made


def _line(error: BaseException) -> str:
    said = str(error).strip().splitlines()
    return printable(f"{type(error).__name__}: {said[0] if said else ''}".rstrip(": "), 300)


# Do features fit record files? The first record of each split, decoded as TFDS does.


def check_first_records(dataset: Dataset, features: Any) -> Iterator[str]:
    """Decode the first record of each split, and yield which could not be read.

    Raises:
        DatasetError: a record cannot be decoded by them.
    """
    for split in dataset.splits:
        # The first shard that is not empty.
        shard = next((i for i, length in enumerate(split.shard_lengths) if length), None)
        if shard is None:
            continue
        path = path_of_shard(split, shard)
        record = first_record(path, dataset.file_format)
        if record is None:
            yield (
                f"the features were not tried on split {quoted(split.name)}: "
                f"{dataset.file_format} files are not read here, or only local ones"
            )
            continue
        try:
            # Files with random access are read without TensorFlow, by `as_data_source`.
            if dataset.file_format == "array_record":
                features.deserialize_example_np(record)
            else:
                features.deserialize_example(record)
        except Exception as error:
            name = quoted(path.rpartition("/")[2], 200)
            raise DatasetError(
                f"the features do not fit the records of split {quoted(split.name)}: "
                f"{_reason(error)} (the first record of {name})"
            ) from error


def first_record(path: str, file_format: str) -> bytes | None:
    """Return the first record of a file as TFDS reads it, None where no library here does.

    Raises:
        DatasetError: there is no record, or the file has changed since it was counted.
    """
    try:
        # A file that cannot be read here leaves a warning; one that is damaged is an error.
        if file_format == "tfrecord":
            return _first_tfrecord(path)
        if file_format == "array_record":
            return None if is_remote(path) else _first_of_array_record(path)
        # As TFDS's reader opens it; one record is enough.
        records = file_adapter(file_format).make_tf_data(path).take(1)
        return bytes(next(records.as_numpy_iterator()))
    except ImportError:
        return None
    except Exception as error:
        # TensorFlow appends a traceback of Python to some messages.
        why = _reason(error).partition(" Traceback")[0]
        raise DatasetError(f"cannot read a record of {quoted(path, 200)}: {why}") from error


def _first_tfrecord(path: str) -> bytes:
    # Not by TensorFlow, which dies of some lengths.
    file = store_of(path).status(path)
    if file is None:
        raise ValueError("it is not there any more")
    with store_of(path).open(file) as source:
        # A TFRecord: length (8 bytes, little endian), its checksum (4), data, checksum of the data
        # (4). The file must hold all 16 bytes besides the data.
        length = int.from_bytes(source.read(0, 12)[:8], "little")
        if length + 16 > source.num_bytes:
            raise ValueError("it begins with no whole record")
        return source.read(12, 12 + length)


def _first_of_array_record(path: str) -> bytes:
    from array_record.python import array_record_module

    with contextlib.closing(array_record_module.ArrayRecordReader(path)) as reader:
        return bytes(reader.read([0])[0])


def _reason(error: Exception) -> str:
    """Return what TensorFlow or TFDS says of a record, without the operation that said it."""
    said = " ".join(str(error).split())
    # "{{node ..}}" and "[Op:..]" name operations, which the user did not write.
    said = re.sub(r"\{\{.*?\}\}\s*", "", said)
    said = re.sub(r"\s*\[Op:\w+\].*$", "", said)
    return printable(said or type(error).__name__, 400)


# The metadata of TFDS for record files without: dataset_info.json and features.json, beside them.
#
# TFDS's own `write_metadata` makes them, in a temporary folder with one empty file a split, whose
# names tell it the splits; the templates of the real files come with the lengths. Then the files
# that it wrote are moved to their place, dataset_info.json last: a folder without it is no dataset.


_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")


@checked
def write_metadata(
    dataset: DatasetLike,
    folder: str | os.PathLike[str],
    features: FeaturesLike,
    *,
    force: bool = False,
) -> TfdsMetadata:
    """Write the metadata by which `tfds.builder_from_directory(folder)` reads record files.

    Args:
        dataset: the files with their lengths, as `shardctl.index` counts them, or a layout file.
        folder: the folder of the files, or one above it; remote where TensorFlow reads, as gs://.
        features: of TFDS, or the path of a features.json, `module:function` that returns them,
            `module:Builder`, or the name of a dataset of TFDS that has the same.
        force: replace metadata that is there already.

    Returns:
        A TfdsMetadata.

    Raises:
        UsageError: metadata is there already; a name or a place that TFDS does not take.
        DatasetError: files that TFDS does not read or has no template for, or features that do
            not fit the records.
        MissingDependencyError: TensorFlow or TFDS is not installed.
    """
    dataset = as_dataset(dataset)
    folder = os.fspath(folder)
    folder = folder if is_remote(folder) else os.path.expanduser(folder)
    planned = plan_tfds_metadata(dataset, folder, _version(dataset, folder))
    with quiet_tensorflow():
        # First the place, then the features, then the records: the cheap checks come first. Files
        # are written at the very end.
        check_folder(folder)
        found = find_features(features)
        doubts = [*check_first_records(dataset, found.features)]
        with tempfile.TemporaryDirectory() as made:
            _make(dataset, planned, found, made)
            # Features that lie there already are not written again, for TFDS might format them
            # otherwise.
            if _is_own(found.source, folder):
                Path(made, FEATURES_FILENAME).unlink()
            written = place_files(Path(made), folder, last=DATASET_INFO_FILENAME, force=force)
    return replace(planned, written=tuple(written), warnings=(*planned.warnings, *doubts))


def _version(dataset: Dataset, folder: str) -> str:
    """Return the version that the dataset has, else that its folder is named, else 1.0.0."""
    # The version of the dataset, then the name of the folder, then 1.0.0.
    if dataset.version is not None:
        if not _VERSION.fullmatch(dataset.version):
            raise UsageError(
                f"version {quoted(dataset.version)}: TFDS takes three numbers, as in 1.0.0"
            )
        return dataset.version
    path = folder if is_remote(folder) else os.path.abspath(folder)
    name = path.rstrip("/").rpartition("/")[2]
    return name if _VERSION.fullmatch(name) else "1.0.0"


def _is_own(source: str, folder: str) -> bool:
    """Return whether the features are those that lie there already; the file stays as it is."""
    own = f"{folder.rstrip('/')}/{FEATURES_FILENAME}"
    if is_remote(source) or is_remote(own):
        return source == own
    return os.path.realpath(source) == os.path.realpath(own)


def _make(dataset: Dataset, planned: TfdsMetadata, found: FoundFeatures, folder: str) -> None:
    tfds = tensorflow_datasets()
    naming = tensorflow_datasets("core.naming")
    split_info = tensorflow_datasets("core.splits").SplitInfo
    infos, placeholders = [], []
    for split, told in zip(dataset.splits, planned.splits, strict=True):
        template = naming.ShardedFileTemplate(
            data_dir=folder,
            template=DEFAULT_TEMPLATE,
            dataset_name=dataset.name,
            split=split.name,
            filetype_suffix=dataset.file_format,
        )
        # `write_metadata` finds the splits by file names. One empty file a split is enough, since
        # the lengths are given.
        placeholders.append(Path(template.sharded_filepath(shard_index=0, num_shards=1)))
        placeholders[-1].touch()
        infos.append(
            split_info(
                name=split.name,
                shard_lengths=list(split.shard_lengths),
                num_bytes=split.num_bytes or 0,
                filename_template=template.replace(template=told.template),
                # The metadata names the real files, not the placeholders.
            )
        )
    try:
        # TFDS prints its progress on standard output.
        with contextlib.redirect_stdout(sys.stderr):  # what it says of its progress is no answer
            tfds.folder_dataset.write_metadata(
                data_dir=folder,
                features=found.features,
                split_infos=infos,
                version=planned.version,
                check_data=False,
                disable_shuffling=dataset.ordered,
                **found.said,
            )
    except Exception as error:
        said = printable(" ".join(str(error).split()), 300)
        raise DatasetError(f"TFDS writes no metadata of {quoted(dataset.title)}: {said}") from error
    # Only what TFDS wrote is left to be moved.
    for placeholder in placeholders:
        placeholder.unlink()


def check_folder(folder: str) -> None:
    """Refuse a remote folder that TFDS would not read.

    Where TensorFlow is installed, TFDS goes to all that is remote through its file systems.

    Raises:
        UsageError: it has none for the place.
    """
    scheme, separator, _ = folder.partition("://")
    # Without "://" it is a local folder, which needs no file system of TensorFlow.
    schemes: list[str] = tensorflow().io.gfile.get_registered_schemes() if separator else []
    if separator and scheme not in schemes:
        known = choices(f"{known}://" for known in sorted(schemes) if known not in ("", "ram"))
        raise UsageError(
            f"{quoted(folder, 200)}: TFDS reads there through TensorFlow, which has no file system "
            f"for {scheme}:// here; it has {known}. Copy the files, or write a layout with -o"
        )


# Several files of one folder put into another, all or none.


def place_files(made: Path, folder: str, *, last: str, force: bool) -> list[str]:
    """Put the files of `made` into a folder, one of them last, and return the names of them all.

    A file that is there with the same contents stays as it is. Where one cannot be written, those
    before it are as they were.

    Raises:
        UsageError: other files of these names are there, and `force` was not said; or one cannot
            be written.
    """
    # `last` sorts behind all others.
    names = sorted(os.listdir(made), key=lambda name: (name == last, name))
    target: Any = Path(folder)
    if is_remote(folder):  # as TFDS reaches it
        target = tensorflow_datasets("core.utils.file_utils").epath.Path(folder)
    # All is read before anything is written: both the new contents and what to put back.
    contents = {name: (made / name).read_bytes() for name in names}
    there = {name: _contents(target / name) for name in names}
    # What has the same contents is neither written nor in the way.
    changed = [name for name in names if there[name] != contents[name]]
    in_the_way = [name for name in changed if there[name] is not None]
    if in_the_way and not force:
        raise UsageError(
            f"{quoted(folder, 200)} has {choices(in_the_way)} already, of other contents; "
            "--force replaces what is there"
        )
    done: list[str] = []
    try:
        for name in changed:
            # Noted before the write, so that one that failed halfway is put back as well.
            done.append(name)
            _put(target / name, contents[name])
    # Also of KeyboardInterrupt: all files or none.
    except BaseException:
        for name in reversed(done):
            # As much as possible is put back; the first error is the one that is reported.
            with contextlib.suppress(Exception):
                _put(target / name, there[name])
        raise
    return names


@contextlib.contextmanager
def _failing(path: Any) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, ShardctlError):
        raise
    except Exception as error:
        lines = str(getattr(error, "strerror", None) or error).strip().splitlines()
        said = printable(lines[0] if lines else type(error).__name__, 200)
        raise UsageError(f"cannot write {quoted(os.fspath(path), 200)}: {said}") from error


def _contents(path: Any) -> bytes | None:
    try:
        with _failing(path):
            data: bytes = path.read_bytes()
            return data
    except FileNotFoundError:
        return None


def _put(path: Any, data: bytes | None) -> None:
    """Let a file hold this, whole or not at all; None deletes it."""
    with _failing(path):
        if data is None:
            path.unlink()
        # A path of epath is remote, and has no rename to make it atomic.
        elif not isinstance(path, Path):
            path.write_bytes(data)
        else:
            with new_file(str(path)) as file:
                file.write(data)
