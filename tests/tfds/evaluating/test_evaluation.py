"""Padded batches of real TFDS datasets: each example once over all hosts, as many steps on each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import strategies as st

import shardctl
import shardctl.tfds
from shardctl.core.hosts.host import Host
from shardctl.core.settings.read_settings import ReadSettings
from tests.cases import FUZZ, check_cases
from tests.core.order.order_cases import changed, elements
from tests.core.order.toy_pipelines import (
    FOLDERS,
    Case,
    Toys,
    as_line,
    predicted,
    read_by_tfds,
    shuffled_paths,
    specs,
)


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """An evaluation of one of the toys."""

    case: Case
    hosts: int
    devices: int
    batch: int
    padding: str
    device_axis: bool


@st.composite
def evaluated(draw: st.DrawFn) -> Evaluated:
    toy = draw(st.sampled_from([*FOLDERS, "several"]))
    spec = draw(specs(toy))
    settings = ReadSettings(
        cycle=None if toy == "ordered" else draw(st.none() | st.integers(1, 9)),
        block=draw(st.sampled_from([1, 3, 16])),
        reverse=draw(st.booleans()),
        host_by=draw(st.sampled_from(["even", "files", "examples"])),
    )
    file_order = None if settings.reverse else draw(st.none() | st.integers(0, 99))
    return Evaluated(
        case=Case(
            toy=toy,
            spec="train+test" if spec == "all" and toy == "several" else spec,
            settings=settings,
            file_order=file_order,
        ),
        hosts=draw(st.sampled_from([1, 2, 3, 5, 9])),
        devices=draw(st.integers(1, 3)),
        batch=draw(st.integers(1, 9)),
        padding=draw(st.sampled_from(["repeat", "zeros"])),
        device_axis=draw(st.booleans()),
    )


def checker(toys: Toys) -> Callable[[Evaluated], None]:
    def check(given: Evaluated) -> None:
        case, toy = given.case, toys[given.case.toy]
        settings = case.settings
        if case.file_order is not None:
            settings = changed(settings, file_order=tuple(shuffled_paths(toy, case.file_order)))
        whole = predicted(toy, case, settings)
        if whole is None:
            return
        everything = elements(read_by_tfds(toy, case, settings, whole.epoch_size), bytes.decode)
        host_batch = given.devices * given.batch
        by_host, num_steps = [], set()
        for index in range(given.hosts):
            host = Host(index=index, count=given.hosts)
            dataset = shardctl.tfds.evaluation(
                toy.builder,
                case.spec,
                replace(settings, host=host if index % 2 else None),
                host=None if index % 2 else host,
                batch=given.batch,
                devices=given.devices,
                device_axis=given.device_axis,
                padding=given.padding,  # type: ignore[arg-type]
                transform=as_line,
                add_tfds_id=True,
            )
            batches = list(dataset.as_numpy_iterator())
            assert len(dataset) == len(batches)
            num_steps.add(len(batches))
            shape = (given.devices, given.batch) if given.device_axis else (host_batch,)
            assert all(part.shape == shape for batch in batches for part in batch)
            lines, mask = (
                np.concatenate([np.ravel(batch[part]) for batch in batches] or [np.array([])])
                for part in (0, 1)
            )
            mask = mask.astype(bool)
            assert not np.any(mask[1:] > mask[:-1])  # padding comes last
            own = [line.decode() for line in lines[mask]]
            padding = {line.decode() for line in lines[~mask]}
            if given.padding == "zeros":
                assert padding <= {""}
            else:
                reads_all = settings.host_by == "examples" or not own
                assert padding <= set(everything if reads_all else own)
                assert len(padding) <= 1
            order = predicted(toy, case, changed(settings, host=host)) if own else None
            if order is not None:
                expected = read_by_tfds(toy, case, changed(settings, host=host), order.epoch_size)
                assert own == elements(expected, bytes.decode)
            by_host.append(own)
        assert sorted(line for own in by_host for line in own) == sorted(everything)
        assert num_steps == {max(-(-len(own) // host_batch) for own in by_host)}
        plan = shardctl.evaluate(
            toy.dataset,
            case.spec,
            settings,
            batch=given.batch,
            hosts=given.hosts,
            devices=given.devices,
            remainder="pad",
        )
        assert [len(own) for own in by_host] == plan.num_examples.tolist()
        assert set(plan.num_steps("pad").tolist()) == num_steps
        padded = plan.padding + plan.padding_batches * host_batch
        slots = num_steps.pop() * host_batch
        assert [slots - len(own) for own in by_host] == padded.tolist()

    return check


def test_each_example_comes_once_and_hosts_end_together(toys: Toys) -> None:
    check_cases(evaluated(), checker(toys), 6)


@pytest.mark.fuzz
def test_each_example_comes_once_and_hosts_end_together_fuzzed(toys: Toys) -> None:
    check_cases(evaluated(), checker(toys), FUZZ // 20, fuzz=True)
