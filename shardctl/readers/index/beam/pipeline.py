"""What the workers of a Beam pipeline do: a line of text is a file to count, or what one holds.

Lines are JSON in ASCII, so that names of any bytes go there and back, and no version of Python or
of shardctl on a worker changes what they mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from shardctl.core.text import quoted
from shardctl.errors import DatasetError, ShardctlError
from shardctl.files.stores.store import StoredFile
from shardctl.readers.index.runner import CountedFile, FileToCount, count_one
from shardctl.readers.records.contents import Damage, FileContents

BROKEN = "broken"  # the output of files that are damaged, and of those that a worker cannot count
NAMESPACE, FILES, BYTES = "shardctl", "files_counted", "bytes_read"  # its metrics


def task_line(task: FileToCount) -> str:
    """Return a file to count as a line."""
    return json.dumps(asdict(task))


def task_of_line(line: str) -> FileToCount:
    """Return the file that a line says.

    >>> task = FileToCount(index=3, file=StoredFile(path="a", num_bytes=5), file_format="tfrecord")
    >>> task_of_line(task_line(task)) == task
    True
    """
    said = json.loads(line)
    return FileToCount(**{**said, "file": StoredFile(**said["file"])})


def counted_line(counted: CountedFile) -> str:
    """Return what a file holds as a line."""
    return json.dumps([counted.index, asdict(counted.contents)])


def counted_of_line(line: str) -> CountedFile | str:
    """Return what a line says that a file holds, or why a worker could not count it.

    >>> damage = Damage(kind="cut", text="cut off", record=1, byte=20)
    >>> counted = CountedFile(index=3, contents=FileContents(num_records=1, damage=damage))
    >>> counted_of_line(counted_line(counted)) == counted
    True

    Raises:
        DatasetError: a line that this version of shardctl does not write.
    """
    try:
        index, said = json.loads(line)
        if isinstance(said, str):
            return said
        damage = None if said["damage"] is None else Damage(**said["damage"])
        return CountedFile(index=index, contents=FileContents(**{**said, "damage": damage}))
    except (ValueError, TypeError, KeyError) as error:
        raise DatasetError(
            f"a worker of Beam answered {quoted(line, 100)}: it needs shardctl of this version"
        ) from error


def count_line(line: str) -> Iterator[Any]:
    """Count the file of a line on a worker; yield what it holds, damaged files to their output.

    What a worker lacks, a package that the format needs, is an answer and no exception: Beam would
    try again, and say it with a hundred lines.
    """
    from apache_beam.metrics import Metrics
    from apache_beam.pvalue import TaggedOutput

    task = task_of_line(line)
    try:
        counted = count_one(task)
    except (ShardctlError, ValueError) as error:
        yield TaggedOutput(BROKEN, json.dumps([task.index, str(error)]))
        return
    Metrics.counter(NAMESPACE, FILES).inc()
    Metrics.counter(NAMESPACE, BYTES).inc(counted.contents.num_bytes_read)
    answer = counted_line(counted)
    yield answer if counted.contents.damage is None else TaggedOutput(BROKEN, answer)


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
