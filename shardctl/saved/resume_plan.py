"""A plan to resume: what is left to read after an interruption, and how."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from shardctl.base.arguments import Whole, made_kind
from shardctl.base.by_name import provided
from shardctl.base.columns import Tabular
from shardctl.base.text import counted, in_short
from shardctl.base.tfds_rules import INT64_MAX
from shardctl.dataset.identity import DatasetHead, DatasetIdentity
from shardctl.errors import UsageError
from shardctl.loaders.loader import LoaderCall, Stop
from shardctl.order.order import ContinuedBy
from shardctl.saved.unseeded_buffer import UnseededBuffer
from shardctl.settings.read_settings import ReadSettings, settings_in_force, settings_of_document
from shardctl.spec.host import DEFAULT_HOST_MODE, HostBy
from shardctl.spec.reads import Reads
from shardctl.spec.subsplit import FileInstruction
from shardctl.tfdata.shuffle_seeds import KernelSeeds

if TYPE_CHECKING:
    from shardctl.dataset.dataset import Dataset
    from shardctl.saved.shared_rest import SharedRest


Mode = Literal["exact", "exactly-once", "exact-order", "at-most-once", "at-least-once"]
CONTINUED_BY: tuple[ContinuedBy, ...] = get_args(ContinuedBy)
WITHOUT_END = INT64_MAX  # examples that are left of a pipeline without end
# Where the seed of the buffer is not known.
UNSEEDED_MODES: tuple[Mode, ...] = ("at-most-once", "at-least-once")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReaderState:
    """Where the reader of the files is: `block_offset` examples of the block are read.

    `next_file` is how many of the `num_files` file instructions have been opened.
    """

    open_files: int
    block_offset: int
    next_file: int
    num_files: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ShuffleState:
    """Where a shuffle buffer is: its contents follow from this and the input.

    Of `num_elements` inputs of this epoch `num_read` are read and `emitted` yielded. `seeds` are
    those of the kernel, which this iterator of the shuffle took (`SeedGenerator`).
    """

    buffer_size: int
    seeds: KernelSeeds
    num_elements: int
    num_read: int
    emitted: int


@dataclass(frozen=True, kw_only=True, slots=True)
class FurtherEpoch:
    """An epoch after the one in which the plan begins: it starts after `consumed` examples.

    `file_seeds` and `buffer_seeds` are the kernel seeds of its two shuffles, None without them.
    """

    epoch: int
    consumed: int
    num_examples: int
    file_seeds: KernelSeeds | None
    buffer_seeds: KernelSeeds | None


@dataclass(frozen=True, kw_only=True, slots=True)
class HostShare:
    """What one of the new hosts reads."""

    index: int
    count: int
    instructions: Reads

    @property
    def num_examples(self) -> int:
        """Number of examples that fall to this host."""
        return self.instructions.num_examples

    def __repr__(self) -> str:
        return in_short(
            self,
            f"host {self.index} of {self.count}",
            counted(self.num_examples, "example"),
            counted(len(self.instructions), "file instruction"),
        )


@dataclass(frozen=True, kw_only=True)
class ResumePlan(Tabular):
    """How a pipeline resumes after `consumed` examples of the whole order.

    mode: "exact", the rest of the order id by id; with a shuffle buffer "exact-order" (the same
        order, for shardctl.tfds, which restores the buffer) or "exactly-once" (every example that
        is left once, in another order). Where the buffer's seed is not known,
        "at-most-once" (nothing is repeated) or "at-least-once" (seldom is anything lost).
    epoch, remaining: the epoch it begins in, and how many of its examples are left to read.
    remaining_total: how many are left in the whole order, a last batch that is dropped not counted.
    instructions: what is read, in order; the first `num_pending_instructions` read what the buffer
        held. A host of `ds.shard` reads them all and keeps every n-th, as `after_read` says.
    pending: ids that are read but not yielded, in the order read; None without a buffer. A plan of
        0.2.0 in mode "exact-order" has no instructions for them.
    unseeded: of the two modes without a seed, what is lost and repeated.
    from_seen: planned from a log of the examples seen; `consumed` counts those, and the order plays
        no part.
    from_consumed, hosts: with another number of hosts what each of the old ones has consumed, and
        what each of the new ones reads; `instructions` is then empty.
    further_epochs: the epochs that follow, the first `MAX_FURTHER_EPOCHS` of
        `num_further_epochs`.
    after_read: what the pipeline does behind the reader, as calls.
    continued_by: what continues with it: its file instructions; shardctl.tfds, which needs no
        instructions to build the stages of `settings` again (there the counts of what is left are
        `WITHOUT_END` where the pipeline has none); or the library of another loader, which makes
        the calls of `after_read`.
    stop, advice: of another loader, in which epoch and batch it stopped, and what to know of how
        the library itself resumes. `instructions` are what is left of the epoch in its order, as
        runs of neighbours in a file, none where these are too many to list.
    sources: of a pipeline with stages, what each reader has yielded.
    stretches: of a run that was shared anew, what the hosts had yielded before; `consumed` then
        counts since. `shared` is this host's part of the rest, None once it is read.
    given: the dataset of the command, which may be one of several that are read.
    refs: how the dataset was named, as the file that holds the plan has it.
    assumptions: what the order depends on though no setting states it.
    """

    dataset: DatasetIdentity
    spec: str
    mode: Mode
    settings: ReadSettings
    consumed: int
    epoch: int
    remaining: int
    remaining_total: int
    instructions: Reads
    num_pending_instructions: int = 0
    pending: tuple[int | str, ...] | None = None
    reader_state: ReaderState | None = None
    shuffle: ShuffleState | None = None
    unseeded: UnseededBuffer | None = None
    further_epochs: tuple[FurtherEpoch, ...] = ()
    num_further_epochs: int = 0
    from_seen: bool = False
    from_consumed: tuple[int, ...] = ()
    hosts: tuple[HostShare, ...] = ()
    after_read: tuple[AfterRead, ...] = ()
    continued_by: ContinuedBy = "file_instructions"
    sources: tuple[ConsumedSource, ...] = ()
    stop: Stop | None = None
    stretches: tuple[RunSegment, ...] = ()
    shared: SharedRest | None = field(default=None, compare=False)
    given: Dataset | None = field(default=None, compare=False, repr=False)
    refs: tuple[str, ...] = field(default=(), compare=False)
    advice: tuple[str, ...] = field(default=(), compare=False)
    warnings: tuple[str, ...] = field(default=(), compare=False)
    assumptions: tuple[str, ...] = field(default=(), compare=False)

    @property
    def exact(self) -> bool:
        """Whether the order continues exactly, id by id."""
        return self.mode in ("exact", "exact-order")

    @property
    def has_end(self) -> bool:
        """Whether the pipeline ends; else what is left cannot be counted."""
        return self.remaining_total != WITHOUT_END

    @property
    def is_one_stream(self) -> bool:
        """Whether the files repeat without end, so that the stream continues after the order."""
        return self.settings.is_endless

    @property
    def has_stages(self) -> bool:
        """Whether stages are behind the reader, which the settings of a short form do not say."""
        return self.settings.stages is not None

    @property
    def lists_rest(self) -> bool:
        """Whether the file instructions are what is left of the epoch, or of a log."""
        # A plan without instructions of which something remains left the list out as too long.
        return not self.remaining or bool(self.num_instructions)

    @property
    def file_instructions(self) -> tuple[FileInstruction, ...]:
        """What is read, in order; with other hosts see `hosts`.

        Raises:
            ValueError: the plan is as its file has it: its files are not found in a dataset yet.
        """
        return tuple(self.instructions)

    @property
    def num_instructions(self) -> int:
        """Number of file instructions, those of all new hosts."""
        return len(self.instructions) + sum(len(host.instructions) for host in self.hosts)

    @cached_property
    def pipeline(self) -> dict[str, Any]:
        """Every setting of the interrupted pipeline by its option's name."""
        return settings_in_force(self.settings, ordered=self.dataset.ordered)

    @cached_property
    def cycle_length(self) -> int:
        """`ReadConfig.interleave_cycle_length` that the instructions are to be read with."""
        return self.settings.cycle_length(ordered=self.dataset.ordered)

    @property
    def read_config(self) -> dict[str, Any] | None:
        """The settings of TFDS's reader that the instructions are to be read with, if it reads."""
        if self.continued_by == "loader":
            return None
        return {
            "interleave_cycle_length": self.cycle_length,
            "interleave_block_length": self.settings.block,
            # The instructions are in the order in which they are to be opened; a shuffle would undo
            # it.
            "shuffle_files": False,
        }

    def __repr__(self) -> str:
        return in_short(
            self,
            f"{self.dataset.title} {self.spec}",
            self.mode,
            f"{self.consumed:,} {'seen' if self.from_seen else 'consumed'}",
            f"{self.remaining:,} left of epoch {self.epoch}" if self.has_end else "",
            counted(self.num_instructions, "file instruction")
            if self.num_instructions or self.continued_by != "shardctl.tfds"
            else f"continued by {self.continued_by}",
            f"for {counted(len(self.hosts), 'host')}" if self.hosts else "",
        )


