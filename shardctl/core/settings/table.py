"""The one table of settings: what each is called, takes, stands for, and how it is said.

Checks, documents, options, help pages and the words of an answer are made from it, so a new setting
is an entry here and a field of `ReadSettings`. Importing it loads neither numpy nor yaml.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from shardctl.core.hosts.modes import DEFAULT_HOST_MODE, HOST_MODES
from shardctl.core.phrase import phrase
from shardctl.core.settings.kinds import (
    BufferSize,
    FileNames,
    SettingKind,
    Switch,
    WhichHost,
    WholeNumber,
    Word,
)
from shardctl.core.shuffle.passes import Loop
from shardctl.core.tfds_rules import DEFAULT_BLOCK, DEFAULT_CYCLE, ORDERED_CYCLE, WHOLE_DATASET

InForce = Mapping[str, Any]
# `Any` is a ReadSettings, which checks itself by this table, so that it cannot be named here.
ValueInForce = Callable[[Any, bool], object]


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """A setting of TFDS's reader or of the pipeline behind it.

    name: in documents, in shardctl.yaml (there also with `-`) and, with `--`, on the command line.
    stands_for: what it is in the words of TFDS, tf.data or Keras.
    help: of its option.
    field: of `ReadSettings`, where it is not the name.
    in_force: its value in a document, of settings and of whether the dataset is ordered; None is
        what no part of the pipeline reads. Without a rule it is the value as it was set.
    said: its words in the line that names a pipeline, "" where there is nothing to say, after
        those of a lower `place`.
    """

    name: str
    kind: SettingKind
    stands_for: str
    help: str
    field: str = ""
    in_force: ValueInForce | None = None
    said: Callable[[InForce], str] | None = None
    place: int = 0

    def __post_init__(self) -> None:
        if not self.field:
            object.__setattr__(self, "field", self.name)

    @property
    def option(self) -> str:
        """Its option on the command line; a switch also has `--no-..`."""
        return f"--{self.name.replace('_', '-')}"

    def value_in_force(self, settings: Any, *, ordered: bool) -> object:
        """Return its value in a document, with the default that is in force."""
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
    whole = in_force["buffer"] == WHOLE_DATASET
    size = "the whole epoch" if whole else f"{in_force['buffer']:,}"
    return _with_seed(f"shuffle buffer {size}", in_force["buffer_seed"])


def _batches(in_force: InForce) -> str:
    if not in_force["batch"]:
        return ""
    return f"batches of {in_force['batch']}{', last dropped' * in_force['drop_remainder']}"


*_CALLS, _LAST_CALL = (mode.call for mode in HOST_MODES.values())
_HOST_CALLS = f"{', '.join(_CALLS)} or {_LAST_CALL}"

# The order is that of documents and of help pages.
SETTINGS: tuple[Setting, ...] = (
    Setting(
        name="cycle",
        kind=WholeNumber(least=1, words=("auto",)),
        stands_for="ReadConfig.interleave_cycle_length",
        help=f"ReadConfig.interleave_cycle_length [default: {DEFAULT_CYCLE}, or {ORDERED_CYCLE} "
        "for an ordered dataset].",
        # The number that "auto" comes to on those CPUs, so nothing is left to say about them.
        in_force=lambda settings, ordered: settings.cycle_length(ordered=ordered),
        said=lambda in_force: f"cycle {in_force['cycle']}",
    ),
    Setting(
        name="cpus",
        kind=WholeNumber(least=1),
        stands_for="ReadConfig.interleave_cycle_length=None",
        help=phrase("CPUs of the machine, for {cycle=auto}."),
        in_force=lambda settings, ordered: None,
    ),
    Setting(
        name="block",
        kind=WholeNumber(least=1),
        stands_for="ReadConfig.interleave_block_length",
        help=f"ReadConfig.interleave_block_length [default: {DEFAULT_BLOCK}].",
        said=lambda in_force: f"block {in_force['block']}",
    ),
    Setting(
        name="shuffle_files",
        kind=Switch(),
        stands_for="as_dataset(shuffle_files)",
        help="Shuffle the files.",
        in_force=lambda settings, ordered: settings.shuffles_files,
        said=_files_shuffled,
        place=2,
    ),
    Setting(
        name="shuffle_seed",
        kind=WholeNumber(),
        stands_for="ReadConfig.shuffle_seed",
        help=phrase("ReadConfig.shuffle_seed; implies {shuffle_files=True}."),
        in_force=lambda s, ordered: s.shuffle_seed if s.shuffles_files else None,
    ),
    Setting(
        name="reshuffle",
        kind=Switch(),
        stands_for="ReadConfig.shuffle_reshuffle_each_iteration",
        help="Shuffle the files anew each epoch [default: as TFDS, yes].",
        in_force=lambda s, ordered: s.reshuffle is not False if s.shuffles_files else None,
    ),
    Setting(
        name="deterministic",
        kind=Switch(),
        stands_for="ReadConfig.options.deterministic",
        help="ReadConfig.options.deterministic; off leaves the order open [default: TFDS's].",
    ),
    Setting(
        name="buffer",
        kind=BufferSize(least=1),
        stands_for="ds.shuffle(buffer_size)",
        help="ds.shuffle(N) after the read.",
        said=_buffer,
        place=5,
    ),
    Setting(
        name="buffer_seed",
        kind=WholeNumber(),
        stands_for="ds.shuffle(seed)",
        help="Seed of that shuffle.",
    ),
    Setting(
        name="buffer_reshuffle",
        kind=Switch(),
        stands_for="ds.shuffle(reshuffle_each_iteration)",
        help="Its reshuffle_each_iteration [default: yes].",
        in_force=lambda s, ordered: None if s.buffer is None else s.buffer_reshuffle is not False,
    ),
    Setting(
        name="global_seed",
        kind=WholeNumber(),
        stands_for="tf.random.set_seed",
        help="tf.random.set_seed(N).",
        said=lambda in_force: (
            "" if in_force["global_seed"] is None else f"global seed {in_force['global_seed']}"
        ),
        place=6,
    ),
    Setting(
        name="epochs",
        kind=WholeNumber(least=1),
        stands_for="ds.repeat",
        help="ds.repeat(N) after the shuffle [default: 1].",
        said=lambda in_force: f"{in_force['epochs']} epochs" if in_force["epochs"] > 1 else "",
        place=7,
    ),
    Setting(
        name="repeat_files",
        kind=Switch(),
        stands_for="ReadConfig.repeat_filenames",
        help=phrase(
            "ReadConfig.repeat_filenames: the files repeat for ever, of which as many examples "
            "are followed as {epochs=N} hold."
        ),
        said=lambda in_force: "files repeated" if in_force["repeat_files"] else "",
        place=3,
    ),
    Setting(
        name="reverse",
        kind=Switch(),
        stands_for="ReadConfig.experimental_interleave_sort_fn",
        help="Files back to front.",
        said=_files_in_order,
        place=1,
    ),
    Setting(
        name="file_order",
        kind=FileNames(),
        stands_for="ReadConfig.experimental_interleave_sort_fn",
        help="Files as a list names them, a line each.",
    ),
    Setting(
        name="host",
        kind=WhichHost(),
        stands_for="the host that reads",
        help="Host I of N, from 0.",
        said=lambda in_force: (
            f"host {in_force['host']} by {in_force['host_by']}" if in_force["host"] else ""
        ),
        place=4,
    ),
    Setting(
        name="host_by",
        kind=Word(words=HOST_MODES),
        stands_for=_HOST_CALLS,
        help=f"{_HOST_CALLS} [default: {DEFAULT_HOST_MODE}].",
    ),
    Setting(
        name="batch",
        kind=WholeNumber(least=1),
        stands_for="ds.batch",
        help="ds.batch(N).",
        said=_batches,
        place=8,
    ),
    Setting(
        name="drop_remainder",
        kind=Switch(),
        stands_for="ds.batch(drop_remainder)",
        help="Drop a last partial batch.",
    ),
    Setting(
        name="pass",
        field="pass_index",
        kind=WholeNumber(least=0),
        stands_for="which iteration of the same dataset object",
        help="Which iteration of the same dataset object, from 0 [default: 0].",
        said=lambda in_force: f"pass {in_force['pass']}" if in_force["pass"] else "",
        place=9,
    ),
    Setting(
        name="loop",
        kind=Word(words=get_args(Loop)),
        stands_for="a Python loop or keras.Model.fit",
        help="Who iterates; Keras takes two iterators an epoch [default: python].",
        said=lambda in_force: "Keras fit" if in_force["loop"] != "python" else "",
        place=10,
    ),
)

SETTING_BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}
SETTING_BY_FIELD: Mapping[str, Setting] = {setting.field: setting for setting in SETTINGS}
