"""What a report is about, what it assumes, and parts that cannot be shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias, TypeVar

from shardctl.base.phrase import option
from shardctl.dataset.dataset import Dataset
from shardctl.errors import ShardctlError, UsageError
from shardctl.order.order import Order
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.short_form import stages_of
from shardctl.spec.host import Host
from shardctl.stages.pipelines import parts_of
from shardctl.stages.stages import Batch, Read, Shard
from shardctl.verbs.config.answer import SettingInForce
from shardctl.verbs.hosts.answer import MAX_NUM_HOSTS
from shardctl.verbs.lint.context import Usage
from shardctl.verbs.quality.answer import DEFAULT_WINDOW


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
        for name, count in (("hosts", said), ("devices", self.devices)):
            if count is not None and not 1 <= count <= MAX_NUM_HOSTS:
                shown = option(name, count, given=True)
                raise UsageError(f"{shown}: a number from 1 to {MAX_NUM_HOSTS} is needed")

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
