"""Plan files and snapshots that earlier versions wrote are read as what they were.

Plans with a call behind the reader are of 0.2.0; others, and snapshots of version 1, are older.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from shardctl.dataset.dataset import Dataset
from shardctl.errors import UsageError
from shardctl.files.documents import to_json, to_yaml
from shardctl.metadata.example_log import read_seen
from shardctl.metadata.reference import read_dataset
from shardctl.order.resolved_spec import resolved_spec
from shardctl.saved.plan_file import instruction_rows, parse_plan, plan_document, read_plan
from shardctl.saved.resume_plan import PlanListing, ResumePlan, calls_chained
from shardctl.saved.snapshot import Snapshot
from shardctl.saved.snapshot_file import read_comparable, snapshot_json, snapshot_yaml
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.diff.plans import diff_plans
from shardctl.verbs.plan.answer import plan
from shardctl.verbs.resume.answer import codes_of, resume, resume_unseen
from shardctl.verbs.resume.apply_plan import applied
from shardctl.verbs.resume.hosts import resume_on_hosts
from shardctl.verbs.resume.proof import prove

FOLDER = Path(__file__).parent / "plan" / "written_before"
SNAPSHOTS = Path(__file__).parent / "snapshot"


def read(*refs: str) -> Dataset:
    return read_dataset([str(FOLDER / ref) for ref in refs], cwd=FOLDER)


TOY = read("layout.yaml")
SEEN = read_seen(str(FOLDER / "seen.txt"), codes_of(resolved_spec(TOY, "train"))).codes
BUFFER = ReadSettings(buffer=3, buffer_seed=1, global_seed=3)
BY_EXAMPLES = replace(BUFFER, host=Host(index=1, count=3), host_by="examples")
SPECS = {"host_by_files.json": "train[2:20]+train[10:]", "exact_order.json": "train+test"}
SETTINGS = {
    "exact.json": ReadSettings(cycle=3, block=2, shuffle_seed=4, epochs=3, batch=4),
    "exactly_once.yaml": replace(BY_EXAMPLES, batch=2, drop_remainder=True, epochs=3),
    "exact_order.json": replace(BUFFER, buffer=4),
    "host_by_examples.yaml": ReadSettings(host=Host(index=2, count=3), host_by="examples"),
    "host_by_files.json": ReadSettings(host=Host(index=1, count=2), host_by="files", reverse=True),
    "other_hosts.yaml": replace(BUFFER, global_seed=2, epochs=2),
    "other_hosts_by_examples.json": ReadSettings(host_by="examples", batch=2),
    "unseen.yaml": ReadSettings(epochs=2, batch=3),
    "unseen_to_hosts.json": ReadSettings(),
    "the_end.json": ReadSettings(),
}
CONSUMED = {"exact.json": 7, "exact_order.json": 9, "host_by_examples.yaml": 2, "the_end.json": 25}
CONSUMED |= {"host_by_files.json": 4}
AFTER_READ = {
    "exact.json": ".concatenate(epochs 1 to 2).batch(4)",
    "exactly_once.yaml": ".shard(3, 1) of all but the first 2 instructions, which are this host's "
    "alone, then .shuffle(3, seed=1), then .concatenate(epochs 1 to 2), then "
    ".batch(2, drop_remainder=True)",
    "host_by_examples.yaml": ".shard(3, 2)",
    "other_hosts.yaml": ".shuffle(3, seed=1).concatenate(epochs 1 to 1)",
    "other_hosts_by_examples.json": ".batch(2)",
    "unseen.yaml": ".batch(3)",
}
each_file = pytest.mark.parametrize("name", SETTINGS)


def made_today(name: str) -> ResumePlan:
    """Return the plan that the command comes to today."""
    settings, spec = SETTINGS[name], SPECS.get(name, "train")
    if name.startswith("unseen"):
        to_hosts = 2 if name == "unseen_to_hosts.json" else None
        return resume_unseen(TOY, spec, settings, seen=SEEN, to_hosts=to_hosts)
    if name == "other_hosts.yaml":
        return resume_on_hosts(TOY, spec, settings, hosts=2, to_hosts=3, consumed=[4, 6])
    if name == "other_hosts_by_examples.json":
        return resume_on_hosts(TOY, spec, settings, hosts=3, to_hosts=2, consumed=[4])
    mode = "exact-order" if name == "exact_order.json" else "exactly-once"
    made = resume(TOY, spec, settings, consumed=CONSUMED.get(name, 5), mode=mode)  # type: ignore[arg-type]
    if mode == "exact-order":  # which listed neither what the buffer held nor its call
        rest = made.instructions.select(slice(made.num_pending_instructions, None))
        made = replace(made, instructions=rest, num_pending_instructions=0, after_read=())
    return made


def listing(path: Path) -> PlanListing:
    found = read_comparable(path)
    assert isinstance(found, PlanListing)
    return found


def test_a_plan_that_is_made_no_more_is_still_read() -> None:
    found = applied(read_plan(FOLDER / "repeat_files.yaml"), TOY)
    assert calls_chained(found.after_read) == ".shuffle(5, seed=1).take(70)"
    assert (found.consumed, found.remaining, found.mode) == (30, 70, "exactly-once")
    with pytest.raises(UsageError, match="no rest to read exactly once; --mode exact-order conti"):
        prove(TOY, found)


@each_file
def test_a_plan_is_read_and_applied_as_it_was_made(name: str) -> None:
    found, today = read_plan(FOLDER / name), made_today(name)
    identity = today.dataset
    if name not in AFTER_READ:  # templates and folders were not written then
        sizes = tuple(replace(split, template=None) for split in identity.splits)
        identity = replace(identity, data_dir=None, folders=(), splits=sizes)
    assert found == replace(today, dataset=identity)
    assert calls_chained(found.after_read) == AFTER_READ.get(name, "")
    again = applied(found, TOY)
    assert again.file_instructions == today.file_instructions
    assert [[*host.instructions] for host in again.hosts] == [
        [*host.instructions] for host in today.hosts
    ]
    assert prove(TOY, found, seen=SEEN if found.from_seen else None).holds


@each_file
def test_a_plan_is_the_text_of_its_file_and_compares_with_today(name: str, tmp_path: Path) -> None:
    document, found = yaml.safe_load((FOLDER / name).read_text()), read_plan(FOLDER / name)
    lists = [
        (None, document),
        *((f"{h['index']}/{h['count']}", h) for h in document.get("hosts", [])),
    ]
    records = [
        [host, *[*record.values()][:5]]
        for host, part in lists
        for record in part["file_instructions"]
    ]
    assert [list(row) for row in instruction_rows(found).rows()] == records
    for write in (to_json, to_yaml):
        assert parse_plan("".join(write(plan_document(found))).encode(), source="plan") == found
    (tmp_path / "today.json").write_text("".join(to_json(plan_document(made_today(name)))))
    then, now = listing(FOLDER / name), listing(tmp_path / "today.json")
    diff = diff_plans(then, now, labels=("then", "now"))
    assert (diff.equal, diff.changes) == (True, ())


def test_plans_of_subsplits_are_compared() -> None:
    """`plan train 'test[1:]+train[:6]' --hosts 2`, and the same of train[3:]."""
    before, after = listing(FOLDER / "plan.json"), listing(FOLDER / "plan.yaml")
    for found, spec in ((before, "train"), (after, "train[3:]")):
        today = plan(TOY, spec, "test[1:]+train[:6]", hosts=2).plans
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


PINNED = sorted(SNAPSHOTS.glob("*/*.pinned.*"))


@pytest.mark.parametrize("path", PINNED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_snapshot_is_read_and_written_again_to_the_byte(path: Path) -> None:
    """What `snapshot` and `diff` make of them is in tests/verbs/test_written_before.py."""
    found = read_comparable(path)
    assert isinstance(found, Snapshot)
    assert found.tree.version == (2 if path.parent.name == "version_2" else 1)
    write = snapshot_json if path.name.endswith("json") else snapshot_yaml
    assert "".join(write(found)) == path.read_text("utf-8")
    if path.name.startswith("splits."):
        assert (found.title, found.head.file_format) == ("toy/small:1.0.0", "tfrecord")
        # 40 + 0 + 73 + 61 + 12 + 90 in train, 3 * 5 + 1 in extra
        sizes = [(s.name, s.num_examples, s.num_shards) for s in found.identity.splits]
        assert sizes == [("train", 276, 6), ("test", 50, 4), ("extra", 16, 4)]
