"""The settings that an order depends on: those of TFDS's reader and of the pipeline behind it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from shardctl.base import tfds_rules as rules
from shardctl.base.arguments import checked, keep_fields, made_kind, no_such_argument, or_none
from shardctl.base.phrase import option
from shardctl.base.text import counted
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.loaders.loader import LOADERS, READERS, Loader, LoaderName, calls_of
from shardctl.settings import names
from shardctl.settings.table import SETTING_BY_FIELD, SETTING_BY_NAME, SETTINGS
from shardctl.spec.host import DEFAULT_HOST_MODE, HOST_MODES, Host, HostBy, HostMode

if TYPE_CHECKING:
    from shardctl.stages.stages import Pipeline


class _UnstatedBlock(int):
    """The block length where none is set; one that is set may be the same number."""


UNSTATED_BLOCK = _UnstatedBlock(rules.DEFAULT_BLOCK)


@dataclass(frozen=True, kw_only=True)
class ReadSettings:
    """Everything that fixes an order besides the dataset and the spec, None for TFDS's default.

    cycle, cpus: `ReadConfig.interleave_cycle_length`; "auto" is TFDS's None, ceil(cpus / 3).
    block: `ReadConfig.interleave_block_length`.
    shuffle_files, shuffle_seed, reshuffle: `shuffle_files`, `ReadConfig.shuffle_seed` and
        `shuffle_reshuffle_each_iteration`; a seed implies the switch.
    deterministic: `ReadConfig.options.deterministic`.
    buffer, buffer_seed, buffer_reshuffle: `ds.shuffle(buffer, seed, reshuffle_each_iteration)`.
    global_seed: `tf.random.set_seed`.
    epochs, repeat_files: `ds.repeat(epochs)` after the shuffle; `ReadConfig.repeat_filenames`.
    reverse, file_order: `experimental_interleave_sort_fn`.
    host, host_by: `tfds.even_splits` ("even"), `InputContext` ("files"), `ds.shard` ("examples").
    batch, drop_remainder: `ds.batch`.
    stages: all that is behind the reader, as tf.data or the loader has it, in place of settings.
    pass_index: which iteration of the same dataset object, from 0.
    loop: the training loop.
    loader, loader_version: the data loader, and the version of its library; "tfds" is TFDS's
        reader on tf.data. What follows is for other loaders.
    shuffle: `DataLoader(shuffle)` of PyTorch, with `global_seed`.
    workers: `worker_count` of Grain, `num_workers` of PyTorch.
    persistent_workers: `DataLoader(persistent_workers)`, whose epochs draw fewer numbers.
    drop_shard_remainder: `ShardOptions(drop_remainder)`, `DistributedSampler(drop_last)`.
    streaming: `load_dataset(streaming)` of Hugging Face.
    arrow: whether that reads tables, not rows of a generator.
    input_shards: `IterableDataset.shuffle(max_buffer_input_shards)`.

    >>> ReadSettings(shuffle_seed=32).shuffles_files
    True
    >>> ReadSettings(shuffle_seed=32, batch=64)  # what is not TFDS's default
    ReadSettings(shuffle_seed=32, batch=64)

    Raises:
        UsageError: a value outside its range, or two that exclude each other.
    """

    cycle: int | Literal["auto"] | None = None
    cpus: int | None = None
    block: int = UNSTATED_BLOCK
    shuffle_files: bool | None = None
    shuffle_seed: int | None = None
    reshuffle: bool | None = None
    deterministic: bool | None = None
    buffer: int | None = None
    buffer_seed: int | None = None
    buffer_reshuffle: bool | None = None
    global_seed: int | None = None
    epochs: int = 1
    repeat_files: bool = False
    reverse: bool = False
    file_order: tuple[str, ...] | None = None
    host: Host | None = None
    host_by: HostBy = DEFAULT_HOST_MODE
    batch: int | None = None
    drop_remainder: bool = False
    stages: Pipeline | None = None
    pass_index: int = 0
    loop: rules.Loop = "python"
    loader: LoaderName = "tfds"
    loader_version: str | None = None
    shuffle: bool | None = None
    workers: int | None = None
    persistent_workers: bool | None = None
    drop_shard_remainder: bool = False
    streaming: bool | None = None
    arrow: bool | None = None
    input_shards: int | None = None

    def __repr__(self) -> str:
        stated = (
            (field.name, getattr(self, field.name))
            for field in fields(self)
            if getattr(self, field.name) != field.default
        )
        return f"ReadSettings({', '.join(f'{name}={_in_short(value)}' for name, value in stated)})"

    def __post_init__(self) -> None:
        # Checking makes a plain int of it, so what it was is noted before.
        unstated = isinstance(self.block, _UnstatedBlock)
        keep_fields(self, _TAKERS)
        if unstated:
            object.__setattr__(self, "block", UNSTATED_BLOCK)
        if self.stages is not None:
            object.__setattr__(self, "stages", self._parsed(self.stages))
        # First: of another loader most of the rules below do not hold.
        self._check_loader()
        if self.cycle == "auto" and self.cpus is None:
            raise UsageError(
                "--cycle auto depends on the CPUs of the machine that reads; add --cpus N"
            )
        if self.cpus is not None and self.cycle != "auto":
            raise UsageError("--cpus is read with --cycle auto only")
        if self.reverse and self.file_order is not None:
            raise UsageError("--reverse and --file-order are two orders of the files; choose one")
        if self.drop_remainder and self.batch is None:
            raise UsageError("--drop-remainder needs --batch N: it drops the last batch")
        if self.buffer is None and (self.buffer_seed, self.buffer_reshuffle) != (None, None):
            raise UsageError("--buffer-seed and --buffer-reshuffle need --buffer N")
        if self.stages is not None:
            self._check_stages(self.stages)

    def _check_loader(self) -> None:
        loader = LOADERS.get(self.loader)
        if loader is None:
            beside = [name for name in _OF_LOADERS if getattr(self, name) != _DEFAULTS[name]]
            if beside:
                setting = SETTING_BY_FIELD[beside[0]]
                takers = [name for name in LOADERS if setting.is_read_by(name)]
                given = option(beside[0], getattr(self, beside[0]))
                only = f"--loader {' or '.join(takers or LOADERS)}"
                if beside[0] == "shuffle":
                    raise UsageError(
                        f"{given}: it could be --shuffle-files or --buffer; say which; such a "
                        f"switch is read with {only} only"
                    )
                raise UsageError(f"{given} is read with {only} only")
            return
        # A setting that this loader does not read must be at its default, else the answer would
        # leave it out without a word.
        for name, default in _DEFAULTS.items():
            is_read = SETTING_BY_FIELD[name].is_read_by(loader.name)
            if not is_read and getattr(self, name) != default:
                given = _argument(name, getattr(self, name))
                # Some are refused by the library itself, with a reason of its own.
                if name in loader.refuses:
                    raise UsageError(f"{given}: {loader.refuses[name]}")
                way = "shardctl help loaders lists its options"
                if name in ("shuffle", "global_seed") and "shuffle_seed" in loader.takes:
                    way = "its shuffle has a seed, --shuffle-seed N"
                raise UsageError(f"{given} has no meaning for {loader.title}; {way}")

    def _parsed(self, given: Any) -> Pipeline:
        """Return stages that are given as a text or a list, of the calls of the loader."""
        reader = READERS.get(self.loader)
        if hasattr(given, "stages") or not (reader and (reader.on_tf_data or reader.stages)):
            return cast("Pipeline", given)  # what has no meaning is refused unread
        from shardctl.stages.text import pipeline_of

        try:
            return pipeline_of(given, calls=calls_of(self.loader))
        except UsageError as error:
            shown = [given] if isinstance(given, str) else []
            raise UsageError(f"{option('stages', *shown, given=True)}: {error!s}") from None

    def _check_stages(self, stages: Pipeline) -> None:
        from shardctl.settings.names import with_known_settings
        from shardctl.stages.pipelines import parts_of

        known = {call.of for call in calls_of(self.loader).values()}
        for part in parts_of(stages):
            if type(part) not in known:
                whose = "" if self.reader.on_tf_data else ", but of another loader"
                raise UsageError(
                    f"--stages: this {part.called} is no stage of {self.reader.title}{whose}; "
                    "leave --loader out, or write the stages of that loader"
                )
        on_tf_data = self.reader.on_tf_data
        said = SHORT_FORM if on_tf_data else self.reader.in_stages
        # No workers are what a loader has without a number.
        kept = [name for name in said if name != "workers" or self.workers]
        beside = [name for name in kept if getattr(self, name) != _DEFAULTS[name]]
        if on_tf_data and self.host is not None and self.host_mode.reads_all:
            beside.append("host_by")
        if beside:
            given = option(beside[0], getattr(self, beside[0]))
            way = f"write {_IN_STAGES[beside[0]]} there" if on_tf_data else "write it there"
            raise UsageError(
                f"--stages says all that is behind the reader, so {given} has no place beside "
                f"it; {way}"
            )
        try:
            # Readers within the stages have settings too, checked by this same class.
            object.__setattr__(self, "stages", with_known_settings(stages, ReadSettings))
        except UsageError as error:
            raise UsageError(f"--stages: {error!s}") from None

    @checked
    def takes(self, name: str) -> bool:
        """Return whether another value of a setting has a meaning beside the rest.

        Not where the loader does not read it, nor where stages say it in its place.

        >>> [ReadSettings(stages="batch(2)").takes(name) for name in ("block", "buffer")]
        [True, False]
        """
        said = _IN_STAGES if self.reader.on_tf_data else self.reader.in_stages
        is_said = self.stages is not None and name in said
        return not is_said and SETTING_BY_FIELD[name].is_read_by(self.loader)

    @property
    def stand_ins_of_rule(self) -> tuple[str, ...]:
        """The seeds that may fix an order of a loader whose rule alone knows what needs one.

        None of TFDS's reader, see `with_stand_in_seeds`.
        """
        if self.reader.on_tf_data:
            return ()
        return tuple(name for name in ("shuffle_seed", "global_seed") if self.takes(name))

    @property
    def reader(self) -> Loader:
        """What is known of the data loader: TFDS's reader on tf.data, or another."""
        return READERS[self.loader]

    @property
    def host_mode(self) -> HostMode:
        """How hosts share the examples: the mode that `host_by` names."""
        return HOST_MODES[self.host_by]

    @property
    def shuffles_files(self) -> bool:
        """Whether the files are shuffled: as asked, else where a seed is given."""
        if self.shuffle_files is None:
            return self.shuffle_seed is not None
        return self.shuffle_files

    @property
    def is_endless(self) -> bool:
        """Whether the reader itself repeats its files without end."""
        return self.repeat_files

    @property
    def reads_default(self) -> bool:
        """Whether the dataset of the command is read: readers of stages may all name their own."""
        if self.stages is None:
            return True
        from shardctl.stages.pipelines import readers_of

        return any(read.data is None for read in readers_of(self.stages))

    @property
    def bare(self) -> ReadSettings:
        """What holds for all that a script builds: the global seed, the pass, the training loop."""
        return ReadSettings(
            global_seed=self.global_seed, pass_index=self.pass_index, loop=self.loop
        )

    @property
    def followed(self) -> ReadSettings:
        """The same, files that repeat without end for as many epochs as they are followed."""
        return replace(self, repeat_files=False)

    @property
    def buffer_is_open(self) -> bool:
        """Whether there is a shuffle buffer of tf.data that nothing seeds."""
        if self.buffer is None or not self.reader.on_tf_data:
            return False
        return self.buffer_seed is None and self.global_seed is None

    @checked
    def cycle_length(self, *, ordered: bool) -> int:
        """Return the cycle length in force for a dataset.

        Sources: TFDS core/reader.py, _get_default_interleave_cycle_length; for "auto"
        tensorflow/core/kernels/data/parallel_interleave_dataset_op.cc (a third of the CPUs,
        rounded up, when the calls are tuned automatically).
        """
        if self.cycle is None:
            return rules.ORDERED_CYCLE if ordered else rules.DEFAULT_CYCLE
        if self.cycle == "auto":
            return -(-(self.cpus or 1) // (1 + rules.CYCLE_PREFETCH_FACTOR))
        return self.cycle

    @checked
    def check_predictable(self, *, ordered: bool) -> None:
        """Refuse settings whose order is nondeterministic, and those that TFDS itself refuses.

        For another loader its own rule decides.

        Sources: TFDS core/reader.py, _read_files and _verify_read_config_for_ordered_dataset.

        Raises:
            UnpredictableOrderError: no seed; a map that yields in order of completion; a later pass
                whose file order depends on timing.
            UsageError: TFDS's guard for ordered datasets; a buffer that never fills.
        """
        if not self.reader.on_tf_data:
            return
        # "auto" is interleave_cycle_length=None, which is not 1 on any machine.
        if ordered and (self.shuffles_files or self.cycle not in (None, rules.ORDERED_CYCLE)):
            raise UsageError(
                "this is an ordered dataset (disable_shuffling=True), for which TFDS refuses "
                "--shuffle-files and any --cycle but 1; leave them out"
            )
        if self.deterministic is False:
            raise UnpredictableOrderError(
                "deterministic=False yields examples in order of completion, another in each run; "
                "leave it out, or use --deterministic"
            )
        # The order of checks: what TFDS refuses anyway, then what is never deterministic, then
        # seeds.
        self._check_seeds()
        if not self.repeat_files:
            return
        if self.buffer == rules.WHOLE_DATASET:
            raise UsageError(
                "--buffer -2 (the whole dataset) of --repeat-files, which has no end: the "
                "buffer never fills; give --buffer N"
            )
        if self.pass_index:
            raise UnpredictableOrderError(
                "--pass-index of --repeat-files: a pass has no end, so the order of a later one "
                "depends on timing; build the dataset anew, which is pass 0"
            )

    def _check_seeds(self) -> None:
        if self.shuffles_files and self.shuffle_seed is None:
            if self.global_seed is None:
                raise UnpredictableOrderError(
                    "--shuffle-files without a seed has another order in each run; give "
                    "--shuffle-seed N"
                )
            # TFDS core/reader.py, _read_files: deterministic=False for a shuffle without a
            # `shuffle_seed`, unless the options say otherwise. The global seed does not count
            # there.
            if not self.deterministic:
                raise UnpredictableOrderError(
                    "--shuffle-files with a global seed only: TFDS then interleaves with "
                    "deterministic=False, so the order of the examples depends on timing; "
                    "give --shuffle-seed N, or --deterministic where ReadConfig.options says "
                    "so"
                )
        if self.buffer_is_open:
            raise UnpredictableOrderError(
                "--buffer without a seed has another order in each run; give --buffer-seed N of "
                "its ds.shuffle, or --global-seed N if tf.random.set_seed(N) is called"
            )


# What is said by stages where there are stages, and how it is written there.
_IN_STAGES = {
    "buffer": "shuffle(N)",
    "buffer_seed": "shuffle(N, seed=..)",
    "buffer_reshuffle": "shuffle(N, reshuffle=..)",
    "epochs": "repeat(N)",
    "batch": "batch(N)",
    "drop_remainder": "batch(N, drop_remainder=True)",
    "host_by": "shard(N, I)",
}
_OF_LOADERS = tuple(
    setting.field for setting in SETTINGS if setting.about == "loader" and setting.name != "loader"
)
SHORT_FORM = tuple(name for name in _IN_STAGES if name != "host_by")
_DEFAULTS = {field.name: field.default for field in fields(ReadSettings)}
_LONGEST_SHOWN = 400  # characters of stages, in a repr
_MAY_BE_NONE = frozenset(field.name for field in fields(ReadSettings) if field.default is None)
_TAKERS = {
    setting.field: or_none(setting.kind.take)
    if setting.field in _MAY_BE_NONE
    else setting.kind.take
    for setting in SETTINGS
}


def as_settings(given: SettingsLike | None) -> ReadSettings:
    """Return the settings that an argument is, or that a mapping of their names holds.

    None stands for those of a pipeline that leaves everything as TFDS has it. Names may be those of
    shardctl.yaml, of TFDS and of tf.data too, as `pass` for `pass_index`.

    >>> as_settings({"shuffle_seed": 42, "pass": 1}) == ReadSettings(shuffle_seed=42, pass_index=1)
    True
    """
    settings: ReadSettings = _SETTINGS.take({} if given is None else given)
    return settings


def _argument(name: str, value: Any) -> str:
    """Return a setting as it was given; of a list of files its name alone."""
    return option(name) if isinstance(value, tuple) else option(name, _text_of(value) or value)


def _text_of(value: Any) -> str | None:
    """Return the text of a Pipeline, whose class is loaded where there is one; else None."""
    if not hasattr(value, "stages"):
        return None
    from shardctl.stages.text import text_of

    return text_of(value)


def _in_short(value: Any) -> str:
    """Return the repr of a setting's value; of a long one how long it is."""
    text = repr(_text_of(value) or value)
    return text if len(text) <= _LONGEST_SHOWN else f"<{counted(len(text), 'character')}>"


def _made_of_mapping(given: object) -> ReadSettings | None:
    if isinstance(given, ReadSettings) or not isinstance(given, Mapping):
        return given if isinstance(given, ReadSettings) else None
    return ReadSettings(**_fields_of(given))


def _fields_of(given: Mapping[Any, object]) -> dict[str, Any]:
    named = names.main_names({str(key): value for key, value in given.items()})
    for name in named:
        if name not in SETTING_BY_NAME:
            raise names.no_such_setting(name, SETTING_BY_FIELD)
    return {SETTING_BY_NAME[name].field: value for name, value in named.items()}


def with_keywords(
    given: ReadSettings | None, keywords: Mapping[str, Any], arguments: Collection[str] = ()
) -> ReadSettings:
    """Return settings with keywords in place of their own values; None there is TFDS's default.

    Raises:
        UsageError: no setting, nor one of a function's `arguments`, is called so; or as for
            `ReadSettings`.
    """
    for name in keywords:
        if names.setting_called(name) is None and name not in names.SHARED_NAMES:
            raise no_such_argument(name, [*arguments, *SETTING_BY_FIELD])
    # A keyword that is None asks for TFDS's default, in place of a value in `given`.
    own: dict[str, Any] = _fields_of(keywords)
    own = {name: _DEFAULTS[name] if own[name] is None else own[name] for name in own}
    return replace(ReadSettings() if given is None else given, **own)


_SETTINGS = made_kind(
    _made_of_mapping,
    needed="a ReadSettings, as ReadSettings(batch=64), or a dict of its values",
    several="settings",
    join=with_keywords,
)
SettingsLike = Annotated[ReadSettings | Mapping[str, object], _SETTINGS]


def with_stand_in_seeds(settings: ReadSettings) -> tuple[ReadSettings, dict[str, Any]]:
    """Return settings whose order is fixed, and what was assumed to fix it.

    >>> settings, assumed = with_stand_in_seeds(ReadSettings(shuffle_files=True, buffer=10))
    >>> assumed
    {'shuffle_seed': 1, 'buffer_seed': 2}
    """
    assumed: dict[str, Any] = {}
    if not settings.reader.on_tf_data:
        return settings, assumed  # its rule knows what is nondeterministic
    # A global seed alone gives the files an order, but leaves the interleave nondeterministic.
    if settings.shuffles_files and settings.shuffle_seed is None:
        if settings.global_seed is None:
            assumed["shuffle_seed"] = 1
        elif not settings.deterministic:
            assumed["deterministic"] = True
    if settings.deterministic is False:
        assumed["deterministic"] = True
    if settings.buffer_is_open:
        assumed["buffer_seed"] = 2
    settings = replace(settings, **assumed)
    if settings.stages is not None and settings.global_seed is None:
        from shardctl.stages.pipelines import with_seeds

        seeded = with_seeds(settings.stages)
        if seeded != settings.stages:
            settings, assumed["stages"] = replace(settings, stages=seeded), _text_of(seeded)
    return settings, assumed


def with_any_buffer_seed(settings: ReadSettings) -> ReadSettings:
    """Return settings that read the same into their buffer, which has a seed in any case.

    >>> with_any_buffer_seed(ReadSettings(buffer=10)).buffer_is_open
    False
    """
    return replace(settings, buffer_seed=0) if settings.buffer_is_open else settings


def unstated_reading(settings: ReadSettings, *, is_counted: bool, num_files: int) -> str | None:
    """Return which defaults of TFDS counted files are taken to be read with.

    Nothing says that TFDS reads them: `tf.data.TFRecordDataset(files)` reads one after the
    other, and tf.data's own interleave takes blocks of 1, not 16 (tensorflow/python/data/ops/
    interleave_op.py). None where it is stated, makes no difference, or another loader reads.
    """
    # Then neither the cycle nor the block changes the order, so nothing is assumed.
    in_order = settings.cycle == 1 or (num_files < 2 and not settings.repeat_files)
    if in_order or not is_counted or not settings.reader.on_tf_data:
        return None
    defaults = [] if settings.cycle is not None else [f"cycle {rules.DEFAULT_CYCLE}"]
    defaults += [f"block {settings.block}"] if isinstance(settings.block, _UnstatedBlock) else []
    return " and ".join(defaults) or None


# What TFDS's reader alone can do, refused to other loaders by name.


def refuse_loader(settings: ReadSettings, what: str, instead: str) -> None:
    """Refuse settings of another loader where `what` is about TFDS's reader on tf.data.

    >>> refuse_loader(ReadSettings(loader="torch"), "a plan file", "give resume the options")
    Traceback (most recent call last):
    ...
    shardctl.errors.UsageError: --loader torch: a plan file is of TFDS's reader on tf.data, and \
PyTorch's DataLoader reads here; give resume the options

    Raises:
        UsageError: another loader reads.
    """
    if settings.reader.on_tf_data:
        return
    raise UsageError(
        f"--loader {settings.loader}: {what} is of TFDS's reader on tf.data, and "
        f"{settings.reader.title} reads here; {instead}"
    )


# Read settings as the mapping that is in shardctl.yaml, in answers, plans and snapshots.

SettingsDocument = dict[str, Any]


def settings_in_force(settings: ReadSettings, *, ordered: bool) -> SettingsDocument:
    """Return every setting by its name, with the defaults that are in force.

    What no part of the pipeline reads is None; the loader is named unless it is TFDS's reader.
    Read back it gives the same order.

    >>> document = settings_in_force(ReadSettings(shuffle_seed=32), ordered=False)
    >>> document["cycle"], document["shuffle_files"], document["reshuffle"], document["buffer"]
    (16, True, True, None)
    """
    values = {setting: setting.value_in_force(settings, ordered=ordered) for setting in SETTINGS}
    if settings.reader.on_tf_data:
        values[SETTING_BY_FIELD["loader"]] = None
    return {s.name: value for s, value in values.items() if value is not None or not s.is_rare}


def settings_of_document(document: Mapping[str, object], where: str) -> ReadSettings:
    """Return the settings that a mapping holds; `where` names the mapping in errors.

    >>> settings_of_document({"cycle": 0}, "pipeline")
    Traceback (most recent call last):
    ...
    shardctl.errors.UsageError: pipeline: cycle=0: a number from 1 to 9223372036854775807 is needed

    Raises:
        UsageError: an unknown name, a value outside its range, or two that exclude each other.
    """
    try:
        return ReadSettings(**names.settings_from_document(document))
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
