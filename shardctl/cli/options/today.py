"""The order as it is now, beside what snapshots say that it was."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardctl.base.text import printable
from shardctl.cli.options.dataset import dataset_and_refs, project_here, refs_to_keep
from shardctl.cli.options.names import path_from_repository, setting_origins
from shardctl.cli.output import say, write
from shardctl.errors import ShardctlError
from shardctl.settings.table import SETTING_BY_FIELD
from shardctl.stores.file_text import working_folder

if TYPE_CHECKING:
    from shardctl.cli.options.order import OrderOptions
    from shardctl.cli.options.shared import DatasetOptions
    from shardctl.metadata.reference import ChosenDataset
    from shardctl.order.plan_order import PlannedOrder
    from shardctl.saved.snapshot import Snapshot
    from shardctl.verbs.diff.answer import Diff
    from shardctl.verbs.diff.view import Hints


def label_of(path: str) -> str:
    """Return how people are told which file it is; `-` is stdin."""
    return "stdin" if path == "-" else path


@dataclass(frozen=True, kw_only=True)
class Beside:
    """A snapshot beside the order of today: where they differ, what helps, and what surprises."""

    path: str
    pinned: Snapshot
    current: Snapshot
    live: PlannedOrder
    diff: Diff
    hints: Hints
    warnings: tuple[str, ...]

    def update(self) -> None:
        """Write the order of today to the file, which is left alone where it says that already.

        An older file that says it in digests of another version is written anew.

        Raises:
            UsageError: the file cannot be written; what it held is still there.
        """
        from shardctl.files.json_text import is_json
        from shardctl.order.order_tree import NEWEST
        from shardctl.saved.snapshot_file import snapshot_json, snapshot_yaml
        from shardctl.verbs.snapshot.answer import tree_in

        rules = self.pinned.rules
        if rules.version != self.current.rules.version:
            rules = self.current.rules  # else more versions may have been compared: no other order
        same = replace(self.current, rules=rules) == self.pinned
        if same and self.pinned.tree.version == NEWEST:
            return
        render = snapshot_json if is_json(Path(self.path).read_bytes()) else snapshot_yaml
        current = self.current
        if current.tree.version != NEWEST:  # as an older file has it
            current = replace(current, tree=tree_in(NEWEST, self.live))
        write(render(current), self.path)
        say(f"{self.path} now holds the current order")


class Today:
    """What options and shardctl.yaml make of the order now; a dataset is read once for all files.

    `command` returns the command that accepts the order for a file; `from_here` says how origins
    are named, see `setting_origins`.
    """

    def __init__(
        self,
        source: DatasetOptions,
        reading: OrderOptions,
        spec: str | None,
        *,
        command: Callable[[str], str | None],
        from_here: bool,
    ) -> None:
        self._source, self._reading, self._spec = source, reading, spec
        self._command, self._from_here = command, from_here
        self._project = project_here(source, reading)
        self._datasets: dict[object, ChosenDataset] = {}

    def beside(self, pinned: Snapshot, path: str) -> Beside:
        """Return the snapshot that a file holds beside the order of today.

        Raises:
            ShardctlError: the dataset is not found, or settings or the spec do not fit it.
        """
        from shardctl.saved.snapshot import spec_as_pinned
        from shardctl.verbs.diff.answer import PinnedOrder, diff, settings_to_fall_back_on
        from shardctl.verbs.snapshot.answer import snapshot_in

        chosen = self._dataset(pinned, path)
        fallback = settings_to_fall_back_on(pinned, chosen.dataset)
        resolved = self._reading.resolved(self._project, fallback)
        kept = spec_as_pinned(pinned, resolved.settings)
        spec = kept if self._spec is None else self._spec
        version = pinned.tree.version
        current = snapshot_in(chosen.dataset, spec, resolved.settings, version=version)
        refs = pinned.refs if chosen.by == "fallback" else refs_to_keep(chosen, path)
        stated = {SETTING_BY_FIELD[f].name for f, by in resolved.sources.items() if by == "file"}
        if chosen.by == "file":
            stated.add("dataset")
        return Beside(
            path=path,
            pinned=pinned,
            current=replace(current.snapshot, refs=refs),
            live=current.live,
            diff=diff(
                PinnedOrder(snapshot=pinned, label=label_of(path)),
                PinnedOrder(snapshot=current.snapshot, label="today", live=current.live),
            ),
            hints=self.hints(path, stated),
            warnings=(*current.warnings, *self._passed_by(pinned, path, fallback)),
        )

    def _passed_by(self, pinned: Snapshot, path: str, kept: Mapping[str, Any]) -> Iterator[str]:
        """Yield that a shardctl.yaml beside a file would decide otherwise, but is not read here.

        Whoever runs `diff folder/order.yaml` may well take it to be in force. `kept` are the
        settings of the file for what nobody names.
        """
        from shardctl.cli.options.order import OrderOptions
        from shardctl.metadata.project_file import project_files, read_project
        from shardctl.metadata.reference import refs_found_again

        folder = working_folder() / os.path.dirname(path)
        found = next(project_files(folder), None)
        if path == "-" or found is None or found == self._project.path:
            return
        try:
            other = read_project(found)
            none, where = OrderOptions(), found.parent
            same = none.settings(other, kept) == none.settings(self._project, kept)
            refs = refs_found_again(other.dataset, cwd=where, folder=folder)
        except ShardctlError:
            return  # it is not read here
        if not same or (refs and refs != pinned.refs):
            yield (
                f"{os.path.relpath(found)} is not read here, since settings come from the "
                f"folder in which a command runs; run it in {os.path.relpath(where)} to compare "
                "with what that file says"
            )

    def hints(self, path: str, stated: Collection[str] = ()) -> Hints:
        """Return what helps people with a file; `stated` are what shardctl.yaml decides."""
        from shardctl.verbs.diff.view import Hints

        origins = setting_origins(self._project, stated.__contains__, from_here=self._from_here)
        if path == "-":  # it is nowhere, and nothing can be written to it
            return Hints(origins=origins)
        return Hints(
            file=path_from_repository(Path(path)), origins=origins, update=self._command(path)
        )

    def _dataset(self, pinned: Snapshot, path: str) -> ChosenDataset:
        """Return the dataset of today: the one that is chosen for all, else that of the file."""
        from shardctl.metadata.reference import Fallback
        from shardctl.saved.snapshot import ref_as_pinned

        refs, folder = pinned.refs or (ref_as_pinned(pinned),), os.path.dirname(path)
        for key in ("all", (refs, folder)):
            if key in self._datasets:
                return self._datasets[key]
        fallback = Fallback(refs=refs, folder=Path(folder), said_by=printable(label_of(path)))
        chosen = dataset_and_refs(self._source, self._project, fallback=fallback)
        self._datasets[(refs, folder) if chosen.by == "fallback" else "all"] = chosen
        return chosen
