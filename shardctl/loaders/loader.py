"""The loaders: which there are, which settings each reads, and which versions prove its rule.

Importing it loads neither NumPy nor any of the libraries.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from shardctl.base.by_name import named
from shardctl.loaders.hugging_face_eras import DEFAULT_BUFFER

if TYPE_CHECKING:
    from shardctl.loaders.loader_sequence import LoaderConfig, LoaderSequence
    from shardctl.stages.calls import Calls


# How a Trainer shares an `IterableDataset`: accelerate/data_loader.py, DataLoaderDispatcher (one
# process reads, and deals its batches in turn) and IterableDatasetShard.
_DEALT_STREAM = (
    "a stream of Accelerate and its Trainer is a chain, as in --stages 'IterableDataset | "
    "DataLoader(8) | prepare'; one that split_dataset_by_node shares is that of --loader hf"
)

LoaderName = Literal[
    "tfds", "grain", "torch", "stateful", "accelerate", "hf", "streaming", "litdata", "webdataset"
]


@dataclass(frozen=True, kw_only=True)
class Loader:
    """A library that reads examples, and the rule of its order; TFDS's reader is one of them.

    name: in documents and behind `--loader`. title: what people call it.
    library: its package, as pip knows it.
    proven: versions on which the rule agreed with the library, ascending; `proven[-1]` is taken
        where none is installed and none is named.
    takes: the fields of `ReadSettings` that mean something to it.
    shares_by: the call that gives each host its part, where it shares in a way of its own.
    rule: module and function that answers a `LoaderConfig` with what one process yields.
    calls: module and class of what its users call, live and as code; see `Library` in live.
    beside: other packages that the order comes from, and their proven versions, ascending.
    changes: module and function that say what changed between two versions, "" if nothing did.
    rule_version: one higher where the rule changes; what `verify` found of an older is forgotten.
    drops_repeated: its call that leaves out of a metric what hosts repeat, "" where it has none.
    deals_batches: hosts share whole batches, so a partial one is dropped before they share.
    refuses: fields that the library has another order for, which no rule knows, and why.
    stages: module of the classes of its stages and sources (`stages/part.py`), "" where a chain of
        its calls is not known. in_stages: fields that these say, so that none stands beside them.
    reads: module and function that return what an object of the library was made with, a
        `LoaderObject` of live, None of an object that is not its own. packages: the top-level
        packages of the types of such objects, by which it is asked.
    on_tf_data: whether a tf.data pipeline reads, as by default: stages, seeds and options of
        tf.data have their meaning, and TensorFlow hands the examples out. Files are read in turn, a
        block from each, so that their order and a shuffle buffer are what mixes examples; hosts may
        share in each of `HOST_MODES`, where another library has a way of its own, `shares_by`. Of
        such a reader `rule` is "", since its order is not one of indices.
    shares_are_assumed: whether what is assumed of its order says how hosts share, and so how many
        examples each of them has.
    default_buffer: how many examples a stream is shuffled in by default.
    """

    name: LoaderName
    title: str
    library: str
    proven: tuple[str, ...]
    takes: Collection[str]
    rule: str
    shares_by: str = ""
    calls: str = ""
    beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    changes: str = ""
    rule_version: int = 1
    drops_repeated: str = ""
    deals_batches: bool = False
    refuses: Mapping[str, str] = field(default_factory=dict)
    stages: str = ""
    in_stages: Collection[str] = ()
    reads: str = ""
    packages: tuple[str, ...] = ()
    on_tf_data: bool = False
    shares_are_assumed: bool = False
    default_buffer: int | None = None

    def sequence(self, config: LoaderConfig) -> LoaderSequence:
        """Return what one process yields.

        Raises:
            UsageError: the library refuses these settings, or the rule does not know them.
            UnpredictableOrderError: the order is nondeterministic.
        """
        found: LoaderSequence = named(self.rule)(replace(config, loader=self.name))
        return found

    def changed_between(self, old: str, new: str, pipeline: Mapping[str, object]) -> str:
        """Return how the order of a pipeline changed between two versions, "" if unknown."""
        if not self.changes:
            return ""
        found: str = named(self.changes)(old, new, pipeline)
        return found


def library_of(loader: Loader) -> Any:
    """Return what runs a loader and writes its code: a `shardctl.live.library.Library`."""
    return named(loader.calls)(loader)


def object_of(value: Any) -> Any:
    """Return what an object of another loader was made with: a `LoaderObject` of live.

    None of any other object. Loaders are asked by the packages of its types; nothing is imported
    for those that did not make it.
    """
    packages = {kind.__module__.partition(".")[0] for kind in type(value).__mro__}
    asked = (loader for loader in LOADERS.values() if not packages.isdisjoint(loader.packages))
    found = (named(loader.reads)(value) for loader in asked)
    return next((one for one in found if one is not None), None)


def library(module: str, loader: Loader) -> Any:
    """Return a module of the library of a loader, imported now.

    Raises:
        MissingDependencyError: it is not installed; names the command that installs it.
    """
    # Imported late: the start of a command does not pay for an error text.
    from shardctl.base.install import imported  # 2 ms

    return imported(module, loader.title, loader.library)


@dataclass(frozen=True, kw_only=True)
class Stop:
    """Where a loader stopped: after `consumed` examples, `in_epoch` of them of its epoch.

    epoch: from 0 in the pass. steps, steps_in_epoch: whole batches, None without batches.
    in_batch: examples of the next batch that were yielded.
    """

    consumed: int
    epoch: int
    in_epoch: int
    steps: int | None
    steps_in_epoch: int | None
    in_batch: int


@dataclass(frozen=True, kw_only=True)
class LoaderCall:
    """A call of the library on the way to what is left, with its arguments.

    set_epoch, iterations: which epoch comes first, the second by iterating so often before.
    skip, skip_first_batches, skip_in_batch: how many examples or batches are skipped.
    """

    call: str
    arguments: Mapping[str, int]

    def __str__(self) -> str:
        return f"{self.call}({', '.join(f'{name}={n}' for name, n in self.arguments.items())})"


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# The fields of `ReadSettings` that TFDS's reader on tf.data takes, and the call each stands for.
TFDS_CALLS = {
    "cycle": "ReadConfig.interleave_cycle_length",
    "cpus": "os.cpu_count",
    "block": "ReadConfig.interleave_block_length",
    "shuffle_files": "as_dataset(shuffle_files)",
    "shuffle_seed": "ReadConfig.shuffle_seed",
    "reshuffle": "ReadConfig.shuffle_reshuffle_each_iteration",
    "deterministic": "ReadConfig.options.deterministic",
    "buffer": "ds.shuffle(buffer_size)",
    "buffer_seed": "ds.shuffle(seed)",
    "buffer_reshuffle": "ds.shuffle(reshuffle_each_iteration)",
    "global_seed": "tf.random.set_seed",
    "epochs": "ds.repeat",
    "repeat_files": "ReadConfig.repeat_filenames",
    "reverse": "ReadConfig.experimental_interleave_sort_fn",
    "file_order": "ReadConfig.experimental_interleave_sort_fn",
    "host": "input_pipeline_id of num_input_pipelines",
    "host_by": "even_splits, InputContext, ds.shard",
    "batch": "ds.batch",
    "drop_remainder": "ds.batch(drop_remainder)",
    "stages": "tf.data.Dataset",
    "pass_index": "iter(ds)",
    "loop": "keras.Model.fit",
}
_TFDS = Loader(
    name="tfds",
    title="TFDS's reader on tf.data",
    library="tensorflow_datasets",
    proven=(),  # the rules of TensorFlow and TFDS have a version of their own, in tfds_rules.py
    takes=TFDS_CALLS,
    rule="",
    on_tf_data=True,
)
_GRAIN = Loader(
    name="grain",
    title="Grain",
    library="grain",
    proven=("0.2.13", "0.2.15", "0.2.16", "0.2.17", "0.2.18"),
    takes=_words(
        "shuffle_seed epochs host host_by drop_shard_remainder workers batch "
        "drop_remainder buffer buffer_seed stages"
    ),
    in_stages=_words(
        "shuffle_seed epochs host_by drop_shard_remainder workers batch drop_remainder buffer "
        "buffer_seed"
    ),
    stages="shardctl.loaders.grain_stages",
    shares_by="ShardOptions",
    rule="shardctl.loaders.grain:grain_sequence",
    calls="shardctl.live.grain:Grain",
    reads="shardctl.live.grain:read_object",
    packages=("grain",),
)
_TORCH = Loader(
    name="torch",
    title="PyTorch's DataLoader",
    library="torch",
    proven=("2.6.0", "2.13.0", "2.14.1"),
    takes=_words(
        "shuffle shuffle_seed global_seed epochs host drop_shard_remainder workers "
        "persistent_workers batch drop_remainder pass_index stages"
    ),
    stages="shardctl.loaders.torch_stages",
    in_stages=("shuffle", "shuffle_seed", "drop_shard_remainder"),
    shares_by="DistributedSampler",
    rule="shardctl.loaders.torch:torch_sequence",
    calls="shardctl.live.torch:Torch",
    reads="shardctl.live.torch_objects:read_object",
    packages=("torch", "torchdata", "accelerate", "transformers"),
)
_STATEFUL = Loader(
    name="stateful",
    title="torchdata's StatefulDataLoader",
    library="torchdata",
    proven=("0.11.0",),
    takes=_TORCH.takes,
    stages=_TORCH.stages,
    in_stages=_TORCH.in_stages,
    shares_by=_TORCH.shares_by,
    rule="shardctl.loaders.torch:torch_sequence",
    calls="shardctl.live.torch:Stateful",
    beside={"torch": _TORCH.proven},
)
_ACCELERATE = Loader(
    name="accelerate",
    title="Hugging Face Accelerate",
    library="accelerate",
    proven=("1.10.1", "1.13.0", "1.14.0", "1.15.0"),
    takes=_words(
        "shuffle shuffle_seed global_seed epochs host workers persistent_workers batch "
        "drop_remainder pass_index stages"
    ),
    stages=_TORCH.stages,
    in_stages=_TORCH.in_stages,
    shares_by="Accelerator",
    rule="shardctl.loaders.torch:torch_sequence",
    calls="shardctl.live.torch:Accelerate",
    beside={"torch": _TORCH.proven},
    drops_repeated="gather_for_metrics",
    deals_batches=True,
    refuses=dict.fromkeys(("streaming", "buffer", "input_shards"), _DEALT_STREAM),
)

_HF = Loader(
    name="hf",
    title="Hugging Face Datasets",
    library="datasets",
    proven=_words(
        "3.0.2 3.1.0 3.2.0 3.3.2 3.4.1 3.5.1 3.6.0 4.0.0 4.1.0 4.1.1 4.2.0 4.3.0 4.4.0 4.4.1 "
        "4.4.2 4.5.0 4.6.0 4.6.1 4.7.0 4.8.3 4.8.4 4.8.5 5.0.0 5.0.1 5.1.0 5.2.0"
    ),
    takes=_words(
        "shuffle_seed epochs pass_index host host_by workers batch drop_remainder "
        "streaming buffer input_shards arrow stages"
    ),
    shares_by="split_dataset_by_node",
    rule="shardctl.loaders.hugging_face:hugging_face_sequence",
    calls="shardctl.live.hugging_face:HuggingFace",
    changes="shardctl.loaders.hugging_face_eras:changed_between",
    stages="shardctl.loaders.hugging_face_stages",
    reads="shardctl.live.hugging_face:read_object",
    packages=("datasets",),
    in_stages=_words("shuffle_seed buffer input_shards"),
    shares_are_assumed=True,
    default_buffer=DEFAULT_BUFFER,
)
_OF_WORKERS = _words("epochs pass_index host workers batch drop_remainder stages")
_STREAMING = Loader(
    name="streaming",
    title="MosaicML Streaming",
    library="mosaicml-streaming",
    proven=("0.9.1", "0.11.0", "0.12.0", "0.13.0"),
    takes=(*_OF_WORKERS, "shuffle", "shuffle_seed"),
    shares_by="StreamingDataset",
    rule="shardctl.loaders.streaming:streaming_sequence",
    calls="shardctl.live.sharded:Streaming",
    stages="shardctl.loaders.streaming",
    in_stages=("shuffle", "shuffle_seed"),
    reads="shardctl.live.sharded:read_streaming",
    packages=("streaming",),
)
_LITDATA = Loader(
    name="litdata",
    title="litdata",
    library="litdata",
    proven=("0.2.50", "0.2.61", "0.2.66", "0.2.70", "0.2.75", "0.2.76"),
    takes=_STREAMING.takes,
    shares_by="StreamingDataset",
    rule="shardctl.loaders.litdata:litdata_sequence",
    calls="shardctl.live.sharded:Litdata",
    stages="shardctl.loaders.litdata",
    in_stages=_STREAMING.in_stages,
    reads="shardctl.live.sharded:read_litdata",
    packages=("litdata",),
)
_WEBDATASET = Loader(
    name="webdataset",
    title="WebDataset",
    library="webdataset",
    proven=("0.2.110", "0.2.111", "1.0.2"),
    takes=(*_OF_WORKERS, *_words("shuffle_seed buffer buffer_seed global_seed")),
    shares_by="split_by_node",
    rule="shardctl.loaders.webdataset:webdataset_sequence",
    calls="shardctl.live.sharded:WebDataset",
    stages="shardctl.loaders.webdataset",
    in_stages=_words("shuffle_seed buffer buffer_seed"),
    reads="shardctl.live.sharded:read_webdataset",
    packages=("webdataset",),
)

# Loaders besides TFDS's reader on tf.data, in the order in which messages name them.
LOADERS: dict[str, Loader] = {
    loader.name: loader
    for loader in (_GRAIN, _TORCH, _STATEFUL, _ACCELERATE, _HF, _STREAMING, _LITDATA, _WEBDATASET)
}
# Whoever may read, so that `ReadSettings.reader` always is one of them.
# ChainMap, not a copy: a loader that a test or a plugin adds to LOADERS is seen.
READERS: Mapping[str, Loader] = ChainMap(LOADERS, {_TFDS.name: _TFDS})


@cache
def calls_of(loader: str) -> Calls:
    """Return the calls of the stages of a loader, by their names (`stages/calls.py`).

    They are the parts that its module defines (`Loader.stages`), and the sources whose examples are
    counted; a loader without such a module has none.

    >>> "sample_from_datasets" in calls_of("tfds")
    True
    """
    # What no stages are written with loads nothing of them.
    from shardctl.stages.calls import CALLS, Call
    from shardctl.stages.part import Part
    from shardctl.stages.stages import Counter, Generator, Range, Read

    reader = READERS[loader]
    if reader.on_tf_data:
        return CALLS
    parts = vars(import_module(reader.stages)).values() if reader.stages else ()
    own = (
        part
        for part in parts
        # Those that it defines, not those that it imports.
        if isinstance(part, type) and issubclass(part, Part) and part.__module__ == reader.stages
    )
    named = [part for part in own if "name" in vars(part)]
    made = map(Call.of_part, (Read, Range, Generator, Counter, *named))
    return {call.name: call for call in made}


# On which versions of a library the rule of its loader is proven.
#
# A version is proven where the rule agreed with it, version by version. Another is not, however
# near: Hugging Face's order changed from 5.0 to 5.1 without a word, and gave one host everything
# from 4.8.0 to 4.8.2 alone, which no rule predicts. Builds (`2.13.0+cpu`) of a version are that
# version; pre-releases are their own.

_NUMBERS = re.compile(r"\d+(\.\d+)*")


@dataclass(frozen=True, kw_only=True)
class VerifiedVersion:
    """A version that `verify` compared with the rule on this machine, all equal.

    rule: the version of the rule (`Loader.rule_version`) that it was compared with.
    beside: the other packages that the order comes from, with their versions then.
    num_settings: how many settings were compared. date: when, as 2026-11-22.
    """

    loader: str
    version: str
    rule: int
    num_settings: int
    date: str
    beside: Mapping[str, str | None] = field(default_factory=dict)


def public_version(version: str) -> str:
    """Return a version without what says how it was built.

    >>> public_version("2.13.0+cpu")
    '2.13.0'
    """
    return version.partition("+")[0]


def release_of(version: str) -> tuple[int, ...] | None:
    """Return the numbers of a release, without zeros at its end; None of a pre-release.

    >>> release_of("5.1.0"), release_of("5.1"), release_of("5.1.0rc1")
    ((5, 1), (5, 1), None)
    """
    if _NUMBERS.fullmatch(public_version(version)) is None:
        return None
    numbers = [int(number) for number in public_version(version).split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def same_version(one: str, other: str) -> bool:
    """Return whether two versions are the same one, `5.1` and `5.1.0+cpu` as well."""
    ours, theirs = release_of(one), release_of(other)
    if ours is None or theirs is None:
        return public_version(one) == public_version(other)
    return ours == theirs


def proven_as(proven: Sequence[str], version: str) -> str | None:
    """Return which of the proven versions one is, None where it is none of them.

    A release line, `4.8`, stands for the newest of its versions that is proven.

    >>> proven_as(("4.8.0", "4.8.5"), "4.8.0+cpu"), proven_as(("4.8.1", "4.8.5"), "4.8")
    ('4.8.0', '4.8.5')
    """
    # A release line matches longer versions: "4.8" finds 4.8.x. An exact version has none.
    line = [each for each in proven if each.startswith(f"{version}.")]
    same = [each for each in proven if same_version(each, version)]
    return next(reversed(line or same), None)
