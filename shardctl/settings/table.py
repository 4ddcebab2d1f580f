"""The table of all settings: names, kinds of values, defaults, help and words of each.

Checks, documents, options, help pages and answers are made from it, so a new setting is an entry
here and a field of `ReadSettings`. Importing it loads neither numpy nor yaml.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, get_args

from shardctl.base import tfds_rules as rules
from shardctl.base.arguments import kind_of, truth_value, whole_number
from shardctl.base.text import choices, counted, nearest_first, printable
from shardctl.errors import UsageError
from shardctl.loaders.loader import LOADERS, READERS, TFDS_CALLS, calls_of
from shardctl.spec.host import DEFAULT_HOST_MODE, HOST_MODES, Host, as_host

# The kinds of settings: which values they take, in Python and in a document.

_NAMES = kind_of(tuple[str, ...])


@dataclass(frozen=True, kw_only=True, eq=False)
class SettingKind(ABC):
    """What a setting takes; None, for TFDS's default, is not asked about.

    least: the least of the numbers, where they have one. words: those that may stand for a value.
    of: what they are, where they are too many for a help page.
    """

    # All kinds share these: a dataclass more is half a millisecond more at each start.
    least: int | None = None
    words: Collection[str] = ()
    letters: ClassVar[tuple[str, ...]] = ()

    @property
    def metavar(self) -> str:
        """What stands for a value on a help page, "" for a switch."""
        return "|".join((*self.letters, *self.words))

    @abstractmethod
    def take(self, value: Any) -> Any:
        """Return a value as it is kept.

        Raises:
            UsageError: the rule that it breaks.
        """

    def from_document(self, value: Any) -> Any:
        """Return the value that a document's stands for, as it is kept."""
        return self.take(value)

    def to_document(self, value: Any) -> Any:
        """Return a value as a document has it."""
        return value


class WholeNumber(SettingKind):
    """A whole number, of `least` at least, of any size where that is None; or one of some words.

    >>> WholeNumber(least=1, words=("auto",)).take("auto")
    'auto'
    """

    letters = ("N",)

    def take(self, value: Any) -> int | str:
        if isinstance(value, str) and value in self.words:
            return str(value)
        number = whole_number(value)
        if self.least is not None and not self.least <= number <= rules.INT64_MAX:
            raise UsageError(f"a number from {self.least} to {rules.INT64_MAX} is needed")
        return number

    def to_document(self, value: Any) -> int | str:
        return value if isinstance(value, str) else int(value)  # a default that is not set, too


class BufferSize(WholeNumber):
    """A number of examples, or -2 for all there are, as `ds.shuffle` takes it."""

    def take(self, value: Any) -> int:
        number = whole_number(value)
        if number != rules.WHOLE_DATASET and not 1 <= number <= rules.INT64_MAX:
            raise UsageError(
                f"a number of examples from 1 to {rules.INT64_MAX} is needed, or "
                f"{rules.WHOLE_DATASET} for the whole dataset"
            )
        return number


class Switch(SettingKind):
    """On or off."""

    def take(self, value: Any) -> bool:
        return truth_value(value)


class Word(SettingKind):
    """One of some words."""

    def take(self, value: Any) -> str:
        if not isinstance(value, str):
            raise UsageError("a word is needed")
        if value not in self.words:
            raise UsageError(f"choose from {choices(nearest_first(value, self.words))}")
        return str(value)


VERSION = re.compile(
    r"[0-9]{1,9}(\.[0-9]{1,9})*((a|b|rc)[0-9]{1,9})?(\.post[0-9]{1,9})?(\.dev[0-9]{1,9})?"
)


