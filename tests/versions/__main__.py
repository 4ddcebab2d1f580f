"""Tries lines of TensorFlow in environments of their own and prints a table, a row a pair.

A pair is a line of TensorFlow and a version of Python. `--quick` runs a few of the tests alone, by
the Python that runs this, whose packages they use but for TensorFlow itself.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from shardctl.base.tfds_rules import LINES, TensorflowLine

ROOT = Path(__file__).parents[2]
PYTHONS = tuple(dict.fromkeys(python for line in LINES for python in line.pythons))
PACKAGES = ("tensorflow", "tensorflow-datasets", "numpy", "protobuf", "keras", "ml-dtypes")
COUNTS = ("passed", "failed", "error", "skipped")

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
print(json.dumps([version(name) for name in sys.argv[1:]]))
"""


def main(words: Sequence[str] | None = None) -> int:
    """Return 1 if anything failed in any pair that there is."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    parser.add_argument("lines", nargs="*", metavar="LINE", help="as 2.18 [default: all]")
    parser.add_argument("--python", action="append", choices=PYTHONS, dest="pythons")
    parser.add_argument("--quick", action="store_true", help="a few tests that compare orders")
    asked = parser.parse_args(words)
    by_name = {line.name: line for line in LINES}
    for name in asked.lines:
        if name not in by_name:
            parser.error(f"no line {name}; there are {', '.join(by_name)}")
    rows, good = [], True
    for line in map(by_name.__getitem__, asked.lines or by_name):
        # Without a Python that is named, the newest that is here.
        newest = next(filter(interpreter, reversed(line.pythons)), line.pythons[-1])
        this = "{}.{}".format(*sys.version_info)
        for python in [this] if asked.quick else asked.pythons or [newest]:
            pair, why_not = f"Python {python}, TensorFlow {line.name}", missing(python, line)
            if why_not is None:
                with tempfile.TemporaryDirectory() as scratch:
                    cells, failures = tried(python, line, Path(scratch), quick=asked.quick)
                rows.append(f"| {python} | {' | '.join(cells)} |")
                good = good and not failures
                why_not = "\n  ".join([rows[-1], *failures])
            print(f"{pair}: {why_not}", flush=True)
    titles = ("Python", *PACKAGES, *COUNTS)
    print("", f"| {' | '.join(titles)} |", "| --- " * len(titles) + "|", *rows, sep="\n")
    return 0 if good and rows else 1


def missing(python: str, line: TensorflowLine) -> str | None:
    """Return why a pair cannot be tried, None where it can."""
    if python not in line.pythons:
        pythons = " and ".join((", ".join(line.pythons[:-1]), line.pythons[-1]))
        return f"TensorFlow {line.name} is published for Python {pythons}"
    return None if interpreter(python) else f"there is no Python {python} here"


@cache
def interpreter(python: str) -> str | None:
    """Return the path of an interpreter that runs, of pyenv's too, which need not be in the path.

    One of pyenv's may be there in name only.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    found = sorted(pyenv.glob(f"{python}.*/bin/python{python}"), reverse=True)
    for path in filter(None, (shutil.which(f"python{python}"), *map(str, found))):
        if not subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode:
            return path
    return None


def tried(
    version: str, line: TensorflowLine, folder: Path, *, quick: bool
) -> tuple[list[str], list[str]]:
    """Return versions and counts of a pair, whose packages are put into a folder, and failures."""
    made, scratch = folder / "env", folder / "t"  # short, as paths in what tests compare
    scratch.mkdir()
    env = environment(made, scratch)
    pip = [sys.executable, "-m", "pip"]
    if quick:
        python, env["PYTHONPATH"] = sys.executable, str(made)
        what = ["--no-deps", "--target", str(made), f"tensorflow=={line.name}.*"]
    else:
        python = str(made / "bin" / "python")
        venv = [str(interpreter(version)), "-m", "venv", "--clear", "--without-pip", str(made)]
        subprocess.run(venv, check=True)
        # By the pip of this environment: the one of an older Python takes twice as long.
        pip += ["--python", python]
        told = str(Path(__file__).with_name(f"tensorflow-{line.name}.txt"))
        what = ["--constraint", told, f"{ROOT}[test-tensorflow]"]
    pip += ["install", "-qq", "--no-compile", *what]
    installed = subprocess.run(pip, env=env, capture_output=True, text=True, check=False)
    if installed.returncode:
        *_, last = ["", *installed.stderr.strip().splitlines()]
        return [], [f"pip exits with {installed.returncode}: {last}"]
    said = subprocess.check_output([python, "-c", _VERSIONS, *PACKAGES], env=env, text=True)
    options = f"-q -rfE -m tensorflow -n {0 if quick else 2} -p no:cacheprovider"
    command = [python, "-m", "pytest", *options.split(), *(QUICK if quick else ())]
    ran = subprocess.run(command, cwd=ROOT, env=env, check=False, capture_output=True, text=True)
    counts, failures = counted(ran.stdout)
    if ran.returncode and not failures:
        failures = [f"pytest exits with {ran.returncode}"]
    return [*json.loads(said), *counts], failures


def counted(log: str) -> tuple[list[str], list[str]]:
    """Return what the last line of pytest counts, and the lines of what failed."""
    *_, last = ["", *log.splitlines()]
    found = {name: number for number, name in re.findall(r"(\d+) ([a-z]+?)s?\b", last)}
    failures = [line for line in log.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return [f"{int(found.get(name, 0)):,}" for name in COUNTS], failures


def environment(made: Path, scratch: Path) -> dict[str, str]:
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


if __name__ == "__main__":
    raise SystemExit(main())
