"""TFRecord files of any bytes, and what the real TensorFlow does with them."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def crc32c(data: bytes) -> int:
    """Return CRC32C by its definition: the remainder of a division of polynomials, bit by bit."""
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


def stored(data: bytes) -> bytes:
    """Return the checksum of data as a TFRecord file holds it (tfrecord.md of TensorFlow)."""
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) % 2**32)


def header(length: int) -> bytes:
    """Return the header of a record that says to be so long, with its checksum."""
    data = struct.pack("<Q", length)
    return data + stored(data)


def framed(*records: bytes) -> bytes:
    """Return a TFRecord file of some records."""
    return b"".join(header(len(data)) + data + stored(data) for data in records)


_READ_BY_TENSORFLOW = r"""
import json, os, signal, sys
import tensorflow as tf

for path in json.load(sys.stdin):
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(4)
        num_read, said = 0, None
        try:
            for _ in tf.data.TFRecordDataset(path):
                num_read += 1
        except Exception as error:
            said = str(error)
        os.write(writes, json.dumps([num_read, said]).encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    print(json.dumps(json.loads(answer) if answer else killed), flush=True)
"""


def read_by_tensorflow(paths: Sequence[Path]) -> list[tuple[int, str | None] | int]:
    """Return what TensorFlow does with each file, in a process of its own.

    That is how many records it reads and what it then says, or the signal that ended it; SIGALRM
    after four seconds.
    """
    ran = subprocess.run(
        [sys.executable, "-c", _READ_BY_TENSORFLOW],
        input=json.dumps([str(path) for path in paths]).encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=300,
    )
    answers = map(json.loads, ran.stdout.splitlines())
    return [tuple(answer) if isinstance(answer, list) else answer for answer in answers]
