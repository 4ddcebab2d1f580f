"""TFDS's builder, `ReadConfig` and `as_dataset` as Python code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from shardctl.base.text import quoted
from shardctl.base.tfds_rules import has_builder
from shardctl.code.python_text import call, code_of_host, keywords, literal
from shardctl.dataset.dataset import Dataset
from shardctl.dataset.folders import folders_of
from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings

MAX_NAMES = 10_000  # of a file order that are written in code

_MODULES = re.compile(r"""(?<![\w."'/-])(tf|os)\.""")  # not in the midst of a name

TENSORFLOW = "import tensorflow as tf"
TFDS = "import tensorflow_datasets as tfds"
BRIDGE = "import shardctl.tfds"
_RECORD_FILES = "shardctl.tfds.record_files"


def imports(code: Iterable[str], *others: str) -> Iterator[str]:
    """Yield the imports that lines of code need besides TFDS."""
    code = list(code)
    bridge = [BRIDGE] if any(f"{_RECORD_FILES}(" in line for line in code) else []
    used = {found for line in code if line[:1] != "#" for found in _MODULES.findall(line)}
    if "os" in used:
        yield "import os"
        yield ""
    tensorflow = [TENSORFLOW] * ("tf" in used)
    # As isort orders them: plain imports first, then `from` imports.
    found = {TFDS, *others, *bridge, *tensorflow}
    yield from sorted(found, key=lambda line: (line.startswith("from "), line))


def nothing_to_read(spec: str, settings: ReadSettings | None = None) -> UsageError:
    """Return why there is no code of a spec, or of the share of a host, without examples.

    Source: TFDS core/reader.py, Reader.read_files.
    """
    host = settings and settings.host and f": host {settings.host} by {settings.host_by}"
    return UsageError(
        f"{quoted(spec)}{host or ''} reads no examples, and as_dataset refuses to read nothing; "
        "there is no code for it"
    )


def builder(dataset: Dataset) -> Iterator[str]:
    """Yield what makes `builder`: of the folders of the dataset, else of its name.

    Raises:
        UsageError: a dataset that was counted and whose files no reference finds again, or
            whose files are compressed.
    """
    if not has_builder(dataset.file_format):
        raise UsageError(
            f"{dataset.title} has no builder of TFDS; shardctl.tfds.resume_like(ds, consumed=N) "
            "resumes the script's own dataset"
        )
    if dataset.is_counted:
        yield from _record_files(dataset)
        return
    # Several folders need `builder_from_directories`, in the order that the examples were numbered
    # in.
    folders = [_folder(folder) for folder in folders_of(dataset)]
    if len(folders) > 1:
        yield "builder = tfds.builder_from_directories("
        yield "    ["
        yield from (f"        {folder}," for folder in folders)
        yield "    ]"
        yield ")"
    elif dataset.data_dir is not None or folders_of(dataset)[0].data_dir is not None:
        yield from call("builder = tfds.builder_from_directory", folders)
    else:
        yield from call("builder = tfds.builder", [literal(dataset.title)])


def _record_files(dataset: Dataset) -> Iterator[str]:
    if dataset.compression is not None:
        raise UsageError(
            f"{dataset.title}: its files are {dataset.compression}, which TFDS does not read, so "
            "there is no code; json and yaml have the order, and the file instructions of resume"
        )
    folders = dataset.folders or (dataset,)
    references = [folder.reference or folder.data_dir for folder in folders]
    if len(folders) == 1:
        references = [dataset.reference]
    if None in references:
        raise UsageError(
            f"{dataset.title}: no code finds its files; write them down with `shardctl index PATH "
            "-o layout.yaml`, and read that"
        )
    yield '# TFDS reads no files without metadata: an example is {"record": bytes}.'
    arguments = [literal(str(reference)) for reference in references]
    if len(arguments) > 1:
        arguments = [f"[{', '.join(arguments)}]"]
    yield from call(f"builder = {_RECORD_FILES}", arguments)


def _folder(folder: Dataset) -> str:
    if folder.data_dir is not None:
        return literal(folder.data_dir)
    return f"tfds.builder({literal(folder.title)}).data_dir"


def host(settings: ReadSettings) -> Iterator[str]:
    """Yield the host that reads, as variables, so that each process can put its own there."""
    if settings.host is not None:
        yield "# Which of the hosts this is: 0 is the first."
        yield f"host, num_hosts = {settings.host.index}, {settings.host.count}"


def split_of_host(spec: str, settings: ReadSettings) -> str:
    """Return what `as_dataset` is asked for: the spec, or the host's part of it."""
    return code_of_host(settings).split.format(literal(spec))


def read_config(
    settings: ReadSettings, *, ordered: bool, has_cardinality: bool = True
) -> Iterator[str]:
    """Yield what makes `read_config`, as `shardctl.tfds.pipeline` makes it.

    The lengths of the interleave are written also where they are TFDS's own: the order rests on
    them.
    """
    if settings.cycle == "auto":
        yield f"# interleave_cycle_length=None comes to this on {settings.cpus} CPUs."
    values = {
        "interleave_cycle_length": literal(settings.cycle_length(ordered=ordered)),
        "interleave_block_length": literal(settings.block),
    }
    if settings.shuffles_files:
        if settings.shuffle_seed is not None:
            values["shuffle_seed"] = literal(settings.shuffle_seed)
        if settings.reshuffle is not None:
            values["shuffle_reshuffle_each_iteration"] = literal(settings.reshuffle)
    if settings.reverse:
        values["experimental_interleave_sort_fn"] = "lambda files: files[::-1]"
    if settings.file_order is not None:
        raise UsageError(
            "--file-order: there is no code of TFDS alone for a list of files; "
            "shardctl.tfds.pipeline reads in its order"
        )
    if settings.is_endless:
        values["repeat_filenames"] = "True"
        # TFDS asserts the number of one epoch, and would cache a stream without end.
        values |= {"assert_cardinality": "False", "try_autocache": "False"}
    elif not has_cardinality:
        values["assert_cardinality"] = "False"
    if context := code_of_host(settings).input_context:
        values["input_context"] = context
    yield from call("read_config = tfds.ReadConfig", keywords(values))
    if settings.deterministic is not None:
        yield f"read_config.options.deterministic = {literal(settings.deterministic)}"


def as_dataset(name: str, split: str, settings: ReadSettings | None = None) -> Iterator[str]:
    """Yield what makes `name` of `read_config`; the files are shuffled as settings have it."""
    arguments = {"split": split, "read_config": "read_config"}
    if settings is not None and settings.shuffles_files:
        arguments["shuffle_files"] = "True"
    yield from call(f"{name} = builder.as_dataset", keywords(arguments))


def refuse_long_order(settings: ReadSettings) -> None:
    """Refuse a list of more files than code is to hold.

    Raises:
        UsageError: it is one.
    """
    if len(settings.file_order or ()) > MAX_NAMES:
        raise UsageError(
            f"--file-order names {len(settings.file_order or ())} files, of which code holds "
            f"{MAX_NAMES}; shardctl.tfds.pipeline reads any"
        )
