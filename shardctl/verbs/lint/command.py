# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl lint`: what goes wrong with the way a project reads a dataset."""

import contextlib
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardctl.cli import completion
from shardctl.cli.options import shared
from shardctl.cli.options.dataset import DatasetOptions, chosen_dataset, project_here
from shardctl.cli.options.order import OrderOptions
from shardctl.cli.output import OutputOptions, as_table, as_text, formats_of, say, write
from shardctl.errors import UsageError
from shardctl.settings.table import SETTING_BY_FIELD

if TYPE_CHECKING:
    from shardctl.metadata.project_file import Project
    from shardctl.verbs.lint.answer import Lint
    from shardctl.verbs.lint.context import Usage


# The options that lint looks at, and how they combine with `lint:` in shardctl.yaml.


def _seeds(text: Any) -> Any:
    from shardctl.verbs.lint.answer import parse_seeds

    return parse_seeds(text)


_Evaluated = Annotated[list[str] | None, shared.option("--eval", offered=completion.splits)]
_Codes = Annotated[list[str] | None, shared.option(offered=completion.codes)]


@dataclass(frozen=True, kw_only=True)
class UsageOptions:
    """What a project does besides its order, and which rules count; None where not given.

    Options:
      --eval SPEC: A split or slice for evaluation, besides splits named test or val; repeatable.
      --hosts N: Number of hosts [default: 1].
      --select CODES: Only these rules: codes or beginnings of codes, as SC001,SC03; repeatable.
      --ignore CODES: Not these rules; the longer beginning of a code wins; repeatable.

    More options:
      --take N: Number of examples of ds.take behind the reader.
      --as-data-source: Read with as_data_source, not as_dataset [default: of array_record files].
      --assert-cardinality: Assert the number of examples (ReadConfig.assert_cardinality)
        [default: yes, as TFDS].
      --autocache: Cache a small dataset in memory (ReadConfig.try_autocache) [default: yes, as
        TFDS].
      --seeds A,B: Seeds of several runs that should have different orders.
      --open-files N: Files a process may open [default: as on this machine].
    """

    evaluated: _Evaluated = None
    num_hosts: Annotated[Any, shared.number("--hosts")] = None
    take: shared.Number = None
    as_data_source: shared.Switch = None
    assert_cardinality: shared.Switch = None
    autocache: shared.Switch = None
    seeds: Annotated[Any, shared.option(parse=_seeds)] = None
    open_files: shared.Number = None
    select: _Codes = None
    ignore: _Codes = None

    def arguments(self, project: "Project") -> dict[str, Any]:
        """Return what is given here, over `lint:` of the project, each by its name there.

        Raises:
            UsageError: a value of another kind, or a name that lint does not know.
        """
        from shardctl.metadata.project_file import located
        from shardctl.verbs.lint.answer import chosen_rules, lint_arguments

        try:
            stated = lint_arguments(project.lint)
        except UsageError as error:
            raise located(error, project, "lint") from None
        given = self.given()
        # Options go over the file.
        arguments = {**stated, **given}
        try:
            chosen_rules(arguments.get("select", ()), arguments.get("ignore", ()))
        except UsageError as error:
            raise located(error, project, "lint", given) from None
        return arguments

    def given(self) -> dict[str, Any]:
        """Return what is given here, each by its name under `lint:`."""
        from shardctl.verbs.lint.answer import comma_separated

        names = {"evaluated": "eval", "num_hosts": "hosts"}
        given = {names.get(k, k): value for k, value in vars(self).items() if value is not None}
        for name in {"select", "ignore"} & given.keys():
            given[name] = [code for text in given[name] for code in comma_separated(text)]
        return given


@dataclass(frozen=True, kw_only=True)
class LintOptions(UsageOptions):
    """The same, and which findings make lint exit with 1.

    Options:
      --fail-on error|warning|notice: The least severity that makes lint exit with 1
        [default: notice, which is any finding].
    """

    fail_on: shared.Word = None


def usage_of(arguments: dict[str, Any]) -> "Usage":
    """Return what the arguments say besides the specs and the rules."""
    from shardctl.verbs.lint.context import USAGE_NAMES, Usage

    # The limit of this machine holds where none is stated.
    said = {field: arguments[name] for field, name in USAGE_NAMES.items() if name in arguments}
    return Usage(**{"max_open_files": _open_file_limit(), **said})


