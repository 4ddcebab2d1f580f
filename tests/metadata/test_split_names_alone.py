"""The names of splits read alone, for what must be quick."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError
from shardctl.files.documents import to_json, to_yaml
from shardctl.metadata.layouts import dataset_from_layout, read_layout_file
from shardctl.verbs.layout.answer import layout
from shardctl.verbs.layout.view import layout_document


def texts(draw: random.Random) -> Iterator[tuple[str, str]]:
    """Yield a dataset as every kind of layout file, each with the ending of its name."""
    size = draw.randrange(1, 9)
    lengths = [draw.choice((0, 7, 1043)) for _ in range(size)]
    split: dict[str, Any] = {"shard_lengths": lengths}
    names = tuple(f"{draw.choice('abc')}-{number}" for number in range(size))
    if draw.random() < 0.3:
        split["filenames"] = list(names)
    written = {"name": "toy", "splits": {"train": split, "test": {"shard_lengths": [3]}}}
    dataset = dataset_from_layout(written, stem="toy", folder=Path("/data"))
    if draw.random() < 0.3:
        files = ShardFiles(num_shards=size, names=names)
        train = Split(name="train", shard_lengths=lengths, files=(files,))
        dataset = Dataset(name="toy", splits=(train,))
    rows = [{"num_examples": length, "filename": "a"} for length in lengths]
    other = {draw.choice(("shard_lengths", "shards")): draw.choice((lengths, rows))}
    strange = {"name": "toy", "splits": draw.choice((other, {"train": other}, [other], rows))}
    for document in (written, strange, layout_document(layout(dataset))):
        yield ".json", "".join(to_json(document))
        yield ".yaml", "".join(to_yaml(document))


def test_names_of_splits_alone_are_those_of_the_dataset(tmp_path: Path) -> None:
    for suffix, text in texts(random.Random(3)):
        path = tmp_path / f"toy{suffix}"
        path.write_text(text)
        try:
            names = [split.name for split in read_layout_file(path).splits]
        except DatasetError:
            continue
        assert [split.name for split in read_layout_file(path, names_only=True).splits] == names
