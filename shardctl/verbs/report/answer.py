"""What is there to see of one pipeline: the answers of all verbs about it, for one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

from shardctl.base.arguments import checked
from shardctl.base.columns import Answer
from shardctl.base.hooks import provided
from shardctl.base.text import counted, in_short, quoted
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.errors import ShardctlError, UnpredictableOrderError, UsageError
from shardctl.order.file_formats import as_read_by, resolved_spec
from shardctl.order.order import Order
from shardctl.order.plan_order import plan_order
from shardctl.order.shard_map import Strips, strips
from shardctl.order.sources import refuse_unread_spec, resolved_reading
from shardctl.settings.keywords import OrderSettings, Unpack
from shardctl.settings.read_settings import ReadSettings, SettingsLike, as_settings
from shardctl.spec.subsplit import Resolved
from shardctl.verbs.config.answer import Origin, SettingInForce, read_in_force
from shardctl.verbs.eval.answer import EVAL_SPLITS, Evaluation, evaluate, of_training
from shardctl.verbs.hosts.answer import HostsPlan
from shardctl.verbs.hosts.answer import hosts as hosts_side_by_side
from shardctl.verbs.layout.answer import Layout
from shardctl.verbs.layout.answer import layout as layout_of
from shardctl.verbs.lint.answer import Lint
from shardctl.verbs.lint.answer import lint as lint_pipeline
from shardctl.verbs.lint.context import Usage
from shardctl.verbs.quality.answer import Quality
from shardctl.verbs.quality.answer import quality as measured_quality
from shardctl.verbs.quality.loaders import LoaderComparison, compare_loaders
from shardctl.verbs.report.question import NotShown, ReportQuestion, Shown, shown, shown_of

_POSITIONS, _VISITS = 4096, 128  # of the first reads that are shown, at most


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
        lint=shown(lambda: _lint(question)),
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


def _lint(question: ReportQuestion) -> Lint:
    return lint_pipeline(
        question.dataset,
        question.spec,
        question.settings,
        evaluated=question.evaluated,
        usage=question.usage,
        select=question.select,
        ignore=question.ignore,
    )


def first_visits(order: Order) -> Strips:
    """Return which files are read first, of an order or of what is read into its buffer."""
    if not order.num_examples:
        raise UsageError("nothing is read, so there is nothing to draw")
    return strips(order, 0, min(order.num_examples, _POSITIONS), most=_VISITS)
