"""The options of `resume` say how far a pipeline got in one way, and which hosts continue."""

from __future__ import annotations

import pytest

from shardctl.errors import UsageError
from shardctl.verbs.resume.command import ResumeOptions


@pytest.mark.parametrize(
    "options",
    [
        ResumeOptions(consumed=(0,)),
        ResumeOptions(consumed=(5, 6), hosts=2, to_hosts=3),
        ResumeOptions(steps=0),
        ResumeOptions(seen="log", to_hosts=3),
        ResumeOptions(consumed=(5,), mode="exact-order"),
        ResumeOptions(seen="log", mode="exactly-once"),
        ResumeOptions(steps=5, mode="at-least-once", risk=0.5),
    ],
)
def test_one_way_of_saying_how_far_it_got(options: ResumeOptions) -> None:
    options.check()


@pytest.mark.parametrize(
    "options",
    [
        ResumeOptions(),
        ResumeOptions(mode="exactly-once"),
        ResumeOptions(consumed=(0,), steps=0),
        ResumeOptions(steps=1, seen="log"),
        ResumeOptions(consumed=(1,), steps=1, seen="log"),
    ],
)
def test_none_or_several_are_refused(options: ResumeOptions) -> None:
    with pytest.raises(UsageError, match="say how far the pipeline got, in one way: --consumed N"):
        options.check()


@pytest.mark.parametrize("options", [{"seen": "log"}, {"consumed": (1,), "hosts": 2}])
def test_an_order_continues_on_the_same_hosts_alone(options: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="--mode exact-order: other hosts have another order"):
        ResumeOptions(**options, mode="exact-order").check()  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", [{"mode": "at-most-once"}, {"risk": 0.5}])
def test_without_a_seed_hosts_go_on_and_a_log_needs_no_mode(mode: dict[str, object]) -> None:
    ResumeOptions(consumed=(1,), hosts=2, **mode).check()  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a log says what was seen"):
        ResumeOptions(seen="log", **mode).check()


def test_what_is_given_keeps_zeros() -> None:
    assert ResumeOptions(steps=0, seen="").given() == {"steps": 0, "seen": ""}
    assert ResumeOptions().given() == {}
