from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.errors import DatasetError
from shardctl.metadata.example_log import read_kept, read_seen
from shardctl.order.resolved_spec import resolved_spec
from shardctl.verbs.resume.answer import codes_of
from tests.cases import check_cases
from tests.golden import assert_answers
from tests.verbs.resume.resume_cases import TOY

CODES = codes_of(resolved_spec(TOY, "train+test"))
IDS = [
    f"toy-{name}-{shard:05}__{index}"
    for name, lengths in (("train", (3, 5, 3)), ("test", (4,)))
    for shard, length in enumerate(lengths)
    for index in range(length)
]


def seen(tmp_path: Path, data: bytes) -> list[int]:
    path = tmp_path / "seen"
    path.write_bytes(data)
    return [int(code) for code in read_seen(path, CODES).codes]


def test_blank_lines_and_other_line_ends_are_passed_over(tmp_path: Path) -> None:
    assert seen(tmp_path, f"\n  \r\n{IDS[2]}\r\n \n{IDS[1]} \n\n".encode()) == [1, 2]
    assert seen(tmp_path, b"") == []


def test_a_last_line_without_an_end_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "seen"
    path.write_text(f"{IDS[3]}\n{IDS[4]}")
    log = read_seen(path, CODES)
    assert log.codes.tolist() == [3, 4]
    assert "line 2 of" in log.warnings[0]
    assert "may be cut off" in log.warnings[0]
    path.write_text(f"{IDS[3]}\n{IDS[4]}\n")
    assert read_seen(path, CODES).warnings == ()


def test_a_line_that_is_not_an_id_is_named(tmp_path: Path) -> None:
    def answer(line: str) -> None:
        try:
            seen(tmp_path, f"{IDS[0]}\n\n{line}\n{IDS[1]}\n".encode())
        except DatasetError as error:
            raise DatasetError(str(error).replace(str(tmp_path), "")) from None

    assert_answers(Path(__file__).parent / "golden" / "seen_lines.txt", answer)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="line 2 is not UTF-8 text"):
        seen(tmp_path, f"{IDS[0]}\n".encode() + b"\xff\n")
    with pytest.raises(DatasetError, match="a line of more than"):
        seen(tmp_path, b"x" * (1 << 24))
    with pytest.raises(DatasetError, match="gzip file that was cut off"):
        seen(tmp_path, gzip.compress("\n".join(IDS * 99).encode())[:-20])
    with pytest.raises(DatasetError, match=r"cannot read .*: no such file"):
        read_seen(tmp_path / "none", CODES)
    with pytest.raises(DatasetError, match=r"cannot read .*: is a directory"):
        read_seen(tmp_path, CODES)


def test_lines_are_read_in_any_order_and_number(tmp_path: Path) -> None:
    def check(drawn: tuple[list[int], bool]) -> None:
        picks, zipped = drawn
        data = "".join(f"{IDS[pick]}\n" for pick in picks).encode()
        assert seen(tmp_path, gzip.compress(data) if zipped else data) == sorted(set(picks))

    picks = st.lists(st.integers(0, len(IDS) - 1), max_size=30)
    check_cases(st.tuples(picks, st.booleans()), check, 50)


def kept(path: Path) -> list[int]:
    passes = read_kept("filter", str(path), CODES).values
    return np.flatnonzero(passes(np.arange(15))).tolist()


@pytest.mark.parametrize("lines", [[IDS[14], IDS[3], IDS[3]], ["test:3", "", "train:3"]])
def test_what_passes_a_filter_is_a_log_or_a_list_of_ids(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "kept.txt"
    path.write_text("\n".join(lines) + "\n")
    names = [CODES.names([code])[0] for code in kept(path)]
    assert sorted(names) == ["test:3", "train:3"]


def test_nothing_passes_a_filter_whose_list_is_empty(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("\n")
    assert kept(tmp_path / "kept.txt") == []


def test_a_list_that_names_no_example_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("train:3\nvalidation:1\n")
    with pytest.raises(DatasetError, match=r"line 2: .* split 'validation' is not read"):
        kept(tmp_path / "kept.txt")
    with pytest.raises(DatasetError, match="cannot read"):
        kept(tmp_path / "none.txt")
