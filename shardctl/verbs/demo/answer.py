"""Small datasets in a folder, on which the sessions of README.md and of the guides run."""

from __future__ import annotations

import json
import os
import shutil
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from shardctl.base.text import quoted
from shardctl.errors import UsageError
from shardctl.files.atomic import ends_by_exception, umask
from shardctl.guide.guides import guide_files

TOY = {"train": [200, 100, 50, 50]}
_DIGITS = {"train": [160, 160, 160, 160], "test": [193, 192, 192, 192]}
_CLICKS = {"train": [300, 250, 310, 140], "test": [90]}
_LOGS = 12  # files whose numbers have no zeros in front, so that 10 sorts before 2

# In the header of a record, and in the data of one; a record takes 31 or 32 bytes.
_WRONG_BYTES = {
    "toy-train.tfrecord-00000-of-00004": 16 * 31,
    "toy-train.tfrecord-00003-of-00004": 7 * 32 + 12,
}

# What the demo holds, as it is printed.
CONTENTS = {
    "toy": "a dataset as TFDS writes it: 400 examples in 4 files",
    "digits": "another, of images like those of MNIST: 640 for training, 769 for a test",
    "damaged": "a copy of toy with a wrong byte in two of its files",
    "clicks, logs": "record files without metadata",
    "mixture": "a shardctl.yaml that samples from two splits of digits",
    "shardctl.yaml": "names toy as the dataset of the commands in this folder",
    "train.py": "a tf.data pipeline over toy, for shardctl inspect",
    "*.yaml, *.py": "every other file that a guide shows",
}

_PROJECT = """\
# The commands in this folder read toy where no -d names another dataset.
dataset: toy
"""
_MIXTURE = """\
# Examples of the two splits of digits, drawn three to one.
dataset: ../digits
stages:
- sample_from_datasets:
    datasets:
    - train | shuffle(100, seed=1) | repeat
    - test | shuffle(200, seed=2) | repeat
    weights: [0.75, 0.25]
    seed: 42
- take: 1000
- batch: 32
"""


def write_demo(folder: str) -> int:
    """Write the demo into a folder, whole or not at all, and return how many files it has.

    Raises:
        UsageError: the folder is there and not empty, or it cannot be written.
    """
    path = Path(os.path.abspath(folder))
    files = dict(demo_files())
    try:
        is_there = os.path.lexists(path)
        if is_there and (not path.is_dir() or any(path.iterdir())):
            what = "is not empty" if path.is_dir() else "is there already, and is no folder"
            raise UsageError(f"{quoted(folder, 200)} {what}; name a new folder, or an empty one")
        with ends_by_exception():
            made = Path(tempfile.mkdtemp(prefix=f".{path.name[:50]}.shardctl-", dir=path.parent))
            try:
                for name, data in files.items():
                    file = made / name
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(data)
                made.chmod(0o777 & ~umask())
                if is_there:  # it may be the folder of a shell, which has to stay that very one
                    for entry in sorted(made.iterdir()):
                        entry.rename(path / entry.name)
                else:
                    made.rename(path)
            finally:
                shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        raise UsageError(f"cannot write {quoted(folder, 200)}: {error.strerror or error}") from None
    return len(files)


def demo_files() -> Iterator[tuple[str, bytes]]:
    """Yield each file: its name in the folder, and what it holds."""
    toy = dict(_tfds_files("toy", TOY, {"id": _INT64}, lambda i: {"id": i}))
    digits = _tfds_files("digits", _DIGITS, {"image": _IMAGE, "label": _LABEL}, _digit)
    yield from toy.items()
    yield from digits
    for name, data in toy.items():
        file = name.rpartition("/")[2]
        wrong = _WRONG_BYTES.get(file)
        changed = bytearray(data)
        if wrong is not None:
            changed[wrong] ^= 1
        yield f"damaged/{file}", bytes(changed)
    record = _framed([b"twenty-five bytes of data"])
    for split, lengths in _CLICKS.items():
        for index, length in enumerate(lengths):
            yield f"clicks/{split}-{index:05}-of-{len(lengths):05}.tfrecord", record * length
    yield from ((f"logs/train-{index}.tfrecord", record * 3) for index in range(_LOGS))
    yield "shardctl.yaml", _PROJECT.encode()
    yield "mixture/shardctl.yaml", _MIXTURE.encode()
    yield from ((name, text.encode()) for name, text in guide_files().items())


