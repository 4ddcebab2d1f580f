"""What readers of stages read: specs, datasets by reference, and a mixture as one dataset."""

from __future__ import annotations

import pytest

import shardctl
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.order.plan_order import order_of, plan_order
from shardctl.order.staged import StagedOrder

MIXED = (
    "sample_from_datasets([train[:50%] | map | repeat, read(test, data='imagenet2012')], seed=1)"
)


def test_one_dataset_stays_as_it_is() -> None:
    planned = plan_order("mnist", None, {"stages": "zip(train, test | repeat) | batch(4)"})
    assert planned.order.dataset == shardctl.read_dataset("mnist")
    assert planned.spec == "train, test"
    assert planned.order.codes.names([0, 60_000]) == ["train:0", "test:0"]


def test_splits_of_several_datasets_are_called_by_both() -> None:
    planned = plan_order("mnist", None, {"stages": MIXED})
    assert planned.spec == "mnist/train[:50%], imagenet2012/test"
    order = planned.order
    assert order.dataset.title == "mnist:3.0.1 + imagenet2012:5.1.0"
    names = order.codes.names(order.read(0, 50))
    assert {name.partition(":")[0] for name in names} == {"mnist/train", "imagenet2012/test"}
    assert [order.codes.parse(name) for name in names] == order.read(0, 50).tolist()
    tfds_ids = order.codes.tfds_ids(order.read(0, 50))
    assert [order.codes.parse_tfds_id(name) for name in tfds_ids] == order.read(0, 50).tolist()
    assert tfds_ids[names.index("mnist/train:0")] == "mnist-train.tfrecord-00000-of-00001__0"


def test_a_reader_without_a_spec_reads_that_of_the_command() -> None:
    stages = "zip(read(cycle=1), read(test))"
    planned = plan_order("mnist", "train[:10]", {"stages": stages})
    assert planned.spec == "train[:10], test"
    assert plan_order("mnist", None, {"stages": "repeat(2) | shuffle(9, seed=1)"}).spec == "train"


@pytest.mark.parametrize(
    "stages", ["read(test) | batch(3)", "zip(train, read(test, data='mnist'))"]
)
def test_a_spec_that_no_reader_takes_is_refused(stages: str) -> None:
    with pytest.raises(UsageError, match=r"'train' and --stages .*: the stages say what is read"):
        plan_order("mnist", "train", {"stages": stages})


def test_the_short_form_of_a_reader_with_a_dataset_of_its_own() -> None:
    settings = {"stages": "read(test, data='mnist') | shuffle(10, seed=1) | batch(4)"}
    planned = plan_order("imagenet2012", None, settings)
    assert not isinstance(planned.order, StagedOrder)
    assert (planned.spec, planned.order.dataset.name) == ("test", "mnist")
    assert planned.order.settings == shardctl.ReadSettings(buffer=10, buffer_seed=1, batch=4)


def test_other_settings_are_resolved_from_what_was_given() -> None:
    planned = plan_order("mnist", None, {"stages": MIXED})
    later = planned.with_settings({"stages": MIXED, "cycle": 1})
    assert later.order.dataset == planned.order.dataset
    plain = order_of(planned.resolved, shardctl.ReadSettings())
    assert (plain.spec, plain.order.dataset.name) == ("train", "mnist")


def test_sources_without_examples_are_refused() -> None:
    with pytest.raises(UsageError, match="'range' is no reader of TFDS"):
        plan_order("mnist", None, {"stages": "range(20) | shuffle(3, seed=1)"})


def test_what_leaves_the_order_open_is_named() -> None:
    for stages, name in (
        ("shuffle(9) | repeat(2)", r"shuffle\(9\)"),
        ("map | flat_map", "flat_map"),
    ):
        with pytest.raises(UnpredictableOrderError, match=f"{name} leaves the order open"):
            plan_order("mnist", None, {"stages": stages})


def test_seeds_that_a_script_draws_are_said() -> None:
    settings = {"stages": "shuffle(9) | map | repeat(2) | shuffle(3)", "global_seed": 4}
    assert plan_order("mnist", None, settings).warnings[0].startswith("2 parts of --stages without")
