"""Where orders, plans and several files differ: each text, document and annotation is a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shardctl.draw.tables import PLAIN, Screen
from shardctl.files.documents import to_json
from shardctl.metadata.project_file import SettingOrigins
from shardctl.saved.resume_plan import ListedPlan, PlanListing
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.text import parse_stages
from shardctl.verbs.diff import view
from shardctl.verbs.diff.answer import Diff, Moved, PinnedOrder, diff  # noqa: F401  # of the lines on file
from shardctl.verbs.diff.causes import Cause, ChangedShard
from shardctl.verbs.diff.plans import PlansDiff, diff_plans
from shardctl.verbs.diff.view import CheckedFile, Hints, cause_line, moved_line  # noqa: F401
from shardctl.verbs.snapshot.answer import snapshot
from tests.golden import assert_evaluated, assert_golden, rows
from tests.spec.host_cases import named_reads
from tests.verbs.diff.diff_cases import dataset_of

TOY = dataset_of({"train": (4, 4, 4)})
MIXTURE = "sample_from_datasets([train | repeat, train | map | repeat], {}seed=3) | take(9)"
ORIGINS = SettingOrigins(file="sub/shardctl.yaml", lines={"block": 3, "stages": 4, "dataset": 1})


def pinned(label: str = "order.yaml", stages: str | None = None, **settings: Any) -> PinnedOrder:
    given = {"cycle": 2, "block": 2, **settings}
    if stages is not None:
        given["stages"] = parse_stages(stages)
    taken = snapshot(TOY, None if stages else "train", ReadSettings(**given)).snapshot
    return PinnedOrder(snapshot=taken, label=label)


def against(label: str = "today", stages: str | None = None, **settings: Any) -> Diff:
    return diff(pinned(), pinned(label, stages, **settings))


def staged(before: str, after: str) -> Diff:
    return diff(pinned(stages=before), pinned("today", after))


def plans(*sides: list[tuple[str, int, int]]) -> PlansDiff:
    listings = [
        PlanListing(
            kind="plan",
            dataset=TOY.identity,
            plans=(ListedPlan(title="train", reads=named_reads(*reads)),),
        )
        for reads in sides
    ]
    return diff_plans(*listings, labels=("x", "y"))


def checked(label: str, block: int) -> CheckedFile:
    found = diff(pinned(label, block=block), pinned("today"))
    update = f"shardctl diff {label} --update"
    return CheckedFile(
        label=label, diff=found, hints=Hints(file=f"sub/{label}", origins=ORIGINS, update=update)
    )


FAILED = CheckedFile(label="d.yaml", hints=Hints(file="sub/d.yaml"), error="d.yaml: it is empty")
MANY = dataset_of({"train": (10,) * 30}).split("train").filenames
TO_UPDATE = Hints(origins=ORIGINS, update="shardctl diff order.yaml --update")

CASES = rows(Path(__file__).with_name("shown.txt"))


def rendered(what: str, found: Any, hints: Hints | None) -> Iterator[tuple[str, Iterable[str]]]:
    more = {} if hints is None else {"hints": hints}
    table = getattr(view, f"{what}_table")
    yield "table", table(found, PLAIN, **more)
    yield "terminal", table(found, Screen(width=100, color=True, abridged=True), **more)
    if what != "plans":
        yield "github", getattr(view, f"{what}_annotation")(found, **more)
    yield "json", to_json(getattr(view, f"{what}_document")(found))


@pytest.mark.parametrize("name", CASES)
def test_it_is_shown_in_every_form(name: str) -> None:
    what, asked, hints = CASES[name].split(" => ")
    shown = rendered(what, eval(asked, globals()), eval(hints, globals()))
    parts = [f"== {form}\n{''.join(text)}" for form, text in shown]
    file = Path(__file__).parent / "golden" / f"{name.replace(' ', '_')}.txt"
    assert_golden(file, "\n".join(parts).replace("\x1b", "\\e"))


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    data = dataset_of({"train": tuple([7] * 60)})
    other = snapshot(data, "train", ReadSettings(shuffle_seed=10**60)).snapshot
    found = diff(pinned(), PinnedOrder(snapshot=other, label="x" * 50))
    text = "".join(view.diff_table(found, Screen(width=width)))
    assert max(map(len, text.splitlines())) <= width


def test_causes_and_shares_are_lines_on_file() -> None:
    assert_evaluated(globals(), "lines")


def test_every_shard_of_a_cause_is_named_but_where_tables_are_abridged() -> None:
    shards = tuple(
        ChangedShard(filename=f"{'d' * 60}-{i:05}-of-00009", expected=3, actual=None)
        for i in range(9)
    )
    cause = Cause(kind="shards", name="train", change="vanished", shards=shards)
    whole = cause_line(cause, whole=True)
    assert [shard.filename for shard in shards if shard.filename not in whole] == []
    assert cause_line(cause).endswith(" and 5 more")
    assert "y" * 300 in cause_line(replace(cause, kind="setting", expected="y" * 300), whole=True)
