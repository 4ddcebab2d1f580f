"""Code of a plan, run by TFDS beside the pipeline that was stopped, reads what is left."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.files.documents import to_yaml
from shardctl.order.plan_order import plan_order
from shardctl.saved.plan_file import plan_document
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.stages.text import parse_stages
from shardctl.verbs.resume.answer import resume, resume_unseen
from shardctl.verbs.resume.code import resume_python
from shardctl.verbs.resume.hosts import resume_on_hosts
from tests.code.pasted import read, run
from tests.golden import assert_golden
from tests.order.order_cases import changed
from tests.order.toy_pipelines import Toys
from tests.verbs.resume.resume_cases import CASES, plan_of


def code_of(plan: ResumePlan, plan_file: str | None = None) -> str:
    return "".join(resume_python(plan, None, plan_file=plan_file))


@pytest.mark.parametrize("name", CASES)
def test_code_of_a_plan_is_this(name: str) -> None:
    try:
        text = code_of(plan_of(name))
    except UsageError as error:
        text = f"error: {error}\n"
    golden = Path(__file__).parent / "golden" / "code"
    assert_golden(golden / f"{name.replace(', ', '-').replace(' ', '-')}.txt", text)


def test_code_of_a_plan_goes_on_where_the_pipeline_stopped(toys: Toys) -> None:
    toy = toys["plain"]
    for change in (
        {"shuffle_seed": 7, "batch": 4, "host": Host(index=1, count=2), "host_by": "examples"},
        {"stages": parse_stages("shuffle(9, seed=1) | skip(2) | batch(4)")},
    ):
        settings = ReadSettings(cycle=2, block=3, **change)
        order = plan_order(toy.dataset, "train", settings).order
        plan = resume(toy.dataset, "train", settings, consumed=12)
        left = read(run([code_of(plan)])["ds"])
        assert [line.split()[0] for line in left] == order.codes.tfds_ids(
            order.read(12, order.num_examples)
        )


def as_host(text: str, index: int) -> str:
    """Return code with the number of the host that somebody pastes it on."""
    old, new = r"^host, num_hosts = 0, ", f"host, num_hosts = {index}, "
    changed_text, count = re.subn(old, new, text, flags=re.MULTILINE)
    assert count == 1
    return changed_text


def test_every_new_host_runs_the_code_with_its_number(toys: Toys) -> None:
    toy = toys["plain"]
    settings = ReadSettings(cycle=2, block=3, shuffle_seed=7, epochs=2)
    expected = Counter[str]()
    consumed = [12, 4, 0]
    for index, count in enumerate(consumed):
        own = changed(settings, host=Host(index=index, count=3))
        order = plan_order(toy.dataset, "train", own).order
        expected.update(order.codes.tfds_ids(order.read(count, order.num_examples)))
    plan = resume_on_hosts(toy.dataset, "train", settings, hosts=3, to_hosts=2, consumed=consumed)
    text = code_of(plan)
    parts = [read(run([as_host(text, index)])["ds"]) for index in range(2)]
    assert Counter(line.split()[0] for part in parts for line in part) == expected


def many(length: int = 3000) -> Dataset:
    files = ShardFiles(pattern="d-train.tfrecord-\0-of-03000", num_shards=length)
    train = Split(name="train", shard_lengths=(2,) * length, files=(files,))
    return Dataset(name="d", version="1.0.0", splits=(train,))


def test_a_plan_file_is_read_where_code_would_be_long(toys: Toys, tmp_path: Path) -> None:
    plan = resume_unseen(many(), seen=[2 * i + 1 for i in range(3000)])
    with pytest.raises(UsageError, match="code of this plan is not written: write it"):
        code_of(plan)
    assert code_of(plan, "it's a plan.yaml").splitlines()[-1] == (
        'ds = shardctl.tfds.resume(builder, "it\'s a plan.yaml")'
    )
    settings = ReadSettings(buffer=9, buffer_seed=2, cycle=2)
    order = resume(toys["plain"].dataset, "train", settings, consumed=0, mode="exact-order")
    path = tmp_path / "plan.yaml"
    path.write_text("".join(to_yaml(plan_document(order))))
    whole = read(run([code_of(order, str(path))])["ds"])
    assert whole == read(run([code_of(order)])["ds"])
    assert len(whole) == 75
