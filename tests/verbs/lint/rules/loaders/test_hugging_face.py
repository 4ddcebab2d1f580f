"""SC091 to SC094: where each rule finds something, and the nearest case where it does not."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.verbs.lint.answer import lint
from shardctl.verbs.lint.context import Usage
from shardctl.verbs.lint.rules import loaders as rules
from tests.verbs.lint.rules.rule_cases import Case, Row, case, codes_of

HF: dict[str, Any] = {
    "loader": "hf",
    "loader_version": "5.2.0",
    "streaming": True,
    "shuffle_seed": 1,
    "buffer": 5000,
    "arrow": True,
}
OLD: dict[str, Any] = {**HF, "loader_version": "4.8.5"}
BROKEN: dict[str, Any] = {**HF, "loader_version": "4.8.0"}
ROWS: dict[str, Any] = {**BROKEN, "arrow": False}
MAP: dict[str, Any] = {"loader": "hf", "loader_version": "5.2.0", "shuffle_seed": 1}
PARQUET: dict[str, Any] = {"file_format": "parquet"}


def hosts(count: int) -> dict[str, Any]:
    return {"hosts": count}


CASES: tuple[Row, ...] = (
    ("SC091", case(**HF, usage=hosts(3)), case(**HF, usage=hosts(4))),
    ("SC091", case(**OLD, usage=hosts(3)), case(**OLD, usage=hosts(8))),
    ("SC091", case(**HF, usage=hosts(3)), case(**HF, usage=hosts(3), host_by="files")),
    ("SC091", case(**HF, usage=hosts(3)), case(**HF, usage=hosts(3), host_by="examples")),
    ("SC091", case(**HF, usage=hosts(3)), case(**MAP, usage=hosts(3))),
    # 64 shards in 10 runs count as 6.
    (
        "SC091",
        case(**{**HF, "loader_version": "5.0.0"}, usage=hosts(4)),
        case(**{**HF, "loader_version": "5.0.0"}, usage=hosts(3)),
    ),
    ("SC092", case(**HF, workers=65), case(**HF, workers=64)),
    ("SC092", case(**HF, workers=17, usage=hosts(4)), case(**HF, workers=16, usage=hosts(4))),
    ("SC093", case(**{**HF, "buffer": 500}), case(**{**HF, "buffer": 501})),  # 10 x 100
    ("SC093", case(**{**OLD, "buffer": 50}), case(**{**OLD, "buffer": 51})),
    ("SC093", case(**{**HF, "buffer": 100}), case(**{**HF, "buffer": 100}, input_shards=1)),
    (
        "SC094",
        case(**BROKEN, usage=hosts(3), layout=PARQUET),
        case(**{**BROKEN, "loader_version": "4.8.3"}, usage=hosts(3), layout=PARQUET),
    ),
    ("SC094", case(**BROKEN, usage=hosts(3), layout=PARQUET), case(**ROWS, usage=hosts(3))),
    (
        "SC094",
        case(**BROKEN, usage=hosts(3), layout=PARQUET),
        case(**BROKEN, usage=hosts(4), layout=PARQUET),
    ),
    # A Dataset is shuffled once, a stream anew after set_epoch.
    ("SC001", case(**MAP, epochs=2), case(**HF, epochs=2)),
    ("SC001", case(**MAP, epochs=2), case(**MAP)),
)


@pytest.mark.long
@pytest.mark.parametrize(("code", "fires", "quiet"), CASES)
def test_a_rule_finds_what_it_is_about_and_not_what_is_next_to_it(
    code: str, fires: Case, quiet: Case
) -> None:
    assert code in fires.codes()
    assert code not in quiet.codes()
    fires.check_fits_screens()


def test_one_shard_is_said_as_one() -> None:
    settings = {"loader": "hf", "streaming": True, "shuffle_seed": 1, "buffer": 9}
    found = lint("mnist", "train", settings, usage=Usage(hosts=3), select=["SC091"]).findings
    assert [finding.why for finding in found] == [
        "train: 3 hosts do not share 1 shard evenly: each streams all of them and keeps one "
        "example in 3"
    ]


def test_every_rule_has_a_case() -> None:
    assert {code for code, _, _ in CASES} >= {
        code for code in codes_of(rules) if "SC091" <= code <= "SC099"
    }
