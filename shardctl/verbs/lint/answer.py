"""What goes wrong in the way a project reads a dataset?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shardctl.base.arguments import checked, truth_value
from shardctl.base.columns import Tabular
from shardctl.base.phrase import option, refused
from shardctl.base.text import choices, counted, in_short, nearest_first
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.errors import UsageError
from shardctl.order.resolved_spec import refuse_open_hosts
from shardctl.settings.keywords import OrderSettings, Unpack
from shardctl.settings.names import no_such_setting
from shardctl.settings.read_settings import SHORT_FORM, ReadSettings, SettingsLike, as_settings
from shardctl.settings.short_form import short_form, stages_of
from shardctl.settings.table import WholeNumber, Word
from shardctl.spec.subsplit import default_spec, resolve_subsplit
from shardctl.stages.pipelines import sources_of
from shardctl.stages.stages import Read as StageRead
from shardctl.verbs.lint.context import LintContext, Read, Usage, is_evaluation
from shardctl.verbs.lint.rule import DEFAULT_FAIL_ON, SEVERITIES, Rule, Severity
from shardctl.verbs.lint.rules import LINT_RULES

# Codes of findings that are not made any more.
_RETIRED = ("SC015", "SC016", "SC046", "SC075", "SC076", "SC077", "SC079", "SC084")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that goes wrong: which rule found it, why, and what helps.

    `settings` names the settings behind it, the one to change first; `change` is what cures it,
    where that is one value of each setting, None to leave it out.
    """

    rule: Rule
    severity: Severity
    why: str
    fix: str
    specs: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    change: Mapping[str, int | None] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True)
class Lint(Tabular):
    """What was looked at, by which rules, and what they found.

    Errors come first, then warnings, then notices, each in the order of their codes.
    """

    context: LintContext
    rules: tuple[Rule, ...]
    findings: tuple[Finding, ...]

    def __repr__(self) -> str:
        codes = [finding.rule.code for finding in self.findings]
        named = f": {choices(codes)}" if codes else ""
        return in_short(
            self, self.context.dataset.title, f"{counted(len(codes), 'finding')}{named}"
        )

    @checked
    def fails(self, fail_on: Severity = DEFAULT_FAIL_ON) -> bool:
        """Return whether there is a finding of this severity, or of a worse one."""
        # The worst severity comes first.
        enough = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
        return any(finding.severity in enough for finding in self.findings)


@checked
def lint(
    dataset: DatasetLike,
    specs: str | Sequence[str] | None = None,
    settings: SettingsLike | None = None,
    *,
    evaluated: str | Sequence[str] = (),
    usage: Usage | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    **keywords: Unpack[OrderSettings],
) -> Lint:
    """Return what goes wrong in the way a project reads a dataset.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        specs: what is read, one text or several; None is `train`, else the only split, or nothing
            beside what is evaluated. One whose splits are all named like test or validation counts
            as evaluation.
        settings, keywords: how it is read: a ReadSettings, a dict of its values, or keywords.
        evaluated: what is evaluated on, one text or several.
        usage: what else the project does.
        select, ignore: codes or their beginnings; the longer one that fits a code decides, and
            `ignore` where both are as long.

    Returns:
        A Lint with its `findings`: which rule, why, and what helps.

    Raises:
        UsageError: a bad spec, a code that no rule has, `usage.hosts` against `settings.host`.
        UnpredictableOrderError: the order of the splits matters, and TFDS makes it
            nondeterministic.

    >>> import shardctl
    >>> found = shardctl.lint("mnist", "train[:60%]", {"epochs": 2}, evaluated="train[50%:]")
    >>> [(finding.rule.code, finding.rule.name) for finding in found.findings]
    [('SC041', 'leak'), ('SC001', 'one-order')]
    """
    dataset, settings = as_dataset(dataset), as_settings(settings)
    specs = (specs,) if isinstance(specs, str) else specs
    evaluated = (evaluated,) if isinstance(evaluated, str) else evaluated
    usage = Usage() if usage is None else usage
    host = settings.host
    if host is not None and usage.hosts not in (None, host.count):
        raise refused(
            "{host=} and {hosts=}: two numbers of hosts; choose one", host=host, hosts=usage.hosts
        )
    if specs is None:
        specs = default_specs(dataset, evaluated, settings)
    resolved = [resolve_subsplit(spec, dataset) for spec in specs]
    reads = [Read(resolved=one, evaluates=is_evaluation(one)) for one in resolved]
    reads += [Read(resolved=resolve_subsplit(spec, dataset), evaluates=True) for spec in evaluated]
    context = LintContext(
        dataset=dataset,
        reads=tuple(reads),
        settings=short_form(settings),
        usage=usage,
        as_written=settings,
    )
    # Hosts that get files in turn need an order of the splits, which TFDS may not determine.
    for read in reads:
        refuse_open_hosts(read.resolved, context.settings.host_mode, context.num_hosts)
    rules = chosen_rules(select, ignore)
    if not settings.reader.on_tf_data:
        rules = tuple(rule for rule in rules if settings.loader in rule.loaders)
    findings = sorted(
        findings_of(rules, context),
        key=lambda found: (SEVERITIES.index(found.severity), found.rule.code),
    )
    return Lint(context=context, rules=rules, findings=tuple(findings))


