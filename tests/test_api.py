"""The Python API: few names, all documented, loaded when they are used."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import shardctl
from shardctl.cli.main import COMMANDS
from shardctl.saved.plan_file import plan_yaml


def test_names_are_listed_once_and_in_order() -> None:
    assert shardctl.__all__ == sorted(set(shardctl.__all__))
    assert set(shardctl.__all__) <= set(dir(shardctl))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'plam'"):
        _ = shardctl.plam  # type: ignore[attr-defined]


@pytest.mark.long
def test_the_bridge_is_there_without_an_import_of_its_own() -> None:
    code = "import shardctl, sys; shardctl.tfds.resume; sys.exit('tensorflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_type_checkers_know_every_name_and_no_other(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "import shardctl\n"
        "settings = shardctl.ReadSettings(shuffle_seed=42, batch=256)\n"
        "plans = shardctl.plan(Path('toy.yaml'), 'train', host='1/3').plans\n"
        "taken: int = sum(read.take for plan in plans for read in plan.file_instructions)\n"
        "found: str = shardctl.locate(['mnist'], 'train', settings, step=[91]).matches[0].tfds_id\n"
        "lost: int = shardctl.prove('mnist', 'plan.yaml').lost\n"
        "ids: list[int] = shardctl.simulate('mnist', settings={'cycle': 3}).ids().tolist()\n"
        "steps = shardctl.eval('mnist', batch=64, hosts=3).num_steps('drop')\n"
        "names = [one.title for one in shardctl.list('mnist').built_in]\n"
        "rest = shardctl.tfds.resume\n"
        "shardctl.plam('mnist')\n"
        "shardctl.plan(3)\n"
    )
    said, _, _ = api.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(script)])
    assert [line.split(": ", 1)[0][-2:] for line in said.splitlines()[:-1]] == ["12", "13"], said


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, shardctl\n"
        "heavy = {'tensorflow', 'tensorflow_datasets', 'numpy', 'yaml', 'rich', 'typer'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


FUNCTIONS = [
    name for name in shardctl.__all__ if inspect.isfunction(inspect.unwrap(getattr(shardctl, name)))
]


def test_help_of_the_package_reads_in_a_few_screens() -> None:
    text = shardctl.__doc__ or ""
    assert len(text.splitlines()) < 120
    for name in FUNCTIONS:
        assert re.search(rf"\b{name}\(", text), name
    assert max(map(len, text.splitlines())) <= 100


def test_names_that_are_not_loaded_yet_are_members() -> None:
    members = dict(inspect.getmembers(shardctl, inspect.isfunction))
    assert members.keys() >= {"plan", "simulate", "read_dataset"}
    assert {"eval", "list", "plan", "ResumePlan"} <= set(dir(shardctl))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_a_function(command: str) -> None:
    # What a user asks of the program itself is no function.
    if command not in ("init", "config", "help"):
        assert callable(getattr(shardctl, command))


def test_names_of_python_are_not_imported_by_a_star() -> None:
    names: dict[str, object] = {}
    exec("from shardctl import *", names)
    assert "plan" in names
    assert "ResumePlan" in names
    assert not {"eval", "list"} & names.keys()
    assert shardctl.eval is shardctl.evaluate
    assert shardctl.list is shardctl.list_datasets


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_it_takes_returns_and_raises(name: str) -> None:
    function = getattr(shardctl, name)
    text = inspect.getdoc(function) or ""
    takes, returns, raises = (text.find(f"\n{part}:\n") for part in ("Args", "Returns", "Raises"))
    assert 0 < takes < returns < raises
    said = text[takes:returns]
    for parameter in inspect.signature(function).parameters:
        assert re.search(rf"^ +(?:\w+, )*{parameter}\b.*:", said, re.MULTILINE), parameter


@pytest.mark.parametrize("name", FUNCTIONS)
def test_examples_use_public_names_alone(name: str) -> None:
    text = inspect.getdoc(getattr(shardctl, name)) or ""
    assert f"shardctl.{name}(" in text
    assert not re.search(r"(?:from|import) shardctl\.", text)
    for used in re.findall(r"\bshardctl\.(\w+)", text):
        assert used == "errors" or used == "tfds" or hasattr(shardctl, used), used


def answers(tmp_path: Path) -> Iterator[object]:
    """Yield what the public functions return for a large dataset, and what lies in these values."""
    d, settings = "imagenet2012", shardctl.ReadSettings(shuffle_seed=3, batch=256)
    dataset = shardctl.read_dataset(d)
    taken = shardctl.snapshot(dataset, "test")
    plan = shardctl.resume(d, "train", settings, steps=1234)
    on_hosts = shardctl.resume_on_hosts(d, hosts=64, to_hosts=65, consumed=100)
    path = tmp_path / "plan.yaml"
    path.write_text("".join(plan_yaml(plan)))
    hosts = shardctl.hosts(d, hosts=64)
    yield from (dataset, dataset.splits[0], taken, taken.snapshot, plan, on_hosts)
    yield from (shardctl.read_plan(path), shardctl.prove(d, plan), on_hosts.hosts[0])
    yield from (shardctl.layout(d), shardctl.layout(d).splits[0], settings)
    yield from (shardctl.plan(d, "train", hosts=1_000_000), shardctl.plan(d, "train", hosts=3))
    yield from (shardctl.plan(d, host="1/3"), shardctl.plan(d).plans[0], shardctl.plan(d).plans)
    yield from (shardctl.plan(d, *["train[:1%]"] * 50), shardctl.plan(d, "+".join(["train"] * 99)))
    yield from (shardctl.simulate(d, take=-1), shardctl.simulate(d, take=0))
    yield from (shardctl.plan_order(d, "train", settings), shardctl.plan_order(d).order)
    yield shardctl.locate(d, "train", settings, step=[1, 2, 3])
    yield shardctl.resume_unseen(d, seen=range(0, 100_000, 2))
    yield from (hosts, hosts.comparisons[0], *hosts.comparisons[0].strategies)
    yield shardctl.hosts(d, hosts=range(1, 65))
    yield shardctl.evaluate(d, batch=64, hosts=1000)
    yield shardctl.quality(d, "test", what_if=False)
    compared = shardctl.compare_loaders("mnist", "test[:1000]")
    yield from (compared, compared.ways[0])
    yield shardctl.lint(d, "train", {"epochs": 2})
    yield from (shardctl.diff(taken, spec="test[1:]"), shardctl.diff(taken))
    yield shardctl.diff(plan, shardctl.resume(d, "train", settings, steps=1235))
    yield shardctl.list_datasets()


@pytest.mark.long
def test_a_repr_is_short_and_names_its_class(tmp_path: Path) -> None:
    told = [(type(answer).__name__, repr(answer)) for answer in answers(tmp_path)]
    assert len(told) > 35
    for name, text in told:
        assert len(text) < 500, text
        assert text.isprintable()
        assert name in text or name == "OnDemand"


@pytest.mark.long
def test_answers_are_equal_to_their_twins_also_copied_and_pickled(tmp_path: Path) -> None:
    twins = zip(answers(tmp_path), answers(tmp_path), strict=True)
    for answer, twin in twins:
        if isinstance(answer, shardctl.Plans) and len(answer.plans) > 1000:
            continue  # a million of them are made for it
        assert answer == twin, answer
        for copied in (copy.copy(answer), copy.deepcopy(answer), pickle.loads(pickle.dumps(twin))):
            assert copied == answer, answer
        assert answer != "train"


def test_answers_to_other_questions_are_not_equal() -> None:
    def asked(dataset: str, spec: str, settings: dict[str, object]) -> list[object]:
        return [
            shardctl.plan_order(dataset, spec, settings),
            shardctl.simulate(dataset, spec, settings),
            shardctl.locate(dataset, spec, settings, position=0),
            shardctl.hosts(dataset, spec, settings, hosts=2),
            shardctl.evaluate(dataset, spec, batch=3, hosts=2),
            shardctl.quality(dataset, spec, settings, what_if=False),
            shardctl.snapshot(dataset, spec, settings),
        ]

    for one, other in zip(
        asked("mnist", "test", {"batch": 8}), asked("mnist", "test[1:]", {"batch": 8}), strict=True
    ):
        assert one != other
    assert shardctl.plan_order("mnist", settings={"block": 2}) != shardctl.plan_order("mnist")


def test_reprs_tell_what_matters() -> None:
    said = repr(shardctl.plan("mnist", "train", hosts=3))
    assert said == "<Plans mnist:3.0.1 train: 3 hosts, 60,000 examples, 3 file instructions>"
    plan = shardctl.resume("mnist", "train", consumed=1000)
    # The rest of a block of 16, and the rest of the file.
    assert repr(plan) == (
        "<ResumePlan mnist:3.0.1 train: exact, 1,000 consumed, 59,000 left of epoch 0, "
        "2 file instructions>"
    )


def test_a_repr_of_a_hostile_name_is_one_line() -> None:
    split = shardctl.Split(name="train", shard_lengths=(3,))
    dataset = shardctl.Dataset(name="a\n\x1b[31m" + "b" * 1000, splits=(split,))
    for answer in (dataset, shardctl.plan_order(dataset), shardctl.evaluate(dataset, batch=2)):
        assert repr(answer).isprintable()
        assert len(repr(answer)) < 500


def test_arguments_of_one_meaning_have_one_name() -> None:
    used: dict[str, set[str]] = {}
    for name in FUNCTIONS:
        for parameter in inspect.signature(getattr(shardctl, name)).parameters:
            used.setdefault(parameter, set()).add(name)
    # Each of these would be a second name for what another argument says.
    synonyms = {"num_hosts", "num_devices", "batch_size", "ref", "ref_or_dataset", "order", "file"}
    assert not synonyms & used.keys()
    of_a_dataset = used["dataset"] - {"diff", "compare_reports"}
    for name in of_a_dataset:
        assert next(iter(inspect.signature(getattr(shardctl, name)).parameters)) == "dataset"
    for name in used["settings"] - {"diff"}:
        positions = list(inspect.signature(getattr(shardctl, name)).parameters)
        assert positions.index("settings") == 2, name
