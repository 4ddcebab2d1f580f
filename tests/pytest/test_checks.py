"""The fixture order_snapshot in runs of pytest of their own, on datasets that TFDS wrote."""

from __future__ import annotations

import contextlib
import re
import shutil
import textwrap
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import shardctl
from shardctl.order.plan_order import plan_order
from shardctl.pytest.checks import OrderSnapshot, file_name, stem_of
from shardctl.saved.snapshot_file import snapshot_yaml
from shardctl.verbs.snapshot.answer import tree_in
from tests.tfds_datasets import build_dataset

pytest_plugins = ("pytester",)

DATASET = """\
import pytest
import tensorflow_datasets as tfds

def dataset(seed, spec="train"):
    builder = tfds.builder_from_directory("toy/1.0.0")
    config = tfds.ReadConfig(shuffle_seed=seed, interleave_cycle_length=2)
    return builder.as_dataset(split=spec, read_config=config, shuffle_files=True)

"""
ONE_TEST = """\
def test_order(order_snapshot):
    order_snapshot.check(dataset(7).shuffle(5, seed=1).repeat(2))
"""
SNAPSHOT = Path("order_snapshots/test_train/test_order.yaml")


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("toy")
    folder = build_dataset(root, splits={"train": [5, 3, 0, 9, 4], "test": [6]})
    _load_all_modules(folder)
    return folder


def _load_all_modules(folder: Path) -> None:
    """Load what a check loads: pytester unloads what a run of pytest has loaded for the first time.

    The next run would then have two of every class.
    """
    import tensorflow_datasets as tfds

    for seed, update in ((1, True), (2, False)):
        config = tfds.ReadConfig(shuffle_seed=seed)
        ds = tfds.builder_from_directory(folder).as_dataset(
            split="train", read_config=config, shuffle_files=True
        )
        here = folder.parent
        checks = OrderSnapshot(
            test_file=here / "test_a.py", test="test_a", update=update, root=here, here=here
        )
        with contextlib.suppress(pytest.fail.Exception):
            checks.check(ds)
    shutil.rmtree(folder.parent / "order_snapshots")


@pytest.fixture
def project(
    pytester: pytest.Pytester, toy: Path, monkeypatch: pytest.MonkeyPatch
) -> pytest.Pytester:
    """A folder with a dataset, in which pytest runs, with no plugin but those that are named."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    shutil.copytree(toy.parent, "toy")
    return pytester


def write(project: pytest.Pytester, tests: str) -> None:
    project.path.joinpath("test_train.py").write_text(DATASET + tests)


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    plugins = ("-p", "shardctl.pytest", "-p", "no:cacheprovider")
    return project.runpytest_inprocess(*plugins, *arguments)


def outcomes(result: pytest.RunResult) -> dict[str, int]:
    found: dict[str, int] = result.parseoutcomes()
    found.pop("warning", None)
    found.pop("warnings", None)
    return found


def said(result: pytest.RunResult) -> str:
    return "\n".join(result.outlines)


def in_version_1(path: Path) -> bytes:
    """Return a snapshot file as it was written before digests of version 2."""
    pinned = shardctl.read_snapshot(path)
    settings = pinned.settings()
    assert settings is not None
    older = tree_in(1, plan_order(shardctl.read_dataset("toy/1.0.0"), "train", settings))
    return "".join(snapshot_yaml(replace(pinned, tree=older))).encode()


def test_nothing_pinned_fails_with_the_command_that_pins_it(project: pytest.Pytester) -> None:
    write(project, ONE_TEST)
    result = run(project)
    assert outcomes(result) == {"failed": 1}
    assert f"no order is pinned in {SNAPSHOT}" in said(result)
    assert "  pytest test_train.py::test_order --update-orders\n" in said(result)
    assert not SNAPSHOT.exists()


def test_a_pinned_order_passes_until_it_changes(project: pytest.Pytester) -> None:
    write(project, ONE_TEST)
    result = run(project, "--update-orders")
    assert outcomes(result) == {"passed": 1}
    assert f"1 order snapshot written:\n  {SNAPSHOT}" in said(result)
    assert outcomes(run(project)) == {"passed": 1}
    before = SNAPSHOT.read_bytes()
    SNAPSHOT.write_bytes(in_version_1(SNAPSHOT))
    assert outcomes(run(project)) == {"passed": 1}
    assert outcomes(run(project, "--update-orders")) == {"passed": 1}
    assert SNAPSHOT.read_bytes() == before

    write(project, ONE_TEST.replace("seed=1", "seed=2"))
    result = run(project)
    assert outcomes(result) == {"failed": 1}
    text = said(result)
    assert f"{SNAPSHOT} and the current order first differ at position " in text
    assert "position  expected  actual" in text
    assert "because:" in text
    assert "1 became 2" in text
    assert SNAPSHOT.read_bytes() == before

    assert outcomes(run(project, "--update-orders")) == {"passed": 1}
    assert SNAPSHOT.read_bytes() != before


def test_what_it_pins_is_what_tensorflow_reads(project: pytest.Pytester) -> None:
    """The snapshot holds the first 32 ids; expected ones come from the dataset itself."""
    code = """
    def test_order(order_snapshot):
        ds = dataset(7).shuffle(5, seed=1).repeat(2)
        order_snapshot.check(ds, passes=2)
        for number in range(2):
            ids = [int(example["id"]) for example in ds]
            with open(f"ids{number}.txt", "w") as file:
                file.write(" ".join(map(str, ids)))
    """
    write(project, textwrap.dedent(code))
    assert outcomes(run(project, "--update-orders")) == {"passed": 1}
    for number, name in enumerate(["test_order.yaml", "test_order.pass.1.yaml"]):
        pinned = shardctl.read_snapshot(SNAPSHOT.with_name(name))
        ids = list(map(int, Path(f"ids{number}.txt").read_text().split()))
        assert pinned.num_examples == len(ids) == 42
        assert list(pinned.first_ids) == ids[:32]


def test_several_checks_of_a_test_have_names(project: pytest.Pytester) -> None:
    checks = """\