def default_specs(
    dataset: Dataset, evaluated: Sequence[str], settings: ReadSettings | None = None
) -> tuple[str, ...]:
    """Return what is looked at where no spec is given, besides what is evaluated on.

    Where all readers of stages name what they read of the dataset, that is it.

    Raises:
        UsageError: there is no train, and neither another split alone nor one to evaluate on.
    """
    if settings is not None:
        reads = [one for one in sources_of(stages_of(settings)) if isinstance(one, StageRead)]
        own = [one.spec for one in reads if one.spec is not None and one.data is None]
        if own and len(own) == len(reads):
            return tuple(dict.fromkeys(own))
    if not evaluated:
        return (default_spec(dataset),)
    return ("train",) if any(split.name == "train" for split in dataset.splits) else ()


def findings_of(rules: Sequence[Rule], context: LintContext) -> Iterator[Finding]:
    """Yield what rules find."""
    for rule in rules:
        # What reads a data source is a sampler, of which few rules are.
        unlike = context.reads_data_source and not rule.for_data_source
        if unlike or context.settings.loader not in rule.loaders:
            continue
        # A rule may have another check for loaders besides TFDS's reader.
        check = rule.check if context.settings.reader.on_tf_data else rule.of_loaders or rule.check
        for found in check(context):
            about, names = found.read, found.settings or rule.settings
            if context.writes_stages:  # what stands in stages is changed there
                names = (*(name for name in names if name not in SHORT_FORM), "stages")
            yield Finding(
                rule=rule,
                severity=found.severity or rule.severity,
                why=found.why if about is None else f"{about.spec}: {found.why}",
                fix=found.fix,
                specs=found.specs if about is None else (about.spec,),
                settings=tuple(dict.fromkeys(names)),
                change=found.change,
            )


def chosen_rules(select: Sequence[str] = (), ignore: Sequence[str] = ()) -> tuple[Rule, ...]:
    """Return the rules that codes, or beginnings of codes, choose.

    >>> [rule.code for rule in chosen_rules(["SC01"], ["SC012"])][:2]
    ['SC011', 'SC013']

    Raises:
        UsageError: a beginning that no code has.
    """
    for name, prefixes in (("select", select), ("ignore", ignore)):
        for prefix in prefixes:
            if name == "ignore" and prefix.upper() in _RETIRED:
                continue  # as files of projects have it
            # A code that is only mistyped would switch off nothing, unnoticed.
            if not prefix or not any(rule.code.startswith(prefix.upper()) for rule in LINT_RULES):
                raise UsageError(f"{option(name, prefix, given=True)}: {_no_such_code(prefix)}")
    return tuple(
        rule
        for rule in LINT_RULES
        # The longer beginning wins; without `select` every rule fits it with length 0.
        if _fit(rule, select, default=0) > _fit(rule, ignore, default=-1)
    )


