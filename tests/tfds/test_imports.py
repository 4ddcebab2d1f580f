"""TensorFlow and TFDS are imported late, and what is missing is named with what installs it."""

from __future__ import annotations

import os
import subprocess
import sys
import types

import pytest

from shardctl.errors import MissingDependencyError
from shardctl.tfds.imports import tensorflow, tensorflow_datasets, versions, without_autograph

INSTALLS = r"install it with: pip install 'shardctl\[tfds\]'$"


def test_what_is_missing_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(MissingDependencyError, match=f"^TensorFlow is needed .*{INSTALLS}"):
        tensorflow()
    # TFDS without TensorFlow says less about what is missing, so TensorFlow is asked for first.
    with pytest.raises(MissingDependencyError, match=f"^TensorFlow is needed .*{INSTALLS}"):
        tensorflow_datasets()
    monkeypatch.setitem(sys.modules, "tensorflow", types.ModuleType("tensorflow"))
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(MissingDependencyError, match=f"^TFDS is needed .*{INSTALLS}"):
        tensorflow_datasets()


def test_a_module_below_tfds_is_imported_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    below = types.ModuleType("tensorflow_datasets.core.fake")
    monkeypatch.setitem(sys.modules, "tensorflow", types.ModuleType("tensorflow"))
    monkeypatch.setitem(sys.modules, "tensorflow_datasets.core.fake", below)
    assert tensorflow_datasets("core.fake") is below


def test_versions_are_those_of_what_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = types.ModuleType("tensorflow")
    loaded.__version__ = "9.9"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tensorflow", loaded)
    monkeypatch.delitem(sys.modules, "tensorflow_datasets", raising=False)
    assert versions() == {"tensorflow": "9.9", "tensorflow_datasets": None}


def test_autograph_leaves_a_function_alone() -> None:
    import tensorflow as tf

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


def test_what_is_not_the_commands_own_is_silent_inside_alone() -> None:
    out, err = said()
    assert err.splitlines() == ["before", "progress", "from C++ again", "logged again"]
    assert out == "-1 3\n"


def test_an_error_in_the_block_ends_the_silence() -> None:
    _, err = said("raise SystemExit('why')")
    assert err.splitlines() == ["before", "progress", "why"]


def test_everything_is_shown_to_who_looks_for_a_fault() -> None:
    _, err = said(SHARDCTL_TRACEBACK="1")
    for words in ("from C++\n", "logged\n", "warned"):
        assert words in err


def test_a_log_level_of_ones_own_is_kept() -> None:
    out, _ = said(TF_CPP_MIN_LOG_LEVEL="0")
    assert out == "-1 0\n"


@pytest.mark.skipif(sys.platform == "win32", reason="closes a descriptor with a shell")
def test_a_closed_standard_error_is_no_error() -> None:
    program = (
        "from shardctl.tfds.imports import quiet_tensorflow\n"
        "with quiet_tensorflow(): print('still here')\n"
    )
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", program]
    assert subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout == b"still here\n"
