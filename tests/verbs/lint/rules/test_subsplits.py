"""SC041 to SC045: what each rule finds something in, and the nearest it does not."""

from __future__ import annotations

import pytest

from shardctl.verbs.lint.rules import subsplits
from tests.verbs.lint.rules.rule_cases import Case, Row, case, codes_of

CASES: tuple[Row, ...] = (
    (
        "SC041",
        case("train[:60%]", evaluated=("train[50%:]",)),
        case("train[:60%]", evaluated=("train[60%:]",)),
    ),
    ("SC041", case("train+test", "test"), case("train", "test")),
    (
        "SC041",
        case("train", evaluated=("train[-1:]",)),
        case("train[:-1]", evaluated=("train[-1:]",)),
    ),
    ("SC042", case("train[:60%]", "train[50%:]"), case("train[:60%]", "train[60%:]")),
    ("SC042", case("test[:9]", "test[8:]"), case("train[:60%]", evaluated=("train[50%:]",))),
    ("SC043", case("train[:60%]+train[50%:]"), case("train[:60%]+train[60%:]")),
    ("SC044", case("train[:0shard]"), case("train[:1shard]")),
    ("SC044", case("train[3:50%]"), case("train[3%:50%]")),
    ("SC044", case("train[5:5]"), case("train[5:6]")),
    ("SC045", case("train[:99]", "train[100:]"), case("train[:100]", "train[100:]")),
    ("SC045", case("train[:99]", evaluated=("train[163:]",)), case("train[:99]", "train[164:]")),
)


@pytest.mark.parametrize(("code", "fires", "quiet"), CASES)
def test_a_rule_finds_what_it_is_about_and_not_what_is_next_to_it(
    code: str, fires: Case, quiet: Case
) -> None:
    assert code in fires.codes()
    assert code not in quiet.codes()
    fires.check_fits_screens()


def test_every_rule_has_a_case() -> None:
    assert {code for code, _, _ in CASES} == codes_of(subsplits)
