"""Orders of other loaders, beside those that their real versions handed out."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.loaders.loader import LOADERS
from tests.cases import counted
from tests.loaders.agreement import check_agreement
from tests.loaders.recorded import FILES, cases_of, config_of, loader_of, read, versions_of


@pytest.mark.parametrize("file", FILES)
def test_orders_are_those_of_the_library(file: str) -> None:
    rule, num_cases = LOADERS[loader_of(file)].sequence, 0
    for config, batches in counted([*cases_of(file)][:: 2 if "grain" in file else 1]):
        num_cases += 1
        if batches is None:
            with pytest.raises((UsageError, UnpredictableOrderError)):
                rule(config)
            continue
        if config.batch is None and len(batches) == 1 and not batches[0]:
            batches = []  # noqa: PLW2901
        batched = config.batch is not None
        check_agreement(rule(config), batches, config.num_examples, batched=batched)
    assert num_cases >= 20


def test_versions_that_were_recorded_are_proven() -> None:
    for file in FILES:
        loader, versions = LOADERS[loader_of(file)], versions_of(file)
        assert versions[loader.library] in loader.proven or loader.name == "torch"
        for name, proven in loader.beside.items():
            assert versions[name].partition("+")[0] in proven


@pytest.mark.parametrize("file", [file for file in FILES if loader_of(file) == "hf"])
def test_state_dict_of_a_shuffled_stream_loses_what_the_buffer_held(file: str) -> None:
    """The order goes on from a number of examples; the library's own state does not."""
    state = read(file)["state"]
    found = LOADERS["hf"].sequence(config_of("hf", state["asked"], versions_of(file)["datasets"]))
    order = found.indices_at(np.arange(197)).tolist()
    assert order[:50] == state["head"]
    assert order[50:] != state["rest"]
    assert 14 <= len({*range(197)} - {*state["head"], *state["rest"]}) <= 16
    assert not {*state["head"]} & {*state["rest"]}
