"""What Hugging Face Datasets loads, as code: files of its own formats, else a dataset by name."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.loaders.hugging_face.formats import of_tables
from shardctl.core.order.loader_order import LoaderOrder
from shardctl.readers.verifying.files_here import file_path
from shardctl.rendering.python.source import call, keywords, literal

# Formats that `load_dataset` reads, by the same names.
_FORMATS = ("parquet", "arrow", "webdataset")

_ROWS_OF_PARQUET = """\


# A generator streams rows, which a buffer mixes otherwise than tables.
def rows(files):
    for file in files:
        yield from pq.read_table(file).to_pylist()


dataset = datasets.IterableDataset.from_generator(rows, gen_kwargs={"files": files})
"""


def loaded(spec: str, order: LoaderOrder) -> Iterator[str]:
    """Yield the lines that make the dataset whose examples the indices of an order count.

    Subsplits of TFDS are no slices of `datasets`, so a part is selected by its indices.
    """
    streaming = {"streaming": "True"} if order.asked.streams else {}
    files = files_of(order)
    if files is None:
        yield "# The examples in the order of their files, which are the shards."
        if order.dataset.file_format not in _FORMATS:
            yield f"# datasets reads no {order.dataset.file_format} files: this stands for the same"
            yield "# examples in a format that it reads, or for a generator of them."
        name = [literal(order.dataset.name), f"split={literal(spec)}"]
        yield from call("dataset = datasets.load_dataset", [*name, *keywords(streaming)])
        return
    yield "# Each file is a shard."
    yield "files = ["
    yield from (f"    {literal(file)}," for file in files)
    yield "]"
    if reads_rows_of_parquet(order):
        yield from _ROWS_OF_PARQUET.splitlines()
        return
    named = {"data_files": "files", "split": literal("train"), **streaming}
    arguments = [literal(order.dataset.file_format), *keywords(named)]
    yield from call("dataset = datasets.load_dataset", arguments)
    parts = [f"*range({start}, {stop})" for start, stop in _parts(order)]
    if parts:
        yield f"# The part that {literal(spec)} reads."
        yield from call("dataset = dataset.select", [f"[{', '.join(parts)}]"])


def reads_rows_of_parquet(order: LoaderOrder) -> bool:
    """Return whether Parquet files are streamed row by row, as a generator does it."""
    asked = order.asked
    return asked.streams and not of_tables(asked) and order.dataset.file_format == "parquet"


def files_of(order: LoaderOrder) -> list[str] | None:
    """Return the paths of the files, each once in a row, None where they are not known."""
    dataset, reads = order.dataset, order.reads
    if dataset.file_format not in _FORMATS or not len(reads):
        return None
    places = list(zip(reads.split.tolist(), reads.shard.tolist(), strict=True))
    if not all(dataset.splits[split].files for split, _ in places):
        return None
    paths = [file_path(dataset, split, shard) for split, shard in places]
    return None if None in paths else [path for path in paths if path is not None]


def _parts(order: LoaderOrder) -> list[tuple[int, int]]:
    """Return what is read of the files one after the other, nothing where that is all of it."""
    reads, parts = order.reads, list[tuple[int, int]]()
    before, whole = 0, True
    columns = (reads.skip.tolist(), reads.take.tolist(), reads.examples_in_shard.tolist())
    for skip, take, length in zip(*columns, strict=True):
        start, stop = before + skip, before + skip + take
        if parts and parts[-1][1] == start:
            parts[-1] = parts[-1][0], stop
        else:
            parts.append((start, stop))
        whole = whole and take == length
        before += length
    return [] if whole else parts
