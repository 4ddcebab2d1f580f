"""300 pipelines over real TFDS datasets: inspected, then iterated three times, and the same."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from tests.cases import FUZZ, add_cases, random_of_a_fuzz_run
from tests.pipelines.claim import Tally, a_case, check_claim
from tests.pipelines.tfds_sources import Sources, build_datasets

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    return Sources(root=build_datasets(tmp_path_factory.mktemp("claims")), seedless=0.04)


def checked(rng: random.Random, sources: Sources, num_cases: int) -> Tally:
    """Check so many pipelines; what is wrong with one is told with its seed."""
    tally = Tally()
    while tally.counts["pipelines"] < num_cases:
        seed = rng.getrandbits(32)
        case = a_case(random.Random(seed), sources)
        try:
            check_claim(case, sources, tally)
        except Exception as error:
            error.add_note(f"seed {seed}: {case}")
            raise
    add_cases(num_cases)
    return tally


def test_what_is_said_is_what_is_read(tf: Any, sources: Sources) -> None:
    tally = checked(random.Random(12), sources, 300)
    counts = tally.counts
    assert counts["pipelines told"] > 240, counts
    assert counts["passes compared"] > 780, counts
    refused = counts["pipelines refused"] + counts["later passes refused"]
    assert counts["refusals proven"] > refused / 2, reasons(tally)


@pytest.mark.fuzz
def test_what_is_said_is_what_is_read_fuzz(tf: Any, sources: Sources) -> None:
    tally = checked(random_of_a_fuzz_run(), sources, FUZZ)
    print(tally.counts, *reasons(tally).most_common(20), sep="\n")


def reasons(tally: Tally) -> Counter[str]:
    """Return why orders were refused of which no two runs were seen to differ."""
    return Counter(reason for reason, _ in tally.unproven)
