"""Generated datasets and documents, and documents with one value changed."""

from __future__ import annotations

import copy
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from shardctl.base.tfds_rules import DEFAULT_TEMPLATE
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import ShardctlError


def error_line(read: Callable[[], object]) -> str | None:
    """Return the one printable line that a call refuses with, None where it does not."""
    try:
        read()
    except ShardctlError as error:
        line = str(error)
    else:
        return None
    assert line
    assert line.isprintable()
    return line


def shard_lengths(max_shards: int = 8, max_length: int = 9) -> st.SearchStrategy[tuple[int, ...]]:
    """Lengths of the shards of one split; empty shards are common, no shards possible."""
    length = st.one_of(st.just(0), st.integers(0, max_length))
    return st.lists(length, max_size=max_shards).map(tuple)


_WORD = string.ascii_letters + string.digits + "_"

dataset_names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
config_names = st.none() | st.from_regex(r"[a-z0-9][a-z0-9_.+-]{0,8}", fullmatch=True)
versions = st.tuples(*[st.integers(0, 12)] * 3).map(lambda parts: "{}.{}.{}".format(*parts))
split_names = st.sampled_from(["train", "test", "validation", "test2015"]) | st.text(
    _WORD + "-", min_size=1, max_size=10
).filter(lambda name: any(char.isalnum() for char in name))

templates = st.sampled_from(
    [
        None,
        None,
        DEFAULT_TEMPLATE,
        "{SPLIT}-{SHARD_X_OF_Y}.{FILEFORMAT}",
        "{SPLIT}/{DATASET}.{FILEFORMAT}-{SHARD_INDEX}",
        "{SHARD_INDEX}/{SPLIT}.{NUM_SHARDS}",
        "{{{SPLIT}}}[{SHARD_INDEX}]%-{NUM_SHARDS}.{FILEFORMAT}",
        "{DATASET}{SPLIT}{SHARD_X_OF_Y}{SHARD_X_OF_Y}",
    ]
)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What `tests.tfds_datasets.build_dataset` builds, as its keyword arguments."""

    name: str = "toy"
    config: str | None = None
    version: str = "1.0.0"
    splits: dict[str, tuple[int, ...]] = field(default_factory=dict)
    file_format: str = "tfrecord"
    disable_shuffling: bool = False
    template: str | None = None

    def arguments(self) -> dict[str, Any]:
        return dict(vars(self))


def recipes(file_formats: tuple[str, ...] = ("tfrecord",)) -> st.SearchStrategy[Recipe]:
    """Recipes of datasets that TFDS can write."""
    return st.builds(
        Recipe,
        name=dataset_names,
        config=config_names,
        version=versions,
        splits=st.dictionaries(split_names, shard_lengths(), min_size=1, max_size=4),
        file_format=st.sampled_from(file_formats),
        disable_shuffling=st.booleans(),
        template=templates,
    )


@st.composite
def datasets(
    draw: st.DrawFn, max_shards: int = 8, max_length: int = 9, max_splits: int = 3
) -> Dataset:
    """Datasets without files, as a reader would return them."""
    name = draw(dataset_names)
    file_format = draw(st.sampled_from(["tfrecord", "riegeli", "array_record", "parquet"]))
    splits = draw(
        st.dictionaries(
            split_names, shard_lengths(max_shards, max_length), min_size=1, max_size=max_splits
        )
    )
    return Dataset(
        name=name,
        config=draw(config_names),
        version=draw(st.none() | versions),
        file_format=file_format,
        ordered=draw(st.booleans()),
        splits=tuple(
            Split(
                name=split,
                shard_lengths=lengths,
                files=(
                    ShardFiles.from_template(
                        DEFAULT_TEMPLATE,
                        dataset=name,
                        split=split,
                        file_format=file_format,
                        num_shards=len(lengths),
                    ),
                ),
                num_bytes=draw(st.none() | st.integers(0, 2**40)),
            )
            for split, lengths in splits.items()
        ),
    )


def documents(keys: tuple[str, ...]) -> st.SearchStrategy[Any]:
    """Nonsense of the shape of a document: nested values whose keys are often the real ones."""
    texts = st.sampled_from(["", "train", "1", "1e3", "\x1b[31m", "\0", "x" * 5000, "[red]"])
    numbers = st.integers() | st.sampled_from([-1, 2**63, 16**3000]) | st.floats()
    scalars = st.none() | st.booleans() | numbers | texts | st.text(max_size=20)
    key = st.sampled_from(keys) | st.text(max_size=5)
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(key, inner, max_size=6),
        max_leaves=20,
    )


def damaged(data: bytes) -> st.SearchStrategy[bytes]:
    """A text with one piece of it replaced by other bytes."""
    cut = st.integers(0, len(data))
    return st.builds(
        lambda start, stop, put: data[: min(start, stop)] + put + data[max(start, stop) :],
        cut,
        cut,
        st.binary(max_size=8) | st.sampled_from([b"{", b"]", b'"', b"&a *a", b"\n- ", b"!!python"]),
    )


Place = tuple[Any, ...]
# What no place of a saved document takes, whichever type is right there.
NOWHERE: tuple[Any, ...] = ({"no": 0.5}, [[0.5]])


def places_of(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the keys that lead to each value within a document."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in pairs:
        yield (*place, key)
        if isinstance(inner, dict | list | tuple):
            yield from places_of(inner, (*place, key))


def with_value(document: Any, place: Place | str, value: object) -> dict[str, Any]:
    """Return a copy with another value at a place, which may be said as keys parted by blanks."""
    if isinstance(place, str):
        place = tuple(int(key) if key.isdigit() else key for key in place.split())
    changed: dict[str, Any] = copy.deepcopy(document)
    holder: Any = changed
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    return changed