MAX_FURTHER_EPOCHS = 1000


def settings_as_planned(settings: ReadSettings, *, ordered: bool) -> ReadSettings:
    """Return settings with every default written out, as a plan file gives them back."""
    # Written and read back, so that a plan in memory equals the one from its file.
    return settings_of_document(settings_in_force(settings, ordered=ordered), "settings")


@dataclass(frozen=True, kw_only=True)
class ListedPlan:
    """One plan of a file: `title` is its spec and its host, as far as it has them."""

    title: str
    reads: Reads


@dataclass(frozen=True, kw_only=True)
class PlanListing:
    """The plans in a file of kind `plan` or `resume`.

    `dataset` is what the file's head says; `pipeline` and `state` hold what else a resumed reading
    depends on, by name.
    """

    kind: str
    dataset: DatasetHead
    plans: tuple[ListedPlan, ...]
    pipeline: Mapping[str, object] = field(default_factory=dict)
    state: Mapping[str, object] = field(default_factory=dict)

    def __repr__(self) -> str:
        return in_short(self, f"{self.dataset.title} {self.kind}", counted(len(self.plans), "plan"))


def as_plan(given: PlanOrPath) -> ResumePlan:
    """Return the plan that an argument is, or the one in the plan file that it names.

    Raises:
        ShardctlError: it is neither, or no plan is in the file.
    """
    plan: ResumePlan = _PLAN.take(given)
    return plan


