"""Files counted by a Beam pipeline: on this machine, or by workers of Dataflow, Flink or Spark.

The list of files goes to a folder as text, and what was counted comes back there as text: neither
is held in memory by the process that submits the pipeline, nor sent through the runner.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any

from shardctl.base.arguments import checked
from shardctl.base.install import imported
from shardctl.base.text import choices, in_short, printable, quoted
from shardctl.base.text import counted as number_of
from shardctl.errors import DatasetError, MissingDependencyError, ShardctlError, UsageError
from shardctl.files.streams import silent_libraries
from shardctl.metadata.index.workers import CountedFile, FileToCount, count_one
from shardctl.records.contents import Damage, FileContents
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import is_remote

_POLL = 1.0  # seconds between two questions how far a pipeline is
_ERROR = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Refused|Denied)\b.*")


# The runner that is used where none is named. Beam's `DirectRunner` would first look for Prism, a
# program that it downloads, and then be this one.
_DEFAULT = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"
# Runners whose job server, a program of Java, may know options that Beam's Python does not.
_WITH_JOB_SERVER = ("FlinkRunner", "SparkRunner", "PortableRunner", "KafkaStreamsRunner")


@checked
def beam_runner(*options: str) -> BeamRunner:
    """Return what counts files by a Beam pipeline, for `index` and `verify_files`.

    Args:
        options: of Beam, as they are written on a command line; they are checked here. Without a
            `--runner` among them the pipeline runs on this machine.

    Returns:
        What `index` and `verify_files` take as `runner`; the pipeline runs when they count.

    Raises:
        UsageError: an option that Beam does not know, a value that it does not take, a runner that
            it does not have, or no place for results that workers elsewhere can write to.
        MissingDependencyError: Beam, or a package that its runner needs, is not installed.

    >>> import shardctl
    >>> runner = shardctl.beam_runner("--direct_num_workers=2")
    >>> shardctl.index("data/", runner=runner)  # doctest: +SKIP
    <Index data: 1,797 examples, 14 files>
    """
    return BeamRunner(options)


class BeamRunner:
    """Counts files by a Beam pipeline with checked options; see `Runner` and `beam_runner`.

    name: of Beam's runner. temp_location: where it keeps its files, None for on this machine.
    """

    def __init__(self, options: Sequence[str]) -> None:
        with silent_libraries():
            imported("apache_beam", "Apache Beam", "apache-beam")
            from apache_beam.options.pipeline_options import StandardOptions
        with silent_libraries():
            self._options, given, unknown = _parsed(options)
            self._runner = _runner(given["runner"] or _DEFAULT)
        kind = type(self._runner).__name__
        self.name = (given["runner"] or "FnApiRunner").rpartition(".")[2]
        self.temp_location: str | None = given["temp_location"]
        # Beam itself drops what it does not know.
        if unknown and kind not in _WITH_JOB_SERVER:
            raise UsageError(f"Beam knows no option {quoted(f'--{min(unknown)}', 200)}")
        local = not given["runner"] or kind in (*StandardOptions.LOCAL_RUNNERS, "FnApiRunner")
        if not local and not self.temp_location:
            raise UsageError(
                f"{kind} has its workers elsewhere: give --temp_location after --, a folder that "
                "they and this machine can write to, where the counts come back"
            )

    def __repr__(self) -> str:
        return in_short(self, self.name)

    def count(self, files: Iterable[FileToCount]) -> Iterator[CountedFile]:
        """Yield what each file holds, once the pipeline is done.

        Raises:
            DatasetError: the pipeline failed, or did not answer for every file.
            UsageError: files that its workers cannot reach, or a folder that cannot be written to.
            MissingDependencyError: a package that workers need is not installed there.
        """
        lines = self._reachable(files)
        # Without a file to count no pipeline is started, which takes seconds.
        first = next(lines, None)
        if first is None:
            return
        folder = _WorkFolder(self.temp_location)
        try:
            with silent_libraries():
                number = folder.write("files", chain([first], lines))
                self._run(folder)
            yield from _answers(folder, number)
        finally:
            with silent_libraries():
                folder.remove()

    def _reachable(self, files: Iterable[FileToCount]) -> Iterator[str]:
        for task in files:
            if self.name == "DataflowRunner" and not is_remote(task.file.path):
                raise UsageError(
                    f"{quoted(task.file.path, 200)} is on this machine, where workers of Dataflow "
                    "do not see it; copy the files to a bucket, or use --runner local"
                )
            yield task_line(task)

    def _run(self, folder: _WorkFolder) -> None:
        import apache_beam as beam
        from apache_beam.runners.runner import PipelineState

        result: Any = None
        try:
            pipeline = beam.Pipeline(runner=self._runner, options=self._options)
            add_counting(pipeline, folder.path("files"), folder.path("counts"))
            result = pipeline.run()
            # Polled, so that an interrupt arrives here, where the pipeline is cancelled.
            while not PipelineState.is_terminal(result.state):
                time.sleep(_POLL)
            state = result.wait_until_finish() or result.state  # raises what a worker said
            if state != PipelineState.DONE:
                raise DatasetError(f"Beam's {self.name} ended with {state}")
        except KeyboardInterrupt:
            if result is not None:
                with contextlib.suppress(Exception):
                    result.cancel()
            _wait_for_workers()
            raise
        except ShardctlError:
            raise
        except (Exception, SystemExit) as error:
            raise DatasetError(f"Beam's {self.name} failed: {_reason(error)}") from error


class _WorkFolder:
    """A folder of one run, where the pipeline's temporary files are, or of this machine."""

    def __init__(self, temp_location: str | None) -> None:
        from apache_beam.io.filesystems import FileSystems

        self._files: Any = FileSystems
        self._local = None
        if temp_location is None:
            self._local = self._folder = tempfile.mkdtemp(prefix="shardctl-beam-")
        else:
            self._folder = f"{temp_location.rstrip('/')}/shardctl-{uuid.uuid4().hex}"

    def path(self, name: str) -> str:
        return f"{self._folder}/{name}"

    def write(self, name: str, lines: Iterable[str]) -> int:
        """Write lines, and return how many there were."""
        number = 0
        with self._failing():
            if self._local is None:
                self._files.mkdirs(self._folder)
            with self._files.create(self.path(name), "text/plain") as file:
                for line in lines:
                    file.write(f"{line}\n".encode("ascii"))
                    number += 1
        return number

    def lines(self, name: str) -> Iterator[str]:
        """Yield the lines of all files whose names begin so."""
        with self._failing(), silent_libraries():
            (found,) = self._files.match([f"{self.path(name)}*"])
            paths = sorted(metadata.path for metadata in found.metadata_list)
        for path in paths:
            with self._failing(), self._files.open(path, "text/plain") as file:
                for line in file:
                    yield line.decode("ascii").rstrip("\n")

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except (ShardctlError, GeneratorExit):
            raise
        except Exception as error:
            raise UsageError(
                f"cannot use {quoted(self._folder, 200)} for the files of the pipeline: "
                f"{_reason(error)}; --temp_location after -- names another folder"
            ) from error

    def remove(self) -> None:
        """Remove the folder, as far as that is possible."""
        with contextlib.suppress(Exception):
            self._files.delete([self._folder])


