"""What is there to see of one pipeline: the answers of all verbs about it, for one page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TypeAlias, TypeVar

from shardctl.base.arguments import checked
from shardctl.base.by_name import provided
from shardctl.base.columns import Answer
from shardctl.base.phrase import check_numbers
from shardctl.base.text import counted, in_short, quoted
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.errors import ShardctlError, UnpredictableOrderError, UsageError
from shardctl.order.order import Order
from shardctl.order.plan_order import plan_order
from shardctl.order.resolved_spec import as_read_by, resolved_spec
from shardctl.order.shard_map import Strips, strips
from shardctl.order.sources import refuse_unread_spec, resolved_reading
from shardctl.settings.keywords import OrderSettings, Unpack
from shardctl.settings.read_settings import ReadSettings, SettingsLike, as_settings
from shardctl.settings.short_form import stages_of
from shardctl.spec.host import Host
from shardctl.spec.subsplit import Resolved
from shardctl.stages.pipelines import parts_of
from shardctl.stages.stages import Batch, Read, Shard
from shardctl.verbs.config.answer import Origin, SettingInForce, read_in_force
from shardctl.verbs.eval.answer import EVAL_SPLITS, Evaluation, evaluate, of_training
from shardctl.verbs.hosts.answer import MAX_NUM_HOSTS, HostsPlan
from shardctl.verbs.hosts.answer import hosts as hosts_side_by_side
from shardctl.verbs.layout.answer import Layout
from shardctl.verbs.layout.answer import layout as layout_of
from shardctl.verbs.lint.answer import Lint
from shardctl.verbs.lint.answer import lint as lint_pipeline
from shardctl.verbs.lint.context import Usage
from shardctl.verbs.quality.answer import DEFAULT_WINDOW, Quality
from shardctl.verbs.quality.answer import quality as measured_quality
from shardctl.verbs.quality.compare_loaders import LoaderComparison, compare_loaders

_POSITIONS, _VISITS = 4096, 128  # of the first reads that are shown, at most


# Parts of a report, or why one of them is not shown.

Found = TypeVar("Found")
Earlier = TypeVar("Earlier")


@dataclass(frozen=True, kw_only=True)
class NotShown:
    """A part that cannot be had, and why, in one line."""

    reason: str


Shown: TypeAlias = Found | NotShown


def shown(ask: Callable[[], Found]) -> Found | NotShown:
    """Return an answer, or why there is none.

    >>> from shardctl.errors import ShardctlError, UsageError
    >>> def refused():
    ...     raise UsageError("no such split")
    >>> shown(refused), shown(lambda: 3)
    (NotShown(reason='no such split'), 3)
    """
    try:
        return ask()
    except ShardctlError as error:
        return NotShown(reason=str(error))


def shown_of(earlier: Earlier | NotShown, ask: Callable[[Earlier], Found]) -> Found | NotShown:
    """Return what is made of another part; where that is not there, why it is not.

    >>> shown_of(NotShown(reason="no such split"), lambda quality: quality.score)
    NotShown(reason='no such split')
    """
    if isinstance(earlier, NotShown):
        return earlier
    return shown(lambda: ask(earlier))


# What a report is about, and what it assumes.


@dataclass(frozen=True, kw_only=True)
class ReportQuestion:
    """What a report is about, whoever asks: the command line, or Python.

    evaluated: what is evaluated on, as it is set; empty where it is not.
    select, ignore: rules of lint, as it takes them. usage: what else it looks at.
    in_force: every setting with its origin, as `config` shows it.
    sized: the dataset with the sizes of its files, for what hosts read and how shards differ; None
        where the metadata alone says how large it is.
    """

    dataset: Dataset
    spec: str | None
    settings: ReadSettings
    evaluated: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    usage: Usage
    in_force: tuple[SettingInForce, ...] = field(repr=False)
    sized: Dataset | None = None
    devices: int | None = None
    loaders: bool = False

    def __post_init__(self) -> None:
        host, said = self.settings.host, self.usage.hosts
        if host is not None and said not in (None, host.count):
            numbers = f"--host {host} and --hosts {said}"
            raise UsageError(f"{numbers}: two numbers of hosts; choose one")
        check_numbers(MAX_NUM_HOSTS, hosts=said, devices=self.devices)

    @property
    def num_hosts(self) -> int:
        """How many hosts read, as the settings or the usage say it, else one."""
        host = self.settings.host
        return (self.usage.hosts or 1) if host is None else host.count

    @property
    def num_devices(self) -> int:
        """How many devices a host has, one unless it is set."""
        return self.devices or 1

    @property
    def evaluates(self) -> bool:
        """Whether hosts, devices or what is evaluated on are set: else nothing is evaluated."""
        given = (self.settings.host, self.usage.hosts, self.devices, *self.evaluated)
        return any(one is not None for one in given)

    @cached_property
    def reading(self) -> ReadSettings:
        """The settings of the one pipeline that is measured: of several hosts the first.

        Raises:
            UsageError: the loader takes no hosts.
        """
        if self.num_hosts == 1 or self.settings.host is not None or self._stages_share:
            return self.settings
        return replace(self.settings, host=Host(index=0, count=self.num_hosts))

    @property
    def _stages_share(self) -> bool:
        """Whether the stages themselves pick the host that reads."""
        return any(
            (isinstance(part, Shard) and part.num_shards > 1)
            or (isinstance(part, Read) and "host" in dict(part.settings))
            for part in parts_of(stages_of(self.settings))
        )

    def set_batch(self, order: Order | None) -> int | None:
        """Return the examples in the batch of a host, None where that is not set."""
        if order is not None and order.num_steps != 0:
            return order.batch_size
        batches = [part.size for part in stages_of(self.settings).stages if isinstance(part, Batch)]
        return batches[-1] if batches else None

    def device_batch(self, order: Order | None) -> int:
        """Return the examples of a batch, set or assumed, that one device gets at most."""
        return -(-(self.set_batch(order) or DEFAULT_WINDOW) // self.num_devices)

    def notes(self, order: Order | None, window: int | None) -> Iterator[str]:
        """Yield what is assumed; `window` is the batch in which quality is measured, if it is."""
        if self.settings.host is None and self.num_hosts > 1 and not self._stages_share:
            yield (
                f"the order is that of the first of {self.num_hosts:,} hosts; choose another with "
                "--host I/N"
            )
        batch = self.set_batch(order)
        if batch is None:
            found = (window, DEFAULT_WINDOW if self.evaluates else None)
            assumed = " and ".join(f"{size:,}" for size in dict.fromkeys(found) if size)
            if assumed:
                yield f"no batch size is set, so {assumed} is assumed; set it with --batch N"
        if (batch or DEFAULT_WINDOW) % self.num_devices:
            yield (
                f"a batch of {batch or DEFAULT_WINDOW} is no multiple of --devices {self.devices}: "
                f"in the evaluation a device has {self.device_batch(order)}"
            )


# What there is to see of it.


@dataclass(frozen=True, kw_only=True, eq=False)
class Report(Answer):
    """All that shardctl says of one pipeline. A part that cannot be had says why, see `NotShown`.

    settings: how it is read, as it was given. in_force: every setting with its source.
    num_examples: that the spec selects, of one epoch; None where stages decide.
    is_open: why the order is nondeterministic; None where it is not.
    order: what the pictures are of. Missing seeds are replaced by example seeds, as `assumed`
        says: what depends on the seed alone is one of many cases.
    strips: the first visits of the files, of what is read into a buffer where there is one.
    hosts, num_hosts: the three ways to share; None for one host.
    evaluation: None unless hosts, devices or what is evaluated on are set.
    loaders: None unless they are asked for.
    notes: what is assumed. warnings: those of the parts.
    """

    dataset: Dataset
    spec: str
    settings: ReadSettings
    in_force: tuple[SettingInForce, ...]
    num_examples: int | None
    num_hosts: int
    num_devices: int
    is_open: str | None
    order: Shown[Order]
    layout: Shown[Layout]
    strips: Shown[Strips]
    quality: Shown[Quality]
    hosts: Shown[HostsPlan] | None
    evaluation: Shown[Evaluation] | None
    lint: Shown[Lint]
    loaders: Shown[LoaderComparison] | None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    question: ReportQuestion = field(repr=False)

    @property
    def parts(self) -> dict[str, object]:
        """The parts by name, without those that are not asked for."""
        names = ("layout", "strips", "quality", "hosts", "evaluation", "lint", "loaders")
        found = {name: getattr(self, name) for name in names}
        return {name: answer for name, answer in found.items() if answer is not None}

    def to_html(self) -> str:
        """Return the report as one page that needs nothing else."""
        return "".join(provided("report_page")(self))

    def _repr_html_(self) -> str:
        return str(provided("report_body")(self))

    def __repr__(self) -> str:
        missing = [name for name, part in self.parts.items() if isinstance(part, NotShown)]
        found = counted(len(self.lint.findings), "finding") if isinstance(self.lint, Lint) else ""
        lacking = f"not shown: {', '.join(missing)}" if missing else ""
        return in_short(self, f"{self.dataset.title} {self.spec}", *filter(None, (found, lacking)))


@checked
def report(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    hosts: int | None = None,
    devices: int | None = None,
    evaluated: str | Sequence[str] = (),
    usage: Usage | None = None,
    loaders: bool = False,
    **keywords: Unpack[OrderSettings],
) -> Report:
    """Return what there is to see of a pipeline: the answers of the verbs, for one page.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings, keywords: how it is read: a ReadSettings, a dict of its values, or keywords.
            Missing seeds are replaced by example seeds, and the report says so.
        hosts: how many hosts read, of which the first is measured; None is what `usage.hosts` or
            `settings.host` says, else one.
        devices: how many each host has, which share its batch in an evaluation; None is one.
        evaluated: what is evaluated on, one text or several; of these the first is counted. None is
            `test`, else `validation`, if hosts or devices are given.
        usage: what else the project does, for lint.
        loaders: whether to compare all loaders, too.

    Returns:
        A Report; `to_html()` is the page. A part that cannot be had is a NotShown with the reason.

    Raises:
        UsageError: a bad spec, settings that contradict each other, two numbers of hosts.
        DatasetError: a reference leads nowhere, or to something broken.

    >>> import shardctl
    >>> made = shardctl.report("mnist", "train", {"shuffle_seed": 1, "buffer": 1000, "batch": 64})
    >>> made
    <Report mnist:3.0.1 train: 3 findings>
    """
    dataset, settings, usage = as_dataset(dataset), as_settings(settings), usage or Usage()
    given = (one.name for one in fields(settings))
    # Only what differs from the defaults was set by the caller.
    given = (n for n in given if getattr(settings, n) != getattr(ReadSettings(), n))
    origins = {name: Origin(source="argument", by=name) for name in given}
    return report_of(
        ReportQuestion(
            dataset=dataset,
            spec=spec,
            settings=settings,
            evaluated=(evaluated,) if isinstance(evaluated, str) else tuple(evaluated),
            usage=usage if hosts is None else replace(usage, hosts=hosts),
            in_force=tuple(read_in_force(settings, origins, ordered=dataset.ordered)),
            devices=devices,
            loaders=loaders,
        )
    )


def report_of(question: ReportQuestion) -> Report:
    """Return the report of a question.

    Raises:
        ShardctlError: nothing can be read, since the spec is bad, or a dataset not there; or a
            spec that is said to be evaluated on is bad.
    """
    dataset, spec, settings = question.dataset, question.spec, question.settings
    refuse_unread_spec(spec, settings)
    resolved = as_read_by(resolved_reading(dataset, spec, settings), settings)
    if resolved.num_selected == 0:
        raise UsageError(
            f"{quoted(resolved.spec)} has no examples: there is nothing to report; choose another"
        )
    # A bad spec of an evaluation is refused at once, and not shown as a missing part.
    for evaluated in question.evaluated:
        resolved_spec(dataset, evaluated)
    reading = shown(lambda: question.reading)
    quality = shown_of(reading, lambda reading: measured_quality(dataset, spec, reading))
    order, is_open = _order(question, quality)
    known = order if isinstance(order, Order) else None
    # Sizes of files, if they were looked up, make the hosts' bytes exact.
    sized = dataset if question.sized is None else question.sized
    hosts, evaluation = None, None
    if question.num_hosts > 1:
        hosts = shown(lambda: hosts_side_by_side(sized, spec, settings, hosts=question.num_hosts))
    if question.evaluates:
        evaluation = shown(lambda: _evaluation(question, known))
    parts = (order, hosts, evaluation)
    # Nothing but refusals: a page would be empty.
    if is_open is None and all(isinstance(part, NotShown | None) for part in parts):
        # An unknown version, a seed out of range: there is nothing to show.
        raise UsageError(getattr(order, "reason", ""))
    loaders = None
    if question.loaders:
        loaders = shown_of(reading, lambda reading: compare_loaders(dataset, spec, reading))
    answers = (resolved, quality, loaders, hosts, evaluation)
    warnings = (text for answer in answers for text in getattr(answer, "warnings", ()))
    return Report(
        dataset=resolved.dataset,
        spec=resolved.spec,
        settings=settings,
        in_force=question.in_force,
        num_examples=resolved.num_selected,
        num_hosts=question.num_hosts,
        num_devices=question.num_devices,
        is_open=is_open,
        order=order,
        layout=shown(lambda: _layout(resolved, question)),
        strips=shown_of(order, lambda order: first_visits(order.before_buffer or order)),
        quality=quality,
        hosts=hosts,
        evaluation=evaluation,
        lint=shown(
            lambda: lint_pipeline(
                dataset,
                spec,
                settings,
                evaluated=question.evaluated,
                usage=question.usage,
                select=question.select,
                ignore=question.ignore,
            )
        ),
        loaders=loaders,
        notes=tuple(question.notes(known, getattr(quality, "window", None))),
        warnings=tuple(dict.fromkeys(warnings)),
        question=question,
    )


def _order(
    question: ReportQuestion, quality: Shown[Quality]
) -> tuple[Order | NotShown, str | None]:
    """Return the order that is shown, and why it is nondeterministic, where it is."""
    # Without example seeds, the measured order is the order.
    if isinstance(quality, Quality) and not quality.assumed:
        return quality.order, None
    try:
        planned = plan_order(question.dataset, question.spec, question.reading)
    except UnpredictableOrderError as error:
        reason = str(error)
        # With them, the page says why the order is nondeterministic, and shows the one with example
        # seeds.
        return (quality.order if isinstance(quality, Quality) else NotShown(reason=reason)), reason
    except ShardctlError as error:
        return NotShown(reason=str(error)), None
    return planned.order, None


def _layout(resolved: Resolved, question: ReportQuestion) -> Layout:
    names = dict.fromkeys(piece.split.name for piece in resolved.ranges)
    is_own = resolved.dataset == question.dataset  # and not that of readers in stages
    sized = question.sized if is_own else None
    return layout_of(resolved.dataset if sized is None else sized, *names)


def _evaluation(question: ReportQuestion, order: Order | None) -> Evaluation:
    names = [split.name for split in question.dataset.splits]
    known = [name for name in EVAL_SPLITS if name in names]
    spec = next(iter(question.evaluated or known), None)
    if spec is None:
        raise UsageError(
            f"{question.dataset.title} has no split {' or '.join(EVAL_SPLITS)}; set what is "
            "evaluated on with --eval SPEC"
        )
    own, said = of_training(question.settings)
    found = evaluate(
        question.dataset,
        spec,
        own,
        batch_per_device=question.device_batch(order),
        remainder="drop" if question.settings.drop_remainder else "ragged",
        hosts=question.num_hosts,
        devices=question.num_devices,
    )
    return replace(found, warnings=(*found.warnings, *said))


def first_visits(order: Order) -> Strips:
    """Return which files are read first, of an order or of what is read into its buffer."""
    if not order.num_examples:
        raise UsageError("nothing is read, so there is nothing to draw")
    return strips(order, 0, min(order.num_examples, _POSITIONS), most=_VISITS)
