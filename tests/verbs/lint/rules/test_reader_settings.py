"""SC02x: what each rule finds something in, and the nearest it does not."""

from __future__ import annotations

import pytest

from shardctl.verbs.lint.rules import reader
from tests.verbs.lint.rules.rule_cases import (
    COUNTED,
    ENDLESS,
    HOSTS,
    ONE_FILE,
    SMALL,
    Case,
    Row,
    case,
    codes_of,
)

CASES: tuple[Row, ...] = (
    ("SC018", case(**COUNTED), case()),
    ("SC018", case(cycle=2, **COUNTED), case(cycle=1, **COUNTED)),
    ("SC018", case(cycle=2, **COUNTED), case(cycle=2, block=1, **COUNTED)),
    ("SC018", case("train[:101]", **COUNTED), case("train[:100]", **COUNTED)),
    ("SC021", case(cycle="auto", cpus=8), case(cycle=3)),
    ("SC022", case(**ENDLESS), case(**ENDLESS, usage={"assert_cardinality": False})),
    ("SC022", case(**ENDLESS), case(**ENDLESS, host_by="files", **HOSTS)),
    ("SC022", case(**ENDLESS), case(**ENDLESS, **COUNTED)),  # files that TFDS does not read
    (
        "SC022",
        case(repeat_files=True, stages="shuffle(9, seed=1)"),
        case(repeat_files=True, stages="read(assert_cardinality=False) | shuffle(9, seed=1)"),
    ),
    ("SC022", case(**ENDLESS, usage={"take": 6401}), case(**ENDLESS, usage={"take": 6400})),
    ("SC023", case(repeat_files=True, **SMALL), case(repeat_files=True)),
    (
        "SC023",
        case(repeat_files=True, **SMALL),
        case(repeat_files=True, layout={**SMALL["layout"], **COUNTED["layout"]}),
    ),
    (
        "SC023",
        case(repeat_files=True, **SMALL),
        case(repeat_files=True, usage={"try_autocache": False}, **SMALL),
    ),
    ("SC023", case("train[:1shard]", **ENDLESS, **SMALL), case(**ENDLESS, **SMALL)),
    (
        "SC023",
        case(repeat_files=True, **SMALL),
        case(repeat_files=True, layout={"num_bytes": None}),
    ),
    # 3 times 16 files, and 16 more.
    ("SC024", case(usage={"max_open_files": 63}), case(usage={"max_open_files": 64})),
    ("SC024", case(cycle=40, usage={"max_open_files": 79}), case(cycle=40)),
    (
        "SC024",
        case(cycle=40, usage={"max_open_files": 79}),
        case(cycle=40, usage={"max_open_files": 80}),
    ),
    ("SC025", case(cycle=65), case(cycle=64)),
    ("SC025", case(cycle=17, **HOSTS), case(cycle=16, **HOSTS)),
    ("SC025", case(cycle=16, **ONE_FILE), case(**ONE_FILE)),
)


@pytest.mark.parametrize(("code", "fires", "quiet"), CASES)
def test_a_rule_finds_what_it_is_about_and_not_what_is_next_to_it(
    code: str, fires: Case, quiet: Case
) -> None:
    assert code in fires.codes()
    assert code not in quiet.codes()
    fires.check_fits_screens()


def test_every_rule_has_a_case() -> None:
    of_formats = {"SC026", "SC027", "SC028", "SC029", "SC061"}
    assert {code for code, _, _ in CASES} == codes_of(reader) - of_formats
