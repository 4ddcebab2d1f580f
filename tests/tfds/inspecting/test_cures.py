"""Scripts whose order is nondeterministic, the patch of each, and what TensorFlow yields then."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl
from shardctl.tfds.inspecting.script import ScriptFunction, chosen, inspect_script
from shardctl.tfds.inspecting.watch import Lines
from shardctl.tfds.training.pipeline import resume_like
from shardctl.verbs.inspect.answer import Inspection, SourceLine
from shardctl.verbs.inspect.cure import patch_of, set_argument, set_shuffle_seed
from tests.cases import first, seed_of_test
from tests.tfds_datasets import build_dataset

pytestmark = pytest.mark.tensorflow

SCRIPT = Path(__file__).with_name("cured.txt").read_text("utf-8")


@pytest.fixture(scope="module")
def data(tf: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cures")
    build_dataset(root, "toy", {"train": [37, 25, 40, 18], "test": [14, 9]})
    return root / "toy" / "1.0.0"


@pytest.fixture
def script(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from tensorflow.python.eager import context

    context.context()._seed = None
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(SCRIPT.format(data=str(data)), "utf-8")
    return Path("train.py")


def inspected(name: str, *, assume_seeds: bool = False) -> Inspection:
    asked = ScriptFunction.parsed(f"train.py:{name}")
    (found,) = inspect_script(asked, assume_seeds=assume_seeds)
    return found


def made(name: str) -> Any:
    (found,) = chosen(ScriptFunction.parsed(f"train.py:{name}"), Lines()).values()
    return found.dataset


def yielded(name: str) -> list[list[int]]:
    """Return what three passes of the dataset of a function yield."""
    dataset = made(name)
    passes = [[np.ravel(each).tolist() for each in dataset.as_numpy_iterator()] for _ in range(3)]
    return [[number for each in one for number in each] for one in passes]


def plain(found: Inspection, pass_index: int) -> list[int]:
    """Return ids as the examples have them: those of the test split count from 0, too."""
    return [int(str(name).rpartition(":")[2]) for name in found.ids(pass_index)]


@pytest.mark.parametrize(
    "name_edits",
    first(
        3,
        [
            *(("line", 3), ("mixture", 2), ("sloppy", 2), ("chain", 2), ("config", 1)),
            *(("options", 2), ("read_options", 1), ("listed", 2), ("seeded", 1)),
        ],
    ),
)
def test_a_patched_script_yields_what_was_assumed(
    script: Path, name_edits: tuple[str, int]
) -> None:
    name, num_edits = name_edits
    assert len(inspected(name).cures) == num_edits
    check_cured(name)


def check_cured(name: str) -> None:
    """Patch a function, and compare what it yields then with what was said of it before."""
    found, assumed = inspected(name), inspected(name, assume_seeds=True)
    assert not found.predictable
    assert len(found.cures) == len(assumed.assumptions)
    subprocess.run(["patch", "-p0"], input="".join(patch_of(found.cures)), text=True, check=True)
    again = inspected(name)
    assert again.predictable, Path("train.py").read_text("utf-8")
    passes = yielded(name)
    assert passes == yielded(name) == [plain(assumed, index) for index in range(3)]
    assert passes == [plain(again, index) for index in range(3)]
    for n in {len(passes[0]) // 3, len(passes[0])}:
        rest = resume_like(lambda: made(name), consumed=n)
        assert [i for one in rest.as_numpy_iterator() for i in np.ravel(one)] == passes[0][n:]


STAGES = """\
    ds = ds.shuffle({n})
    ds = ds.shuffle(buffer_size={n}, reshuffle_each_iteration={flag}, )  # ü
    ds = ds.shuffle({n}, None, {flag}); ds = ds.shuffle(3).repeat(2)
    ds = ds.batch(3).shuffle({n}).unbatch()
    ds = ds.map(lambda i: i + 0, num_parallel_calls=3, deterministic=False)
    ds = ds.map(lambda i: i + 0, 3, False).prefetch(2)
    ds = ds.concatenate(read("test").map(ids).shuffle({n}))
    ds = tf.data.Dataset.sample_from_datasets([ds, read("test").map(ids).shuffle({n})], [0.5, 0.5])
    ds = (ds.take(60)\\
        .shuffle(  # a comment with a bracket )
            {n}
        ).skip(1))
