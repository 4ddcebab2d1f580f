"""What a report comes to, in a few answers with links to what they are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeVar

from shardctl.base.text import counted, first_upper
from shardctl.verbs.eval.answer import Evaluation
from shardctl.verbs.hosts.answer import HostsPlan, spread
from shardctl.verbs.hosts.sharing import Strategy
from shardctl.verbs.lint.answer import Lint
from shardctl.verbs.lint.rule import SEVERITIES
from shardctl.verbs.quality.answer import Quality
from shardctl.verbs.quality.score import Verdict, meaning
from shardctl.verbs.report.answer import Report
from shardctl.verbs.report.elements import Section, items, link, paragraph, plain, sentence
from shardctl.verbs.report.shown import NotShown

Worth = Literal["good", "warn", "bad", "open"]

_WORTH: dict[Verdict, Worth] = {
    "no shuffle": "bad",
    "weak": "bad",
    "fair": "warn",
    "good": "good",
    "close to uniform": "good",
    "as good as uniform": "good",
    "cannot tell": "warn",
}
_MOST_FINDINGS = 3

Part = TypeVar("Part")


class Told(NamedTuple):
    """An answer in a word or two, what it is worth, and more of it, as HTML."""

    answer: str
    worth: Worth
    more: str


def summary_section(report: Report) -> Section:
    """Return the answers; a question whose answer is not known says why."""
    unstated = of_unstated_hosts(report.num_hosts, said=bool(report.question.hosts_said))
    body = cards(
        ("Is it shuffled?", "shuffle", _told(report.quality, _shuffled)),
        (f"Do the hosts keep step?{unstated}", "hosts", _told(report.hosts, _in_step)),
        (f"Does the evaluation end?{unstated}", "evaluation", _told(report.evaluation, _ends)),
        ("What goes wrong?", "findings", _faults(report)),
    )
    if report.notes:
        number, rest = ("One", " is") if len(report.notes) == 1 else (len(report.notes), "s are")
        assumed = link("about", "assumed")
        body += paragraph(f"{number} thing{rest} {assumed} that nobody said.", "quiet")
    return Section("summary", "In short", (body,))


def of_unstated_hosts(num_hosts: int, *, said: bool) -> str:
    """Return what stands behind a question about hosts where nobody said how many there are."""
    return "" if said else f" (if {num_hosts} hosts shared it)"


def cards(*answers: tuple[str, str, Told]) -> str:
    """Return answers as cards: each a question, the section that tells more, the answer."""
    listed = "".join(
        f'<li class="{told.worth}">\n<h3>{link(anchor, question)}</h3>\n'
        f'<p class="answer">{plain(told.answer)}</p>\n{told.more}</li>\n'
        for question, anchor, told in answers
    )
    return f'<ul class="answers">\n{listed}</ul>\n'


def _told(part: Part | NotShown, told: Callable[[Part], Told]) -> Told:
    if isinstance(part, NotShown):
        return Told("Not known", "open", paragraph(sentence(part.reason)))
    return told(part)


def _shuffled(quality: Quality) -> Told:
    score, verdict = quality.score, quality.verdict
    told = paragraph(
        f"Score {score.value:.2f} of 1; a uniform permutation scores {score.expected:.2f}: "
        f"{plain(meaning(verdict, quality.order))}."
    )
    better = [one for one in quality.alternatives if one.score.value > score.value + 0.005]
    if better and _WORTH[verdict] != "good":
        best = max(better, key=lambda choice: choice.score.value)
        told += paragraph(f"Most would help: {plain(best.change)} (score {best.score.value:.2f}).")
    return Told(first_upper(verdict), _WORTH[verdict], told)


def _in_step(plan: HostsPlan) -> Told:
    comparison = plan.comparisons[0]
    own = comparison.strategy(plan.judged)
    answer, worth, told = _step_of(own, comparison.num_hosts)
    best = comparison.recommended
    if worth != "good" and best is not None and best is not own:
        told += f"; {plain(best.name)} serves best"
    return Told(answer, worth, paragraph(f"{told}."))


def _step_of(own: Strategy, num_hosts: int) -> Told:
    hosts = counted(num_hosts, "host")
    if own.refusal is not None:
        return Told("Refused", "bad", first_upper(sentence(own.refusal)))
    if own.idle_hosts:
        return Told("No", "bad", f"{own.idle_hosts:,} of {hosts} read nothing")
    most = own.num_batches or own.num_examples
    each = f"{hosts}, {spread(most)} {'examples' if own.num_batches is None else 'batches'}"
    if not own.is_uneven:
        return Told("Yes", "good", f"{each} each")
    return Told("No", "warn", f"{each}; host {most.straggler:,} has the most")


def _ends(evaluation: Evaluation) -> Told:
    num_hosts = evaluation.num_hosts
    hang = evaluation.hang(evaluation.remainder)
    if not evaluation.total:
        return Told("Nothing to do", "warn", paragraph("There is nothing to evaluate."))
    if evaluation.refusal is not None:
        told = f"{first_upper(sentence(evaluation.refusal))}."
        return Told("Refused", "bad", paragraph(told))
    lost = ""
    if evaluation.num_lost:
        lost = paragraph(
            f"{counted(evaluation.num_lost, 'example')} of {evaluation.total:,} are never seen."
        )
    if hang is not None:
        hosts = counted(hang.waiting, "host waits", "hosts wait")
        others = "the one that is" if hang.finished == 1 else f"the {hang.finished:,} that are"
        told = f"At step {hang.step:,}, counted from 0, {hosts} for ever for {others} done."
        return Told("No, it hangs", "bad", paragraph(told) + lost)
    steps = int(evaluation.num_steps(evaluation.remainder).max())
    every = "the one host" if num_hosts == 1 else f"each of {num_hosts:,} hosts"
    told = f"{counted(steps, 'step')} on {every}."
    return Told("Yes", "warn" if lost else "good", paragraph(told) + lost)


def _faults(report: Report) -> Told:
    """Return what lint finds, and where that is nothing, why there is no order."""
    lint = report.lint
    if isinstance(report.order, NotShown) and isinstance(lint, Lint) and not lint.findings:
        return _told(report.order, _wrong)
    return _told(lint, _wrong)


def _wrong(lint: Lint) -> Told:
    counts = Counter(finding.severity for finding in lint.findings)
    if not counts:
        told = f"{counted(len(lint.rules), 'rule')} looked, and found nothing."
        return Told("Nothing found", "good", paragraph(told))
    said = ", ".join(counted(counts[name], name) for name in SEVERITIES if counts[name])
    worth: Worth = "bad" if counts["error"] else "warn"
    few = [plain(finding.rule.title) for finding in lint.findings[:_MOST_FINDINGS]]
    more = len(lint.findings) - _MOST_FINDINGS
    return Told(said, worth, items([*few, f"{more} more"] if more > 0 else few))