class VersionNumber(SettingKind):
    """A version of a library as pip writes it, "0.2.18" or "2.14.0rc1", without how it was built.

    >>> VersionNumber().take("2.13.0+cpu")
    '2.13.0'
    """

    letters = ("VERSION",)

    def take(self, value: Any) -> str:
        if not isinstance(value, str):
            raise UsageError("a version in quotes is needed, as in '5.2'")
        # "+cpu" or "+cu121" says how torch was built; the order is that of the version.
        version = str(value).partition("+")[0]
        if not VERSION.fullmatch(version):
            raise UsageError("a version is numbers with dots, as in 5.2 or 0.2.18")
        return version


class WhichHost(SettingKind):
    """A `Host`, which a document writes I/N."""

    letters = ("I/N",)

    def take(self, value: Any) -> Host:
        return as_host(value)

    def from_document(self, value: Any) -> Host:
        if not isinstance(value, str):
            raise UsageError("I/N is needed, as in 0/8 (host 0 of 8)")
        return Host.parse(value)

    def to_document(self, value: Host) -> str:
        return str(value)


class FileNames(SettingKind):
    """Names of files, in an order."""

    letters = ("FILE",)

    def take(self, value: Any) -> tuple[str, ...]:
        try:
            names: tuple[str, ...] = _NAMES.take(value)
        except UsageError:
            raise UsageError("a list of file names is needed") from None
        return names

    def to_document(self, value: Sequence[str]) -> list[str]:
        return list(value)


class StageList(SettingKind):
    """A pipeline behind the reader: its text, the list that a document has, or a `Pipeline`."""

    letters = ("STAGES",)

    def take(self, value: Any) -> Any:
        # Which calls may stand there the loader says, so that `ReadSettings` reads them.
        if isinstance(value, str | list | tuple) or hasattr(value, "stages"):
            return value
        raise UsageError("a text of stages is needed, as 'cache | shuffle(1000)', or a list")

    def to_document(self, value: Any) -> list[Any]:
        from shardctl.stages.text import document_of

        return document_of(value)


InForce = Mapping[str, Any]
# `Any` is a ReadSettings, which checks itself by this table, so that it cannot be named here.
ValueInForce = Callable[[Any, bool], object]


@dataclass(frozen=True, eq=False)
class Setting:
    """A setting of TFDS's reader or of the pipeline behind it, or of another loader.

    name: in documents; `-` and `_` are one.
    help: what it is, a sentence for people.
    stands_for: the call that it is, of TFDS, tf.data or Keras as the table of loaders has it.
    default: what is in force where it is not set, in words, "" where that goes without saying.
    aliases: names that TFDS, tf.data and Keras have for it alone; `names.py` says what they do.
    about: what it decides, "order" or "hosts"; "loader" is for other loaders than TFDS's.
    field: of `ReadSettings`, in shardctl.yaml and, with `--`, on the command line, where it is not
        the name.
    in_force: its value in a document, of settings and of whether the dataset is ordered; None is
        what no part of the pipeline reads. Without a rule it is the value as it was set.
    words: those in the line that names a pipeline, after those of a lower `place`: of its value
        where it is set, of a switch that is on or off, or of all settings in force.
    """

    name: str
    kind: SettingKind
    help: str
    _: KW_ONLY
    stands_for: str = ""
    default: str = ""
    aliases: tuple[str, ...] = ()
    about: Literal["order", "hosts", "loader"] = "order"
    field: str = ""
    in_force: ValueInForce | None = None
    words: str | tuple[str, str] | Callable[[InForce], str] = ""
    place: int = 0

    def __post_init__(self) -> None:
        # Most settings are called by the field of `ReadSettings`; only `pass` is a word of Python.
        if not self.field:
            object.__setattr__(self, "field", self.name)
        if not self.stands_for:
            object.__setattr__(self, "stands_for", TFDS_CALLS[self.field])

    @property
    def option(self) -> str:
        """Its option on the command line; a switch also has `--no-..`."""
        return f"--{self.field.replace('_', '-')}"

    @property
    def is_common(self) -> bool:
        """Whether most people set it, so that the short help page of a command shows it."""
        return self.name in _COMMON

    @property
    def is_rare(self) -> bool:
        """Whether it is left out of documents where it is None."""
        return self.about == "loader" or self.name == "stages"

    def said(self, in_force: InForce) -> str:
        """Return its words in the line that names a pipeline, "" where there is nothing to say."""
        value, words = in_force.get(self.name), self.words
        if callable(words):
            return words(in_force)
        if isinstance(words, tuple):
            return "" if value is None else words[0] if value else words[1]
        return "" if value is None or value is False else words.format(value)

    def is_read_by(self, name: str) -> bool:
        """Return whether it means anything to the loader of a name.

        >>> [SETTING_BY_NAME["cycle"].is_read_by(name) for name in ("tfds", "torch")]
        [True, False]
        """
        # An unknown loader is refused elsewhere; meanwhile the default's settings count.
        loader = READERS.get(name, READERS[SETTING_BY_FIELD["loader"].default])
        # TFDS's reader has no versions to choose from.
        of_version = self.field == "loader_version" and bool(loader.proven)
        return self.field in loader.takes or self.field == "loader" or of_version

    def value_in_force(self, settings: Any, *, ordered: bool) -> object:
        """Return its value in a document, with the default that is in force."""
        # None in a document: no part of this pipeline reads the setting.
        # The chain of another loader says some of them in its place.
        asked = self.is_read_by(settings.loader)
        if not settings.reader.on_tf_data:
            asked = settings.takes(self.field)
        if self.field != "loader" and not asked:
            return None
        if self.in_force is not None:
            return self.in_force(settings, ordered)
        value = getattr(settings, self.field)
        return None if value is None else self.kind.to_document(value)


