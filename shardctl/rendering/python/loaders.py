"""Pipelines of other loaders than TFDS's as Python code, whole or from where one stopped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.loaders.hugging_face.eras import of_tables
from shardctl.core.order.loader_order import LoaderOrder
from shardctl.core.order.order import Order
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import UsageError
from shardctl.planning.resume.resume_loader import LoaderRest, rest_of_plan
from shardctl.planning.simulate import Simulation
from shardctl.readers.verifying.file_checks import file_path
from shardctl.rendering.python import reader
from shardctl.rendering.python.source import (
    call,
    comment,
    keywords,
    literal,
    module,
    order_comment,
    settings_code,
)

_DATA = "torch.utils.data"
_REST_OF_BATCHES = """\
class Rest:
    \"\"\"The batches that are left, each a list of indices of the source.\"\"\"

    def __init__(self, steps, in_batch):
        self.steps, self.in_batch = steps, in_batch

    def __len__(self):
        return len(self.steps)

    def __getitem__(self, index):
        indices = order.indices_in_step(self.steps[index]).tolist()
        return indices[self.in_batch :] if index == 0 else indices
"""


_STACKED = """\


def stacked(indices):
    \"\"\"Return a batch as Grain makes one.\"\"\"
    examples = [source[index] for index in indices]
    return tree.map_structure(lambda *values: np.stack(values), *examples)
