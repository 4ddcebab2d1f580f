"""What libraries say is kept to themselves while a block runs, and no longer."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

from shardctl.files.streams import silent_libraries

_NOISE = """
import logging, os, subprocess, sys, threading, warnings
from shardctl.files.streams import silent_libraries
with silent_libraries():
    logging.basicConfig()
    os.write(2, b"from C++\\n")
    subprocess.run([sys.executable, "-c", "import sys; sys.stderr.write('from a process\\\\n')"])
    logging.getLogger("apache_beam").error("logged")
    warnings.warn("warned")
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    print("own words", file=sys.stderr)
os.write(2, b"from C++ again\\n")
logging.getLogger("apache_beam").error("logged again")
"""


def _said(**env: str) -> list[str]:
    command = [sys.executable, "-c", _NOISE]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **env}
    )
    return done.stderr.splitlines()


def test_libraries_are_silent_in_the_block_alone() -> None:
    # Without a handler of the block's own, Python writes the last line as it is.
    assert _said() == ["own words", "from C++ again", "logged again"]


def test_everything_is_shown_to_who_looks_for_a_fault() -> None:
    said = _said(SHARDCTL_TRACEBACK="1")
    assert {"from C++", "from a process", "own words"} <= set(said)
    assert "ERROR:apache_beam:logged" in said


def test_handlers_of_logging_are_as_they_were() -> None:
    root = logging.root
    before, handler = [*root.handlers], logging.NullHandler()
    with silent_libraries():
        root.addHandler(handler)
        assert not root.isEnabledFor(logging.CRITICAL)
    assert root.handlers == before
    assert root.isEnabledFor(logging.CRITICAL)