def _with_seed(words: str, seed: object) -> str:
    return words if seed is None else f"{words} with seed {seed}"


def _files_in_order(in_force: InForce) -> str:
    if in_force["reverse"]:
        return "files reversed"
    return "files in a given order" if in_force["file_order"] else ""


def _files_shuffled(in_force: InForce) -> str:
    if not in_force["shuffle_files"]:
        return ""
    again = "" if in_force["reshuffle"] else ", the same each epoch"
    return _with_seed("files shuffled", in_force["shuffle_seed"]) + again


def _buffer(in_force: InForce) -> str:
    if not in_force["buffer"]:
        return ""
    whole = in_force["buffer"] == rules.WHOLE_DATASET
    size = "the whole epoch" if whole else f"{in_force['buffer']:,}"
    return _with_seed(f"shuffle buffer {size}", in_force["buffer_seed"])


def _buffer_in_force(settings: Any) -> int | None:
    """Return the size of the buffer; a stream that Hugging Face shuffles has one in any case."""
    buffer: int | None = settings.buffer
    if buffer is None and settings.streaming and settings.shuffle_seed is not None:
        buffer = settings.reader.default_buffer
    return buffer


def _batches(in_force: InForce) -> str:
    if not in_force["batch"]:
        return ""
    return f"batches of {in_force['batch']}{', last dropped' * in_force['drop_remainder']}"


def _host(in_force: InForce) -> str:
    if not in_force["host"]:
        return ""
    by = in_force["host_by"]
    return f"host {in_force['host']}" if by is None else f"host {in_force['host']} by {by}"


def _loader(in_force: InForce) -> str:
    loader = LOADERS.get(in_force.get("loader", ""))
    if loader is None:
        return ""
    version = in_force.get("loader_version")
    if version is None:
        return loader.title
    if loader.title.lower() == loader.library:
        return f"{loader.title} {version}"
    return f"{loader.title} ({loader.library} {version})"


def stages_in(document: InForce) -> Any:
    """Return the `Pipeline` that the settings of a document say, None where they say none."""
    if document.get("stages") is None:
        return None
    # Who gives no stages loads nothing of them.
    from shardctl.stages.text import pipeline_of

    given, loader = document["stages"], document.get("loader") or "tfds"
    return given if hasattr(given, "stages") else pipeline_of(given, calls=calls_of(loader))


