"""From the dataset options, the project or a plan file to the dataset, and to the plan."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from shardctl import errors
from shardctl.base.phrase import option_name
from shardctl.base.text import printable, public_url, quoted
from shardctl.cli import completion
from shardctl.cli.options.shared import Flag, Text, option
from shardctl.cli.output import DATASET, say, warn

if TYPE_CHECKING:
    from shardctl.dataset.dataset import Dataset
    from shardctl.metadata.project_file import Project
    from shardctl.metadata.reference import ChosenDataset, NamedDataset
    from shardctl.saved.resume_plan import PlanListing, ResumePlan
    from shardctl.saved.snapshot import Snapshot
    from shardctl.settings.read_settings import ReadSettings


_Refs = Annotated[list[str] | None, option("--dataset", "-d", offered=completion.datasets)]


@dataclass(frozen=True, kw_only=True)
class DatasetOptions:
    """Which dataset.

    Options:
      --dataset, -d REF: The dataset: mnist:3.0.1, a TFDS folder, layout.yaml, record files. Names
        are name[/config][:version], record files a folder, a glob or prefix@1024. Several are read
        as one.
      --data-dir DIR: Where names are looked up, a folder or a URL [default: $TFDS_DATA_DIR,
        ~/tensorflow_datasets].
      --no-cache: Count record files without metadata again, and do not store the counts.
    """

    panel: ClassVar[str] = DATASET

    dataset: _Refs = None
    data_dir: Text = None
    no_cache: Flag = False
    # No option: whether the built-in dataset is no answer, see `_keeps`.
    must_be_named: bool = field(default=False, compare=False)

    @property
    def is_given(self) -> bool:
        """Whether any of the options is given."""
        return any((self.dataset, self.data_dir, self.no_cache))


def project_here(*, say_so: bool = True) -> Project:
    """Return the project of the folder that the command runs in; a command reads it once.

    That it lies in a folder above is said, since nothing in this folder shows it.
    """
    from shardctl.metadata.project_file import find_project
    from shardctl.stores.stores import working_folder

    project, here = find_project(), working_folder()
    # Not by comparing paths: either may lead through links.
    if say_so and project.path is not None and not os.path.samefile(project.path.parent, here):
        say(f"settings of {os.path.relpath(project.path)}; shardctl config lists them")
    return project


def chosen_dataset(
    options: DatasetOptions, project: Project, *, settings: ReadSettings | None = None
) -> Dataset:
    """Return the dataset the options, the environment, the project or the folder choose.

    Where they choose none it is a built-in one, which is said unless all readers in the stages of
    `settings` have datasets of their own.

    Raises:
        UsageError: none is chosen, and the answer is kept or checked.
    """
    is_read = settings is None or settings.reads_default
    return dataset_and_refs(options, project, is_read=is_read).dataset


def dataset_and_refs(
    options: DatasetOptions,
    project: Project,
    *,
    fallback: NamedDataset | None = None,
    folder: Path = Path(),
    is_read: bool = True,
) -> ChosenDataset:
    """Return the dataset that is chosen as by `chosen_dataset`, and how it was named.

    Paths of the options are relative to `folder`, that one to the working folder. Other datasets,
    those that stages name, are looked up in the same data dir, and with or without the cache, for
    the rest of the command.
    """
    from shardctl.metadata.reference import choose_dataset
    from shardctl.stores.stores import working_folder

    chosen = choose_dataset(
        options.dataset or (),
        project=project,
        data_dir=options.data_dir,
        cwd=working_folder() / folder,
        fallback=fallback,
        counting="anew" if options.no_cache else "cached",
    )
    # `note` is set if the built-in dataset was chosen because nothing else was named.
    if chosen.note is not None and is_read and options.must_be_named:
        raise errors.UnnamedDatasetError(
            "no dataset is named, and this answer is kept or checked: name one with --dataset REF, "
            "in SHARDCTL_DATASET, or as dataset: in shardctl.yaml"
        )
    if chosen.note is not None and is_read:
        say(chosen.note)
    warn(chosen.dataset.notes)
    # Datasets in stages are looked up where the command looks its own up.
    data_dir = project.data_dir if options.data_dir is None else options.data_dir
    if data_dir is not None or options.no_cache:
        from shardctl.api.arguments import look_up_in

        look_up_in(data_dir, cache=not options.no_cache)
    return chosen


def refuse_no_spec(spec: str | None, source: DatasetOptions) -> None:
    """Refuse a SPEC that names no split of the dataset, before what else is missing is said.

    As a rule it is a dataset, for which `-d` was forgotten. Whatever else is wrong is left alone.

    Raises:
        NotASplitError: the spec is none.
    """
    from shardctl.order.resolved_spec import resolved_spec

    if spec is None:
        return
    try:
        # Only for the error about a SPEC; every other problem is reported later, by the command
        # itself.
        resolved_spec(chosen_dataset(source, project_here(say_so=False)), spec)
    except errors.NotASplitError:
        raise
    except errors.ShardctlError:
        return


def refs_to_keep(
    chosen: ChosenDataset, output: str | None, *, on_this_machine: bool = False
) -> tuple[str, ...]:
    """Return how a dataset was named as the file `output` keeps it, see `refs_found_again`.

    What goes to stdout keeps it as from the working folder.
    """
    from shardctl.metadata.reference import refs_found_again
    from shardctl.stores.stores import working_folder

    folder = os.path.dirname(output) if output not in (None, "-") else ""
    return refs_found_again(
        chosen.refs,
        cwd=chosen.folder,
        folder=working_folder() / folder,
        on_this_machine=on_this_machine,
    )


def dataset_options(source: DatasetOptions) -> list[str]:
    """Return the options of a dataset that were given, as somebody would type them again."""
    words = [word for ref in source.dataset or () for word in ("-d", public_url(ref))]
    data_dir = source.data_dir
    return words if data_dir is None else [*words, "--data-dir", public_url(data_dir)]


def options_of_snapshot(source: DatasetOptions, project: Project) -> list[str]:
    """Return the options without which `diff` takes another dataset than a snapshot was taken of.

    None where the snapshot itself says which it was, and nothing else would choose one here.
    """
    from shardctl.metadata.reference import is_fixed, named_dataset

    others = named_dataset((), project=project)
    refs = source.dataset or ()
    # The snapshot names its dataset, unless an option or the surroundings would choose another.
    needed = source.data_dir is not None or any(map(is_fixed, refs)) or others.source != "default"
    return dataset_options(source) if needed else []


def text_on_stdin() -> bytes:
    """Return what stdin has, for an option or an argument that is `-`.

    Raises:
        DatasetError: it is closed, or has more than a plan file may have.
    """
    from shardctl.files.streams import read_stdin
    from shardctl.stores.stores import MAX_FILE_BYTES

    return read_stdin(max_num_bytes=MAX_FILE_BYTES)


def plan_of_file(
    path: str,
    source: DatasetOptions,
    given: Mapping[str, object],
    *,
    allow_version: bool = False,
    output: str | None = None,
) -> tuple[Dataset, ResumePlan]:
    """Return the dataset as it is today, and the plan of a file, or of `-`, applied to it.

    `given` are the values that would make another plan, by the names of their parameters;
    `allow_version` takes a plan of another version or config. The `refs` of the plan are as the
    file `output` is to keep them.

    Raises:
        UsageError: one of them is given.
        DatasetError: the file is broken, or the dataset another than the plan was made for.
    """
    from shardctl.saved.plan_file import parse_plan, read_plan
    from shardctl.verbs.resume.apply_plan import applied

    for name, value in given.items():
        if value is not None:
            said = name if name == "SPEC" else option_name(name)
            raise errors.UsageError(f"{said} with --plan: the plan file holds the whole pipeline")
    plan = parse_plan(text_on_stdin(), source="stdin") if path == "-" else read_plan(path)
    found = dataset_of_plan(plan, source, path)
    refs = refs_to_keep(found, output, on_this_machine=True)
    # The plan's own names for its dataset are kept, as paths that hold from the file's folder.
    return found.dataset, replace(
        applied(plan, found.dataset, allow_version=allow_version), refs=refs
    )


def comparable_of_file(path: str) -> Snapshot | PlanListing:
    """Return the snapshot, or the plan, of a file or of `-`."""
    from shardctl.saved.snapshot_file import parse_comparable, read_comparable

    if path == "-":
        return parse_comparable(text_on_stdin(), source="stdin")
    return read_comparable(path)


def snapshot_of_file(path: str, else_: str) -> Snapshot:
    """Return the snapshot of a file, or of `-`; `else_` says what may be done with a plan.

    Raises:
        DatasetError: the file is broken.
        UsageError: it is a plan.
    """
    from shardctl.saved.snapshot import Snapshot

    found = comparable_of_file(path)
    if not isinstance(found, Snapshot):
        raise errors.UsageError(f"{quoted(path)} is a {found.kind}; {else_}")
    return found


def dataset_of_snapshot(
    pinned: Snapshot, path: str, options: DatasetOptions, project: Project
) -> ChosenDataset:
    """Return the dataset that is chosen as in every command, else the one that a file names."""
    from shardctl.metadata.reference import NamedDataset
    from shardctl.saved.snapshot import ref_as_pinned

    refs = pinned.refs or (ref_as_pinned(pinned),)
    label = "stdin" if path == "-" else printable(path)
    named = NamedDataset(refs=refs, folder=Path(os.path.dirname(path)), said_by=label)
    return dataset_and_refs(options, project, fallback=named)


def refuse_allow_version(*, given: bool) -> None:
    """Refuse `--allow-version` where no plan file is compared with the dataset."""
    if given:
        raise errors.UsageError("--allow-version is for a plan file; name one with --plan FILE")


def dataset_of_plan(plan: ResumePlan, options: DatasetOptions, path: str) -> ChosenDataset:
    """Return the dataset of the options, else the one that the plan in a file was made for.

    It is looked for where the file at `path` says that it was, then where its files lay, else by
    its name.
    """
    project = project_here()
    if options.dataset:
        return dataset_and_refs(options, project)
    others, failed = [], []
    # The names are tried in order: as the plan's file says, where its files lay, by the dataset's
    # name.
    for refs in _names_of(plan):
        named = replace(options, dataset=refs)
        try:
            found = dataset_and_refs(named, project, folder=Path(path).parent)
        except errors.ShardctlError as error:
            failed.append(error)
            continue
        # The same fingerprint: the same files. A dataset that has changed is the second choice.
        if found.dataset.fingerprint == plan.dataset.fingerprint:
            return found
        others.append(found)
    if others:  # it has changed, which is said where the plan is applied
        return others[0]
    label = "stdin" if path == "-" else printable(path)
    raise errors.DatasetError(
        f"{label}: {failed[0]}; say where the plan's dataset is with --dataset REF"
    ) from failed[0]


def _names_of(plan: ResumePlan) -> Iterator[list[str]]:
    """Yield what may name the dataset of a plan."""
    if plan.refs:
        yield list(plan.refs)
    if plan.dataset.data_dir is not None:
        yield [plan.dataset.data_dir]
    elif not plan.refs:
        yield [plan.dataset.title]
