"""Where two plans differ: which files and ranges are read otherwise."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import strategies as st

from shardctl.errors import DatasetError, UsageError
from shardctl.files.documents import to_json, to_yaml
from shardctl.saved.resume_plan import ListedPlan, PlanListing
from shardctl.saved.snapshot_file import read_comparable
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.diff.plans import diff_plans
from shardctl.verbs.plan.answer import plan
from shardctl.verbs.plan.view import plan_document
from shardctl.verbs.resume.answer import resume
from tests.cases import check_cases
from tests.golden import assert_answers
from tests.spec.host_cases import named_reads
from tests.strategies import error_line
from tests.verbs.diff.diff_cases import dataset_of

TOY = dataset_of({"train": (10, 10, 10), "test": (4,)})
LABELS = ("a.json", "b.json")


def listing(*reads: tuple[str, int, int], title: str = "train") -> PlanListing:
    return PlanListing(
        kind="plan",
        dataset=TOY.identity,
        plans=(ListedPlan(title=title, reads=named_reads(*reads)),),
    )


def test_plans_part_where_their_lists_do() -> None:
    read = st.tuples(st.sampled_from("ab"), st.integers(0, 1), st.integers(0, 2))
    reads = st.lists(read, max_size=4)

    def check(case: tuple[list[tuple[str, int, int]], list[tuple[str, int, int]]]) -> None:
        before, after = case
        found = diff_plans(listing(*before), listing(*after), labels=LABELS)
        assert found.equal == (before == after)
        longest = max(len(before), len(after))
        differing = [i for i in range(longest) if before[i : i + 1] != after[i : i + 1]]
        assert ([found.first.position] if found.first else []) == differing[:1]
        changed = {name for name, _, _ in (Counter(before) - Counter(after)).elements()}
        changed |= {name for name, _, _ in (Counter(after) - Counter(before)).elements()}
        assert {file.filename for file in found.files} == changed
        assert found.only_order == (bool(differing) and not changed)

    check_cases(st.tuples(reads, reads), check, 120)


def test_another_spec_for_the_same_reads_is_a_difference() -> None:
    found = diff_plans(listing(), listing(title="test"), labels=LABELS)
    assert not found.equal
    assert [(c.kind, c.expected, c.actual) for c in found.changes] == [("plan", "train", "test")]


def written(path: Path, text: str) -> PlanListing:
    path.write_text(text)
    found = read_comparable(path)
    assert isinstance(found, PlanListing)
    return found


def test_plan_documents_are_compared_plan_by_plan(tmp_path: Path) -> None:
    one = written(tmp_path / "a.json", "".join(to_json(plan_document(plan(TOY, "train", hosts=2)))))
    other = written(
        tmp_path / "b.yaml", "".join(to_yaml(plan_document(plan(TOY, "train[3:]", hosts=2))))
    )
    assert diff_plans(one, one, labels=LABELS).equal
    found = diff_plans(one, other, labels=LABELS)
    # 30 examples for two: [0, 15) and [15, 30); 27 of them: [3, 17) and [17, 30).
    assert [(f.plan, f.filename[-14:], f.expected, f.actual) for f in found.files] == [
        ("train, host 0 of 2", "00000-of-00003", ((0, 10),), ((3, 10),)),
        ("train, host 0 of 2", "00001-of-00003", ((0, 5),), ((0, 7),)),
        ("train, host 1 of 2", "00001-of-00003", ((5, 10),), ((7, 10),)),
    ]


def resumed(path: Path, consumed: int, **settings: int) -> PlanListing:
    found = resume(TOY, "train", ReadSettings(**settings), consumed=consumed)  # type: ignore[arg-type]
    return written(path, found.to_json())


def test_resume_files_are_compared_with_the_settings_they_resume_with(tmp_path: Path) -> None:
    one = resumed(tmp_path / "a.json", 5, cycle=2)
    later, other = resumed(tmp_path / "b.json", 12, cycle=2), resumed(tmp_path / "c", 5, batch=4)
    assert diff_plans(one, one, labels=LABELS).equal
    changes = [
        [(c.kind, c.name, c.expected, c.actual) for c in diff_plans(one, to, labels=LABELS).changes]
        for to in (later, other)
    ]
    assert ("state", "consumed", 5, 12) in changes[0]
    assert ("setting", "batch", None, 4) in changes[1]
    with pytest.raises(UsageError, match=r"'a\.json' is a resume and 'b\.json' a plan"):
        diff_plans(one, listing(), labels=LABELS)
    text = (tmp_path / "a.json").read_text().replace('"take": 10', '"take": 9')
    (tmp_path / "a.json").write_text(text)
    assert "digest" in (error_line(lambda: read_comparable(tmp_path / "a.json")) or "")


def test_ill_formed_plans_are_refused(tmp_path: Path) -> None:
    head = "format_version: 1\nkind: plan\ndataset: {name: d}\nplans: "

    def answer(plans: str) -> object:
        try:
            return written(tmp_path / "plan.yaml", f"{head}{plans}\n")
        except DatasetError as error:
            return str(error).replace(str(tmp_path), "")

    assert_answers(Path(__file__).parent / "golden" / "ill_formed.txt", answer)