def _fit(rule: Rule, prefixes: Sequence[str], *, default: int) -> int:
    """Return the length of the longest prefix of the rule's code; `default` where none is given."""
    fits = [len(prefix) for prefix in prefixes if rule.code.startswith(prefix.upper())]
    return max(fits, default=-1 if prefixes else default)


def is_code(text: str) -> bool:
    """Return whether a text is written like the code of a rule.

    >>> is_code("SC006"), is_code("train")
    (True, False)
    """
    return re.fullmatch(r"SC\d{3}", text) is not None


def explained(code: str) -> Rule:
    """Return the rule of a code, or of a name.

    >>> explained("sc041").name
    'leak'

    Raises:
        UsageError: no rule has that code.
    """
    for rule in LINT_RULES:
        if code.upper() == rule.code or code == rule.name:
            return rule
    raise refused("{code!}: {}", _no_such_code(code), code=code)


def _no_such_code(code: str) -> str:
    by_name = {word: rule.code for rule in LINT_RULES for word in (rule.code, rule.name)}
    near = nearest_first(code, by_name)
    codes = choices(dict.fromkeys(by_name[word] for word in near), len(LINT_RULES))
    return f"no finding has this code; there are: {codes}"


# What `lint:` in a shardctl.yaml says: which specs a project reads, how, and which rules count.


def lint_arguments(document: Mapping[str, object]) -> dict[str, Any]:
    """Return the arguments that the mapping holds; those that are None left out.

    Names may be written with `-` or `_`; what is a list may be a single value, and codes and seeds
    also one text with commas.

    >>> lint_arguments({"ignore": "SC003, SC035", "eval": ["train[90%:]"]})
    {'ignore': ('SC003', 'SC035'), 'eval': ('train[90%:]',)}

    Raises:
        UsageError: an unknown name, or a value of another kind; the message says which.
    """
    arguments: dict[str, Any] = {}
    for key, value in document.items():
        name = str(key).replace("-", "_")
        if name not in _KINDS:
            raise no_such_setting(key, _KINDS)
        if name in arguments:
            raise UsageError(f"{option(str(key))}: the setting is there twice")
        if value is None:
            continue
        try:
            arguments[name] = _KINDS[name](value)
        except UsageError as error:
            given = option(name, value, given=True)
            raise UsageError(f"{given}: {error}") from None
    return arguments


def comma_separated(text: str) -> list[str]:
    """Return the parts of a text between commas, without blanks around them.

    >>> comma_separated("SC001, SC02")
    ['SC001', 'SC02']
    """
    return [part.strip() for part in text.split(",")]


def parse_seeds(text: str) -> tuple[int, ...]:
    """Return the seeds in a text with commas, of any size.

    >>> parse_seeds("0, -1,2147483647")
    (0, -1, 2147483647)
    """
    try:
        return tuple(map(int, comma_separated(text)))
    except ValueError:
        raise UsageError("whole numbers, with commas, are needed") from None


def _list_of(kind: type, needed: str) -> Callable[[object], tuple[Any, ...]]:
    """Return what takes a value of a kind, or a list of such values."""

    def take(value: object) -> tuple[Any, ...]:
        items = value if isinstance(value, list) else [value]
        # Not `isinstance`, for which True is an int.
        if not all(type(item) is kind and item != "" for item in items):
            raise UsageError(f"{needed} is needed")
        return tuple(items)

    return take


_texts = _list_of(str, "text, or a list of texts,")
_numbers = _list_of(int, "a list of whole numbers")


def _codes(value: object) -> tuple[str, ...]:
    return tuple(code for text in _texts(value) for code in comma_separated(text))


_count = WholeNumber(least=1).take
_KINDS: dict[str, Callable[[object], object]] = {
    "specs": _texts,
    "eval": _texts,
    "hosts": _count,
    "take": _count,
    "as_data_source": truth_value,
    "assert_cardinality": truth_value,
    "autocache": truth_value,
    "seeds": lambda value: parse_seeds(value) if isinstance(value, str) else _numbers(value),
    "open_files": _count,
    "select": _codes,
    "ignore": _codes,
    "fail_on": Word(words=SEVERITIES).take,
}
LINT_KEYS = tuple(_KINDS)
