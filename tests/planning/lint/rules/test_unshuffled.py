"""SC017: where it finds training without a shuffle, and the nearest where it does not."""

from __future__ import annotations

import pytest

from shardctl.planning.lint.rules import unshuffled
from tests.planning.lint.rules.rule_cases import HOSTS, ONE_FILE, SOURCE, Case, Row, case, codes_of

CASES: tuple[Row, ...] = (
    ("SC017", case(), case(shuffle_seed=1)),
    ("SC017", case(), case(shuffle_files=True)),
    ("SC017", case(), case(buffer=2000, buffer_seed=1)),
    ("SC017", case("train[:50%]"), case("test")),
    ("SC017", case("train+test"), case("test", evaluated=("train",))),
    ("SC017", case(batch=32), case(layout={"ordered": True})),
    ("SC017", case(**HOSTS), case(epochs=2)),  # of several epochs SC001 says it
    ("SC017", case("train[:2]"), case("train[:1]")),
    ("SC017", case(layout={"file_format": "parquet"}), case(**SOURCE)),
    ("SC017", case(**ONE_FILE), case(shuffle_seed=1, **ONE_FILE)),  # this is SC004
    ("SC017", case(), case(buffer=1, buffer_seed=1)),  # this is SC005
)


@pytest.mark.parametrize(("code", "fires", "quiet"), CASES)
def test_a_rule_finds_what_it_is_about_and_not_what_is_next_to_it(
    code: str, fires: Case, quiet: Case
) -> None:
    assert code in fires.codes()
    assert code not in quiet.codes()
    fires.check_fits_screens()


def test_files_are_read_together_where_the_cycle_has_several() -> None:
    for cycle, several in ((1, False), (2, True)):
        (found,) = (one for one in case(cycle=cycle).lint().findings if one.rule.code == "SC017")
        assert ("a few files at a time" in found.why) is several


def test_every_rule_has_a_case() -> None:
    assert {code for code, _, _ in CASES} == codes_of(unshuffled)
