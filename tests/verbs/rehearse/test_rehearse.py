"""`shardctl rehearse`: what is lost where a run stops and resumes, counted in real tf.data."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import shardctl as api
from tests.cases import first, seed_of_test
from tests.cli.conftest import Shardctl
from tests.tfds_datasets import write_dataset

SCRIPT = Path(__file__).with_name("script.txt").read_text("utf-8")
TOLD = ("host={host}", "hosts={hosts}")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("rehearse"), splits={"train": [5, 0, 9, 6, 4, 2]})


@pytest.fixture
def script(tf: Any, shardctl: Shardctl, built: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module, which lies in this folder."""
    Path("job.py").write_text(SCRIPT.format(folder=str(built)))
    monkeypatch.delitem(sys.modules, "job", raising=False)
    spec = importlib.util.spec_from_file_location("job", "job.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ids_of(dataset: Any) -> Counter[int]:
    return Counter(int(one) for batch in dataset.as_numpy_iterator() for one in batch)


def document(shardctl: Shardctl, *words: object) -> tuple[int, dict[str, Any]]:
    ran = shardctl("rehearse", *words[:1], "-f", "json", *words[1:])
    assert ran.exit_code in (0, 1), ran.stderr
    return ran.exit_code, json.loads(ran.stdout)


@pytest.mark.parametrize("function", ["even", "files", "examples", "mixed"])
@pytest.mark.parametrize("to_hosts", first(1, [3, 2]))
def test_good_functions_lose_nothing(
    script: Any, shardctl: Shardctl, function: str, to_hosts: int
) -> None:
    words = (f"job.py:{function}", "--hosts", 2, "--to-hosts", to_hosts, "--kill-at", 2)
    if function == "mixed" and to_hosts == 3:
        ran = shardctl("rehearse", *words, "--", *TOLD)
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert "not shared" in ran.stderr or "real files" in ran.stderr
        return
    code, found = document(shardctl, *words, "--", *TOLD)
    assert (code, found["holds"], found["lost"], found["repeated"]) == (0, True, 0, 0)
    # What the real files yield, two hosts together.
    whole = sum((ids_of(getattr(script, function)(host, 2)) for host in (0, 1)), Counter())
    assert found["num_examples"] == whole.total()
    left = sum(host["after"] or 0 for host in found["hosts"])
    assert left == whole.total() - sum(host["before"] or 0 for host in found["hosts"])
    assert found["moved"] == (0 if to_hosts == 2 else None)
    by_skip = any("resumed by skip" in note for note in found["notes"])
    assert by_skip == (function == "mixed")


@pytest.mark.parametrize(
    ("function", "to_hosts", "lossy"),
    [
        ("skips", 3, True),
        pytest.param("skips", 2, False, marks=pytest.mark.slow),
        pytest.param("skips", 1, True, marks=pytest.mark.slow),
        ("forgets", 2, True),
    ],
)
def test_a_function_that_resumes_by_itself_is_counted(
    script: Any, shardctl: Shardctl, function: str, to_hosts: int, lossy: bool
) -> None:
    words = (f"job.py:{function}", "--hosts", 2, "--to-hosts", to_hosts, "--kill-at", 3)
    code, found = document(shardctl, *words, "--", "{host}", "{hosts}", "{step}")
    compare_with_files(script, function, found, hosts=2, step=3)
    assert (code, found["resumed_by"]) == (int(lossy), "function")


def compare_with_files(
    script: Any,
    function: str,
    found: dict[str, Any],
    *,
    hosts: int,
    step: int,
    case: str = "",
    **how: int,
) -> None:
    """Read the real files as the job would, and compare what is lost and repeated."""
    make = getattr(script, function)
    whole, seen = Counter[int](), Counter[int]()
    for host in range(hosts):
        whole += ids_of(make(host, hosts, 0, **how))
        seen += ids_of(make(host, hosts, 0, **how).take(step))
    for host in range(found["to_hosts"]):
        seen += ids_of(make(host, found["to_hosts"], step, **how))
    assert found["num_examples"] == whole.total(), case
    assert found["lost"] == (whole - seen).total(), case
    assert found["repeated"] == (seen - whole).total(), case
    assert sum(host["lost"] or 0 for host in found["hosts"]) == found["lost"]
    assert sum(host["repeated"] or 0 for host in found["hosts"]) == found["repeated"]
    differing = sorted(one for one in whole | seen if whole[one] != seen[one])
    assert found["differing_ids"] == [str(one) for one in differing[:5]]


def test_random_stops_are_as_in_the_real_files(script: Any, shardctl: Shardctl) -> None:
    seed = seed_of_test()
    drawn = random.Random(seed)
    for _ in range(3):
        hosts, to_hosts, batch = drawn.randint(1, 3), drawn.randint(1, 4), drawn.randint(1, 5)
        step = drawn.randint(0, 52 // hosts // batch)
        case = f"seed {seed}: hosts {hosts} to {to_hosts}, batch {batch}, step {step}"
        words = ("job.py:skips", "--hosts", hosts, "--to-hosts", to_hosts, "--kill-at", step)
        given = ("{host}", "{hosts}", "{step}", f"batch={batch}")
        _, found = document(shardctl, *words, "--", *given)
        compare_with_files(script, "skips", found, hosts=hosts, step=step, case=case, batch=batch)


def test_what_is_not_shared_or_not_fixed_is_found(script: Any, shardctl: Shardctl) -> None:
    code, found = document(shardctl, "job.py:fixed", "--hosts", 2, "--", *TOLD)
    # even_splits of 26 among 4: two hosts read 7 each in 2 epochs, one host 7 of them.
    assert (code, found["lost"], found["unread"], found["read_twice"]) == (1, 0, 0, 2 * (14 - 7))
    given = (*TOLD, "buffer_seed=None")
    ran = shardctl("rehearse", "job.py:even", "--hosts", 2, "--", *given)
    assert ran.exit_code == 1
    assert "cannot be resumed exactly: shuffle(9)" in ran.stdout


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("job.py:even", "--hosts", "2"), "is not told which host it is"),
        (("job.py:own_shares", "--hosts", "2", "--to-hosts", "3", "--", *TOLD), "not shared as by"),
        (("job.py:endless", "--kill-at", "3"), "a pipeline that ends"),
        (("job.py:even", "--kill-at", "99", "--", "0", "1"), "a host yields 13 steps"),
        (("job.py:even", "--batch", "3", "--", "0", "1"), "the function has its settings"),
        (("train", "--host", "0/2", "-d", "mnist"), "say how many by --hosts"),
        (("train", "--loader", "grain", "-d", "mnist"), "rehearse runs tf.data alone"),
        (("train", "--shuffle-files", "-d", "mnist"), "without a seed"),
        (("train[:0]", "-d", "mnist"), "a run of 0 examples"),
        (("train", "--epochs", "99", "-d", "imagenet2012"), "rehearse a slice"),
        (("train", "test", "-d", "mnist"), "more than rehearse takes"),
        (("train", "--only", "x", "-d", "mnist"), "--only with 'train'"),
    ],
)
def test_refusals(script: Any, shardctl: Shardctl, words: tuple[str, ...], error: str) -> None:
    ran = shardctl("rehearse", *words)
    assert (ran.exit_code, ran.stdout) == (2, ""), ran.stdout
    assert error in ran.stderr
    assert ran.stderr.splitlines()[-1].startswith("error: ")


