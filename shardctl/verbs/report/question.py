"""What a report is about, what stands in for what nobody said, and parts that cannot be shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from shardctl.base.phrase import option
from shardctl.base.text import quoted
from shardctl.dataset.dataset import Dataset
from shardctl.errors import ShardctlError, UsageError
from shardctl.order.order import Order
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.short_form import stages_of
from shardctl.spec.host import Host
from shardctl.stages.pipelines import parts_of
from shardctl.stages.stages import Batch, Read, Shard
from shardctl.verbs.config.answer import Origin, SettingInForce, lint_in_force, read_in_force
from shardctl.verbs.hosts.answer import MAX_NUM_HOSTS
from shardctl.verbs.lint.context import USAGE_NAMES, Usage
from shardctl.verbs.quality.answer import DEFAULT_WINDOW

STAND_IN_HOSTS = 8


@dataclass(frozen=True, kw_only=True)
class ReportQuestion:
    """What a report is about, whoever asks: the command line, or Python.

    lint: what was said besides an order's settings, by its names under `lint:`; `usage` is the
        same as lint takes it.
    in_force: every setting with its origin, as `config` shows it; `in_force_here` says of the host
        too that it is the first of those.
    file_order_list: a file with the names of `file_order`, None where there is none.
    sized: the dataset with the sizes of its files, for what hosts read and how shards differ; None
        where the metadata alone says how large it is.
    """

    dataset: Dataset
    spec: str | None
    settings: ReadSettings
    lint: Mapping[str, Any]
    usage: Usage
    in_force: tuple[SettingInForce, ...] = field(repr=False)
    file_order_list: str | None = None
    sized: Dataset | None = None
    devices: int = 1
    loaders: bool = False

    def __post_init__(self) -> None:
        host, said = self.settings.host, self.usage.hosts
        if host is not None and said not in (None, host.count):
            numbers = f"--host {host} and --hosts {said}"
            raise UsageError(f"{numbers}: two numbers of hosts; choose one")
        refuse_counts(hosts=said, devices=self.devices)

    @property
    def evaluated(self) -> tuple[str, ...]:
        """What is evaluated on, as it was said; none where nobody did."""
        return tuple(self.lint.get("eval", ()))

    @property
    def hosts_said(self) -> int | None:
        """How many hosts read, as the settings or the usage say it, None where neither does."""
        host = self.settings.host
        return self.usage.hosts if host is None else host.count

    @property
    def num_hosts(self) -> int:
        """How many hosts are shown side by side."""
        return self.hosts_said or STAND_IN_HOSTS

    @cached_property
    def reading(self) -> ReadSettings:
        """The settings of the one pipeline that is measured: of several hosts the first.

        Raises:
            UsageError: who reads takes no hosts.
        """
        alone = (self.hosts_said or 1) == 1
        if alone or self.settings.host is not None or self._stages_share:
            return self.settings
        return replace(self.settings, host=Host(index=0, count=self.num_hosts))

    @property
    def in_force_here(self) -> tuple[SettingInForce, ...]:
        """Every setting with its origin, the host that is measured among them."""
        try:
            host = self.reading.host
        except UsageError:
            return self.in_force
        if host == self.settings.host:
            return self.in_force
        origin = Origin(source="implied", by="lint.hosts")
        return tuple(
            replace(item, value=str(host), origin=origin) if item.name == "read.host" else item
            for item in self.in_force
        )

    @property
    def _stages_share(self) -> bool:
        """Whether the stages say themselves which host reads."""
        return any(
            (isinstance(part, Shard) and part.num_shards > 1)
            or (isinstance(part, Read) and "host" in dict(part.settings))
            for part in parts_of(stages_of(self.settings))
        )

    def said_batch(self, order: Order | None) -> int | None:
        """Return the examples in the batch of a host, None where nobody said how many."""
        if order is not None and order.num_steps != 0:
            return order.batch_size
        batches = [part.size for part in stages_of(self.settings).stages if isinstance(part, Batch)]
        return batches[-1] if batches else None

    def device_batch(self, order: Order | None) -> int:
        """Return the examples of a batch, or of its stand-in, that one device gets at most."""
        return -(-(self.said_batch(order) or DEFAULT_WINDOW) // self.devices)

    def notes(self, order: Order | None) -> Iterator[str]:
        """Yield what stands in for something that nobody said."""
        hosts = self.hosts_said
        if hosts is None:
            alone = (
                "" if self._stages_share else ", and the order is that of one host that reads all"
            )
            yield nobody_said_hosts(alone)
        elif self.settings.host is None and hosts > 1 and not self._stages_share:
            yield f"the order is that of the first of {hosts:,} hosts; --host I/N chooses another"
        said = self.said_batch(order)
        batch = said or DEFAULT_WINDOW
        if said is None:
            meant = f"{batch} examples are meant; say it with --batch N"
            yield f"nobody said how large a batch is: {meant}"
        if batch % self.devices:
            yield (
                f"a batch of {batch} is no multiple of --devices {self.devices}: in the evaluation "
                f"a device has {self.device_batch(order)}"
            )
        specs = tuple(self.lint.get("specs", ()))
        if specs and specs != (self.spec,):
            looks = f"`shardctl lint` looks at {' and '.join(map(quoted, specs))} here"
            yield f"lint looks at what the report is about; {looks}"


def nobody_said_hosts(more: str = "") -> str:
    """Return that a number of hosts is a stand-in."""
    shown = f"{STAND_IN_HOSTS} are shown side by side{more}"
    return f"nobody said how many hosts read: {shown}; say how many with --hosts N"


def refuse_counts(**counts: int | None) -> None:
    """Refuse numbers of hosts and devices that nobody has.

    Raises:
        UsageError: one is below 1, or above the most hosts.
    """
    for name, count in counts.items():
        if count is not None and not 1 <= count <= MAX_NUM_HOSTS:
            said = option(name, count, given=True)
            raise UsageError(f"{said}: a number from 1 to {MAX_NUM_HOSTS} is needed")


def question_in_python(
    dataset: Dataset,
    spec: str | None,
    settings: ReadSettings,
    *,
    hosts: int | None,
    devices: int,
    evaluated: tuple[str, ...],
    usage: Usage,
    loaders: bool,
) -> ReportQuestion:
    """Return the question of a caller in Python: what is not as by default was an argument."""
    said: dict[str, Any] = {}
    arguments: dict[str, str] = {}
    for field_name, value in _given(usage, Usage()).items():
        name = USAGE_NAMES[field_name]
        said[name], arguments[name] = value, f"usage.{field_name}"
    if hosts is not None:
        usage = replace(usage, hosts=hosts)
        said["hosts"], arguments["hosts"] = hosts, "hosts"
    if evaluated:
        said["eval"], arguments["eval"] = evaluated, "evaluated"
    origins = {
        name: Origin(source="argument", by=name) for name in _given(settings, ReadSettings())
    }
    linted = lint_in_force(said, usage, settings, dataset)
    return ReportQuestion(
        dataset=dataset,
        spec=spec,
        settings=settings,
        lint=said,
        usage=usage,
        in_force=(
            _of_argument("dataset", dataset.title, "dataset"),
            *read_in_force(settings, origins, ordered=dataset.ordered),
            *(
                _of_argument(f"lint.{name}", value, arguments.get(name))
                for name, value in linted.items()
            ),
        ),
        devices=devices,
        loaders=loaders,
    )


def _given(values: Any, bare: Any) -> dict[str, Any]:
    """Return the fields of a value that are not as by default."""
    found = {one.name: getattr(values, one.name) for one in fields(values)}
    return {name: value for name, value in found.items() if value != getattr(bare, name)}


def _of_argument(name: str, value: object, argument: str | None) -> SettingInForce:
    if argument is None:
        return SettingInForce(name=name, value=value)
    origin = Origin(source="argument", by=argument)
    return SettingInForce(name=name, value=value, given=value, origin=origin)


# Parts of a report, or why one of them is not shown.

Answer = TypeVar("Answer")
Earlier = TypeVar("Earlier")


@dataclass(frozen=True, kw_only=True)
class NotShown:
    """A part that cannot be had, and why, in one line."""

    reason: str


Shown: TypeAlias = Answer | NotShown


def shown(ask: Callable[[], Answer]) -> Answer | NotShown:
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


def shown_of(earlier: Earlier | NotShown, ask: Callable[[Earlier], Answer]) -> Answer | NotShown:
    """Return what is made of another part; where that is not there, why it is not.

    >>> shown_of(NotShown(reason="no such split"), lambda quality: quality.score)
    NotShown(reason='no such split')
    """
    if isinstance(earlier, NotShown):
        return earlier
    return shown(lambda: ask(earlier))