""".splitlines()
STAGES[-4:] = ["\n".join(STAGES[-4:]).replace("\\\n", "\n")]


@pytest.mark.parametrize("case", first(1, range(6)))
def test_random_scripts_yield_what_was_assumed(script: Path, case: int) -> None:
    generator = random.Random(f"{seed_of_test()} {case}")
    files = ", shuffle_files=True)" if generator.random() < 0.5 else ")"
    lines = ["def drawn():", "    builder = tfds.builder_from_directory(DATA)"]
    lines += [f"    ds = builder.as_dataset(split='train'{files}.map(ids)"]
    for stage in [STAGES[case], *generator.choices(STAGES, k=2)]:
        lines += [stage.format(n=generator.randrange(2, 40), flag=generator.random() < 0.5)]
    text = script.read_text("utf-8") + "\n\n" + "\n".join([*lines, "    return ds.batch(1)"])
    script.write_text(text, "utf-8")
    check_cured("drawn")


def test_unpatched_scripts_yield_other_orders_each_time(script: Path) -> None:
    for name in ("chain", "line", "mixture", "listed"):
        assert yielded(name) != yielded(name), name


def test_what_cannot_be_edited_is_said_in_words(script: Path) -> None:
    rows = script.read_text("utf-8").splitlines()
    line = 1 + rows.index("    return read().map(ids).shuffle(10, seed=seed)")
    (cure,) = inspected("variable").cures
    assert (str(cure), cure.code) == (f"seed=0 in shuffle, in place of seed, train.py:{line}", None)
    assert inspected("variable", assume_seeds=True).predictable
    (cure,) = shardctl.inspect(unpacked).cures
    assert cure.text == "seed=0 in shuffle"


def unpacked() -> Any:
    import tensorflow as tf

    return tf.data.Dataset.range(9).shuffle(*[4])


def test_what_no_seed_cures_stays_named(script: Path) -> None:
    found, assumed = inspected("filtered"), inspected("filtered", assume_seeds=True)
    assert [one.cure is None for one in found.open] == [False, True]
    assert [one.stage.call for one in assumed.open] == ["filter"]


def test_a_seed_that_changes_those_drawn_is_not_assumed(script: Path) -> None:
    found, assumed = inspected("seeded_twice"), inspected("seeded_twice", assume_seeds=True)
    assert [cure.edit is not None for cure in found.cures] == [True]
    assert not assumed.predictable
    assert not assumed.assumptions


@pytest.mark.parametrize(
    ("code", "made"),
    [
        ("ds.shuffle(9)", "ds.shuffle(9, seed=3)"),
        ("ds.shuffle((9))", None),
        ("ds.shuffle(buffer_size=9,)", "ds.shuffle(buffer_size=9, seed=3,)"),
        ("ds.shuffle(9, seed=None)", "ds.shuffle(9, seed=3)"),
        ("ds.apply(shuffle_and_repeat(9))", "ds.apply(shuffle_and_repeat(9, seed=3))"),
        ("ds.shuffle(9, **kw)", None),
        ("ds.shuffle(*a)", None),
        ("ds.apply(made)", None),
        ("f(x for x in y).shuffle(9)", "f(x for x in y).shuffle(9, seed=3)"),
    ],
)
def test_an_argument_is_added_where_python_reads_it_so(
    tmp_path: Path, code: str, made: str | None
) -> None:
    script = tmp_path / "a.py"
    script.write_bytes(f"# ü\r\nds = {code}  # ä".encode())
    line = SourceLine(file=str(script), line=2, end=(2, 5 + len(code)))
    cure = set_argument("seed", 3, line, "shuffle")
    assert cure.code == (None if made is None else f"ds = {made}  # ä")
    assert set_shuffle_seed(1, line).code is None
    if made is not None:
        diff = "".join(patch_of([cure]))
        assert diff.count("\\ No newline at end of file") == 2
        script_text = subprocess.run(
            ["git", "apply", "-p0", "--directory=", "--unsafe-paths", "-"],
            input=diff.replace(str(script), "a.py"),
            text=True,
            check=True,
            cwd=tmp_path,
            capture_output=True,
        )
        assert not script_text.stderr
        assert script.read_bytes().decode() == f"# ü\r\nds = {made}  # ä"
