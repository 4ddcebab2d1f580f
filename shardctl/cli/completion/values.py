"""What the shell offers after a TAB: datasets, split names, stages, codes of findings."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from shardctl.base.tfds_rules import DATASET_INFO_FILENAME
from shardctl.errors import ShardctlError

# Names are anyone's: none that would be an option, a pattern or a path of zsh (`=ls`) is offered.
_NAME = re.compile(r"[\w.][\w./:@%+=,-]*")
_SHARD = re.compile(r"-([0-9]+)-of-0*([1-9][0-9]*)(?=[.]|$)")
_FEW_FILES = 50  # of records that are offered one by one
_MOST_BYTES = 1 << 20  # of a script that are looked at
_MOST_ENTRIES = 10_000  # of a folder that are looked at after a TAB


def datasets(ctx: Any, incomplete: str) -> list[str]:
    """Offer the datasets under the chosen data dir, those of the catalog, folders and layout files.

    Versions come after a `:`, configs after a `/` or once a single name is left.
    """
    return [*dict.fromkeys((*_named(ctx, incomplete), *sorted(_paths(incomplete))))]


def _named(ctx: Any, incomplete: str) -> list[str]:
    from shardctl.metadata.names import catalog_names, catalog_titles, data_dirs, list_datasets
    from shardctl.metadata.project_file import find_project
    from shardctl.stores.paths import working_folder

    titles: list[str] = []
    with contextlib.suppress(ShardctlError, OSError):
        project = find_project(working_folder())
        dirs = data_dirs(ctx.params.get("data_dir"), os.environ, project)
        titles += map(str, list_datasets(dirs.local()))
    with contextlib.suppress(ShardctlError, OSError):
        for name in _starting(catalog_names(), re.split("[/:]", incomplete)[0]):
            titles += catalog_titles(name)
    titles = _starting(titles, incomplete)
    if ":" in incomplete:
        return sorted(set(titles))
    with_config = {title.partition(":")[0] for title in titles}
    names = {title.partition("/")[0] for title in with_config}
    if "/" in incomplete:
        return sorted(with_config)
    return sorted(names | with_config if len(names) == 1 else names)


def _paths(incomplete: str) -> Iterator[str]:
    """Yield the folders, layout and record files whose paths begin so, hidden ones if asked for.

    Record files are offered as `prefix@N` where their names say so, others where they are few;
    those of a folder that TFDS wrote are meant by its name.
    """
    from shardctl.metadata.index.bare import looks_like_records
    from shardctl.metadata.names import expand_home
    from shardctl.metadata.project_file import PROJECT_FILENAME
    from shardctl.metadata.reference import LAYOUT_SUFFIXES
    from shardctl.stores.paths import working_folder

    records: list[str] = []
    folder = incomplete.removesuffix(incomplete.rpartition("/")[2])
    for path, is_folder in _entries(incomplete):
        name = path.removeprefix(folder)
        if is_folder:
            yield f"{path}/"
        elif looks_like_records(name):
            records.append(name)
        elif name.endswith(LAYOUT_SUFFIXES) and name != PROJECT_FILENAME:
            yield path
    here = working_folder() / expand_home(folder, os.environ)
    of_tfds = os.path.isfile(here / DATASET_INFO_FILENAME)
    offered = dict.fromkeys(_SHARD.sub(r"@\2", name) for name in records)
    if not of_tfds and len(offered) <= _FEW_FILES:
        yield from (f"{folder}{name}" for name in offered)


def _entries(incomplete: str) -> Iterator[tuple[str, bool]]:
    """Yield what a folder has whose path begins so, hidden if asked for, and if it is a folder."""
    from shardctl.metadata.names import expand_home
    from shardctl.stores.paths import working_folder

    begun = incomplete.rpartition("/")[2]
    folder = incomplete.removesuffix(begun)
    with contextlib.suppress(OSError, ValueError):
        path = working_folder() / expand_home(folder, os.environ)
        with os.scandir(path) as entries:
            for entry in islice(entries, _MOST_ENTRIES):
                hidden = entry.name.startswith(".") and not begun.startswith(".")
                if not hidden and entry.name.startswith(begun) and _NAME.fullmatch(entry.name):
                    yield folder + entry.name, entry.is_dir()


def splits(ctx: Any, incomplete: str) -> list[str]:
    """Offer the split names of the chosen dataset, also after a `+`."""
    from shardctl.metadata.index.bare import Counting
    from shardctl.metadata.project_file import find_project
    from shardctl.metadata.reference import choose_dataset
    from shardctl.stores.paths import working_folder

    before, plus, last = incomplete.rpartition("+")
    names: list[str] = []
    with contextlib.suppress(ShardctlError, OSError):
        dataset = choose_dataset(
            ctx.params.get("dataset") or (),
            project=find_project(working_folder()),
            data_dir=ctx.params.get("data_dir"),
            env=os.environ,
            cwd=working_folder(),
            counting=Counting(names_only=True),
            on_disk=True,
        ).dataset
        names = [split.name for split in dataset.splits]
    blanks = last[: len(last) - len(last.lstrip())]
    return [
        before + plus + blanks + name
        for name in _starting([*names, "all"], last.removeprefix(blanks))
    ]


def codes(incomplete: str) -> list[tuple[str, str]]:
    """Offer the codes of findings, each with what it finds."""
    from shardctl.verbs.lint.rules import LINT_RULES

    return [(rule.code, rule.title) for rule in LINT_RULES if rule.code.startswith(incomplete)]


def code_lists(incomplete: str) -> list[tuple[str, str]]:
    """Offer the codes of findings behind those of a list, which are separated by commas."""
    before, comma, last = incomplete.rpartition(",")
    return [(before + comma + code, title) for code, title in codes(last)]


def stages(incomplete: str) -> list[str]:
    """Offer the names of stages, at the start those of sources too, behind what is typed."""
    from shardctl.stages.calls import CALLS

    found = re.search(r"(?:^|[|\[])\s*([A-Za-z_]*)$", incomplete)
    if found is None:
        return []
    before = incomplete[: found.start(1)]
    first = not before.rstrip().endswith("|")
    names = [name for name, call in CALLS.items() if call.is_offered and first >= call.is_source]
    return [before + name for name in _starting(names, found[1])]


def functions(incomplete: str) -> list[str]:
    """Offer the files of Python here, and behind a `:` the functions of one.

    The file is read and not run: who presses TAB asks for no training.
    """
    import ast

    file, colon, begun = incomplete.rpartition(":")
    if not colon:
        found = sorted(_entries(incomplete))
        return [
            f"{path}/" if is_folder else f"{path}:"
            for path, is_folder in found
            if is_folder or path.endswith(".py")
        ]
    names: list[str] = []
    with contextlib.suppress(OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        with open(file, "rb") as script:
            tree = ast.parse(script.read(_MOST_BYTES))
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [f"{file}:{name}" for name in _starting(names, begun)]


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if _NAME.fullmatch(name) and name.startswith(incomplete)]