def plan_of_tfds(given: PlanOrPath) -> ResumePlan:
    """Return the plan that an argument is or names, of which TFDS's reader continues.

    Raises:
        ShardctlError: as for `as_plan`, or another loader continues with it.
    """
    plan = as_plan(given)
    if plan.continued_by == "loader":
        raise UsageError(
            f"the plan is of {plan.settings.reader.title}, and TFDS's reader does not read it; "
            "`shardctl resume --plan FILE --format python` writes the code that continues"
        )
    return plan


def _made_of_path(given: object) -> ResumePlan | None:
    if isinstance(given, ResumePlan):
        return given
    plan: ResumePlan | None = None
    # Reading files belongs to a package above this one, which is asked by name.
    if isinstance(given, str | os.PathLike):
        plan = provided("plan")(given)
    return plan


_PLAN = made_kind(
    _made_of_path,
    needed="a ResumePlan, as resume(dataset, consumed=5), or the path of a plan file",
    several="plans",
)
PlanOrPath = Annotated[ResumePlan | str | os.PathLike[str], _PLAN]


# What a run yielded before it continued with another number of hosts.

MAX_HOSTS = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSegment:
    """A part of a run with one number of hosts, which stopped and was shared anew.

    consumed: how many examples each host had yielded since the stretch began.
    batch: the size of a host's batches in it, None without.
    host_by: how the hosts shared the examples.
    alone: one process read it that was no host of several.
    """

    consumed: tuple[int, ...]
    batch: int | None = None
    host_by: HostBy = DEFAULT_HOST_MODE
    alone: bool = False

    @property
    def num_hosts(self) -> int:
        """Number of hosts that read it."""
        return len(self.consumed)