def _open_file_limit() -> int | None:
    """Return how many files a process may open on this machine, None where it does not say."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if limit == resource.RLIM_INFINITY else max(limit, 1)


FORMATS = formats_of("lint", github=as_text("verbs.lint.view:lint_annotations"))
# Rules are not at a line of a file.
_RULES = formats_of("lint", "rules", github=as_table("verbs.lint.view:rules_table"))


def lint(
    ctx: typer.Context,
    source: DatasetOptions,
    reading: OrderOptions,
    using: LintOptions,
    out: OutputOptions,
    specs: shared.Splits = None,
    explain: Annotated[str | None, shared.option(offered=completion.codes)] = None,
    list_rules: Annotated[bool, shared.option("--list")] = False,
    fix: shared.Flag = False,
) -> None:
    """Find mistakes in a pipeline's settings, each with a code, the reason and a fix.

    Takes the settings of the other commands, from options or shardctl.yaml. Exits with 1 if there
    are findings (--fail-on). Codes in place of a SPEC are explained.

    Arguments:
      specs [SPEC]...: Splits or slices; several are compared [default: as in shardctl.yaml, else
        train].

    Options:
      --explain CODE: Explain a finding: what happens, why, and what helps.
      --list: List all rules.
      --fix: Change what has one right answer in shardctl.yaml, and report what is left.

    Examples:
      # Does the evaluation read what the training reads?
      shardctl lint 'train[:60%]' --eval 'train[50%:]' --epochs 90 -d imagenet2012
      # Explain a rule
      shardctl lint --explain SC001
    """
    from shardctl.verbs.lint.answer import explained, is_code
    from shardctl.verbs.lint.answer import lint as lint_pipeline
    from shardctl.verbs.lint.rule import DEFAULT_FAIL_ON
    from shardctl.verbs.lint.rules import LINT_RULES

    words = [explain] if explain is not None else specs or ()
    if explain is not None or (words and all(map(is_code, words))):  # no split has such a name
        _RULES.write(out, tuple(map(explained, words)), stories=True)
        return
    if list_rules:
        _RULES.write(out, LINT_RULES)
        return
    project = project_here()
    arguments = using.arguments(project)
    if specs or using.evaluated:  # what is named here is all that is looked at
        arguments["specs"] = tuple(specs or ())
        arguments["eval"] = tuple(using.evaluated or ())
    settings = reading.settings(project, _machine(reading, project))
    dataset = chosen_dataset(source, project, settings=settings)

    def again(project: "Project") -> "Lint":
        return lint_pipeline(
            dataset,
            arguments.get("specs"),
            reading.settings(project, _machine(reading, project)),
            evaluated=arguments.get("eval", ()),
            usage=usage_of(arguments),
            select=arguments.get("select", ()),
            ignore=arguments.get("ignore", ()),
        )

    found = again(project)
    # Where shardctl.yaml has the settings that no option replaces.
    given = {SETTING_BY_FIELD[name].name for name in reading.given()} | using.given().keys()
    given |= {"specs", "eval"} if specs or using.evaluated else set()
    if fix:
        project, found = _fixed(project, found, again, given)
    origins = shared.setting_origins(
        project, lambda name: name not in given, from_here=out.format == "table"
    )
    # Only what a line of shardctl.yaml set can be changed there.
    can_fix = not fix and any(origins.place(one.change)[0] for one in found.findings)
    FORMATS.write(
        out, found, origins, fix=shared.typed_again(ctx, specs or (), "--fix") if can_fix else ""
    )
    if found.fails(arguments.get("fail_on", DEFAULT_FAIL_ON)):
        raise typer.Exit(1)


def _fixed(
    project: "Project", found: "Lint", again: Callable[["Project"], "Lint"], given: Collection[str]
) -> tuple["Project", "Lint"]:
    """Change shardctl.yaml where that is the cure, and say what was changed and what was not."""
    from difflib import unified_diff

    from shardctl.verbs.lint.fix import fixed

    changed, left = project, found
    if project.path is not None:
        changed, left = fixed(project, found, again, given)
    if changed is not project:
        write([changed.text], str(project.path))
        name = os.path.relpath(str(project.path))
        old, new = (one.text.decode().splitlines() for one in (project, changed))
        for line in unified_diff(old, new, name, name, lineterm="", n=1):
            say(line)
    others = [finding for finding in left.findings if finding.change]
    for finding in others:
        # What has a cure and is still there was not in the file to be edited.
        why = "an option sets it" if set(given) & finding.change.keys() else "not in shardctl.yaml"
        say(f"{finding.rule.code} is left, {why}: {finding.fix}")
    if changed is project and not others:
        say("nothing was changed: no finding has one right setting")
    return changed, left


def _machine(reading: OrderOptions, project: "Project") -> dict[str, Any]:
    """Return this machine's CPUs for a cycle of "auto", which is a finding on any machine."""
    from shardctl.settings.names import main_names

    with contextlib.suppress(UsageError):  # what is wrong there is said by `settings`
        cycles = (reading.given().get("cycle"), main_names(project.read).get("cycle"))
        return {"cpus": os.cpu_count() or 1} if "auto" in cycles else {}
    return {}