def _stages(in_force: InForce) -> str:
    stages = stages_in(in_force)
    if stages is None:
        return ""
    from shardctl.stages.text import text_of

    return f"stages {printable(text_of(stages), 500)}"


*_CALLS, _LAST_CALL = (mode.call for mode in HOST_MODES.values())
_HOST_CALLS = f"{', '.join(_CALLS)} or {_LAST_CALL}"

# The order is that of documents and of help pages.
# fmt: off
SETTINGS: tuple[Setting, ...] = (
    Setting("cycle", WholeNumber(least=1, words=("auto",)), "Files read in turn.",
        default=f"{rules.DEFAULT_CYCLE}, or {rules.ORDERED_CYCLE} for an ordered dataset",
        aliases=("interleave_cycle_length", "cycle_length"),
        # The number that "auto" comes to on those CPUs, so nothing is left to say about them.
        in_force=lambda s, ordered: s.cycle_length(ordered=ordered), words="cycle {}"),
    Setting("cpus", WholeNumber(least=1), "CPUs of the machine that reads, for --cycle auto.",
        in_force=lambda s, ordered: None),
    Setting("block", WholeNumber(least=1),
        "Examples read from a file in one turn.", default=f"{rules.DEFAULT_BLOCK}",
        aliases=("interleave_block_length", "block_length"), words="block {}"),
    Setting("shuffle_files", Switch(), "Shuffle the order of the files.",
        in_force=lambda s, ordered: s.shuffles_files, words=_files_shuffled, place=2),
    Setting("shuffle_seed", WholeNumber(),
        "Seed of the shuffle; of the files with TFDS, of the examples with another --loader.",
        in_force=lambda s, ordered: s.shuffle_seed if s.shuffles_files else None,
        # With the files, where these are what it shuffles.
        words=lambda s: _with_seed("", s["shuffle_seed"]).removeprefix(" with ")
        if s.get("loader") else "", place=2),
    Setting("reshuffle", Switch(), "Reshuffle the files each epoch.", default="yes, as TFDS",
        aliases=("shuffle_reshuffle_each_iteration",),
        in_force=lambda s, ordered: s.reshuffle is not False if s.shuffles_files else None),
    Setting("deterministic", Switch(),
        "Yield examples in order; without it the order is nondeterministic.", default="TFDS's"),
    Setting("buffer", BufferSize(least=1), "Shuffle buffer of N examples; -2 for all of them.",
        aliases=("buffer_size", "shuffle_buffer", "shuffle_buffer_size"),
        in_force=lambda s, ordered: _buffer_in_force(s), words=_buffer, place=5),
    Setting("buffer_seed", WholeNumber(), "Seed of the shuffle buffer.",
        aliases=("shuffle_buffer_seed",)),
    Setting("buffer_reshuffle", Switch(), "Reshuffle the buffer each epoch.", default="yes",
        aliases=("reshuffle_each_iteration",),
        in_force=lambda s, ordered: None if s.buffer is None else s.buffer_reshuffle is not False),
    Setting("global_seed", WholeNumber(), "Global seed, for shuffles without a seed.",
        stands_for="tf.random.set_seed, torch.manual_seed",
        aliases=("set_seed", "set_random_seed"), words="global seed {}", place=6),
    Setting("epochs", WholeNumber(least=1), "How often the dataset is read, behind the shuffle.",
        default="1", aliases=("num_epochs", "repeat"),
        words=lambda s: f"{s['epochs']} epochs" if (s["epochs"] or 1) > 1 else "", place=7),
    Setting("repeat_files", Switch(),
        "Repeat the files indefinitely; only --epochs N worth is analysed.",
        aliases=("repeat_filenames",), words="files repeated", place=3),
    Setting("reverse", Switch(), "Read the files from last to first.",
        words=_files_in_order, place=1),
    Setting("file_order", FileNames(),
        "Read the files in the order of a list; one name a line, - is stdin."),
    Setting("host", WhichHost(), "Read as host I of N, from 0.",
        words=_host, place=4, about="hosts"),
    Setting("host_by", Word(words=HOST_MODES), "How hosts share the examples.",
        stands_for=_HOST_CALLS, default=DEFAULT_HOST_MODE, about="hosts"),
    Setting("batch", WholeNumber(least=1), "Batch size of each host.", aliases=("batch_size",),
        words=_batches, place=8),
    Setting("drop_remainder", Switch(), "Drop a last batch that is smaller."),
    Setting("stages", StageList(),
        "The transformations after reading, in order, as 'cache | shuffle(9)'.",
        words=_stages, place=8),
    Setting("pass", WholeNumber(least=0), "Which iteration of the same dataset object, from 0.",
        field="pass_index", default="0", aliases=("pass_index",),
        words=lambda s: f"pass {s['pass']}" if s["pass"] else "", place=9),
    Setting("loop", Word(words=get_args(rules.Loop)),
        "The training loop; Keras makes two iterators an epoch.", default="python",
        words=lambda s: "Keras fit" if s["loop"] not in ("python", None) else "", place=10),
    Setting("loader", Word(words=READERS), "The data loader.",
        stands_for="tf.data or another library", default="tfds", words=_loader, place=-1,
        about="loader"),
    Setting("loader_version", VersionNumber(), "Version of the loader's library.",
        stands_for="pip show", default="the installed one, else the newest known", about="loader"),
    Setting("shuffle", Switch(), "Shuffle, seeded by --global-seed N.",
        stands_for="DataLoader(shuffle)", words=("shuffled", "not shuffled"), place=1,
        about="loader"),
    Setting("workers", WholeNumber(least=0), "Worker processes of the loader.",
        stands_for="worker_count of Grain, num_workers of PyTorch", default="0",
        in_force=lambda s, ordered: s.workers or 0,
        words=lambda s: counted(s["workers"], "worker") if s.get("workers") else "", place=7,
        about="loader"),
    Setting("persistent_workers", Switch(), "Keep the worker processes from epoch to epoch.",
        stands_for="DataLoader(persistent_workers)", words="kept for all epochs", place=8,
        about="loader"),
    Setting("drop_shard_remainder", Switch(), "Leave out examples that hosts cannot share evenly.",
        stands_for="ShardOptions(drop_remainder) of Grain, drop_last of DistributedSampler",
        words="what hosts cannot share dropped", place=4, about="loader"),
    Setting("streaming", Switch(), "Read shard by shard instead of by index.",
        stands_for="load_dataset(streaming)",
        in_force=lambda s, ordered: s.streaming if s.buffer is None else True,
        words=("streamed", "read by index"), place=1, about="loader"),
    Setting("arrow", Switch(), "Stream Arrow tables instead of rows of a generator.",
        stands_for="to_iterable_dataset, not from_generator",
        words=("as tables", "as rows of a generator"), place=1, about="loader"),
    Setting("input_shards", WholeNumber(least=1), "Shards that fill the buffer in turn.",
        stands_for="IterableDataset.shuffle(max_buffer_input_shards)",
        words=lambda s: f"from {counted(s['input_shards'], 'shard')} in turn"
        if s.get("input_shards") else "", place=5, about="loader"),
)
# fmt: on

SETTING_BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}
SETTING_BY_FIELD: Mapping[str, Setting] = {setting.field: setting for setting in SETTINGS}
_COMMON = ("cycle", "block", "shuffle_seed", "buffer", "buffer_seed", "batch", "host")
ENDLESS = "--repeat-files"  # what has no end, in texts about it
OF_EPOCHS = ("stages", "epochs", "repeat_files")  # the fields that say how often all is read
