# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""The options that lint looks at, and how they combine with `lint:` in shardctl.yaml."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from shardctl.cli import completion
from shardctl.cli.options.dataset import setting_in_words
from shardctl.cli.options.shared import Number, Switch, Word, number, option
from shardctl.errors import UsageError

if TYPE_CHECKING:
    from shardctl.metadata.project_file import Project
    from shardctl.verbs.lint.context import Usage


def _seeds(text: Any) -> Any:
    from shardctl.verbs.lint.config_section import parse_seeds

    return parse_seeds(text)


@dataclass(frozen=True, kw_only=True)
class UsageOptions:
    """What a project does besides its order, and which rules count; None where not given.

    Options:
      --eval SPEC: What is evaluated on; splits named test.. or val.. always are; repeatable.
      --hosts N: Number of hosts [default: 1].
      --take N: Examples taken of those read (ds.take).
      --as-data-source: Read with as_data_source, not as_dataset [default: of array_record files].
      --assert-cardinality: Check how many examples there are (ReadConfig.assert_cardinality)
        [default: yes, as TFDS].
      --autocache: Keep a small dataset in memory (ReadConfig.try_autocache) [default: yes, as
        TFDS].
      --seeds A,B: Seeds of several runs, meant to differ.
      --open-files N: Files a process may open [default: as on this machine].
      --select CODES: Only these findings: codes or beginnings, as SC001,SC03; repeatable.
      --ignore CODES: Not these; the longer beginning decides; repeatable.
    """

    NOT_TAKEN: ClassVar[tuple[str, ...]] = ("specs", "fail_on")  # of the file, see `taken`

    evaluated: Annotated[list[str] | None, option("--eval", offered=completion.splits)] = None
    num_hosts: Annotated[Any, number("--hosts")] = None
    take: Number = None
    as_data_source: Switch = None
    assert_cardinality: Switch = None
    autocache: Switch = None
    seeds: Annotated[Any, option(parse=_seeds)] = None
    open_files: Number = None
    select: Annotated[list[str] | None, option(offered=completion.code_lists)] = None
    ignore: Annotated[list[str] | None, option(offered=completion.code_lists)] = None

    def arguments(self, project: "Project") -> dict[str, Any]:
        """Return what is given here, over `lint:` of the project, each by its name there.

        Raises:
            UsageError: a value of another kind, or a name that lint does not know.
        """
        from shardctl.draw.setting_origins import located
        from shardctl.verbs.lint.answer import chosen_rules
        from shardctl.verbs.lint.config_section import lint_arguments

        try:
            stated = lint_arguments(project.lint)
        except UsageError as error:
            raise located(error, project, "lint") from None
        given = self.given()
        arguments = {**stated, **given}
        try:
            chosen_rules(arguments.get("select", ()), arguments.get("ignore", ()))
        except UsageError as error:
            raise located(error, project, "lint", given) from None
        return arguments

    def taken(self, project: "Project") -> Iterator[str]:
        """Yield what is left to `lint:` of a project, in words; see `project_here`."""
        given = {*self.given(), *(("specs",) if self.evaluated else ())}
        for key, value in project.lint.items():
            name = key.replace("-", "_")
            if name not in given and name not in self.NOT_TAKEN and value is not None:
                yield setting_in_words(f"lint {key}", value)

    def given(self) -> dict[str, Any]:
        """Return what is given here, each by its name under `lint:`."""
        from shardctl.verbs.lint.config_section import comma_separated

        given = {
            "eval": self.evaluated and tuple(self.evaluated),
            "hosts": self.num_hosts,
            "take": self.take,
            "as_data_source": self.as_data_source,
            "assert_cardinality": self.assert_cardinality,
            "autocache": self.autocache,
            "seeds": self.seeds,
            "open_files": self.open_files,
            "select": self.select and [c for text in self.select for c in comma_separated(text)],
            "ignore": self.ignore and [c for text in self.ignore for c in comma_separated(text)],
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class LintOptions(UsageOptions):
    """The same, and which findings make lint exit with 1.

    Options:
      --fail-on error|warning|notice: The least that makes lint exit with 1
        [default: notice, which is any finding].
    """

    NOT_TAKEN: ClassVar[tuple[str, ...]] = ()

    fail_on: Word = None

    def given(self) -> dict[str, Any]:
        """Return what is given here, each by its name under `lint:`."""
        given = super().given()
        return given if self.fail_on is None else {**given, "fail_on": self.fail_on}


def usage_of(arguments: dict[str, Any]) -> "Usage":
    """Return what the arguments say besides the specs and the rules."""
    from shardctl.verbs.lint.context import Usage

    return Usage(
        hosts=arguments.get("hosts"),
        take=arguments.get("take"),
        as_data_source=arguments.get("as_data_source"),
        assert_cardinality=arguments.get("assert_cardinality", True),
        try_autocache=arguments.get("autocache", True),
        seeds=arguments.get("seeds", ()),
        max_open_files=arguments.get("open_files") or _open_file_limit(),
    )


def _open_file_limit() -> int | None:
    """Return how many files a process may open on this machine, None where it does not say."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if limit == resource.RLIM_INFINITY else max(limit, 1)
