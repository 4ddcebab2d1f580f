"""Hosts, written I/N."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from shardctl.errors import UsageError
from shardctl.spec.host import Host
from tests.cases import check_cases
from tests.strategies import error_line


@pytest.mark.parametrize(
    ("text", "index", "count"), [("0/1", 0, 1), ("2/8", 2, 8), ("07/08", 7, 8)]
)
def test_a_host_is_read_from_its_index_and_the_number_of_hosts(
    text: str, index: int, count: int
) -> None:
    assert Host.parse(text) == Host(index=index, count=count)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("8/8", "host 8 of 8: hosts count from 0 to 7"),
        ("0/0", "0 hosts: at least 1 is needed"),
        ("", "host '' is not I/N, as in 0/8 (host 0 of 8)"),
        ("3", "host '3' is not I/N"),
        ("-1/8", "host '-1/8' is not I/N"),
        ("1/8\n", r"host '1/8\n' is not I/N"),
        ("1 / 8", "host '1 / 8' is not I/N"),
        ("1/8/9", "host '1/8/9' is not I/N"),
        ("1.0/8", "host '1.0/8' is not I/N"),
        ("0/9999999999", "host '0/9999999999' is not I/N"),
        ("9" * 5000, "host '999"),
    ],
)
def test_anything_else_is_refused(text: str, says: str) -> None:
    line = error_line(lambda: Host.parse(text))
    assert line is not None
    assert line.startswith(says)
    assert len(line) < 200


def test_more_hosts_than_can_be_written_are_called_by_the_name_that_all_callers_know() -> None:
    line = error_line(lambda: Host(index=0, count=10**9))
    assert line == "1000000000 hosts: at most 999999999 are counted"


def test_a_host_reads_back_from_its_text() -> None:
    def check(case: tuple[int, int]) -> None:
        host = Host(index=min(case), count=max(case) + 1)
        assert Host.parse(str(host)) == host

    numbers = st.integers(0, 10**6)
    check_cases(st.tuples(numbers, numbers), check, 200)


def test_nonsense_is_a_host_or_one_line() -> None:
    def check(text: str) -> None:
        if error_line(lambda: Host.parse(text)) is None:
            index, count = text.split("/")
            assert 0 <= int(index) < int(count)

    texts = (
        st.text(max_size=9) | st.text("0123456789/- ", max_size=5) | st.from_regex(r"\d{1,3}/\d")
    )
    check_cases(texts, check, 150)


@pytest.mark.parametrize(("index", "count"), [(0, 0), (1, 1), (-1, 2)])
def test_a_host_that_is_none_cannot_be_made(index: int, count: int) -> None:
    with pytest.raises(UsageError):
        Host(index=index, count=count)