@pytest.mark.parametrize(
    "options",
    first(
        2,
        [
            ("--shuffle-seed", 1, "--hosts", 3, "--to-hosts", 2, "--epochs", 2),
            ("--buffer", 50, "--buffer-seed", 3, "--batch", 7, "--hosts", 2, "--save-every", 4),
            ("--batch", 7, "--drop-remainder", "--hosts", 3, "--to-hosts", 5),
            ("--stages", "repeat(2) | shuffle(20, seed=1) | batch(4)"),
            ("--global-seed", 4, "--buffer", 30, "--pass-index", 1),
        ],
    ),
)
def test_settings_alone_lose_nothing(tf: Any, shardctl: Shardctl, options: tuple[Any, ...]) -> None:
    code, found = document(
        shardctl, "train[:100]+test[:30]", "-d", "mnist", *options, "--kill-at", 6
    )
    epochs = 2 if "--epochs" in options or "--stages" in options else 1
    assert (code, found["lost"], found["repeated"]) == (0, 0, 0)
    assert found["num_examples"] == 130 * epochs
    kept = sum((host["before"] or 0) - (host["again"] or 0) for host in found["hosts"])
    assert kept + sum(host["after"] or 0 for host in found["hosts"]) == 130 * epochs
    if "--save-every" in options:
        assert (found["kill_at"], found["saved_at"]) == (6, 4)
        assert [host["again"] for host in found["hosts"]] == [14, 14]


def test_text_rows_and_python(tf: Any, shardctl: Shardctl) -> None:
    words = ("rehearse", "train[:10]", "-d", "mnist", "--hosts", 2, "--to-hosts", 1, "--kill-at", 2)
    ran = shardctl(*words)
    assert ran.exit_code == 0
    assert "nothing is lost or repeated: 10 examples" in ran.stdout
    assert f"read by TensorFlow {tf.__version__}" in ran.stdout
    rows = list(csv.DictReader(io.StringIO(shardctl(*words, "-f", "csv").stdout)))
    assert [(row["before"], row["after"]) for row in rows] == [("2", "6"), ("2", "")]
    found = api.rehearse("mnist", "train[:10]", hosts=2, to_hosts=1, kill_at=2)
    assert found.holds
    assert found.runs[0] == api.HostRun(0, 2, 0, 6, 0, 0)