# A folder as TFDS writes it.

_FEATURES = "tensorflow_datasets.core.features"


def _feature(module: str, **described: object) -> Mapping[str, object]:
    name = "".join(part.title() for part in module.split("_"))
    return {"pythonClassName": f"{_FEATURES}.{module}_feature.{name}", **described}


_SHAPE = {"dimensions": ["28", "28", "1"]}
_INT64 = _feature("tensor", tensor={"shape": {}, "dtype": "int64", "encoding": "none"})
_LABEL = _feature("class_label", classLabel={"numClasses": "10"})
_IMAGE = _feature("image", image={"shape": _SHAPE, "dtype": "uint8", "encodingFormat": "png"})


def _tfds_files(
    name: str,
    splits: Mapping[str, Sequence[int]],
    features: Mapping[str, object],
    example_of: Callable[[int], Mapping[str, int | bytes]],
) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a dataset, whose examples are numbered through the shards of a split."""
    infos: list[dict[str, object]] = []
    for split, lengths in splits.items():
        examples = [_serialized(example_of(i)) for i in range(sum(lengths))]
        size = str(sum(map(len, examples)))
        infos.append({"name": split, "shardLengths": [*map(str, lengths)], "numBytes": size})
        infos[-1]["filepathTemplate"] = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
        for index, length in enumerate(lengths):
            file = f"{name}-{split}.tfrecord-{index:05}-of-{len(lengths):05}"
            yield f"{name}/1.0.0/{file}", _framed(examples[:length])
            del examples[:length]
    info = {"name": name, "version": "1.0.0", "fileFormat": "tfrecord", "splits": infos}
    of_all = f"{_FEATURES}.features_dict.FeaturesDict"
    described = {"pythonClassName": of_all, "featuresDict": {"features": features}}
    for file, document in (("dataset_info.json", info), ("features.json", described)):
        yield f"{name}/1.0.0/{file}", f"{json.dumps(document, indent=2)}\n".encode()


def _framed(records: Iterable[bytes]) -> bytes:
    """Return a TFRecord file."""
    import google_crc32c

    from shardctl.records.tfrecord import masked

    def checked(data: bytes) -> bytes:
        return data + struct.pack("<I", masked(google_crc32c.value(data)))

    return b"".join(checked(struct.pack("<Q", len(data))) + checked(data) for data in records)


def _serialized(example: Mapping[str, int | bytes]) -> bytes:
    """Return a tf.train.Example of protobuf: a map of lists, each of one value."""
    features = b""
    for name, value in example.items():
        if isinstance(value, int):
            values = _field(3, _field(1, _varint(value)))  # Feature.int64_list
        else:
            values = _field(1, _field(1, value))  # Feature.bytes_list
        features += _field(1, _field(1, name.encode()) + _field(2, values))
    return _field(1, features)


def _field(number: int, data: bytes) -> bytes:
    return bytes((number << 3 | 2,)) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes((low | 128,)) + _varint(rest) if rest else bytes((low,))


def _digit(i: int) -> Mapping[str, int | bytes]:
    """Return an image whose stripes tell its label, the last digit of its number."""
    rows = b"".join(
        b"\0" + bytes((x * (i % 10 + 1) * 9 + y * (i // 10)) % 256 for x in range(28))
        for y in range(28)
    )
    header = struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0)
    chunks = {b"IHDR": header, b"IDAT": zlib.compress(rows, 9), b"IEND": b""}
    image = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks.items()
    )
    return {"image": image, "label": i % 10}
