"""A line of TensorFlow beside a version of Python: its environment, and what runs in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

from shardctl.base.tfds_rules import TensorflowLine

ROOT = Path(__file__).parents[2]

# Comparisons with the real reader, shuffle and interleave that take little time: for `--quick`.
QUICK = (
    "tests/tfdata/test_interleave.py",
    "tests/tfdata/test_seeds.py",
    "tests/tfdata/test_shuffle.py",
    "tests/order/test_order_tfds.py",
    "tests/order/test_staged_tfds.py",
    "tests/tfds/inspecting/test_stages.py",
    "tests/tfds/verifying/test_verify.py",
)

_VERSIONS = """
import json, sys
from importlib.metadata import version
print(json.dumps({name: version(name) for name in sys.argv[1:]}))
"""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A line of TensorFlow beside a version of Python."""

    python: str
    line: TensorflowLine

    def __str__(self) -> str:
        return f"Python {self.python}, TensorFlow {self.line.name}"

    @property
    def why_not(self) -> str | None:
        """Why there is no such pair, None where there is one."""
        if self.python in self.line.pythons:
            return None
        pythons = " and ".join((", ".join(self.line.pythons[:-1]), self.line.pythons[-1]))
        return f"TensorFlow {self.line.name} is published for Python {pythons}"

    @property
    def constraints(self) -> Path:
        """The file with what pip has to be told."""
        return Path(__file__).parent / f"tensorflow-{self.line.name}.txt"


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What came out of a pair.

    verified: how many orders `shardctl verify` found equal, of all.
    """

    PACKAGES: ClassVar[Sequence[str]] = (
        *("tensorflow", "tensorflow-datasets", "numpy", "protobuf", "keras", "ml-dtypes"),
    )

    versions: Mapping[str, str]
    num_passed: int = 0
    num_failed: int = 0
    verified: str = "-"
    failures: tuple[str, ...] = ()
    num_skipped: int = 0

    @property
    def is_good(self) -> bool:
        """Whether tests passed, none failed, and every order was equal."""
        equal, _, compared = self.verified.partition(" of ")
        return self.num_passed > 0 and not self.failures and equal == compared


@cache
def interpreter(python: str) -> str | None:
    """Return the path of an interpreter, of pyenv's too, which need not be in the path."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    found = sorted(pyenv.glob(f"{python}.*/bin/python{python}"), reverse=True)
    for path in (shutil.which(f"python{python}"), *map(str, found)):
        if path and _runs(path):
            return path
    return None


def _runs(path: str) -> bool:
    """Return whether an interpreter runs: one of pyenv's may be there in name only."""
    return not subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode


def tried(pair: Pair, folder: Path, *, quick: bool) -> Tried:
    """Return what came out of a pair, whose environment is made in a folder."""
    made, scratch = folder / "env", folder / "t"  # short, as paths in what tests compare
    scratch.mkdir()
    python = str(made / "bin" / "python")
    env = _environment(made, scratch)
    venv = [str(interpreter(pair.python)), "-m", "venv", "--clear", "--without-pip", str(made)]
    subprocess.run(venv, check=True)
    # By the pip of this environment: the one of an older Python takes twice as long.
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "-qq", "--no-compile"]
    pip += ["--constraint", str(pair.constraints), f"{ROOT}[test-tensorflow]"]
    installed = subprocess.run(pip, env=env, capture_output=True, text=True, check=False)
    if installed.returncode:
        *_, last = ["", *installed.stderr.strip().splitlines()]
        return Tried(versions={}, failures=(f"pip exits with {installed.returncode}: {last}",))
    said = subprocess.check_output([python, "-c", _VERSIONS, *Tried.PACKAGES], env=env, text=True)
    verified, problems = _verified(python, scratch, env)
    results = made / "results.xml"
    options = f"-q -rfE -m tensorflow -n {0 if quick else 2} -p no:cacheprovider"
    ran = subprocess.run(
        [
            python,
            "-m",
            "pytest",
            *options.split(),
            f"--junitxml={results}",
            *(QUICK if quick else ()),
        ],
        cwd=ROOT,
        env=env,
        check=False,
        capture_output=True,
        text=True,
    )
    known = {"versions": json.loads(said), "verified": verified, "problems": problems}
    return counted_tests(results, ran.stdout, **known)


def counted_tests(
    results: Path, log: str, *, versions: Mapping[str, str], verified: str, problems: Sequence[str]
) -> Tried:
    """Return what files of pytest say of its tests, beside what is known already."""
    if not results.exists():
        return Tried(versions=versions, verified=verified, failures=(*problems, "pytest: no end"))
    suite = next(ET.parse(results).iter("testsuite"))
    count = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    num_failed = count["failures"] + count["errors"]
    named = [line for line in log.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return Tried(
        versions=versions,
        num_passed=count["tests"] - count["skipped"] - num_failed,
        num_failed=num_failed,
        num_skipped=count["skipped"],
        verified=verified,
        failures=(*problems, *named, *(["pytest: failures"] if num_failed and not named else [])),
    )


def _verified(python: str, folder: Path, env: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return how many orders are equal, as "8 of 8", and what is said of the others."""
    ran = subprocess.run(
        [python, "-m", "tests.versions.verifying", str(folder)],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    *problems, verified = ran.stdout.strip().splitlines() or ["-"]
    if ran.returncode and not problems:
        problems = ran.stderr.strip().splitlines()[-1:]
    return verified, tuple(f"verify: {problem}" for problem in problems)


def _environment(made: Path, scratch: Path) -> dict[str, str]:
    """Return the environment of processes, in which nothing leads to other packages."""
    outside = ("PYTHON", "PYTEST_", "SHARDCTL_", "HYPOTHESIS_", "TFDS_", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(outside)}
    return {
        **kept,
        "PATH": os.pathsep.join((str(made / "bin"), kept.get("PATH", ""))),
        "TMPDIR": str(scratch),
        "PYTHONPYCACHEPREFIX": str(made / "bytecode"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "-1",
    }
