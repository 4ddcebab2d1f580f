"""The Python API and the package: names, answers, what importing costs, what lies in it."""

from __future__ import annotations

import ast
import copy
import inspect
import json
import os
import pickle
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path

import pytest

import shardctl
from shardctl.cli.main import COMMANDS
from shardctl.files.documents import to_yaml
from shardctl.saved.plan_file import plan_document


def test_names_are_listed_once_in_order_and_documented() -> None:
    assert shardctl.__all__ == sorted(set(shardctl.__all__))
    assert set(shardctl.__all__) <= set(dir(shardctl))
    for name in shardctl.__all__:
        text = inspect.getdoc(getattr(shardctl, name))
        assert text, name
        assert text.splitlines()[0].endswith((".", ":", "?")), name
        assert not text.startswith(f"{name}("), name  # what a dataclass gets without one


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'plam'"):
        _ = shardctl.plam  # type: ignore[attr-defined]


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
        "match = shardctl.locate(['mnist'], 'train', settings, step=[91]).matches[0]; "
        "found: str | None = match.tfds_id\n"
        "lost: int = shardctl.prove('mnist', 'plan.yaml').lost\n"
        "ids: list[int] = shardctl.simulate('mnist', settings={'cycle': 3}).ids().tolist()\n"
        "steps = shardctl.eval('mnist', batch=64, hosts=3).num_steps('drop')\n"
        "names = [one.title for one in shardctl.list('mnist').built_in]\n"
        "rest = shardctl.tfds.resume\n"
        "shardctl.simulate('mnist', 'train', shuffle_seed=1, buffer=100).save('order.json')\n"
        "shardctl.plam('mnist')\n"
        "shardctl.plan(3)\n"
        "shardctl.simulate('mnist', shufle_seed=1)\n"
        + "".join(f"reveal_type(shardctl.{name})\n" for name in shardctl.__all__)
    )
    said, _, _ = api.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(script)])
    lines = said.splitlines()[:-1]
    revealed = [line for line in lines if "Revealed type" in line]
    assert len(revealed) == len(shardctl.__all__)
    assert not [line for line in revealed if line.split('"')[1] == "Any"]
    wrong = [line.split(": ", 1)[0][-2:] for line in lines if ": error: " in line]
    assert wrong == ["13", "14", "15"], said


