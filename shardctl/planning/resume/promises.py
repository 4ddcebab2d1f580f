"""Does a plan say what the pipeline comes to? What it promises, field by field.

All of a plan but its file instructions follows from where the pipeline stopped; it is planned anew
from that, and compared. The instructions are read to their end instead (`prove`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial

import numpy as np

from shardctl.core.arrays import Int64s, Int64sLike
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.instructions.reads import Reads
from shardctl.core.order.reader_order import ReaderOrder
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.text import printable
from shardctl.errors import UsageError
from shardctl.planning.order import order_of
from shardctl.planning.pinned_sources import resolved_reading
from shardctl.planning.resume.hosts import HostsMode, resume_on_hosts
from shardctl.planning.resume.rest_of_epoch import order_to_resume
from shardctl.planning.resume.resume import BufferMode, resume_order
from shardctl.planning.resume.seen import resume_unseen_of

# Settings are what is planned anew with, instructions are read, and which dataset it may be is
# known to `applied`; the others promise nothing.
_NOT_COMPARED = frozenset(
    {"dataset", "settings", "instructions", "given", "refs", "warnings", "assumptions", "advice"}
)
_NAMES = {"reader_state": "reader"}  # of fields that plan files call otherwise


@dataclass(frozen=True, kw_only=True)
class BrokenPromise:
    """A field of a plan, by its name in a plan file, with what it says and what it should say."""

    name: str
    promised: str
    found: str

    def __str__(self) -> str:
        return f"{self.name}: the plan says {self.promised}, the pipeline comes to {self.found}"


def planned_anew(
    dataset: Dataset, plan: ResumePlan, *, seen: Int64sLike | None = None
) -> ResumePlan:
    """Return the plan that is made today of the pipeline and the place that a plan names.

    Of a plan of the unseen `seen` is the log; without it, all that the instructions leave out.

    Raises:
        UsageError: no pipeline stops there: the place is past its end, or settings contradict; or
            the plan is of a run that was shared anew.
        UnpredictableOrderError: TensorFlow leaves the order open.
    """
    if plan.stretches:
        raise UsageError(
            "this plan is of one host of a run that was shared anew, and no proof of it is made: "
            "what all hosts read is known from the states of all, with Position.set_states"
        )
    resolved = resolved_reading(dataset, plan.spec, plan.settings)
    risk = None if plan.unseeded is None else plan.unseeded.risk
    if plan.from_seen:
        to_hosts = len(plan.hosts) or None
        log = np.asarray(left_out(dataset, plan) if seen is None else seen, np.int64)
        return resume_unseen_of(resolved, plan.settings, seen=log, to_hosts=to_hosts)
    if plan.from_consumed:
        return resume_on_hosts(
            dataset,
            plan.spec,
            plan.settings,
            hosts=len(plan.from_consumed),
            to_hosts=max(len(plan.hosts), 1),
            consumed=plan.from_consumed,
            mode=mode_on_hosts(plan),
            risk=risk,
        )
    # Under other rules than the plan's it may be a mode of another kind of order.
    mode: BufferMode = "exactly-once" if plan.mode == "exact" else plan.mode
    planned = order_to_resume(partial(order_of, resolved), plan.settings, mode, risk)
    return resume_order(planned, consumed=plan.consumed, mode=mode, risk=risk)


def mode_on_hosts(plan: ResumePlan) -> HostsMode:
    """Return the mode with which a plan for other hosts is made; of no other there is such one."""
    if plan.mode == "at-most-once" or plan.mode == "at-least-once":
        return plan.mode
    return "exactly-once"


def broken_promises(plan: ResumePlan, anew: ResumePlan) -> tuple[BrokenPromise, ...]:
    """Return where a plan says something else than the same plan made anew.

    >>> from dataclasses import replace
    >>> from shardctl.core.dataset.dataset import Split
    >>> from shardctl.planning.resume.resume import resume
    >>> train = Split.even(name="train", num_examples=9, num_shards=3)
    >>> plan = resume(Dataset(name="d", splits=(train,)), "train", consumed=4)
    >>> print(*broken_promises(replace(plan, remaining=6), plan))
    remaining: the plan says 6, the pipeline comes to 5
    """
    broken = tuple(
        found
        for one in fields(plan)
        if one.name not in _NOT_COMPARED
        for found in _differing(
            getattr(plan, one.name), getattr(anew, one.name), _NAMES.get(one.name, one.name)
        )
    )
    if anew.hosts and len(plan.instructions):
        broken += (_broken("file_instructions", len(plan.instructions), 0),)  # nobody's own
    if plan.lists_rest < anew.lists_rest and anew.read_config is None:
        broken += (_broken("file_instructions", "too many", len(anew.instructions)),)
    return broken


def with_reads_of(plan: ResumePlan, anew: ResumePlan) -> ResumePlan:
    """Return what a plan reads among the fields of the plan made anew."""
    return replace(anew, instructions=plan.instructions, hosts=plan.hosts)


def without_dropping(settings: ReadSettings) -> ReadSettings:
    """Return settings whose order has all examples, those of a last batch that is dropped too.

    The batches of either pipeline drop it. Other batches stay: for Keras they decide the seeds.
    """
    if not settings.drop_remainder:
        return settings
    return replace(settings, batch=None, drop_remainder=False)


def share_of(dataset: Dataset, plan: ResumePlan) -> ReaderOrder:
    """Return an order of all that a plan of the unseen may read: the share of its host."""
    settings = ReadSettings(
        host=plan.settings.host,
        host_by=plan.settings.host_by,
        reverse=plan.settings.reverse,
        file_order=plan.settings.file_order,
    )
    # No order_of: a log has no order, so that one which TFDS leaves open is none here either.
    resolved = resolved_reading(dataset, plan.spec, plan.settings)
    return ReaderOrder(resolved.dataset, resolved.ranges, settings)


def left_out(dataset: Dataset, plan: ResumePlan) -> Int64s:
    """Return the codes of the share that no instruction of a plan of the unseen reads."""
    order = share_of(dataset, plan)
    read = [
        np.arange(first, first + take)
        for reads in (plan.instructions, *(host.instructions for host in plan.hosts))
        for first, take in zip(
            order.codes.first_codes(reads).tolist(), reads.take.tolist(), strict=True
        )
    ]
    share = order.read(0, order.num_examples)
    return np.setdiff1d(share, np.concatenate([np.empty(0, np.int64), *read]))


def _differing(said: object, found: object, name: str) -> Iterator[BrokenPromise]:
    """Yield the innermost parts of two values that differ; `name` is what they are parts of."""
    pairs: dict[str, tuple[object, object]] = {}
    if isinstance(said, Reads) and isinstance(found, Reads):
        # Of a share only the size; all shares together are read.
        said, found, name = said.num_examples, found.num_examples, f"{name[:-12]}num_examples"
    elif type(said) is type(found) and is_dataclass(said) and is_dataclass(found):
        names = [field.name for field in fields(said)]
        pairs = {f"{name}.{one}": (getattr(said, one), getattr(found, one)) for one in names}
    elif isinstance(said, tuple) and isinstance(found, tuple) and len(said) == len(found):
        both = enumerate(zip(said, found, strict=True))
        pairs = {f"{name}[{index}]": pair for index, pair in both}
    for part, (one, other) in pairs.items():
        yield from _differing(one, other, part)
    if not pairs and (said != found or type(said) is not type(found)):
        yield _broken(name, said, found)


def _broken(name: str, said: object, found: object) -> BrokenPromise:
    if isinstance(said, tuple) and isinstance(found, tuple):
        said, found = f"{len(said):,} entries", f"{len(found):,}"
    return BrokenPromise(name=name, promised=_shown(said), found=_shown(found))


def _shown(value: object) -> str:
    if value is None or value == ():
        return "nothing"
    if is_dataclass(value):
        return f"{len(fields(value))} fields"
    return printable(str(value), 80)
