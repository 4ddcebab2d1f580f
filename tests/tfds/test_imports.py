"""TensorFlow and TFDS are imported late, and what is missing is named with what installs it."""

from __future__ import annotations

import os
import subprocess
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shardctl.base.tfds_rules import LINES
from shardctl.errors import MissingDependencyError, UnprovenVersionWarning
from shardctl.tfds import imports
from shardctl.tfds.imports import (
    quiet_tensorflow,
    tensorflow,
    tensorflow_datasets,
    versions,
    without_autograph,
)

Shadow = Callable[..., None]


@pytest.fixture
def shadow(monkeypatch: pytest.MonkeyPatch) -> Shadow:
    """Let a TensorFlow seem to be there, and what pip installed: packages with their versions."""

    def shadowed(version: str, **installed: str) -> None:
        module = types.ModuleType("tensorflow")
        module.__version__ = version  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "tensorflow", module)
        packages = {name.replace("_", "-"): value for name, value in installed.items()}
        monkeypatch.setattr(imports, "installed_version", packages.get)
        monkeypatch.setattr(imports, "_seen", set())

    return shadowed


def without_tfds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let TFDS be imported anew; what stands for it is gone after the test."""
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    monkeypatch.delitem(sys.modules, "tensorflow_datasets")


def test_what_is_missing_is_named_with_what_installs_it(
    shadow: Shadow, monkeypatch: pytest.MonkeyPatch
) -> None:
    shadow("")
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    wanted = "'tensorflow>=2.16' 'tensorflow-datasets>=4.9.4'"
    said = rf"^TensorFlow is needed .*install it with: .* -m pip install {wanted}$"
    # TFDS without TensorFlow says less about what is missing, so TensorFlow is asked for first.
    for call in (tensorflow, tensorflow_datasets):
        with pytest.raises(MissingDependencyError, match=said):
            call()


_TFDS, _METADATA = "'tensorflow-datasets>=4.9.10'", "'tensorflow-metadata<1.18'"


@pytest.mark.parametrize(
    ("installed", "command"),
    [
        ({"tensorflow": "2.16.2"}, f"'tensorflow==2.16.*' {_TFDS} {_METADATA} 'pyarrow<26'"),
        ({"tensorflow_cpu": "2.19.1"}, f"'tensorflow-cpu==2.19.*' {_TFDS} {_METADATA}"),
        ({"tensorflow": "2.21.0"}, f"'tensorflow==2.21.*' {_TFDS}"),
        ({"tensorflow": "2.30.0"}, "-U 'tensorflow>=2.16' 'tensorflow-datasets>=4.9.4'"),
    ],
)
@pytest.mark.parametrize("kind", [ImportError, TypeError, KeyError])
def test_a_broken_tfds_is_named_with_what_mends_it_beside_the_installed_tensorflow(
    kind: type[Exception],
    installed: dict[str, str],
    command: str,
    shadow: Shadow,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shadow("2.16.2", **installed)
    without_tfds(monkeypatch)
    source = f'raise {kind.__name__}("no such thing\\nin so many lines")'
    (tmp_path / "tensorflow_datasets.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingDependencyError) as raised:
        tensorflow_datasets()
    said = str(raised.value)
    assert said.startswith("TFDS is needed for this and cannot be imported (")
    assert "no such thing" in said
    assert said.partition("; install it with: ")[2].endswith(f" -m pip install {command}")
    assert "\n" not in said


def test_what_is_printed_on_the_way_is_no_answer(
    shadow: Shadow,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """TensorFlow prints that `ssl` cannot be imported where an interrupt came just then."""
    shadow("2.21.0")
    without_tfds(monkeypatch)
    (tmp_path / "tensorflow_datasets.py").write_text('print("Failed to load ssl module.")')
    monkeypatch.syspath_prepend(tmp_path)
    tensorflow_datasets()
    assert capfd.readouterr().out == ""


def test_a_newer_tensorflow_is_warned_of_once(shadow: Shadow) -> None:
    shadow("2.99.0")
    with pytest.warns(UnprovenVersionWarning) as caught:
        assert tensorflow() is tensorflow()
    assert len(caught) == 1
    assert str(caught[0].message) == (
        f"TensorFlow 2.99.0 is newer than any whose orders were compared with these rules "
        f"({LINES[0].name} to {LINES[-1].name}): it may read in another order; `shardctl verify` "
        "compares what it reads here"
    )
    assert caught[0].filename == __file__  # the line that called shardctl


@pytest.mark.parametrize("version", [*(f"{line.name}.9" for line in LINES), "2.3.0", "unknown"])
def test_what_was_compared_is_not_warned_of(version: str, shadow: Shadow) -> None:
    shadow(version)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tensorflow()


def test_a_warning_waits_for_the_end_of_the_silence(shadow: Shadow) -> None:
    told: list[str] = []
    shadow("2.99.0")
    with quiet_tensorflow(told.extend):
        with quiet_tensorflow():
            tensorflow()
        assert not told
    assert len(told) == 1
    shadow("2.98.0")
    with pytest.warns(UnprovenVersionWarning, match=r"2\.98\.0"), quiet_tensorflow():
        tensorflow()


def test_a_module_below_tfds_is_imported_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    below = types.ModuleType("tensorflow_datasets.core.fake")
    monkeypatch.setitem(sys.modules, "tensorflow", types.ModuleType("tensorflow"))
    monkeypatch.setitem(sys.modules, "tensorflow_datasets.core.fake", below)
    assert tensorflow_datasets("core.fake") is below


def test_versions_are_those_of_what_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = types.ModuleType("tensorflow")
    loaded.__version__ = "9.9"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tensorflow", loaded)
    without_tfds(monkeypatch)
    assert versions() == {"tensorflow": "9.9", "tensorflow_datasets": None}


def test_autograph_leaves_a_function_alone(tf: Any) -> None:
    kinds: list[str] = []

    def element(number: object) -> object:
        # AutoGraph would rewrite this function into another one, and call that.
        kinds.append(sys._getframe().f_code.co_filename)
        return number

    list(tf.data.Dataset.range(2).map(without_autograph(element)))
    assert set(kinds) == {__file__}


NOISE = """
import logging, os, sys, warnings
from shardctl.tfds.imports import quiet_tensorflow
print("before", file=sys.stderr)
with quiet_tensorflow():
    os.write(2, b"from C++\\n")
    logging.getLogger("tensorflow").error("logged")
    warnings.warn("warned")
    print("progress", file=sys.stderr)
    {inside}
