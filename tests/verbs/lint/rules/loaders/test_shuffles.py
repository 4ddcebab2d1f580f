"""What rules about shuffles find of other loaders, and that rules of tf.data are silent there."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.loaders.loader import LOADERS
from shardctl.verbs.lint.answer import lint
from shardctl.verbs.lint.rules import LINT_RULES


def codes(settings: dict[str, Any], **more: Any) -> list[str]:
    return [found.rule.code for found in lint("mnist", "train", settings, **more).findings]


@pytest.mark.parametrize("loader", LOADERS)
def test_what_nothing_shuffles(loader: str) -> None:
    settings = {"loader": loader, "batch": 10}
    assert codes(settings) == ["SC017"]
    assert codes({**settings, "epochs": 2}) == ["SC001"]
    seed = {"shuffle": True, "global_seed": 1} if loader == "stateful" else {"shuffle_seed": 1}
    assert "SC017" not in codes({**settings, **seed})
    once = loader == "hf"  # Dataset.shuffle mixes once, and set_epoch is of streams
    assert ("SC001" in codes({**settings, **seed, "epochs": 2})) == once


def test_a_shuffle_that_nothing_seeds() -> None:
    (found,) = lint("mnist", "train", {"loader": "torch", "shuffle": True}).findings
    assert found.rule.code == "SC006"
    assert found.why.startswith("train: --shuffle without a seed has another order in each run")
    assert found.fix == "--shuffle-seed N, or --shuffle with --global-seed N"


def test_rules_about_tf_data_are_silent_and_those_about_specs_are_not() -> None:
    settings = {"loader": "torch", "shuffle_seed": 1}
    found = lint("mnist", "train[:60%]", settings, evaluated="train[50%:]")
    assert [one.rule.code for one in found.findings] == ["SC041"]
    silent = {"SC003", "SC004", "SC011", "SC013", "SC024", "SC025", "SC031", "SC033", "SC035"}
    assert not silent & {rule.code for rule in found.rules}
    assert len(found.rules) < len(LINT_RULES)


def test_array_record_is_what_loaders_read(tmp_path: Any) -> None:
    from shardctl.dataset.dataset import Dataset, Split

    data = Dataset(
        name="d", splits=(Split(name="train", shard_lengths=(50,)),), file_format="array_record"
    )
    assert "SC029" in [one.rule.code for one in lint(data, "train", {"shuffle_seed": 1}).findings]
    found = lint(data, "train", {"loader": "grain", "shuffle_seed": 1})
    assert found.findings == ()
    assert not found.context.reads_data_source


def test_uneven_and_idle_hosts_are_those_of_the_loader() -> None:
    settings = {"loader": "hf", "batch": 2}
    assert "SC034" in codes_of_hosts("test[:13]", settings, 3)
    assert "SC034" not in codes_of_hosts("test[:13]", {"loader": "torch", "batch": 2}, 3)
    assert "SC037" in codes_of_hosts("test[:2]", {"loader": "grain", "batch": 2}, 3)


def codes_of_hosts(spec: str, settings: dict[str, Any], hosts: int) -> list[str]:
    from shardctl.verbs.lint.context import Usage

    return [
        one.rule.code for one in lint("mnist", spec, settings, usage=Usage(hosts=hosts)).findings
    ]