# How much of each source a pipeline with stages has yielded.


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsumedSource:
    """A reader of the stages, in the order of the script, and how many examples came from it.

    data, spec: as in `read(spec, data=..)`; None is that of the plan.
    """

    data: str | None
    spec: str | None
    consumed: int

    def __str__(self) -> str:
        read = self.spec or "read"
        return read if self.data is None else f"{read} of {self.data}"


# What a pipeline does behind the reader of a plan: calls of tf.data with their arguments.
#
# As text a call is as it would be typed, and in words what tf.data has no argument for.


@dataclass(frozen=True, kw_only=True, slots=True)
class TfCall:
    """A call of tf.data; `words` say it as it would be typed."""

    call: ClassVar[str]
    words: ClassVar[str]

    def __str__(self) -> str:
        return self.words.format(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardCall(TfCall):
    """`ds.shard(num_shards, index)` of what all but the first `skip_instructions` read.

    Those first ones hold examples of this host alone, which are not split among the hosts again.
    """

    call = "shard"
    words = "shard({0.num_shards}, {0.index})"
    num_shards: Whole
    index: Whole
    skip_instructions: Whole = 0

    def __str__(self) -> str:
        words, skipped = self.words.format(self), self.skip_instructions
        own = f" of all but the first {skipped} instructions, which are this host's alone"
        return f"{words}{own}" if skipped else words


@dataclass(frozen=True, kw_only=True, slots=True)
class ShuffleCall(TfCall):
    """`ds.shuffle(buffer_size, seed)`: a buffer that is filled anew."""

    call = "shuffle"
    words = "shuffle({0.buffer_size}, seed={0.seed})"
    buffer_size: Whole
    seed: Whole | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TakeCall(TfCall):
    """`ds.take(count)`: the rest of a stream without end."""

    call = "take"
    words = "take({0.count})"
    count: Whole


@dataclass(frozen=True, kw_only=True, slots=True)
class ConcatenateCall(TfCall):
    """`ds.concatenate` with each of the epochs `first_epoch` to `last_epoch`, both included."""

    call = "concatenate"
    words = "concatenate(epochs {0.first_epoch} to {0.last_epoch})"
    first_epoch: Whole
    last_epoch: Whole


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchCall(TfCall):
    """`ds.batch(batch_size, drop_remainder)`."""

    call = "batch"
    batch_size: Whole
    drop_remainder: bool

    def __str__(self) -> str:
        drop = ", drop_remainder=True" if self.drop_remainder else ""
        return f"batch({self.batch_size}{drop})"


CALLS: tuple[type[TfCall], ...] = (ShardCall, ShuffleCall, TakeCall, ConcatenateCall, BatchCall)
AfterRead = TfCall | LoaderCall


def calls_chained(calls: tuple[AfterRead, ...]) -> str:
    """Return calls one behind the other, "" for none.

    >>> calls_chained((TakeCall(count=9), BatchCall(batch_size=2, drop_remainder=True)))
    '.take(9).batch(2, drop_remainder=True)'
    """
    # One call that is said in words makes ".a.b" unreadable: then ", then " stands between all.
    in_words = any(isinstance(call, ShardCall) and call.skip_instructions for call in calls)
    return (", then " if in_words else "").join(f".{call}" for call in calls)
