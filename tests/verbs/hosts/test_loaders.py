"""What hosts read under the sharding of another loader, against their orders example by example."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from shardctl.base import arrays
from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UsageError
from shardctl.loaders.loader import LOADERS
from shardctl.order.plan_order import plan_order
from shardctl.verbs.hosts import sharing
from shardctl.verbs.hosts.answer import advice, hosts, problems
from tests.golden import assert_evaluated

TOY = Dataset(
    name="toy",
    splits=(Split(name="train", shard_lengths=(3, 4, 0, 6), shard_bytes=(30, 80, 0, 60)),),
)
STOPS = (3, 7, 7, 13)
BYTES = (10, 20, 0, 10)  # of an example


def file_of(index: int) -> int:
    return next(i for i, stop in enumerate(STOPS) if index < stop)


@pytest.mark.parametrize("num_hosts", [1, 2, 3, 5])
@pytest.mark.parametrize("loader", LOADERS)
def test_the_figures_are_those_of_the_orders(
    loader: str, num_hosts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "_PIECE", 3)
    settings: dict[str, Any] = {"loader": loader, "batch": 2, "epochs": 2}
    if loader != "stateful" or num_hosts > 1:
        settings["shuffle_seed"] = 5
    if loader == "webdataset" and num_hosts > 2:  # some have no sample
        with pytest.raises(UsageError, match="empty_check=False"):
            hosts(TOY, "train", settings, hosts=num_hosts)
        return
    plan = hosts(TOY, "train", settings, hosts=num_hosts)
    (own,) = plan.comparisons[0].strategies
    seen: Counter[int] = Counter()
    assert own.columns is not None
    assert own.batches is not None
    for index in range(num_hosts):
        host = {"host": f"{index}/{num_hosts}"} if num_hosts > 1 else {}
        whole = plan_order(TOY, "train", {**settings, **host}).order
        order = plan_order(TOY, "train", {**settings, **host, "epochs": 1}).order
        ids = order.read(0, order.num_examples).tolist()
        seen.update(ids)
        assert own.columns.num_examples[index] == len(ids)
        assert own.columns.num_files[index] == len({file_of(one) for one in ids})
        assert own.columns.num_bytes is not None
        assert own.columns.num_bytes[index] == sum(BYTES[file_of(one)] for one in ids)
        assert own.batches[index] == whole.num_steps
    assert own.columns.num_bytes is not None
    assert own.num_bytes is not None
    assert own.num_bytes.total == own.columns.num_bytes.sum()
    assert own.num_repeated == seen.total() - len(seen)
    assert own.num_left_out == 13 - len(seen)
    assert own.read_amplification == pytest.approx(seen.total() / 13)
    assert plan.settings.loader_version


def test_padding_and_what_no_host_reads_is_said() -> None:
    def said(settings: dict[str, Any], num_hosts: int) -> str:
        plan = hosts(TOY, "train", settings, hosts=num_hosts)
        return "\n".join(advice(plan.comparisons[0], plan.settings))

    assert_evaluated(globals(), "padding-said", said)


def test_streams_are_uneven_or_read_everything() -> None:
    plan = hosts(TOY, "train", {"loader": "hf", "batch": 2}, hosts=3)
    assert problems(plan.comparisons[0], plan.judged) == (
        "3 hosts, split_dataset_by_node: 2 to 3 batches",
    )
    streamed = hosts(TOY, "train", {"loader": "hf", "streaming": True}, hosts=[2, 3])
    assert [one.strategies[0].read_amplification for one in streamed.comparisons] == [1, 3]


@pytest.mark.parametrize(
    ("num_examples", "num_files", "num_hosts", "is_refused"),
    # A byte an example, and 8 numbers of 8 bytes a file of each host: 2 GiB at most of either.
    [(1 << 31, 1, 1, False), ((1 << 31) + 1, 1, 1, True), (1 << 20, 1 << 15, (1 << 10) + 1, True)],
)
def test_what_would_take_too_much_memory_is_refused(
    num_examples: int,
    num_files: int,
    num_hosts: int,
    is_refused: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def begin(*_: object, **__: object) -> None:
        raise InterruptedError

    monkeypatch.setattr(sharing, "Progress", begin)
    split = Split.even(name="train", num_examples=num_examples, num_shards=num_files)
    said = f"^--hosts {num_hosts} of {num_examples:,} examples in {num_files:,} files each are too"
    with pytest.raises(UsageError if is_refused else InterruptedError, match=said * is_refused):
        hosts(Dataset(name="d", splits=(split,)), "train", {"loader": "torch"}, hosts=num_hosts)
