"""Pipes are not waited for where nobody is, and libraries are silent in a block alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shardctl.errors import DatasetError
from shardctl.files.streams import open_stream, read_stdin


def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(DatasetError, match="fifo' is a named pipe, a device or a socket"):
        open_stream(tmp_path / "fifo")


@pytest.mark.parametrize("data", [b"log", b""])
def test_a_pipe_of_this_process_is_read_although_its_writer_has_left(data: bytes) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, data)
    os.close(write_end)
    with open_stream(f"/dev/fd/{read_end}") as stream:
        assert stream.read() == data
    os.close(read_end)


def test_a_device_is_refused_and_the_empty_one_is_empty() -> None:
    with pytest.raises(DatasetError, match="'/dev/zero' is a named pipe, a device or a socket"):
        open_stream("/dev/zero")
    with open_stream(os.devnull) as stream:
        assert stream.read() == b""


def test_stdin_is_read_whole_and_not_beyond_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    for data, bound in ((b"", 0), (b"abc", 3), (b"abcd", 3)):
        read_end, write_end = os.pipe()
        os.write(write_end, data)
        os.close(write_end)
        with open(read_end, "rb") as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            if len(data) <= bound:
                assert read_stdin(max_num_bytes=bound) == data
            else:
                with pytest.raises(DatasetError, match="stdin has more than 3 bytes"):
                    read_stdin(max_num_bytes=bound)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DatasetError, match="stdin is closed"):
        read_stdin(max_num_bytes=3)


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


def test_libraries_are_silent_in_the_block_alone_but_to_who_looks_for_a_fault() -> None:
    said = []
    for env in ({}, {"SHARDCTL_TRACEBACK": "1"}):
        command = [sys.executable, "-c", _NOISE]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env={**os.environ, **env}
        )
        said.append(done.stderr.splitlines())
    # Without a handler of the block's own, Python writes the last line as it is.
    assert said[0] == ["own words", "from C++ again", "logged again"]
    assert {"from C++", "from a process", "own words", "ERROR:apache_beam:logged"} <= set(said[1])
