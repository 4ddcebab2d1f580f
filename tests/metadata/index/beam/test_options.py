"""Options that Beam would drop in silence, or refuse with a page, end in one line."""

from __future__ import annotations

import re
import shlex
import sys

import pytest

from shardctl.errors import MissingDependencyError, UsageError
from shardctl.guide.guides import read_guide
from shardctl.metadata.index.beam_runner import beam_options


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--runer=x"], r"Beam knows no option '--runer'"),
        (["--direct_num_worker", "2"], "knows no option '--direct_num_worker'"),
        (["two"], "'two' belongs to no option"),
        (["--direct_num_workers=two"], "invalid int value: 'two'"),
        (["--direct_num_workers"], "expected one argument"),
        (["--direct_running_mode=threads"], "invalid choice: 'threads'"),
        (["--runner=NoRunner"], "Beam has no runner 'NoRunner'; it has .*DirectRunner"),
        (["--runner=FlinkRunner"], "FlinkRunner has its workers elsewhere: give --temp_location"),
        (["--runner=SparkRunner", "--parallelism=3"], "SparkRunner has its workers elsewhere"),
    ],
)
def test_what_beam_does_not_take_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        beam_options(words)
    assert "\n" not in str(caught.value)


def test_options_of_a_job_server_are_handed_on() -> None:
    words = ["--runner=FlinkRunner", "--temp_location=/shared", "--fasterCopy"]
    options = beam_options(words)
    assert (options.name, options.temp_location) == ("FlinkRunner", "/shared")


def test_without_a_runner_nothing_is_downloaded() -> None:
    assert beam_options([]).name == "FnApiRunner"


def test_a_runner_of_a_package_that_is_missing() -> None:
    with pytest.raises(MissingDependencyError, match="no_such_package"):
        beam_options(["--runner=no_such_package.Runner"])


def test_beam_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    installs = re.escape("pip install 'shardctl[beam]'")
    with pytest.raises(MissingDependencyError, match=f"^Apache Beam is needed .*{installs}$"):
        beam_options([])


def test_beam_knows_the_options_of_the_guide() -> None:
    from apache_beam.options.pipeline_options import PipelineOptions

    text = read_guide("petabyte").text.replace("\\\n", " ")
    commands = [line for line in text.splitlines() if re.search("--runner beam.* -- ", line)]
    assert len(commands) >= 4
    runners = []
    for command in commands:
        words = shlex.split(command.removeprefix("$ ").partition(" -- ")[2])
        runners.append(beam_options(words).name)
        of_java = [word for word in words if not word.startswith("--parallelism")]
        known = PipelineOptions(of_java).get_all_options()
        assert known == PipelineOptions(of_java).get_all_options(retain_unknown_options=True)
    assert {"DataflowRunner", "FlinkRunner", "SparkRunner", "FnApiRunner"} <= set(runners)
