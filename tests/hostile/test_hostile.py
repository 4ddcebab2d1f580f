"""No input does what may not happen; what counts as that, and that a case shows it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis import target

from shardctl.errors import UsageError
from shardctl.records.read_file import FORMATS
from shardctl.spec.subsplit import parse_subsplit
from tests.byte_sources import far
from tests.cases import PIPELINES, add_cases, check_cases, fuzzed, random_of_a_fuzz_run
from tests.hostile.chained import KINDS
from tests.hostile.kinds import Case, Sources, content_of, valid_sources
from tests.hostile.verdict import Outcome, faults, faults_of_case, limits_of, outcomes
from tests.record_files import framed


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    return valid_sources(tmp_path_factory.mktemp("valid"))


@pytest.mark.long
@fuzzed(2, max(PIPELINES // 4, 2))
@pytest.mark.parametrize("kind", KINDS)
def test_no_input_does_what_may_not_happen(
    kind: str, num_cases: int, sources: Sources, tmp_path: Path
) -> None:
    rng, wrong = random_of_a_fuzz_run(), []
    for number in range(num_cases):
        case = KINDS[kind](rng, sources)
        found = list(outcomes(case, tmp_path, **limits_of(kind)))
        wrong += [
            f"case {number}: {one!a}: {ascii(shlex.join(words))[:200]}"
            for words, one in faults_of_case(case, found)
        ]
    add_cases(num_cases)
    assert not wrong, "\n".join(wrong)


def _whole_records(data: bytes) -> int | None:
    """Return how many records bytes are in the framing of TFRecord, None where they are none."""
    number = 0
    while data:
        length = int.from_bytes(data[:8], "little")
        if data[: 16 + length] != framed(data[12 : 12 + length]):
            return None
        number, data = number + 1, data[16 + length :]
    return number


_EDITS = st.lists(st.tuples(st.integers(0), st.binary(max_size=9), st.integers(0, 9)), max_size=4)


@pytest.mark.parametrize("form", FORMATS)
def test_damage_is_found_however_far_a_reader_comes(form: str, sources: Sources) -> None:
    if form not in sources.records:
        pytest.skip(f"no library writes {form} here")

    def check(edits: list[tuple[int, bytes, int]]) -> None:
        data = bytearray(sources.records[form])
        for place, put, num_bytes in edits:
            at = place % (len(data) + 1)
            data[at : at + num_bytes] = put
        found = FORMATS[form].count(far(bytes(data)), checksums=True)
        reached = 0 if found.damage is None else found.damage.byte or 0
        target(float(reached), label="the byte at which a reader gives up")
        assert found.damage is not None or found.num_records is not None
        if form == "tfrecord":
            whole = None if found.damage else found.num_records
            assert whole == _whole_records(bytes(data))

    check_cases(_EDITS, check, 100)


_WORDS = st.sampled_from([*"[]:%+-_. 019٣", "train", "all", "shard", "1_0", "9" * 30, "\n"])


def test_a_spec_is_read_as_its_text_or_refused() -> None:
    def check(words: list[str]) -> None:
        text = "train[" + "".join(words)
        try:
            parts = parse_subsplit(text)
        except UsageError as error:
            target(-float(len(str(error))), label="what is wrong, in short")
            return
        target(float(len({type(bound) for part in parts for bound in (part.start, part.stop)})))
        assert parse_subsplit("+".join(map(str, parts))) == parts

    check_cases(st.lists(_WORDS, max_size=12), check, 300)


def faults_of(**what: Any) -> list[str]:
    return list(faults(Outcome(**{"arguments": ("plan",), "exit_code": 0, **what})))


C, G, X = ("plan", "-f", "csv"), ("lint", "-f", "github"), frozenset({"x"})


GOOD: list[dict[str, Any]] = [
    {"stdout": "名前 a\n".encode()},
    {"exit_code": 1},
    {"arguments": ("snapshot",), "exit_code": 130},
    {"exit_code": 2, "stderr": b"warning: a\nerror: b\n"},
    {"arguments": G, "stdout": b"::error title=a::b\n"},
    {"arguments": C, "stdout": b"a,b\n-1,'=1\n"},
    {"arguments": (*C, "--help"), "stdout": b"  -d, --dataset\n"},
    {"arguments": ("plan", "-f", "npy"), "stdout": b"\x93NUMPY\0"},
    {"arguments": ("plan", "-o", "x"), "new_files": X},
    {"arguments": ("diff", "x", "--update"), "changed": X},
    {"arguments": ("demo", "./a"), "new_files": frozenset({"a/train.py"})},
    {"arguments": ("diff", "x", "y"), "exit_code": 2, "stderr": b"error: a\nerror: b\n"},
]


@pytest.mark.parametrize(
    ("what", "fault"),
    [
        *((good, "") for good in GOOD),
        ({"exit_code": 3}, "exit code 3"),
        ({"exit_code": 2}, "0 error lines and exit code 2"),
        ({"stderr": b"error: a\n"}, "1 error lines and exit code 0"),
        ({"exit_code": 2, "stderr": b"error: a\nerror: b\n"}, "2 error lines and exit code 2"),
        ({"exit_code": 2, "stderr": b"error: internal error: X\n"}, "internal error: .*"),
        ({"exit_code": 2, "stderr": b"error: out of memory; a\n"}, "more than .* MiB"),
        ({"arguments": ("layout",), "exit_code": 130}, "more than 5 s of processor time"),
        ({"arguments": ("diff",), "exit_code": -9}, "an interrupt after 5 s .* does not stop it"),
        ({"must_fail": True}, "an edited file passes"),
        ({"stdout": b"\xff"}, "stdout is not UTF-8"),
        ({"stdout": b"a\x1b[1m"}, "stdout holds .*"),
        ({"stderr": "\u202e".encode()}, "stderr holds .*"),
        ({"stdout": b"a\n  ::debug::b\n"}, "stdout holds a command of CI: .*"),
        ({"stdout": b"a ##vso[b]"}, "stdout holds a command of CI: .*"),
        ({"stdout": b"::error title=a::b\n"}, "stdout holds a command of CI: .*"),
        ({"arguments": G, "stdout": b"::add-mask::a\n"}, "stdout holds a command of CI: .*"),
        ({"arguments": ("plan", "--format=json"), "stdout": b"{"}, "stdout is not JSON: .*"),
        ({"arguments": C, "stdout": b"a\n =1+1\n"}, "CSV holds the formula .*"),
        ({"new_files": frozenset({".x.123"})}, "left '.x.123' behind"),
        ({"changed": frozenset({"l.yaml"})}, "changed 'l.yaml'"),
        ({"arguments": ("plan", "-o", "x"), "exit_code": 2, "stderr": b"error: a\n",
          "new_files": X}, "a file of a command that failed"),
    ],
)  # fmt: skip
def test_what_is_a_failure_and_what_is_right(what: dict[str, Any], fault: str) -> None:
    (found,) = faults_of(**what) or [""]
    assert re.fullmatch(fault, found)


def test_lengths_that_are_spaced_in_another_way_are_no_edit() -> None:
    spaced = content_of(b"splits: [{shard_lengths: '5 0 7'}]")
    assert content_of(b'{"splits": [{"shard_lengths": "\\n5 0  7\\n"}]}') == spaced
    assert content_of(b"splits: [{shard_lengths: '50 7'}]") != spaced


_BUSY = """
def busy():
  while True:
    x = 1
try:
  busy()
except KeyboardInterrupt:
  raise SystemExit(130)
"""
_STUBBORN = _BUSY.replace("raise SystemExit(130)", "busy()")


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("import os; os.write(1, b'\\x1b'); open('stray', 'w')",
         ["stdout holds '\\x1b'", "left 'stray' behind"]),
        ("raise SystemExit(7)", ["exit code 7"]),
        ("x = bytearray(1 << 31)", ["internal error: MemoryError"]),
        (_BUSY, ["more than 5 s of processor time"]),
        (_STUBBORN, ["an interrupt after 5 s of processor time does not stop it"]),
    ],
)  # fmt: skip
def test_a_case_shows_what_a_command_does(
    program: str, expected: list[str], tmp_path: Path
) -> None:
    (outcome,) = outcomes(Case(commands=[["-c", program]]), tmp_path, seconds=0.1)
    assert list(faults(outcome))[: len(expected)] == expected
