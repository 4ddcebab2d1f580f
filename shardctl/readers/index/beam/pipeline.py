"""What the workers of a Beam pipeline do: a line of text is a file to count, or what one holds.

Lines are JSON in ASCII, so that names of any bytes go there and back, and no version of Python or
of shardctl on a worker changes what they mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from shardctl.files.stores.store import StoredFile
from shardctl.readers.index.runner import CountedFile, FileToCount
from shardctl.readers.records.contents import Damage, FileContents

BROKEN = "broken"  # the output of files that are damaged, and of those that a worker cannot count
NAMESPACE, FILES, BYTES = "shardctl", "files_counted", "bytes_read"  # its metrics


def task_line(task: FileToCount) -> str:
    """Return a file to count as a line."""
    file = task.file
    listed = [file.num_bytes, file.version]
    return json.dumps([task.index, file.path, listed, task.file_format, task.checksums])


def path_line(index: int, path: str, file_format: str) -> str:
    """Return a path as a line: whatever is there is to be counted and checked."""
    return json.dumps([index, path, None, file_format, True])


def counted_line(counted: CountedFile) -> str:
    """Return what a file holds as a line."""
    return json.dumps([counted.index, asdict(counted.contents)])


def counted_of_line(line: str) -> CountedFile | str:
    """Return what a line says that a file holds, or why a worker could not count it.

    >>> damage = Damage(kind="cut", text="cut off", record=1, byte=20)
    >>> counted = CountedFile(index=3, contents=FileContents(num_records=1, damage=damage))
    >>> counted_of_line(counted_line(counted)) == counted
    True
    """
    index, said = json.loads(line)
    if isinstance(said, str):
        return said
    damage = None if said["damage"] is None else Damage(**said["damage"])
    return CountedFile(index=index, contents=FileContents(**{**said, "damage": damage}))


def count_line(line: str) -> Iterator[Any]:
    """Count the file of a line on a worker; yield what it holds, damaged files to their output.

    What a worker lacks, a package that the format needs, is an answer and no exception: Beam would
    try again, and say it with a hundred lines.
    """
    from apache_beam.metrics import Metrics
    from apache_beam.pvalue import TaggedOutput

    from shardctl.errors import ShardctlError
    from shardctl.readers.records.read_file import count_file, read_record_file

    index, path, listed, file_format, checksums = json.loads(line)
    try:
        if listed is None:
            contents = read_record_file(path, file_format, checksums=checksums)
        else:
            file = StoredFile(path=path, num_bytes=listed[0], version=listed[1])
            contents = count_file(file, file_format, checksums=checksums)
    except (ShardctlError, ValueError) as error:
        yield TaggedOutput(BROKEN, json.dumps([index, str(error)]))
        return
    Metrics.counter(NAMESPACE, FILES).inc()
    Metrics.counter(NAMESPACE, BYTES).inc(contents.num_bytes_read)
    answer = counted_line(CountedFile(index=index, contents=contents))
    yield answer if contents.damage is None else TaggedOutput(BROKEN, answer)


def add_counting(pipeline: Any, tasks: str, whole: str, broken: str) -> None:
    """Add to a pipeline: files to count, one a line of `tasks`, into files that begin as told."""
    import apache_beam as beam

    counted = (
        pipeline
        | "Files to count" >> beam.io.ReadFromText(tasks, validate=False)
        # Without it a worker counts all files of a block of the list, whatever their size.
        | "One at a time" >> beam.Reshuffle()
        | "Count" >> beam.FlatMap(count_line).with_outputs(BROKEN, main="whole")
    )
    _ = counted.whole | "Write counts" >> beam.io.WriteToText(whole)
    _ = counted[BROKEN] | "Write damage" >> beam.io.WriteToText(broken)