def _answers(folder: _WorkFolder, number: int) -> Iterator[CountedFile]:
    """Yield what came back, each file once."""
    seen = set[int]()
    for line in folder.lines("counts"):
        counted = counted_of_line(line)
        if isinstance(counted, str):
            raise MissingDependencyError(f"a worker of Beam cannot count: {counted}")
        # Beam may run a step twice after a failure: then the answers cannot be trusted as they are.
        if counted.index in seen:
            raise DatasetError("Beam answered twice for a file; please try again")
        seen.add(counted.index)
        yield counted
    if len(seen) != number:
        files = number_of(number, "file")
        raise DatasetError(f"Beam answered for {len(seen)} of {files}; please try again")


def _wait_for_workers() -> None:
    """Let threads of Beam end that wait for workers here: the interrupt has ended these too."""
    for thread in threading.enumerate():
        if thread.name.startswith("run_worker"):
            thread.join(_POLL)


def _reason(error: BaseException) -> str:
    """Return the line of an error that says why: of a worker's traceback the last one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # A traceback names the error in its last lines, below many of Beam's own.
    errors = [found.group(0) for line in lines if (found := _ERROR.match(line))]
    said = errors[-1] if errors else ": ".join([type(error).__name__, *lines[:1]])
    return printable(re.sub(r"\s*\[while running.*$", "", said), 400)


# What the workers of a Beam pipeline do: a line of text is a file to count, or what one holds.
#
# Lines are JSON in ASCII, so that names of any bytes go there and back, and no version of Python
# or of shardctl on a worker changes what they mean.


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
    """Count the file of a line on a worker; yield what it holds.

    What a worker lacks, a package that the format needs, is an answer and no exception: Beam would
    try again, and say it with a hundred lines.
    """
    task = task_of_line(line)
    try:
        yield counted_line(count_one(task))
    except (ShardctlError, ValueError) as error:
        yield json.dumps([task.index, str(error)])


def add_counting(pipeline: Any, tasks: str, counts: str) -> None:
    """Add to a pipeline: count the files in the lines of `tasks`, and write files `counts-..`."""
    import apache_beam as beam

    _ = (
        pipeline
        | "Files to count" >> beam.io.ReadFromText(tasks, validate=False)
        # Without it a worker counts all files of a block of the list, whatever their size.
        | "One at a time" >> beam.Reshuffle()
        | "Count" >> beam.FlatMap(count_line)
        | "Write counts" >> beam.io.WriteToText(counts)
    )


def _parsed(words: Sequence[str]) -> tuple[Any, dict[str, Any], set[str]]:
    """Return options as Beam takes them, their values, and the names of those it does not know."""
    from apache_beam.options.pipeline_options import PipelineOptions

    if words and not words[0].startswith("-"):
        word = quoted(words[0], 200)
        raise UsageError(f"options of Beam: {word} belongs to no option; they begin with --")
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            options = PipelineOptions(list(words))
            # Beam drops unknown options silently: the difference of the two lists names them.
            given = options.get_all_options()
            unknown = options.get_all_options(retain_unknown_options=True).keys() - given.keys()
    # argparse ends the program at a bad value, after it has printed why.
    except SystemExit:
        last = said.getvalue().strip().splitlines()[-1:] or ["they cannot be read"]
        why = printable(last[0].partition("error: ")[2] or last[0], 300)
        raise UsageError(f"options of Beam: {why}") from None
    return options, given, unknown


def _runner(name: str) -> Any:
    """Return the runner of a name."""
    from apache_beam.options.pipeline_options import StandardOptions
    from apache_beam.runners.runner import create_runner

    try:
        return create_runner(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"runner {quoted(name, 200)} cannot be imported: {printable(str(error), 300)}"
        ) from error
    except Exception:
        known = choices(StandardOptions.KNOWN_RUNNER_NAMES)
        raise UsageError(f"Beam has no runner {quoted(name, 200)}; it has {known}") from None
