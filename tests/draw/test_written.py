from __future__ import annotations

from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.resume.answer import resume
from shardctl.verbs.resume.hosts import resume_on_hosts
from shardctl.verbs.resume.view import plan_written
from shardctl.verbs.snapshot.answer import snapshot
from shardctl.verbs.snapshot.view import snapshot_written
from tests.verbs.resume.resume_cases import TOY


def test_of_a_plan_it_is_said_how_much_is_left_and_what_reads_it() -> None:
    plan = resume_on_hosts(
        TOY,
        "train",
        ReadSettings(buffer=2, epochs=3),
        hosts=2,
        to_hosts=3,
        consumed=2,
        mode="at-most-once",
    )
    assert list(plan_written(plan, "my plan.yaml", "yaml")) == [
        "wrote my plan.yaml: mode at-most-once, left: 5 examples of epoch 0 in 4 file "
        "instructions, then 2 epochs for 3 hosts",
        "next, in Python:",
        "  shardctl.tfds.resume(builder, 'my plan.yaml', host=i)",
        "this command checks it:",
        "  shardctl resume --plan 'my plan.yaml' --prove",
    ]
    one = resume(TOY, "train", ReadSettings(cycle=1, epochs=2), consumed=10)
    assert next(plan_written(one, "p.json", "json")) == (
        "wrote p.json: mode exact, left: 1 example of epoch 0 in 1 file instruction, then 1 epoch"
    )
    options = ["-d", "a b", "--data-dir", "c"]
    assert list(plan_written(one, "p.json", "json", options))[-1] == (
        "  shardctl resume --plan p.json -d 'a b' --data-dir c --prove"
    )


def test_of_a_snapshot_it_is_said_what_compares_with_it() -> None:
    taken = snapshot(TOY, "train").snapshot
    assert list(snapshot_written(taken, "a b.yaml")) == [
        "wrote a b.yaml: the order of 11 examples of train",
        "next: commit it; this command compares it with the order of shardctl.yaml's settings:",
        "  shardctl diff 'a b.yaml'",
    ]