def test_editors_find_every_name_with_its_docstring_without_running_it() -> None:
    package = Path(shardctl.__file__).parent
    found = set()
    for line in ast.parse((package / "__init__.pyi").read_text("utf-8")).body:
        if not isinstance(line, ast.ImportFrom) or "shardctl." not in (line.module or ""):
            continue
        source = package.parent.joinpath(*str(line.module).split(".")).with_suffix(".py")
        body = ast.parse(source.read_text("utf-8")).body
        found |= {a.name for a in line.names} & {
            one.name
            for one in body
            if isinstance(one, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(one)
        }
    assert found | {"LoaderPlan", "resume_loader"} == set(shardctl.__all__)  # which have two names


FUNCTIONS = [
    name for name in shardctl.__all__ if inspect.isfunction(inspect.unwrap(getattr(shardctl, name)))
]


def test_help_of_the_package_reads_in_a_few_screens() -> None:
    text = shardctl.__doc__ or ""
    assert len(text.splitlines()) < 120
    for name in FUNCTIONS:
        assert re.search(rf"\b{name}\(", text), name
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_a_function(command: str) -> None:
    # What a user asks of the program itself is no function.
    if command not in ("init", "config", "demo", "completion", "help"):
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
    path.write_text("".join(to_yaml(plan_document(plan))))
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
    one, other = ("mnist", "test"), ("mnist", "test[1:]")
    asked: dict[Callable[..., object], dict[str, object]] = {
        shardctl.plan_order: {},
        shardctl.simulate: {},
        shardctl.locate: {"position": 0},
        shardctl.hosts: {"hosts": 2},
        shardctl.evaluate: {"batch": 3, "hosts": 2},
        shardctl.quality: {"what_if": False},
        shardctl.snapshot: {},
    }
    for function, arguments in asked.items():
        assert function(*one, **arguments) != function(*other, **arguments)
    assert shardctl.plan_order("mnist", settings={"block": 2}) != shardctl.plan_order("mnist")


def test_what_is_no_value_of_its_own_says_how_it_is_made() -> None:
    with pytest.raises(shardctl.UsageError, match=r"^an Order is made by shardctl.plan_order"):
        shardctl.Order()  # type: ignore[abstract]


def test_ids_are_an_array_and_a_score_a_number() -> None:
    found = shardctl.simulate("mnist", "test", cycle=1, take=3)
    assert found.ids.tolist() == found.ids().tolist() == [0, 1, 2]
    assert pickle.loads(pickle.dumps(found.ids)).tolist() == [0, 1, 2]
    scored = shardctl.quality("mnist", "test", what_if=False)
    assert float(scored.score) == scored.score.value


def test_reprs_tell_what_matters_on_one_line() -> None:
    said = repr(shardctl.plan("mnist", "train", hosts=3))
    assert said == "<Plans mnist:3.0.1 train: 3 plans>"
    plan = shardctl.resume("mnist", "train", consumed=1000)
    # The rest of a block of 16, and the rest of the file.
    assert repr(plan) == (
        "<ResumePlan mnist:3.0.1 train: exact, 1,000 consumed, 59,000 left of epoch 0, "
        "2 file instructions>"
    )
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


# What importing costs, and what lies in the package.

_REPOSITORY = Path(__file__).parents[1]
_HEAVY = {"tensorflow", "tensorflow_datasets", "keras", "numpy", "yaml", "rich", "pydantic"}


def modules_after(program: str, cwd: Path) -> set[str]:
    """Return which of the heavy modules a program has loaded at its end."""
    program = (
        f"import contextlib, sys\nwith contextlib.suppress(SystemExit):\n    {program}\n"
        "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(_REPOSITORY), "HOME": str(cwd)},
        capture_output=True,
        text=True,
        check=True,
    )
    return _HEAVY & set(ran.stderr.splitlines()[-1].split())


_LOADS_NOTHING = [
    ["plan", "train[44%:45%]", "-d", "imagenet2012"],
    ["plan", "train[44%:45%]", "-d", "imagenet2012", "-f", "json"],
    ["plan", "train", "-d", "imagenet2012", "--hosts", "8", "-f", "csv"],
    ["layout", "train", "-d", "mnist", "-f", "json"],
    ["list"],
    ["lint", "train", "-d", "imagenet2012"],
    ["--version"],
    ["plan", "-h"],
    ["-h"],
    ["help"],
    ["help", "resume"],
    ["help", "plan"],
]


@pytest.mark.long
def test_commands_that_need_nothing_load_nothing(tmp_path: Path) -> None:
    """All of them in one process, which tells after which of them something was there."""
    program = f"""
import sys
from shardctl.cli.main import main

for arguments in {_LOADS_NOTHING!r}:
    try:
        main(arguments)
    except SystemExit:
        found = {_HEAVY!r} & {{name.partition(".")[0] for name in sys.modules}}
        assert not found, (arguments, found)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(_REPOSITORY), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "usage: shardctl" in ran.stdout.lower()


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (["plan", "train", "-d", "toy.yaml"], {"yaml"}),
        (["help", "resume"], {"rich"}),
        (["simulate", "-d", "mnist"], {"numpy"}),
        (["locate", "--id", "1", "-d", "mnist"], {"numpy"}),
    ],
)
def test_a_command_loads_what_it_needs(
    arguments: list[str], allowed: set[str], tmp_path: Path
) -> None:
    (tmp_path / "toy.yaml").write_text("splits: {train: {shard_lengths: [3, 4]}}")
    program = f"from shardctl.cli.main import main; main({arguments!r})"
    assert modules_after(program, tmp_path) <= allowed


def test_the_package_loads_nothing_of_weight(tmp_path: Path) -> None:
    assert modules_after("import numpy, yaml", tmp_path) == {"numpy", "yaml"}
    assert modules_after("import shardctl; shardctl.read_dataset('mnist')", tmp_path) == set()
    bridge = modules_after("import shardctl; shardctl.tfds.resume", tmp_path)
    assert not bridge & {"tensorflow", "keras"}


def test_every_error_is_exported_but_those_that_only_a_command_tells_apart() -> None:
    errors = {name for name in vars(shardctl.errors) if name.endswith(("Error", "Warning"))}
    assert errors - set(shardctl.__all__) == {
        *("NotASplitError", "NotThereError", "UnknownArgumentError", "UnnamedDatasetError")
    }


def test_the_changelog_has_the_version_or_what_is_not_released() -> None:
    text = (_REPOSITORY / "CHANGELOG.md").read_text("utf-8")
    assert not re.search(r"^(<{7}|={7}|>{7})", text, re.MULTILINE), "a merge left its marks"
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    released = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)", h) for h in headings[1:]]
    assert all(released)
    assert [match[2] for match in released if match] == sorted(
        (match[2] for match in released if match), reverse=True
    )
    kinds = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", shardctl.__version__)


def test_data_files_lie_in_the_package() -> None:
    package = resources.files("shardctl")
    assert package.joinpath("py.typed").is_file()
    catalog = package.joinpath("metadata", "catalog", "imagenet2012.json")
    assert json.loads(catalog.read_text("utf-8"))["entries"]
    assert package.joinpath("guide", "resume.md").read_text("utf-8").startswith("# ")


_LIBRARIES = {"grain", "torch", "torchdata", "accelerate", "transformers", "datasets", "tensorflow"}
_LIBRARIES |= {"streaming", "litdata", "webdataset"}


@pytest.mark.long
def test_planning_with_a_loader_imports_no_library(tmp_path: Path) -> None:
    """All of them in one process: each of these lines left none behind."""
    program = f"""
import sys
import shardctl, shardctl.grain, shardctl.torch
from shardctl.loaders.loader import LOADERS

def check(what):
    found = {_LIBRARIES!r} & {{name.partition(".")[0] for name in sys.modules}}
    assert not found, (what, found)

check("import")
for name, loader in LOADERS.items():
    settings = {{"loader": name, "shuffle_seed": 3, "batch": 4}}
    if name == "stateful":
        settings["host"] = "0/2"
    is_whole = name in ("streaming", "litdata", "webdataset")  # shards are read whole
    ref, spec, test = "mnist", "train[:100]", "test[:99]"
    if is_whole:
        ref, spec, test = "imagenette", "validation", "validation"
    order = shardctl.plan_order(ref, spec, settings).order
    order.codes_at([0, 1])
    shardctl.simulate(ref, spec, settings)
    shardctl.evaluate(ref, test, {{"loader": name}}, batch=8, hosts=2)
    shardctl.hosts(ref, test, {{"loader": name, "batch": 2}}, hosts=2)
    shardctl.resume_loader(ref, "train", {{"loader": name, "batch": 2}}, steps=3)
    shardctl.lint(ref, ["train"], settings)
    shardctl.snapshot(ref, spec, settings)
    check(name)
from shardctl.live import key_order, library, process, verify
from shardctl.loaders.loader import library_of
for name in LOADERS:
    library_of(LOADERS[name])
check("bridge")
"""
    subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(_REPOSITORY), "HOME": str(tmp_path)},
        check=True,
    )


def _required(extras: dict[str, list[str]], name: str) -> set[str]:
    """Return the packages that an extra names, by way of other extras too."""
    found = set()
    for requirement in extras[name]:
        inner = re.fullmatch(r"shardctl\[([\w,]+)\]", requirement)
        if inner is None:
            found.add(re.split(r"[^\w-]", requirement, maxsplit=1)[0])
        else:
            found |= {
                package for part in inner[1].split(",") for package in _required(extras, part)
            }
    return found


def test_the_tests_need_no_library_of_another_loader() -> None:
    project = tomllib.loads((_REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    for name in ("test", "dev"):
        assert _required(extras, name) & _LIBRARIES == set()
    assert _required(extras, "hf") & _LIBRARIES == {"datasets"}
    for loader in ("grain", "torch"):
        assert loader in _required(extras, loader)
