"""Hosts, and the three modes in which hosts share the examples of a spec.

Each mode is a class in `HOST_MODES` that answers all questions about itself. Its calls of TFDS and
tf.data are in `shardctl.tfds.training.pipeline`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from shardctl.base.arguments import checked, keep_fields, made_kind
from shardctl.base.text import counted, quoted
from shardctl.errors import UsageError
from shardctl.spec.subsplit import SplitRange

if TYPE_CHECKING:
    from shardctl.spec.host_reads import HostReads, SharedReads


_MOST = 999_999_999  # as many digits as the form has
FORM = re.compile(r"(\d{1,9})/(\d{1,9})")


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """Host `index`, from 0, of `count`.

    >>> Host.parse("2/8")
    Host(index=2, count=8)
    >>> str(Host(index=2, count=8))
    '2/8'
    """

    index: int
    count: int

    def __post_init__(self) -> None:
        # bool is an int as well, hence `type` and not isinstance.
        if type(self.index) is type(self.count) is int and 0 <= self.index < self.count < _MOST:
            return  # soon, as there may be a million of them
        keep_fields(self)
        if self.count > _MOST:
            raise UsageError(f"{self.count} hosts: at most {_MOST} are counted")
        if self.count < 1:
            raise UsageError(f"{self.count} hosts: at least 1 is needed")
        if not 0 <= self.index < self.count:
            raise UsageError(
                f"host {self.index} of {self.count}: hosts count from 0 to {self.count - 1}"
            )

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @classmethod
    @checked
    def parse(cls, text: str) -> Host:
        """Read `I/N`."""
        match = FORM.fullmatch(text)
        if match is None:
            raise UsageError(f"host {quoted(text)} is not I/N, as in 0/8 (host 0 of 8)")
        return cls(index=int(match[1]), count=int(match[2]))


def _made_of_text(given: object) -> Host | None:
    if isinstance(given, Host):
        return given
    return Host.parse(given) if isinstance(given, str) else None


HOST = made_kind(_made_of_text, needed='a host as "0/8" or Host(index=0, count=8)', several="hosts")
HostLike = Annotated[Host | str, HOST]


def as_host(given: HostLike) -> Host:
    """Return the host that an argument is, or that a text `I/N` names.

    >>> as_host("1/3") == as_host(Host(index=1, count=3))
    True
    """
    host: Host = HOST.take(given)
    return host


# Even splits: the examples split among hosts as `tfds.even_splits` does.


def even_range(start: int, stop: int, index: int, count: int, drop_remainder: bool) -> range:
    """Return the part of [start, stop) that falls to host `index` of `count`.

    The first `remainder` hosts take one example more; with `drop_remainder` none does (TFDS
    core/subsplits_utils.py, _EvenSplit).

    >>> [len(even_range(0, 11, i, 3, False)) for i in range(3)]
    [4, 4, 3]
    >>> [len(even_range(0, 11, i, 3, True)) for i in range(3)]
    [3, 3, 3]
    """
    each, remainder = divmod(stop - start, count)
    # Hosts before this one that took one more shift both ends: min(index, remainder) of them.
    first, last = start + each * index, start + each * (index + 1)
    if not drop_remainder:
        first, last = first + min(index, remainder), last + min(index + 1, remainder)
    return range(first, last)


def even_split(
    ranges: Sequence[SplitRange], index: int, count: int, *, drop_remainder: bool = False
) -> tuple[SplitRange, ...]:
    """Return what host `index` of `count` reads; each part of a sum is split by itself."""
    Host(index=index, count=count)  # refuses what is no host
    parts = []
    for piece in ranges:
        part = even_range(piece.start, piece.stop, index, count, drop_remainder)
        parts.append(SplitRange(split=piece.split, start=part.start, stop=part.stop))
    return tuple(parts)


HostBy = Literal["even", "files", "examples"]


class HostMode(ABC):
    """How the examples of a spec are split among hosts.

    `host` is None where a reader is alone; it then reads everything, whatever the mode.

    word, call: what the mode is called here, and the call that does it in a pipeline.
    reads_all: every host opens all files and keeps its own examples behind the reader; so all
        hosts have to read in one and the same order.
    whole_files: a host is given whole file instructions, so the files decide how many examples.
    knows_length: `tf.data` knows how many examples a host gets, for TFDS asserts it.
    """

    word: ClassVar[str]
    call: ClassVar[str]
    reads_all: ClassVar[bool] = False
    whole_files: ClassVar[bool] = False
    knows_length: ClassVar[bool] = True

    def ranges(self, ranges: Sequence[SplitRange], host: Host | None) -> Sequence[SplitRange]:
        """Return the part of the ranges that TFDS's reader is asked for on a host."""
        return ranges

    def own_instructions(self, num_files: int, host: Host | None) -> slice:
        """Return which of the reader's sorted file instructions the host reads."""
        return slice(None)

    def stride_and_phase(self, host: Host | None) -> tuple[int, int]:
        """Return (n, i): of what its reader yields the host keeps examples i, i + n, ..."""
        return 1, 0

    def refuses_files(self, num_files: int, num_hosts: int) -> bool:
        """Return whether TFDS refuses to split so few file instructions among the hosts."""
        return False

    def refusal(self, num_hosts: int, *, num_idle: int, num_files: int) -> str | None:
        """Return why TFDS does not read a spec with examples this way, None where it does."""
        return None

    def pieces(self, ranges: Sequence[SplitRange]) -> list[int]:
        """Return the sizes of what is split among hosts, each as evenly as can be.

        Not asked where `whole_files` are.
        """
        return [sum(piece.num_examples for piece in ranges)]

    @abstractmethod
    def host_reads(self, shared: SharedReads, num_hosts: int) -> HostReads:
        """Return what each host reads of what they share."""


