"""Plan files in written_before/, whose after_read is in words, are read as the plans they were.

They were written by the commands in `MADE`, before after_read became values.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from shardctl.dataset.dataset import Dataset
from shardctl.errors import DatasetError
from shardctl.metadata.reference import read_dataset
from shardctl.metadata.seen_file import read_seen
from shardctl.order.file_formats import resolved_spec
from shardctl.saved.plan_file import instruction_rows, parse_plan, plan_json, plan_yaml, read_plan
from shardctl.saved.resume_plan import (
    AfterRead,
    BatchCall,
    ConcatenateCall,
    PlanListing,
    ResumePlan,
    ShardCall,
    ShuffleCall,
    TakeCall,
)
from shardctl.saved.snapshot_file import read_comparable
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.diff.plans import diff_plans
from shardctl.verbs.plan.answer import plan
from shardctl.verbs.resume.answer import codes_of, resume, resume_unseen
from shardctl.verbs.resume.apply_plan import applied
from shardctl.verbs.resume.hosts import resume_on_hosts
from shardctl.verbs.resume.proof import prove

FOLDER = Path(__file__).parent / "written_before"


def read(*refs: str) -> Dataset:
    return read_dataset([str(FOLDER / ref) for ref in refs], env={}, cwd=FOLDER)


TOY, DAYS = read("layout.yaml"), read("mon", "tue")
SEEN = read_seen(str(FOLDER / "seen.txt"), codes_of(resolved_spec(TOY, "train"))).codes
BUFFER = ReadSettings(buffer=3, buffer_seed=1, global_seed=3)
SPECS = {"host_by_files.json": "train[2:20]+train[10:]", "exact_order.json": "train+test"}
SETTINGS = {
    # --consumed 7 --cycle 3 --block 2 --shuffle-seed 4 --epochs 3 --batch 4 --prove
    "exact.json": ReadSettings(cycle=3, block=2, shuffle_seed=4, epochs=3, batch=4),
    # --consumed 5 --host 1/3 --host-by examples --buffer 3 --buffer-seed 1 --global-seed 3
    # --batch 2 --drop-remainder --epochs 3
    "exactly_once.yaml": replace(
        BUFFER,
        host=Host(index=1, count=3),
        host_by="examples",
        batch=2,
        drop_remainder=True,
        epochs=3,
    ),
    # --consumed 9 --buffer 4 --buffer-seed 1 --global-seed 3 --mode exact-order
    "exact_order.json": replace(BUFFER, buffer=4),
    # --consumed 2 --host 2/3 --host-by examples
    "host_by_examples.yaml": ReadSettings(host=Host(index=2, count=3), host_by="examples"),
    # --consumed 4 --host 1/2 --host-by files --reverse
    "host_by_files.json": ReadSettings(host=Host(index=1, count=2), host_by="files", reverse=True),
    # --consumed 30 --repeat-files --epochs 4 --buffer 5 --buffer-seed 1 --global-seed 3
    "repeat_files.yaml": replace(BUFFER, buffer=5, repeat_files=True, epochs=4),
    # --hosts 2 --to-hosts 3 --consumed 4,6 --buffer 3 --buffer-seed 1 --global-seed 2 --epochs 2
    # --prove
    "other_hosts.yaml": replace(BUFFER, global_seed=2, epochs=2),
    # --hosts 3 --to-hosts 2 --consumed 4 --host-by examples --batch 2
    "other_hosts_by_examples.json": ReadSettings(host_by="examples", batch=2),
    # --seen seen.txt --epochs 2 --batch 3
    "unseen.yaml": ReadSettings(epochs=2, batch=3),
    # --seen seen.txt --to-hosts 2
    "unseen_to_hosts.json": ReadSettings(),
    # --consumed 25
    "the_end.json": ReadSettings(),
    # --consumed 5 --cycle 2 --block 2, of two folders in /data/days
    "several_folders.yaml": ReadSettings(cycle=2, block=2),
}
CONSUMED = {
    "exact.json": 7,
    "exactly_once.yaml": 5,
    "exact_order.json": 9,
    "host_by_examples.yaml": 2,
    "host_by_files.json": 4,
    "repeat_files.yaml": 30,
    "the_end.json": 25,
    "several_folders.yaml": 5,
}
AFTER_READ: dict[str, tuple[AfterRead, ...]] = {
    "exact.json": (
        ConcatenateCall(first_epoch=1, last_epoch=2),
        BatchCall(batch_size=4, drop_remainder=False),
    ),
    "exactly_once.yaml": (
        ShardCall(num_shards=3, index=1, skip_instructions=2),
        ShuffleCall(buffer_size=3, seed=1),
        ConcatenateCall(first_epoch=1, last_epoch=2),
        BatchCall(batch_size=2, drop_remainder=True),
    ),
    "host_by_examples.yaml": (ShardCall(num_shards=3, index=2),),
    "repeat_files.yaml": (ShuffleCall(buffer_size=5, seed=1), TakeCall(count=70)),
    "other_hosts.yaml": (
        ShuffleCall(buffer_size=3, seed=1),
        ConcatenateCall(first_epoch=1, last_epoch=1),
    ),
    "other_hosts_by_examples.json": (BatchCall(batch_size=2, drop_remainder=False),),
    "unseen.yaml": (BatchCall(batch_size=3, drop_remainder=False),),
}


def dataset_of(name: str) -> Dataset:
    return DAYS if name == "several_folders.yaml" else TOY


def made_today(name: str) -> ResumePlan:
    """Return the plan that the command comes to today."""
    settings, spec, dataset = SETTINGS[name], SPECS.get(name, "train"), dataset_of(name)
    if name.startswith("unseen"):
        to_hosts = 2 if name == "unseen_to_hosts.json" else None
        return resume_unseen(dataset, spec, settings, seen=SEEN, to_hosts=to_hosts)
    if name == "other_hosts.yaml":
        return resume_on_hosts(dataset, spec, settings, hosts=2, to_hosts=3, consumed=[4, 6])
    if name == "other_hosts_by_examples.json":
        return resume_on_hosts(dataset, spec, settings, hosts=3, to_hosts=2, consumed=[4])
    mode = "exact-order" if name == "exact_order.json" else "exactly-once"
    return resume(dataset, spec, settings, consumed=CONSUMED[name], mode=mode)  # type: ignore[arg-type]


def test_every_file_is_a_case() -> None:
    files = {path.name for path in FOLDER.iterdir() if path.suffix in (".json", ".yaml")}
    assert files == {*SETTINGS, "plan.json", "plan.yaml", "layout.yaml"}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_plan_is_read_and_applied_as_it_was_made(name: str) -> None:
    dataset = dataset_of(name)
    plan = read_plan(FOLDER / name)
    today = made_today(name)
    folder = "/data/days/mon" if dataset is DAYS else None
    assert plan.dataset.data_dir == folder
    # Templates and folders were not written then.
    sizes = tuple(replace(split, template=None) for split in today.dataset.splits)
    assert plan == replace(
        today, dataset=replace(today.dataset, data_dir=folder, folders=(), splits=sizes)
    )
    assert plan.after_read == AFTER_READ.get(name, ())
    found = applied(plan, dataset)
    assert found.file_instructions == today.file_instructions
    assert [[*host.instructions] for host in found.hosts] == [
        [*host.instructions] for host in today.hosts
    ]
    assert prove(dataset, plan, seen=SEEN if plan.from_seen else None).holds


@pytest.mark.parametrize("name", SETTINGS)
def test_the_instructions_are_those_of_the_text(name: str) -> None:
    document = yaml.safe_load((FOLDER / name).read_text())
    records = [
        [None if host is None else f"{host['index']}/{host['count']}", *[*record.values()][:5]]
        for host in (None, *document.get("hosts", []))
        for record in (document if host is None else host)["file_instructions"]
    ]
    assert [list(row) for row in instruction_rows(read_plan(FOLDER / name)).rows()] == records


@pytest.mark.parametrize("name", AFTER_READ)
def test_it_is_written_with_values_from_now_on(name: str) -> None:
    plan = read_plan(FOLDER / name)
    for write in (plan_json, plan_yaml):
        text = "".join(write(plan))
        calls = yaml.safe_load(text)["after_read"]
        assert [call["call"] for call in calls] == [call.call for call in plan.after_read]
        assert parse_plan(text.encode(), source="plan") == plan


@pytest.mark.parametrize("name", AFTER_READ)
@pytest.mark.parametrize("words", ["take(1)", "map(f)"])
def test_other_words_do_not_match_the_digest(name: str, words: str) -> None:
    document = yaml.safe_load((FOLDER / name).read_text())
    document["after_read"][0] = words
    with pytest.raises(DatasetError, match="does not match its digest"):
        parse_plan(json.dumps(document).encode(), source="plan")


def listing(path: Path) -> PlanListing:
    found = read_comparable(path)
    assert isinstance(found, PlanListing)
    return found


@pytest.mark.parametrize("name", SETTINGS)
def test_the_plan_of_today_reads_the_same(name: str, tmp_path: Path) -> None:
    today = made_today(name)
    (tmp_path / "today.json").write_text("".join(plan_json(today)))
    found = diff_plans(
        listing(FOLDER / name), listing(tmp_path / "today.json"), labels=("then", "now")
    )
    assert found.equal
    assert found.changes == ()


def test_two_plans_are_compared_call_by_call() -> None:
    found = diff_plans(
        listing(FOLDER / "other_hosts.yaml"),
        listing(FOLDER / "other_hosts_by_examples.json"),
        labels=("a", "b"),
    )
    assert not found.equal
    assert (found.first and found.first.plan, found.first and found.first.position) == (
        "host 0 of 3",
        0,
    )
    changed = {cause.name: (cause.expected, cause.actual) for cause in found.changes}
    assert changed["after_read"] == (
        AFTER_READ["other_hosts.yaml"],
        AFTER_READ["other_hosts_by_examples.json"],
    )
    assert changed["plan 3"] == ("host 2 of 3", None)


def test_plans_of_subsplits_are_compared() -> None:
    """`plan train 'test[1:]+train[:6]' --hosts 2`, and the same of train[3:]."""
    before, after = listing(FOLDER / "plan.json"), listing(FOLDER / "plan.yaml")
    specs = ("train", "test[1:]+train[:6]")
    for found, spec in ((before, specs), (after, ("train[3:]", specs[1]))):
        today = plan(TOY, *spec, hosts=2).plans
        assert [
            list(zip(p.reads.filenames(), p.reads.skip, p.reads.take, strict=True))
            for p in found.plans
        ] == [[(i.filename, i.skip, i.take) for i in p.file_instructions] for p in today]
    diff = diff_plans(before, after, labels=("a", "b"))
    # 25 examples for two: [0, 13) and [13, 25); 22 of them: [3, 14) and [14, 25), in files of
    # 5, 0, 4, 7, 3 and 6.
    assert [(f.plan, f.filename[-14:], f.expected, f.actual) for f in diff.files] == [
        ("train, host 0 of 2", "00000-of-00006", ((0, 5),), ((3, 5),)),
        ("train, host 0 of 2", "00003-of-00006", ((0, 4),), ((0, 5),)),
        ("train, host 1 of 2", "00003-of-00006", ((4, 7),), ((5, 7),)),
    ]
