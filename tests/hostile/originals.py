"""Valid files of every kind, written by shardctl itself, in a folder of their own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.record_files import framed

LAYOUT: dict[str, Any] = {
    "name": "toy",
    "version": "1.0.0",
    "splits": {
        "train": {"shard_lengths": [5, 0, 7, 3, 4], "num_bytes": 1000},
        "test": {"num_examples": 10, "num_shards": 3},
    },
}
INFO: dict[str, Any] = {
    "name": "toy",
    "version": "1.0.0",
    "configName": "plain",
    "fileFormat": "tfrecord",
    "moduleName": "toy.toy",
    "splits": [
        {
            "name": name,
            "shardLengths": lengths,
            "numBytes": "1000",
            "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
        }
        for name, lengths in (("train", ["5", "0", "7"]), ("test", ["4"]))
    ],
}
FEATURES: dict[str, Any] = {
    "pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict",
    "featuresDict": {"features": {"id": {"tensor": {"shape": {}, "dtype": "int64"}}}},
}
PROJECT: dict[str, Any] = {
    "dataset": "l.yaml",
    "data_dir": "data",
    "read": {"shuffle_seed": 42, "cycle": 3, "block": 2, "batch": 4, "epochs": 2},
    "lint": {"ignore": ["SC001"], "eval": ["test"]},
}
_PIPELINES = (
    ("--cycle", "2", "--block", "3"),
    ("--shuffle-seed", "7", "--epochs", "3", "--batch", "4"),
    ("--buffer", "6", "--buffer-seed", "3", "--epochs", "2"),
    ("--host", "1/2", "--host-by", "examples", "--reverse"),
)


def run(*arguments: str) -> tuple[int, str]:
    """Return the exit code of a command and what it wrote to stdout."""
    from shardctl.cli.main import main

    data = io.BytesIO()
    out = io.TextIOWrapper(data, encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            main(arguments)
        except SystemExit as done:
            return int(str(done.code)), data.getvalue().decode()
    raise AssertionError("main() exits")


def write_originals(folder: Path) -> dict[str, bytes]:
    """Return the contents of valid files by name, all about the dataset of `l.yaml`."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        Path("l.yaml").write_text(json.dumps(LAYOUT))
        for number, options in enumerate(_PIPELINES):
            chosen = ("-d", "l.yaml", *options)
            for ending in ("yaml", "json"):
                snapshot, plan = f"snapshot{number}.{ending}", f"plan{number}.{ending}"
                for words in (
                    ("snapshot", "train+test", *chosen, "-f", ending, "-o", snapshot),
                    ("resume", "train", *chosen, "--consumed", "8", "-o", plan),
                ):
                    code, _ = run(*words)
                    assert code == 0, words
        run("simulate", "train", "-d", "l.yaml", "--take", "9", "-f", "tfds-ids", "-o", "seen.txt")
        names = [f"toy-train.tfrecord-{index:05}-of-00005" for index in (3, 1, 0, 2, 4)]
        Path("order.txt").write_text("".join(f"{name}\n" for name in names))
        _write_position(Path("position.json"))
        return {path.name: path.read_bytes() for path in sorted(Path().iterdir())}
    finally:
        os.chdir(before)


def _write_position(path: Path) -> None:
    import shardctl
    from shardctl.saved.position_file import PositionRecord, write_position

    dataset = shardctl.read_dataset("l.yaml")
    settings = shardctl.ReadSettings(shuffle_seed=3, epochs=2)
    record = PositionRecord(dataset=dataset.identity, spec="train", settings=settings, consumed=12)
    write_position(path, record)


_RECORDS = [bytes([index]) * index for index in range(5)]
# In a process of their own: the threads that these libraries start do not outlive a fork.
_WRITERS = {
    "array_record": """
from array_record.python.array_record_module import ArrayRecordWriter
writer = ArrayRecordWriter(sys.argv[1], "group_size:1")
for record in records:
    writer.write(record)
writer.close()
""",
    "parquet": """
import pyarrow, pyarrow.parquet
pyarrow.parquet.write_table(pyarrow.table({"data": records}), sys.argv[1])
""",
}


def record_files(folder: Path) -> dict[str, bytes]:
    """Return small files of records, 5 in each, in every format whose library is here."""
    found = {"tfrecord": framed(*_RECORDS)}
    for name, write in _WRITERS.items():
        path = folder / name
        code = f"import sys\nrecords = {_RECORDS!r}\n{write}"
        subprocess.run([sys.executable, "-c", code, path], stderr=subprocess.DEVNULL, check=False)
        if path.exists():
            found[name] = path.read_bytes()
    return found