"""


def loader_python(simulation: Simulation) -> Iterator[str]:
    """Yield code that makes the loader of a simulation and goes through its epochs."""
    order = simulation.order
    assert isinstance(order, LoaderOrder)
    yield from module(
        order_comment(simulation.spec, order),
        _sorted(_imports(order.settings, order)),
        _source(simulation.spec, order),
        _host(order.settings),
        _loader(order),
        _loop(order),
    )


def resume_python(found: ResumePlan) -> Iterator[str]:
    """Yield code that reads what is left of all epochs.

    Raises:
        UsageError: a plan from a log, which is of no order.
    """
    if found.from_seen:
        raise UsageError(
            "code that reads what a log left over is not written for other loaders than TFDS's; "
            "--format json lists the examples, by their files"
        )
    plan = rest_of_plan(found)
    order = plan.order
    head = order_comment(plan.spec, order)
    stopped = comment(f"stopped after {plan.consumed:,} examples, in epoch {plan.epoch}")
    if order.asked.streams and order.settings.loader == "hf":
        yield from module(
            (*head, *stopped),
            ("import itertools", "", *_sorted(_imports(order.settings, order))),
            _source(plan.spec, order),
            _host(order.settings),
            _loader(order),
            _streamed_on(plan),
        )
        return
    yield from module(
        (*head, *stopped),
        _sorted(_imports_of_rest(order.settings)),
        _source(plan.spec, order),
        _order(plan),
        _classes_of_rest(order) if order.has_steps else (),
        _rest(plan),
    )


def _imports(settings: ReadSettings, order: LoaderOrder) -> Iterator[str]:
    shares = settings.host is not None
    match settings.loader:
        case "grain":
            yield "import grain"
            yield "from absl import flags" if settings.workers else ""
        case "hf":
            yield "import datasets"
            if reads_rows_of_parquet(order) and files_of(order):
                yield "import pyarrow.parquet as pq"
        case "torch":
            yield "import torch" if not shares and order.shuffles else ""
        case "stateful":
            yield "import torch" if not shares and order.shuffles else ""
        case "accelerate":
            yield "import torch"
    yield from () if settings.loader == "hf" else (reader.TFDS,)
    match settings.loader:
        case "hf":
            yield "from datasets.distributed import split_dataset_by_node" if shares else ""
            yield f"from {_DATA} import DataLoader"
        case "torch":
            yield f"from {_DATA} import DataLoader"
            yield f"from {_DATA}.distributed import DistributedSampler" if shares else ""
        case "stateful":
            yield "from torchdata.stateful_dataloader import StatefulDataLoader"
            if shares:
                yield "from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler"
        case "accelerate":
            yield "from accelerate.data_loader import prepare_data_loader"


def _sorted(imports: Iterable[str]) -> list[str]:
    return sorted(filter(None, imports), key=lambda line: (line.startswith("from "), line))


def _imports_of_rest(settings: ReadSettings) -> Iterator[str]:
    yield "import shardctl"
    if settings.loader == "grain":
        yield "import grain"
        if settings.batch is not None:
            yield from ("import numpy as np", "import tree")
    yield "import datasets" if settings.loader == "hf" else reader.TFDS
    if settings.loader != "grain":
        yield f"from {_DATA} import DataLoader"


def _source(spec: str, order: Order) -> Iterator[str]:
    settings = order.settings
    if settings.loader == "hf":
        assert isinstance(order, LoaderOrder)
        yield from loaded(spec, order)
        return
    yield from reader.builder(order.dataset)
    yield "# Files that are read by index, as array_record ones are."
    yield f"source = builder.as_data_source(split={literal(spec)})"


def _host(settings: ReadSettings) -> Iterator[str]:
    if settings.host is not None:
        yield "# Which of the processes this is: 0 is the first."
        yield f"rank, world_size = {settings.host.index}, {settings.host.count}"


def _loader(order: LoaderOrder) -> Iterator[str]:
    settings = order.settings
    if settings.loader == "grain":
        yield from _grain(settings)
    elif settings.loader == "hf":
        yield from _hugging_face(order)
    else:
        yield from _torch(order)


def _torch(order: LoaderOrder) -> Iterator[str]:
    settings, shuffles = order.settings, literal(order.shuffles)
    arguments = {"batch_size": literal(settings.batch)}
    kind = "StatefulDataLoader" if settings.loader == "stateful" else "DataLoader"
    if settings.loader == "accelerate":
        if order.goes_on_drawing:
            yield from _manual_seed(settings)
        yield from call(
            "loader = torch.utils.data.DataLoader",
            ["source", *keywords({**arguments, "shuffle": shuffles, **_of_loader(settings)})],
        )
        host = settings.host
        prepared = {
            "num_processes": "1" if host is None else "world_size",
            "process_index": "0" if host is None else "rank",
            "use_seedable_sampler": literal(not order.goes_on_drawing),
        }
        if order.goes_on_drawing:
            yield "# As Accelerator.prepare does by itself."
        else:
            prepared["data_seed"] = literal(settings.shuffle_seed)
            yield "# As Accelerator.prepare does for the Trainer, whose data_seed this is."
        yield from call("loader = prepare_data_loader", ["loader", *keywords(prepared)])
        return
    if settings.host is not None:
        sampler = {
            "num_replicas": "world_size",
            "rank": "rank",
            "shuffle": shuffles,
            "seed": literal(settings.shuffle_seed or 0),
            "drop_last": literal(settings.drop_shard_remainder),
        }
        name = "StatefulDistributedSampler" if kind != "DataLoader" else "DistributedSampler"
        yield from call(f"sampler = {name}", ["source", *keywords(sampler)])
        arguments["sampler"] = "sampler"
    elif order.shuffles:
        arguments["shuffle"] = "True"
        if settings.global_seed is None:
            yield f"generator = torch.Generator().manual_seed({settings.shuffle_seed})"
            arguments["generator"] = "generator"
        else:
            yield from _manual_seed(settings)
    yield from call(
        f"loader = {kind}", ["source", *keywords({**arguments, **_of_loader(settings)})]
    )


def _manual_seed(settings: ReadSettings) -> Iterator[str]:
    yield "# Nothing that draws from PyTorch's generator may come between."
    yield f"torch.manual_seed({settings.global_seed})"


def _of_loader(settings: ReadSettings) -> Mapping[str, str]:
    found = {}
    if settings.workers:
        found["num_workers"] = literal(settings.workers)
    if settings.persistent_workers:
        found["persistent_workers"] = "True"
    if settings.drop_remainder:
        found["drop_last"] = "True"
    return found


def _grain(settings: ReadSettings) -> Iterator[str]:
    seed = {} if settings.shuffle_seed is None else {"seed": literal(settings.shuffle_seed)}
    batch = [literal(settings.batch), *(["drop_remainder=True"] * settings.drop_remainder)]
    if settings.buffer is not None or settings.host_by == "examples":
        yield "loader = grain.MapDataset.source(source)"
        if seed:
            yield f"loader = loader.shuffle({', '.join(keywords(seed))})"
        if settings.buffer is not None:
            window = {
                "window_size": literal(settings.buffer),
                "seed": literal(settings.buffer_seed),
            }
            name = "loader = grain.experimental.WindowShuffleMapDataset"
            yield from call(name, ["loader", *keywords(window)])
        yield f"loader = loader.repeat({settings.epochs})"
        yield from ["loader = loader[rank::world_size]"] * (settings.host is not None)
        yield "loader = loader.to_iter_dataset()"
        yield from [f"loader = loader.batch({', '.join(batch)})"] * (settings.batch is not None)
        if settings.workers:
            options = f"grain.MultiprocessingOptions(num_workers={settings.workers})"
            yield f"loader = loader.mp_prefetch({options})"
        return
    options = "grain.sharding.NoSharding()"
    if settings.host is not None:
        drop = f"drop_remainder={literal(settings.drop_shard_remainder)}"
        options = f"grain.sharding.ShardOptions(rank, world_size, {drop})"
    sampler = {
        "shuffle": literal(bool(seed)),
        "num_epochs": literal(settings.epochs),
        **seed,
    }
    head = "sampler = grain.samplers.IndexSampler"
    yield from call(head, ["len(source)", options, *keywords(sampler)])
    made = {"data_source": "source", "sampler": "sampler"}
    if settings.batch is not None:
        made["operations"] = f"[grain.transforms.Batch({', '.join(batch)})]"
    if settings.workers:
        made["worker_count"] = literal(settings.workers)
    yield from call("loader = grain.DataLoader", keywords(made))


def _hugging_face(order: LoaderOrder) -> Iterator[str]:
    settings = order.settings
    if settings.before_shuffle is not None:
        yield "# The call of the script, with its own arguments."
        yield f"dataset = dataset.{settings.before_shuffle}(...)"
    if settings.shuffle_seed is not None:
        arguments = {"seed": literal(settings.shuffle_seed)}
        if order.asked.streams and settings.buffer is not None:
            arguments["buffer_size"] = literal(settings.buffer)
        if settings.input_shards is not None:
            arguments["max_buffer_input_shards"] = literal(settings.input_shards)
        yield from call("dataset = dataset.shuffle", keywords(arguments))
    if settings.host is not None:
        strategy = {"files": "shards", "examples": "examples"}.get(settings.host_by)
        more = [] if strategy is None else [f"strategy={literal(strategy)}"]
        yield from call("dataset = split_dataset_by_node", ["dataset", "rank", "world_size", *more])
    arguments = {"batch_size": literal(settings.batch), **_of_loader(settings)}
    yield from call("loader = DataLoader", ["dataset", *keywords(arguments)])


def _loop(order: LoaderOrder) -> Iterator[str]:
    settings = order.settings
    element = "example" if settings.batch is None else "batch"
    if settings.loader == "grain":
        indent = ""
        if settings.workers:
            yield "# Worker processes import this script anew, and read Grain's flags."
            yield 'if __name__ == "__main__":'
            yield "    flags.FLAGS.mark_as_parsed()"
            indent = "    "
        yield f"{indent}for {element} in loader:"
        yield f"{indent}    ..."
        return
    first, stop = settings.pass_index, settings.pass_index + settings.epochs
    to_tell = _to_tell(order)
    if not to_tell and first:
        yield from comment(
            f"The order is that of iterations {first} to {stop - 1} of this very object, counted "
            "from 0: those before take their seeds."
        )
        first = 0
    yield f"for epoch in range({first}, {stop}):" if first else f"for epoch in range({stop}):"
    if to_tell:
        yield f"    {to_tell}.set_epoch(epoch)"
    yield f"    for {element} in loader:"
    yield "        ..."


def _to_tell(order: LoaderOrder) -> str:
    """Return what is told which epoch comes, "" where nothing is."""
    settings = order.settings
    if settings.loader == "accelerate":
        return "" if order.goes_on_drawing else "loader"
    if settings.loader == "hf":
        return "dataset" if order.asked.streams else ""
    return "sampler" if settings.host is not None else ""


def _streamed_on(plan: LoaderRest) -> Iterator[str]:
    settings, stop = plan.order.settings, plan.stop
    first = settings.pass_index + stop.epoch
    element, skip = ("example", stop.in_epoch)
    if stop.steps_in_epoch is not None:
        element, skip = "batch", stop.steps_in_epoch
    if stop.in_batch:
        yield from comment(f"Of the first batch {stop.in_batch} examples were handed out before.")
    yield f"for epoch in range({first}, {settings.pass_index + settings.epochs}):"
    yield "    dataset.set_epoch(epoch)"
    yield "    # What came before is read again, since a buffer has no other way there."
    yield f"    skip = {skip} if epoch == {first} else 0"
    yield f"    for {element} in itertools.islice(loader, skip, None):"
    yield "        ..."


def _order(plan: LoaderRest) -> Iterator[str]:
    order = plan.order
    yield from settings_code(order.settings)
    reference = literal(_reference(order.dataset))
    arguments = [reference, literal(plan.spec), "settings"]
    yield from call("planned = shardctl.plan_order", arguments)
    yield "order = planned.order"


def _reference(dataset: Dataset) -> str:
    return str(dataset.reference or dataset.data_dir or dataset.title)


def _classes_of_rest(order: LoaderOrder) -> list[str]:
    stacks = _STACKED if order.settings.loader == "grain" else ""
    return (_REST_OF_BATCHES + stacks).splitlines()


def _rest(plan: LoaderRest) -> Iterator[str]:
    settings, stop = plan.order.settings, plan.stop
    if stop.steps is None:
        yield f"rest = order.indices_at(range({plan.consumed}, order.num_examples)).tolist()"
        element = "example"
    else:
        yield f"rest = Rest(range({stop.steps}, order.num_steps), in_batch={stop.in_batch})"
        element = "batch"
    workers = {"num_workers": literal(settings.workers)} if settings.workers else {}
    source = "dataset" if settings.loader == "hf" else "source"
    if settings.loader == "grain":
        yield "loader = grain.MapDataset.source(rest)"
        if element == "batch":
            yield "loader = loader.map(stacked)"
        else:
            yield "loader = loader.map(lambda index: source[index])"
        yield "loader = loader.to_iter_dataset()"
    elif element == "batch":
        arguments = [source, *keywords({"batch_sampler": "rest", **workers})]
        yield from call("loader = DataLoader", arguments)
    else:
        arguments = keywords({"batch_size": "None", "sampler": "rest", **workers})
        yield from call("loader = DataLoader", [source, *arguments])
    yield f"for {element} in loader:"
    yield "    ..."


# What Hugging Face Datasets loads, as code: files of its own formats, else a dataset by name.

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
