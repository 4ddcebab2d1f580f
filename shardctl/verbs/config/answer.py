"""The settings in force here, and the source of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from shardctl.dataset.dataset import Dataset
from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings, settings_in_force
from shardctl.settings.table import SETTINGS, Setting
from shardctl.verbs.lint.answer import LINT_KEYS, default_specs
from shardctl.verbs.lint.context import LintContext, Usage
from shardctl.verbs.lint.rule import DEFAULT_FAIL_ON

# "implied": another setting brings it along, as a shuffle seed the shuffle of the files.
Source = Literal["option", "argument", "environment", "file", "folder", "implied", "default"]


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The source of a setting.

    `by` names the option, the argument of Python, the variable or the other setting; of a default,
    whose it is, where it is not ours. `file` and `line`, from 1, are the place where a file says
    it.
    """

    source: Source = "default"
    by: str | None = None
    file: str | None = None
    line: int | None = None


_DEFAULT = Origin()
_TFDS = Origin(by="TFDS")


@dataclass(frozen=True, kw_only=True)
class SettingInForce:
    """A setting by its key in a shardctl.yaml, as in `read.cycle`: its value and its source.

    `given` is what was written, None for a default; the value is another where it comes to another,
    as "auto" to a number, and None where nothing reads what was written.
    """

    name: str
    value: object
    given: object = None
    origin: Origin = _DEFAULT


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings in force. `problem` is why there is no dataset, where there is none.

    files: every shardctl.yaml from this folder upwards; the first alone is read.
    """

    dataset: Dataset | None
    problem: str | None = None
    files: tuple[str, ...] = ()
    settings: tuple[SettingInForce, ...]


def read_in_force(
    settings: ReadSettings, origins: Mapping[str, Origin], *, ordered: bool
) -> Iterator[SettingInForce]:
    """Yield every setting of an order; `origins` has the fields that were set.

    >>> origins = {"shuffle_seed": Origin(source="option", by="--shuffle-seed")}
    >>> shown = read_in_force(ReadSettings(shuffle_seed=42), origins, ordered=False)
    >>> [(s.value, s.origin.source, s.origin.by) for s in shown if "shuffle_" in s.name]
    [(True, 'implied', 'read.shuffle_seed'), (42, 'option', '--shuffle-seed')]
    """
    given = {field: getattr(settings, field) for field in origins}
    bare, version = ReadSettings(), _version_in_force(settings)
    for setting in SETTINGS:
        name = f"read.{setting.field}"
        value = setting.value_in_force(settings, ordered=ordered)
        if setting.field in origins:
            written = setting.kind.to_document(given[setting.field])
            # The value in force has no word for it, though the order depends on it: as it was
            # written.
            if value is None and _is_read(setting.field, given, ordered=ordered):
                value = written
            yield SettingInForce(
                name=name, value=value, given=written, origin=origins[setting.field]
            )
        # Not set: the version that is installed, or the newest that is known.
        elif setting.field == "loader_version":
            yield SettingInForce(name=name, value=version)
        # As it is with nothing set: a default, of TFDS where it is an argument of TFDS.
        elif value == setting.value_in_force(bare, ordered=ordered):
            is_tfds = setting.stands_for.startswith(("ReadConfig", "as_dataset"))
            yield SettingInForce(name=name, value=value, origin=_TFDS if is_tfds else _DEFAULT)
        else:
            by = _implied_by(setting, value, given, ordered=ordered)
            yield SettingInForce(name=name, value=value, origin=Origin(source="implied", by=by))


def _version_in_force(settings: ReadSettings) -> str | None:
    """Return of which version a loader's order is, None where that is refused, or TFDS reads."""
    if settings.reader.on_tf_data:
        return None
    from shardctl.order.loader_order import loader_version

    try:
        return loader_version(settings).version
    except UsageError:
        return None


def _is_read(field: str, given: Mapping[str, Any], *, ordered: bool) -> bool:
    """Return whether others would be something else, or contradict each other, without a field."""
    others = {name: value for name, value in given.items() if name != field}
    try:
        without = settings_in_force(ReadSettings(**others), ordered=ordered)
    except UsageError:
        return True
    return without != settings_in_force(ReadSettings(**given), ordered=ordered)


def _implied_by(
    setting: Setting, value: object, given: Mapping[str, Any], *, ordered: bool
) -> str | None:
    """Return the first of the settings given that alone brings a value along."""
    for other in SETTINGS:
        if other.field not in given:
            continue
        try:
            alone = ReadSettings(**{other.field: given[other.field]})
        except UsageError:
            continue
        # Set alone, it makes this value.
        if setting.value_in_force(alone, ordered=ordered) == value:
            return f"read.{other.field}"
    return None


def lint_in_force(
    arguments: Mapping[str, Any], usage: Usage, settings: ReadSettings, dataset: Dataset | None
) -> dict[str, object]:
    """Return each setting of `lint:` by its name; what the dataset decides is None without one."""
    in_force: dict[str, object] = {
        "eval": [],
        "select": [],
        "ignore": [],
        "fail_on": DEFAULT_FAIL_ON,
    }
    if dataset is not None:
        how = {"settings": settings, "as_written": settings}
        context = LintContext(dataset=dataset, reads=(), usage=usage, **how)
        in_force |= context.usage_in_force()
        try:
            in_force["specs"] = default_specs(dataset, arguments.get("eval", ()))
        except UsageError:  # no split is read before somebody chooses one
            in_force["specs"] = None
    return {name: _listed(arguments.get(name, in_force.get(name))) for name in LINT_KEYS}


def _listed(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
