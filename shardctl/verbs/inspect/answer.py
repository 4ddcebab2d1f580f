"""What is a real pipeline, stage by stage? Which stage makes its order nondeterministic, and in
which order does it yield its examples?

Reading the pipeline of TensorFlow is not done here: it comes as stages (`shardctl.tfds.inspect`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from shardctl.base.arguments import checked, keep_fields
from shardctl.base.columns import Tabular
from shardctl.base.text import counted, in_short
from shardctl.dataset.dataset import Dataset
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.settings.read_settings import SHORT_FORM, ReadSettings

if TYPE_CHECKING:
    from shardctl.order.plan_order import PlannedOrder
    from shardctl.stages.stages import Pipeline, Read
    from shardctl.verbs.lint.answer import Finding


_ENDLESS = "the pipeline has no end, so its ids have none; put a take(N) behind it"
_MOST_LISTED = 1 << 31  # examples whose ids are listed: 16 GiB of them


@dataclass(frozen=True, kw_only=True)
class SourceLine:
    """A line of a script: its file, as Python names it, its number from 1, and its text.

    end: line and column (in bytes of UTF-8) where the call ends that ran, None where not known.
    """

    file: str
    line: int
    text: str = ""
    end: tuple[int, ...] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        keep_fields(self)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class InspectedStage:
    """A stage of a real pipeline: the call, what TensorFlow has for it, and what it does.

    call: as stages are written, `shuffle(1000, seed=7)`.
    operation: the operation of TensorFlow that it is, the last one of a reader.
    effect: what it does to the order, a sentence without its full stop.
    level: how deep it is among the inputs of `zip` and of mixtures, from 0.
    reason: why it makes the order nondeterministic, None if it does not.
    line: the line of the script that made it, None where the script was not watched.
    """

    call: str
    operation: str
    effect: str = ""
    level: int = 0
    reason: str | None = None
    line: SourceLine | None = None

    def __post_init__(self) -> None:
        keep_fields(self)

    def __repr__(self) -> str:
        effect = self.effect if self.reason is None else f"nondeterministic: {self.reason}"
        return in_short(self, self.call, *([] if self.line is None else [str(self.line)]), effect)


class Edit(NamedTuple):
    """Text to be put in the place of bytes [start, stop) of a file."""

    file: str
    start: int
    stop: int
    new: str


@dataclass(frozen=True, kw_only=True)
class Cure:
    """The smallest change of a script that fixes the order of a stage.

    text: what to set, and in which call, as "seed=0 in shuffle".
    line: the line to change, None where the script was not watched.
    code: the line as it is then, None where no edit of it is sure to be right.
    is_known: whether its order is known without a run of the changed script.
    """

    text: str
    line: SourceLine | None = None
    code: str | None = None
    is_known: bool = True
    edit: Edit | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.text if self.line is None else f"{self.text}, {self.line}"


@dataclass(frozen=True, kw_only=True)
class OpenStage:
    """A stage of a real pipeline that makes its order nondeterministic, and why.

    A stage that several things make so is there once for each.

    cure: the change of the script that fixes it; None where no seed and no option does.
    """

    stage: InspectedStage
    reason: str
    cure: Cure | None = None

    def __repr__(self) -> str:
        return in_short(self, self.stage.call, self.reason)

    def __str__(self) -> str:
        place = "" if self.line is None else f" ({self.line})"
        cure = "" if self.cure is None else f"; set {self.cure}"
        return f"{self.stage.call}{place} makes the order nondeterministic: {self.reason}{cure}"

    @property
    def line(self) -> SourceLine | None:
        """The line of the script that made it, None where the script was not watched."""
        return self.stage.line


@dataclass(frozen=True, kw_only=True)
class Inspection(Tabular):
    """A real pipeline, read back from TensorFlow.

    stages: what it does, in its order; inputs of `zip` and of mixtures before what combines them.
    open: the stages that make its order nondeterministic.
    settings: what fixes the order besides dataset and spec, in the short form where that is the
        same.
    dataset, spec: what it reads, found by the names of its files; None where it reads none.
    datasets: the datasets of a mixture of several, by the references in the stages.
    refused: why the order cannot be predicted though every stage can, None if it can.
    iterated: the line that iterates it, where a function returns no dataset but what iterates one.
    assumptions: what the answer depends on though it was not stated, in sentences.
    """

    name: str = ""
    stages: tuple[InspectedStage, ...]
    open: tuple[OpenStage, ...] = ()
    settings: ReadSettings
    dataset: Dataset | None = None
    spec: str | None = None
    datasets: Mapping[str, Dataset] = field(default_factory=dict, hash=False)
    refused: str | None = None
    iterated: SourceLine | None = None
    assumptions: tuple[str, ...] = ()

    @property
    def cures(self) -> tuple[Cure, ...]:
        """The changes of the script that fix its order, of all stages that have one."""
        return tuple(dict.fromkeys(found.cure for found in self.open if found.cure is not None))

    @property
    def predictable(self) -> bool:
        """Whether the order can be predicted, of the first pass at least."""
        return not self.open and self.refused is None

    def __repr__(self) -> str:
        what = "elements" if self.dataset is None else f"{self.dataset.title} {self.spec or ''}"
        first = self.open[0].stage.call if self.open else "no stage"
        told = "predictable" if self.predictable else f"nondeterministic at {first}"
        return in_short(self, what.strip(), f"{counted(len(self.stages), 'stage')}, {told}")

    @checked
    def ids(self, pass_index: int = 0) -> Any:
        """Return what a pass yields, batches flattened: int64[n].

        They are the ids of the dataset, as `split:id` (a list of str) where several splits are
        read; of padding, which is constant elements behind `concatenate`, "pad", in a list; of
        `range` and of tensor slices the indices of the elements. What is zipped by its index has
        one; of a zip of several orders each part has its own.

        Args:
            pass_index: which iteration of the dataset object, from 0.

        Raises:
            UnpredictableOrderError: the order is nondeterministic; the stage is named.
            UsageError: the pipeline has no end.
        """
        self.check_predictable()
        order = self.order(pass_index).order
        if order.is_endless:
            raise UsageError(_ENDLESS)
        if order.num_examples > _MOST_LISTED:
            elements = order.num_steps or order.num_examples
            raise UsageError(
                f"the pipeline yields {elements:,} elements, too many to list their ids; put a "
                "take(N) behind it"
            )
        codes = order.read(0, order.num_examples)
        if order.codes.several_splits or order.codes.is_padding(codes).any():
            return order.codes.ids(codes)
        return codes

    @checked
    def order(self, pass_index: int = 0) -> PlannedOrder:
        """Return the order of a pass, to be asked for any position of it.

        Raises:
            UnpredictableOrderError: the order is nondeterministic; the stage is named.
            UsageError: no dataset is read.
        """
        self.check_predictable()
        if self.dataset is None:
            raise UsageError("the pipeline reads no dataset, so that there are no ids of one")
        # An object of another loader may be at a later epoch already.
        settings = replace(self.settings, pass_index=self.settings.pass_index + pass_index)
        if not self.datasets:
            from shardctl.order.plan_order import plan_order

            return plan_order(self.dataset, self.spec, settings)
        from shardctl.order.plan_order import PlannedOrder
        from shardctl.order.sources import sources

        # A mixture of several datasets is an order over all of them.
        found = sources(self.dataset, self.spec, settings, self.datasets)
        return PlannedOrder(resolved=found.resolved, order=found.order(settings))

    def check_predictable(self) -> None:
        """Refuse a pipeline whose order is nondeterministic.

        Raises:
            UnpredictableOrderError: names the stage and the line that made it.
        """
        if self.open:
            raise UnpredictableOrderError(str(self.open[0]))
        if self.refused is not None:
            raise UnpredictableOrderError(self.refused)

    @checked
    def findings(self) -> tuple[Finding, ...]:
        """Return what lint finds in a pipeline that reads so, nothing where no dataset is read."""
        if self.dataset is None:
            return ()
        from shardctl.verbs.lint.answer import lint
        from shardctl.verbs.lint.context import Usage

        # The cache of TFDS, where it is not among the stages, is of what has an end.
        usage = Usage(try_autocache=False)
        return lint(self.dataset, self.spec, self._as_stages(), usage=usage).findings

    @property
    def project_settings(self) -> ReadSettings:
        """The settings of a shardctl.yaml, whose commands are given no spec."""
        # A shardctl.yaml has no spec: where the commands would read another one by default, the
        # stages must name it.
        spec = self.spec
        if self.dataset is None or spec is None or spec == _default_spec(self.dataset):
            return self.settings
        return self._as_stages(spec)

    def _as_stages(self, spec: str | None = None) -> ReadSettings:
        """Return the settings with all behind the reader as stages, as the script has it."""
        from shardctl.settings.short_form import stages_of

        settings = self.settings
        stages = stages_of(settings)
        if not settings.reader.on_tf_data:  # its chain is stages already
            return replace(settings, stages=stages if spec is None else _reading(stages, spec))
        # `ds.shard` is among the stages; a share of files is part of the reader.
        host = None if settings.host_mode.reads_all else settings.host
        # What the stages say is no longer said by settings: these go back to their defaults.
        own: dict[str, Any] = {name: getattr(ReadSettings, name) for name in SHORT_FORM}
        return replace(
            settings,
            **own,
            host=host,
            host_by=settings.host_by if host is not None else "even",
            stages=stages if spec is None else _reading(stages, spec),
        )


def _default_spec(dataset: Dataset) -> str | None:
    """Return what commands read that are given no spec, None where they ask for one."""
    from shardctl.spec.subsplit import default_spec

    try:
        return default_spec(dataset)
    except UsageError:
        return None


def _reading(pipeline: Pipeline, spec: str) -> Pipeline:
    """Return a pipeline in which readers that name nothing read a spec."""
    from shardctl.stages.pipelines import with_changed

    def read(one: Read) -> Read:
        return replace(one, spec=spec) if (one.spec, one.data) == (None, None) else one

    return with_changed(pipeline, read=read)
