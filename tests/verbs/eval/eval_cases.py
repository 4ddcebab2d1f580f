"""Evaluations at random, and hosts played in lockstep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import HostBy
from shardctl.verbs.eval.answer import REMAINDERS, Evaluation, Hang, Remainder, evaluate
from tests.spec.host_cases import HostCase
from tests.strategies import shard_lengths


def toy(*lengths: int) -> Dataset:
    return Dataset(name="toy", splits=(Split(name="test", shard_lengths=lengths),))


@dataclass(frozen=True, kw_only=True)
class EvalCase:
    """An evaluation, and what each of its hosts gets."""

    lengths: tuple[int, ...]
    num_hosts: int
    num_devices: int
    batch: int
    host_by: HostBy
    remainder: Remainder = "ragged"

    def evaluation(self, **changed: Any) -> Evaluation:
        values = {**vars(self), **changed}
        settings = ReadSettings(host_by=values["host_by"])
        return evaluate(
            toy(*self.lengths),
            batch=values["batch"],
            hosts=values["num_hosts"],
            devices=values["num_devices"],
            remainder=values["remainder"],
            settings=settings,
        )

    def shares(self, num_hosts: int | None = None) -> list[list[int]]:
        """Return the examples of each host, written out."""
        num_hosts = self.num_hosts if num_hosts is None else num_hosts
        slices = ((0, 0, sum(self.lengths)),)
        case = HostCase(
            dataset=toy(*self.lengths), slices=slices, num_hosts=num_hosts, strategy=self.host_by
        )
        shares = [[e[2] for instruction in host for e in instruction] for host in case.reads()]
        if self.host_by == "examples":
            return [shares[0][i::num_hosts] for i in range(num_hosts)]
        return shares


eval_cases = st.builds(
    EvalCase,
    lengths=shard_lengths(max_shards=6, max_length=40),
    num_hosts=st.integers(1, 7),
    num_devices=st.integers(1, 4),
    batch=st.integers(1, 8),
    host_by=st.sampled_from(["even", "even", "files", "examples"]),
    remainder=st.sampled_from(REMAINDERS),
)


def batches_by_hand(share: list[int], size: int) -> list[int]:
    """Return the sizes of the batches of a host."""
    return [len(share[start : start + size]) for start in range(0, len(share), size)]


def hang_by_hand(steps: list[int]) -> Hang | None:
    """Let all hosts step at once until one cannot while another can."""
    for step in range(max(steps) + 1):
        going = [host for host, count in enumerate(steps) if count > step]
        if going and len(going) < len(steps):
            return Hang(
                step=step,
                waiting=len(going),
                first_waiting=going[0],
                finished=len(steps) - len(going),
            )
    return None