def test_order(order_snapshot):
    order_snapshot.check(dataset(7))
    order_snapshot.check(dataset(7, "test"), "evaluation")
"""
    write(project, checks)
    assert outcomes(run(project, "--update-orders")) == {"passed": 1}
    names = sorted(path.name for path in SNAPSHOT.parent.iterdir())
    assert names == ["test_order.evaluation.yaml", "test_order.yaml"]
    assert outcomes(run(project)) == {"passed": 1}
    write(project, checks.replace(', "evaluation"', ""))
    result = run(project)
    assert outcomes(result) == {"failed": 1}
    assert "give each a name of its own, check(ds, name)" in said(result)


def test_what_is_not_pinned_fails(project: pytest.Pytester) -> None:
    write(
        project,
        "def test_order(order_snapshot):\n    order_snapshot.check(dataset(7).shuffle(5))\n",
    )
    result = run(project, "--update-orders")
    assert outcomes(result) == {"failed": 1}
    assert "seed" in said(result)
    assert not SNAPSHOT.parent.exists()


def test_a_torn_snapshot_is_refused_and_written_anew(project: pytest.Pytester) -> None:
    write(project, ONE_TEST)
    run(project, "--update-orders")
    whole = SNAPSHOT.read_text()
    SNAPSHOT.write_text(whole[: len(whole) // 2])
    result = run(project)
    assert outcomes(result) == {"failed": 1}
    assert str(SNAPSHOT) in said(result)
    run(project, "--update-orders")
    assert SNAPSHOT.read_text() == whole


PARAMETERS = """\
@pytest.mark.parametrize("spec", ["train[:50%]", "test", "train[:50]"])
def test_order(order_snapshot, spec):
    order_snapshot.check(dataset(7, spec))
"""


def test_each_parameter_has_its_file(project: pytest.Pytester) -> None:
    write(project, PARAMETERS.replace('"train[:50]"', '"test[:3]"'))
    assert outcomes(run(project, "--update-orders")) == {"passed": 3}
    assert len(list(SNAPSHOT.parent.iterdir())) == 3
    assert outcomes(run(project)) == {"passed": 3}


def test_a_run_without_the_fixture_loads_nothing(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    project.makepyfile(
        test_plain="""
        def test_plain():
            import sys

            loaded = {name for name in sys.modules if name.startswith("tensorflow")}
            assert not loaded
            ours = {name for name in sys.modules if name.partition(".")[0] == "shardctl"}
            assert ours <= {"shardctl", "shardctl.base", "shardctl.base.by_name", "shardctl.pytest"}
        """
    )
    installed = entry_points(group="pytest11", name="shardctl")
    plugin = () if installed else ("-p", "shardctl.pytest")
    # The option is there if pytest has found the plugin by itself.
    result = project.runpytest_subprocess(*plugin, "-p", "no:xdist", "--update-orders")
    assert outcomes(result) == {"passed": 1}


# Names of snapshot files: safe everywhere, and never those of another check.

words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=150)


@given(words, words)
@example("a/b", "a-b")
@example("Adam", "adam")
@example("x" * 120, "x" * 121)
@example("..", "--")
def test_two_parameters_have_two_files_on_any_file_system(first: str, second: str) -> None:
    names = [file_name(stem_of(f"test_order[{text}]"), None, 0) for text in (first, second)]
    assert (names[0].lower() == names[1].lower()) == (first == second)
    assert all(re.fullmatch(r"[\w=+,-]{1,130}\.yaml", name, re.ASCII) for name in names)