os.write(2, b"from C++ again\\n")
logging.getLogger("tensorflow").error("logged again")
print(os.environ["CUDA_VISIBLE_DEVICES"], os.environ["TF_CPP_MIN_LOG_LEVEL"])
"""


def said(inside: str = "pass", **env: str) -> tuple[str, str]:
    """Return standard output and error of a program that is noisy in a quiet block."""
    hidden = ("CUDA_VISIBLE_DEVICES", "TF_CPP_MIN_LOG_LEVEL")
    inherited = {name: value for name, value in os.environ.items() if name not in hidden}
    command = [sys.executable, "-c", NOISE.format(inside=inside)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**inherited, **env}
    )
    return done.stdout, done.stderr


@pytest.mark.long
def test_what_is_not_the_commands_own_is_silent_inside_alone() -> None:
    out, err = said()
    assert err.splitlines() == ["before", "progress", "from C++ again", "logged again"]
    assert out == "-1 3\n"


@pytest.mark.slow
def test_an_error_or_who_looks_for_a_fault_ends_the_silence() -> None:
    _, err = said("raise SystemExit('why')")
    assert err.splitlines() == ["before", "progress", "why"]
    out, err = said(SHARDCTL_TRACEBACK="1", TF_CPP_MIN_LOG_LEVEL="0")
    assert out == "-1 0\n"  # a log level of one's own is kept
    assert [word for word in ("from C++\n", "logged\n", "warned") if word not in err] == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="closes a descriptor with a shell")
def test_a_closed_standard_error_is_no_error() -> None:
    program = (
        "from shardctl.tfds.imports import quiet_tensorflow\n"
        "with quiet_tensorflow(): print('still here')\n"
    )
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", program]
    assert subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout == b"still here\n"