class Even(HostMode):
    """Each range of a spec is cut into one part a host (TFDS core/subsplits_utils.py)."""

    word = "even"
    call = "tfds.even_splits"

    def ranges(self, ranges: Sequence[SplitRange], host: Host | None) -> Sequence[SplitRange]:
        """Return the host's part of each range."""
        if host is None:
            return ranges
        return even_split(ranges, host.index, host.count)

    def refusal(self, num_hosts: int, *, num_idle: int, num_files: int) -> str | None:
        """Refuse empty parts (TFDS core/dataset_builder.py: "corresponds to no data!")."""
        if not num_idle:
            return None
        hosts = counted(num_idle, "host")
        return f"TFDS refuses to read a split without examples, which {hosts} would get"

    def pieces(self, ranges: Sequence[SplitRange]) -> list[int]:
        """Return the sizes of the ranges, each of which is split by itself."""
        return [piece.num_examples for piece in ranges]

    def host_reads(self, shared: SharedReads, num_hosts: int) -> HostReads:
        """Cut the file instructions where one host's part ends and the next begins."""
        return shared.evenly(num_hosts)


class Files(HostMode):
    """Host i of n reads file instructions i, i + n, ... (TFDS core/reader.py, _read_files).

    That is `instructions.shard(n, i)`, after the sort function and before the file shuffle. TFDS
    asserts no number of examples then (assert_cardinality_and_apply_options).
    """

    word = "files"
    call = "InputContext"
    whole_files = True
    knows_length = False

    def own_instructions(self, num_files: int, host: Host | None) -> slice:
        """Return every n-th file instruction."""
        return slice(None) if host is None else slice(host.index, None, host.count)

    def refuses_files(self, num_files: int, num_hosts: int) -> bool:
        """Refuse fewer files than hosts (TFDS core/reader.py, validate_input_context)."""
        # One host alone may have any number of files, also none.
        return 1 < num_hosts > num_files

    def refusal(self, num_hosts: int, *, num_idle: int, num_files: int) -> str | None:
        """Refuse fewer files than hosts."""
        if not self.refuses_files(num_files, num_hosts):
            return None
        return (
            f"TFDS refuses an InputContext with fewer files than hosts: {num_files:,} "
            f"for {num_hosts:,}"
        )

    def host_reads(self, shared: SharedReads, num_hosts: int) -> HostReads:
        """Give the file instructions out in turn, also where TFDS refuses to."""
        return shared.by_files(num_hosts)


class Examples(HostMode):
    """Host i of n reads everything and keeps examples i, i + n, ...: `ds.shard(n, i)`.

    Source: tensorflow/core/kernels/data/shard_dataset_op.cc.
    """

    word = "examples"
    call = "ds.shard"
    reads_all = True

    def stride_and_phase(self, host: Host | None) -> tuple[int, int]:
        """Return the number of hosts and the index of this one."""
        return (1, 0) if host is None else (host.count, host.index)

    def host_reads(self, shared: SharedReads, num_hosts: int) -> HostReads:
        """Let every host read all."""
        return shared.by_all(num_hosts)


# In the order in which they are listed; of two that are equally good the first is recommended.
HOST_MODES: dict[str, HostMode] = {mode.word: mode for mode in (Even(), Files(), Examples())}

DEFAULT_HOST_MODE: HostBy = "even"
