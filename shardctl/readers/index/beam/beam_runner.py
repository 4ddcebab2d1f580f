"""Files counted by a Beam pipeline: on this machine, or by workers of Dataflow, Flink or Spark.

The list of files goes to a folder as text, and what was counted comes back there as text: neither
is held in memory by the process that submits the pipeline, nor sent through the runner.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from shardctl.core.arguments.checked import checked
from shardctl.core.progress import Progress, Watch
from shardctl.core.text import counted as number_of
from shardctl.core.text import in_short, printable, quoted
from shardctl.errors import DatasetError, MissingDependencyError, ShardctlError, UsageError
from shardctl.files.silence import silent_libraries
from shardctl.files.stores.stores import is_remote
from shardctl.readers.index.beam.options import BeamOptions, beam_options
from shardctl.readers.index.beam.pipeline import (
    FILES,
    NAMESPACE,
    add_counting,
    counted_of_line,
    task_line,
)
from shardctl.readers.index.runner import CountedFile, FileToCount

_POLL = 1.0  # seconds between two questions how far a pipeline is
_BUFFER = 1 << 16
_ERROR = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Refused|Denied)\b.*")


@checked
def beam_runner(*options: str, watch: Watch | None = None) -> BeamRunner:
    """Return what counts files by a Beam pipeline, for `index` and `verify_files`.

    Args:
        options: of Beam, as they are written on a command line; they are checked here. Without a
            `--runner` among them the pipeline runs on this machine.
        watch: is called with the files counted so far, where Beam tells while the pipeline runs.

    Returns:
        What `index` and `verify_files` take as `runner`; the pipeline runs when they count.

    Raises:
        UsageError: options that Beam does not take.
        MissingDependencyError: Beam, or a package that its runner needs, is not installed.

    >>> import shardctl
    >>> runner = shardctl.beam_runner("--direct_num_workers=2")
    >>> shardctl.index("data/", runner=runner)  # doctest: +SKIP
    <Index data: 1,797 examples, 14 files>
    """
    return BeamRunner(options, watch=watch)


class BeamRunner:
    """Counts files by a Beam pipeline with checked options; see `Runner` and `beam_runner`."""

    def __init__(self, options: Sequence[str], *, watch: Watch | None = None) -> None:
        with silent_libraries():
            self._options: BeamOptions = beam_options(options)
        self._watch = watch

    @property
    def name(self) -> str:
        """The name of Beam's runner."""
        return self._options.name

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
        first = next(lines, None)
        if first is None:
            return
        folder = _WorkFolder(self._options)
        try:
            with silent_libraries():
                number = folder.write("files", chain([first], lines))
                self._run(folder, Progress(self._watch, "files counted by Beam", number))
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

    def _run(self, folder: _WorkFolder, progress: Progress) -> None:
        import apache_beam as beam

        result: Any = None
        try:
            pipeline = beam.Pipeline(runner=self._options.runner, options=self._options.pipeline)
            places = map(folder.path, ("files", "whole", "broken"))
            add_counting(pipeline, *places)
            result = pipeline.run()
            self._wait(result, progress)
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

    def _wait(self, result: Any, progress: Progress) -> None:
        from apache_beam.runners.runner import PipelineState

        known = 0
        while not PipelineState.is_terminal(result.state):
            time.sleep(_POLL)
            found = _num_counted(result)
            progress.advance(max(found - known, 0))
            known = max(found, known)
        state = result.wait_until_finish()  # raises what a worker said
        if (state or result.state) != PipelineState.DONE:
            raise DatasetError(f"Beam's {self.name} ended with {state or result.state}")


class _WorkFolder:
    """A folder of one run, where the pipeline's temporary files are, or of this machine."""

    def __init__(self, options: BeamOptions) -> None:
        from apache_beam.io.filesystems import FileSystems

        self._files: Any = FileSystems
        self._local = None
        if options.temp_location is None:
            self._local = self._folder = tempfile.mkdtemp(prefix="shardctl-beam-")
        else:
            self._folder = f"{options.temp_location.rstrip('/')}/shardctl-{uuid.uuid4().hex}"

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
                rest = b""
                while block := file.read(_BUFFER):
                    *lines, rest = (rest + block).split(b"\n")
                    for line in lines:
                        yield line.decode("ascii")

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
            if self._local is not None:
                shutil.rmtree(self._local)
            else:
                self._files.delete([self._folder])


def _answers(folder: _WorkFolder, number: int) -> Iterator[CountedFile]:
    """Yield what came back, each file once."""
    seen = bytearray()
    found = 0
    for name in ("whole", "broken"):
        for line in folder.lines(name):
            counted = counted_of_line(line)
            if isinstance(counted, str):
                raise MissingDependencyError(f"a worker of Beam cannot count: {counted}")
            if counted.index >= len(seen):
                seen.extend(bytes(counted.index + 1 - len(seen) + _BUFFER))
            if seen[counted.index]:
                raise DatasetError("Beam answered twice for a file; please try again")
            seen[counted.index] = 1
            found += 1
            yield counted
    if found != number:
        raise DatasetError(
            f"Beam answered for {found} of {number_of(number, 'file')}; please try again"
        )


def _wait_for_workers() -> None:
    """Let threads of Beam end that wait for workers here: the interrupt has ended these too."""
    for thread in threading.enumerate():
        if thread.name.startswith("run_worker"):
            thread.join(_POLL)


def _num_counted(result: Any) -> int:
    """Return how many files workers counted so far, as far as the runner tells."""
    from apache_beam.metrics import MetricsFilter

    with contextlib.suppress(Exception):
        wanted = MetricsFilter().with_namespace(NAMESPACE).with_name(FILES)
        counters = result.metrics().query(wanted)["counters"]
        return sum(int(counter.attempted or counter.committed or 0) for counter in counters)
    return 0


def _reason(error: BaseException) -> str:
    """Return the line of an error that says why: of a worker's traceback the last one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    errors = [found.group(0) for line in lines if (found := _ERROR.match(line))]
    said = errors[-1] if errors else ": ".join([type(error).__name__, *lines[:1]])
    return printable(re.sub(r"\s*\[while running.*$", "", said), 400)
