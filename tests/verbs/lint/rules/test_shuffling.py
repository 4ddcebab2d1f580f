"""SC00x: what each rule finds something in, and the nearest it does not."""

from __future__ import annotations

import pytest

from shardctl.verbs.lint.rules import shuffling
from tests.verbs.lint.rules.rule_cases import (
    ENDLESS,
    HOSTS,
    ONE_FILE,
    SEEDED,
    SOURCE,
    Case,
    Row,
    case,
    codes_of,
)

CASES: tuple[Row, ...] = (
    ("SC001", case(epochs=2), case(epochs=1)),
    ("SC001", case(epochs=2), case(epochs=2, **SEEDED)),
    ("SC001", case(epochs=2, shuffle_seed=1, reshuffle=False), case(epochs=2, shuffle_seed=1)),
    (
        "SC001",
        case(epochs=2, buffer=2000, buffer_seed=1, buffer_reshuffle=False),
        case(epochs=2, buffer=2000, buffer_seed=1),
    ),
    ("SC001", case(epochs=2, shuffle_seed=1, **ONE_FILE), case(epochs=2, shuffle_seed=1)),
    ("SC001", case(pass_index=1), case(pass_index=1, **SEEDED)),
    ("SC001", case(repeat_files=True), case(**ENDLESS)),
    ("SC001", case(epochs=2, buffer=1, buffer_seed=1), case("test", epochs=2)),
    # 16 files of 100 at a time are 1600 examples, a tenth of which is 160.
    ("SC002", case(buffer=159, buffer_seed=1), case(buffer=160, buffer_seed=1)),
    ("SC002", case(buffer=9, buffer_seed=1, cycle=1), case(buffer=10, buffer_seed=1, cycle=1)),
    ("SC002", case(buffer=19, buffer_seed=1, layout={"train": (100, 100)}), case(**SEEDED)),
    ("SC002", case(buffer=100, buffer_seed=1), case(buffer=-2, buffer_seed=1)),
    ("SC003", case(epochs=2, shuffle_seed=1), case(shuffle_seed=1)),
    ("SC003", case(**ENDLESS), case(**ENDLESS, buffer=2000, buffer_seed=1)),
    ("SC004", case(shuffle_seed=1, **ONE_FILE), case(shuffle_seed=1)),
    ("SC004", case("train[:1shard]", shuffle_seed=1), case("train[:2shard]", shuffle_seed=1)),
    ("SC004", case(shuffle_seed=1, usage={"hosts": 64}), case(shuffle_seed=1, usage={"hosts": 32})),
    ("SC005", case(buffer=1, buffer_seed=1), case(buffer=2, buffer_seed=1)),
    ("SC006", case(shuffle_files=True), case(shuffle_seed=1)),
    ("SC006", case(buffer=2000), case(buffer=2000, buffer_seed=1)),
    ("SC006", case(buffer=2000), case(buffer=2000, global_seed=1)),
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


def test_every_rule_has_a_case() -> None:
    assert {code for code, _, _ in CASES} == codes_of(shuffling)


def test_files_are_read_together_where_the_cycle_has_several() -> None:
    for cycle, several in ((1, False), (2, True)):
        (found,) = (one for one in case(cycle=cycle).lint().findings if one.rule.code == "SC017")
        assert ("a few files at a time" in found.why) is several
