"""What each rule finds something in, the nearest case in which it does not, and what it says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.draw.tables import Screen
from shardctl.loaders.loader import LOADERS
from shardctl.metadata.project_file import SettingOrigins
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.subsplit import SplitRange, resolve_subsplit
from shardctl.verbs.lint.answer import Lint, findings_of
from shardctl.verbs.lint.context import LintContext
from shardctl.verbs.lint.rule import Rule, Violation
from shardctl.verbs.lint.rules import LINT_RULES
from shardctl.verbs.lint.rules.reader import num_in_whole_shards
from shardctl.verbs.lint.rules.subsplits import as_spec, id_sets, num_ids
from shardctl.verbs.lint.view import lint_table
from tests.cases import FUZZ, check_cases
from tests.golden import assert_golden
from tests.verbs.lint.lint_cases import (
    Sharing,
    codes,
    counts,
    dataset,
    findings,
    linted,
    num_batches,
    shares_of,
    sharings,
    whys,
)

HERE = Path(__file__).parent
CASES = yaml.safe_load((HERE / "cases.yaml").read_text("utf-8"))


def of(case: dict[str, Any]) -> Lint:
    return linted(*case.get("specs", ()), **{k: v for k, v in case.items() if k != "specs"})


@pytest.mark.parametrize("code", sorted({code for code, *_ in CASES}))
def test_a_rule_finds_what_it_is_about_and_not_what_is_next_to_it(code: str) -> None:
    said = []
    for fires, quiet in (cases for one, *cases in CASES if one == code):
        found = of(fires)
        assert code in codes(found), fires
        assert code not in codes(of(quiet)), quiet
        said += [f"{yaml.safe_dump(fires, default_flow_style=True, width=9999).strip()}\n"]
        for one in found.findings:
            if one.rule.code == code:
                about = f"{' '.join(one.specs)} ({', '.join(one.settings)})"
                said += [f"  {one.severity}: {one.why}\n    {one.fix}\n    {about}\n"]
        origins = SettingOrigins(file="a/shardctl.yaml", lines={"epochs": 4, "hosts": 9})
        for width in (40, 60, 80):
            text = "".join(lint_table(found, origins, Screen(width=width)))
            assert max(map(len, text.splitlines())) <= width
            assert not re.search(r" $", text, re.MULTILINE)
    assert_golden(HERE / "golden" / f"{code}.txt", "".join(said))


def test_every_rule_has_a_case() -> None:
    assert {code for code, *_ in CASES} == {rule.code for rule in LINT_RULES}


def test_a_finding_begins_with_the_spec_that_it_is_about() -> None:
    def biter(context: LintContext) -> Iterator[Violation]:
        for read in context.reads:
            yield Violation("it bites", "leave it", read)

    rule = Rule(code="SC001", check=biter)
    assert repr(rule) == "<Rule SC001: one-order>"
    context = linted("train", "test").context
    found = [(finding.why, finding.specs) for finding in findings_of([rule], context)]
    assert found == [("train: it bites", ("train",)), ("test: it bites", ("test",))]


CLEAN = (
    "cache | shuffle(2000, seed=1) | repeat | batch(64) | prefetch",
    "map(calls='auto') | cache | shuffle(2000, seed=1) | map | batch(64) | repeat | take(500)",
    "shuffle(2000, seed=1) | repeat(3) | batch(64, drop_remainder=True) | prefetch(2)",
    "shuffle(2000, seed=1) | map(calls=4) | batch(64) | prefetch",
    "take(6000) | cache | shuffle(2000, seed=1) | batch(64)",
    "shard(2, 0) | map | cache | shuffle(2000, seed=1) | repeat | batch(64)",
    "sample_from_datasets([train[:50%] | shuffle(900, seed=1) | repeat, train[50%:] | "
    "shuffle(900, seed=2) | repeat], weights=[0.7, 0.3], seed=4) | shuffle(1000, seed=3) | "
    "batch(64) | prefetch",
    "choose_from_datasets([train[:50%] | shuffle(900, seed=1) | repeat, train[50%:] | "
    "shuffle(900, seed=2) | repeat], choices=range(2) | repeat) | batch(64)",
)


@pytest.mark.parametrize("text", CLEAN)
def test_a_common_pipeline_is_clean(text: str) -> None:
    # The examples are interleaved from 64 files; one file that is not shuffled before.
    assert codes(linted(stages=text, layout={"train": (100,) * 12})) == []


def test_what_helps_is_said_in_stages() -> None:
    for text in ("take(9)", "take(9) | repeat(2)", "take(6000) | shuffle(2000)"):
        for found in linted(stages=text).findings:
            assert not re.search("--buffer|buffer=", found.fix)
            assert found.settings[-1] == "stages"


LOOSE = "map(calls=4, deterministic=False)"


@pytest.mark.parametrize("before", ["", "with_options(deterministic=False) | "])
def test_what_is_handed_out_as_it_is_ready_is_found_once_a_pipeline(before: str) -> None:
    stages = f"{LOOSE} | shuffle(9, seed=1) | {before}{LOOSE}"
    (why,) = whys(linted(stages=stages), "SC007")
    assert why.count("stage ") == 2 + bool(before)
    assert len(whys(linted(stages=stages, deterministic=False), "SC007")) == 1


# Hosts, whose examples are listed one by one.


def agrees_by_hand(case: Sharing) -> None:
    lengths, host_by, num_hosts, batch, drop, epochs = case
    found, shares = findings(case), shares_of(lengths, host_by, num_hosts)
    num_files = sum(length > 0 for length in lengths)
    steps = [num_batches(len(host) * epochs, batch, drop) for host in shares]
    refused = not all(shares) if host_by == "even" else num_files < num_hosts
    refused = refused and host_by != "examples"
    if not num_files:
        assert set(found) == {"SC044"}
        return
    uneven = min(steps) < max(steps) and not refused
    assert ("SC034" in found) == uneven, case
    if uneven:
        assert counts(found["SC034"].why)[:2] == [min(steps), max(steps)]
        dropped = [num_batches(len(host) * epochs, batch, True) for host in shares]
        cures = not drop and min(dropped) == max(dropped)
        assert ("--drop-remainder" in found["SC034"].fix) == cures
    idle = sum(not host for host in shares)
    few = host_by != "examples" and num_files < num_hosts
    assert ("SC031" in found) == few
    assert ("SC032" in found) == (host_by != "examples" and not few and num_files % num_hosts > 0)
    assert ("SC037" in found) == (idle > 0 and not (host_by == "files" and few))
    assert ("SC033" in found) == (host_by == "examples" and num_hosts >= 8)
    evaluated, once = findings(case, "test"), shares_of(lengths, host_by, num_hosts)
    lost = sum(len(host) - batch * num_batches(len(host), batch, True) for host in once)
    assert ("SC051" in evaluated) == (drop and lost > 0)
    if "SC051" in evaluated:
        assert counts(evaluated["SC051"].why)[:2] == [lost, sum(lengths)]


def test_hosts_get_what_sharing_by_hand_gives() -> None:
    check_cases(sharings, agrees_by_hand, 120)


@pytest.mark.fuzz
def test_hosts_get_what_sharing_by_hand_gives_fuzzed() -> None:
    check_cases(sharings, agrees_by_hand, FUZZ)


def test_the_evaluation_of_flax_loses_272_of_10000() -> None:
    # https://flax.readthedocs.io/en/latest/guides/data_preprocessing/full_eval.html
    found = findings(((10_000,), "even", 1, 512, True, 1), "test")
    assert counts(found["SC051"].why) == [272, 10_000, 512]
    assert 10_000 - 272 == 19 * 512 == 9728


# Formats and subsplits.


def test_whole_shards_are_those_that_hold_an_example_of_the_range() -> None:
    lengths = (3, 0, 4, 5)
    split = Split(name="train", shard_lengths=lengths)
    shard_of = [shard for shard, length in enumerate(lengths) for _ in range(length)]
    for start in range(13):
        for stop in range(start, 13):
            expected = sum(lengths[shard] for shard in set(shard_of[start:stop]))
            assert num_in_whole_shards(SplitRange(split=split, start=start, stop=stop)) == expected


RANGES = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.integers(0, 30)))


@pytest.mark.long
def test_sets_of_ids_are_sets() -> None:
    splits = {name: Split(name=name, shard_lengths=(7, 0, 13, 10)) for name in "ab"}
    toy = Dataset(name="toy", splits=tuple(splits.values()))

    def check(case: tuple[list[tuple[str, int, int]], list[tuple[str, int, int]]]) -> None:
        pieces = [
            [SplitRange(split=splits[n], start=min(a, b), stop=max(a, b)) for n, a, b in drawn]
            for drawn in case
        ]
        ids = [{(p.split.name, i) for p in some for i in range(p.start, p.stop)} for some in pieces]
        both = id_sets(*pieces, among_others=True)
        listed = {(n, i) for n, some in both.items() for a, b in some for i in range(a, b)}
        assert listed == ids[0] & ids[1]
        assert num_ids(both) == len(listed)
        assert num_ids(id_sets(pieces[0])) == len(ids[0])
        rest = as_spec(id_sets(*pieces, among_others=False), toy)
        parts = resolve_subsplit(rest, toy).ranges if rest else ()
        found = [(piece.split.name, i) for piece in parts for i in range(piece.start, piece.stop)]
        assert sorted(found) == sorted(ids[0] - ids[1])

    check_cases(st.tuples(RANGES, RANGES), check, 300)


# Other loaders: what is said is what their orders do.


def grain(num_examples: int, **settings: Any) -> list[int]:
    read = ReadSettings(loader="grain", loader_version="0.2.18", **settings)
    order = plan_order(dataset(train=(num_examples,)), "train", read).order
    return [int(code) for chunk in order.chunks(0, order.num_examples) for code in chunk]


@pytest.mark.parametrize("epochs", [1, 2, 3, 7])
def test_what_is_said_of_the_remainder_is_what_is_read(epochs: int) -> None:
    seed: dict[str, Any] = {"loader": "grain", "shuffle_seed": 1, "usage": {"hosts": 3}}
    seed["epochs"] = epochs
    (said,) = whys(linted("train[:11]", loader_version="0.2.18", **seed), "SC082")
    hosts = [
        Counter(grain(11, shuffle_seed=1, epochs=epochs, host=Host(index=index, count=3)))
        for index in range(3)
    ]
    size = hosts[0].total()
    assert f"reads {size} example" in said
    assert f"2 of them are {epochs * 4 - size} short of" in said
    again = hosts[2].total() - epochs * 3
    assert (f"read {again} once more" in said) == bool(again)


def test_hosts_of_grain_read_in_lockstep_and_windows_repeat_examples() -> None:
    first, second = (grain(20, shuffle_seed=5, host=Host(index=k, count=2)) for k in range(2))
    assert [code + 10 for code in first] == second
    whole, cut = (Counter(grain(n, buffer=300, buffer_seed=1)) for n in (900, 1000))
    assert (set(whole.values()), len(whole)) == ({1}, 900)
    assert max(cut.values()) == 2
    assert len(cut) < 1000


@pytest.mark.parametrize("loader", LOADERS)
def test_what_nothing_shuffles(loader: str) -> None:
    settings: dict[str, Any] = {"loader": loader, "batch": 10}
    assert codes(linted(**settings)) == ["SC017"]
    assert codes(linted(**settings, epochs=2)) == ["SC001"]
    seed: dict[str, Any] = {"shuffle_seed": 1}
    if loader == "stateful":
        seed = {"shuffle": True, "global_seed": 1}
    assert "SC017" not in codes(linted(**settings, **seed))
    once = loader == "hf"  # Dataset.shuffle mixes once, and set_epoch is of streams
    assert ("SC001" in codes(linted(**settings, **seed, epochs=2))) == once


def test_a_shuffle_that_nothing_seeds() -> None:
    (found,) = linted(loader="torch", shuffle=True).findings
    assert found.rule.code == "SC006"
    assert found.why.startswith("train: --shuffle without a seed has another order in each run")
    assert found.fix == "--shuffle-seed N, or --shuffle with --global-seed N"


def test_rules_about_tf_data_are_silent_and_those_about_specs_are_not() -> None:
    found = linted("train[:60%]", evaluated=("train[50%:]",), loader="torch", shuffle_seed=1)
    assert codes(found) == ["SC041"]
    silent = {"SC003", "SC004", "SC011", "SC013", "SC024", "SC025", "SC031", "SC033", "SC035"}
    assert not silent & {rule.code for rule in found.rules}
    array_record: dict[str, Any] = {"layout": {"file_format": "array_record"}}
    assert "SC029" in codes(linted(shuffle_seed=1, **array_record))
    read = linted(loader="grain", shuffle_seed=1, **array_record)
    assert (read.findings, read.context.reads_data_source) == ((), False)


@pytest.mark.parametrize(
    ("code", "spec", "loader", "there"),
    [
        ("SC034", "test[:13]", "hf", True),
        ("SC034", "test[:13]", "torch", False),
        ("SC037", "test[:2]", "grain", True),
    ],
)
def test_uneven_and_idle_hosts_are_those_of_the_loader(
    code: str, spec: str, loader: str, there: bool
) -> None:
    found = linted(spec, loader=loader, batch=2, usage={"hosts": 3})
    assert (code in codes(found)) is there
