"""Settings by name: what a name of TFDS, tf.data or Keras means; and mappings of settings.

A reader within stages has its own settings: `read(train, shuffle_seed=3)`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shardctl.base.arguments import shown
from shardctl.base.phrase import option_name
from shardctl.base.text import either, near_or_all, nearest, printable
from shardctl.errors import UsageError
from shardctl.settings.table import SETTING_BY_FIELD, SETTING_BY_NAME, SETTINGS, Setting
from shardctl.spec.host import DEFAULT_HOST_MODE, HOST_MODES

if TYPE_CHECKING:
    from shardctl.stages.stages import Pipeline, Read

SETTING_BY_ALIAS: Mapping[str, Setting] = {
    alias: setting for setting in SETTINGS for alias in setting.aliases
}
# What several settings are called, by their fields: whoever writes it has to say which.
SHARED_NAMES: Mapping[str, tuple[str, ...]] = {
    "seed": ("shuffle_seed", "buffer_seed", "global_seed"),
    "random_seed": ("shuffle_seed", "buffer_seed", "global_seed"),
    "interleave_sort_fn": ("reverse", "file_order"),
    "experimental_interleave_sort_fn": ("reverse", "file_order"),
}

# What None means under such a name where it is not to leave a setting as it is: as many files as
# CPUs allow, and a block of 1 (tensorflow/python/data/ops/interleave_op.py).
_THEIR_NONE: Mapping[str, object] = {"cycle": "auto", "block": 1}


def setting_called(name: str) -> Setting | None:
    """Return the setting of a name, an alias or a field, with `-` or `_`; None for no setting.

    >>> [setting_called(name).name for name in ("shuffle-seed", "interleave_cycle_length")]
    ['shuffle_seed', 'cycle']
    """
    name = name.replace("-", "_")
    return SETTING_BY_NAME.get(name) or SETTING_BY_ALIAS.get(name) or SETTING_BY_FIELD.get(name)


def main_name(key: str) -> str:
    """Return a key of `read:` as its setting is called; one that is no setting with `_`.

    >>> main_name("batch-size"), main_name("no-such")
    ('batch', 'no_such')
    """
    setting = setting_called(key)
    return key.replace("-", "_") if setting is None else setting.name


def which_is_meant(shared: str, among: Collection[str] = SETTING_BY_FIELD) -> str | None:
    """Return what to ask of whoever writes a shared name; None where not two of `among` could be.

    >>> which_is_meant("seed", ["shuffle_seed", "buffer_seed"])
    'it could be --shuffle-seed or --buffer-seed; say which'
    """
    fields = [field for field in SHARED_NAMES.get(shared.replace("-", "_"), ()) if field in among]
    if len(fields) < 2:
        return None
    return f"it could be {either(map(option_name, fields))}; say which"


def main_names(document: Mapping[str, object]) -> dict[str, object]:
    """Return a mapping with each setting under its own name; other keys stay as they are.

    >>> main_names({"shuffle-seed": 32, "interleave_cycle_length": 8, "cycel": 3})
    {'shuffle_seed': 32, 'cycle': 8, 'cycel': 3}

    Raises:
        UsageError: two names of one setting, or a name that several settings could have; a
            `repeat` of None, which has no end.
    """
    named: dict[str, object] = {}
    written: dict[str, str] = {}
    for key, value in document.items():
        shared = which_is_meant(str(key))
        if shared is not None:
            raise UsageError(f"{key}: {shared}")
        setting = setting_called(str(key))
        name = str(key) if setting is None else setting.name
        if name in named:
            raise UsageError(f"{key}: the same setting as {written[name]}; keep one")
        # Under our own name None leaves the setting alone; under a name of TFDS or tf.data it means
        # what it means there.
        is_theirs = value is None and str(key) != name
        if is_theirs and name == "epochs":
            raise UsageError(
                f"{key}: none stands for a repeat without end; give the number of epochs to follow"
            )
        named[name] = _THEIR_NONE.get(name) if is_theirs else value
        written[name] = str(key)
    return named


# A mapping of settings as the arguments of `ReadSettings`, whatever names they have there.


def settings_from_document(document: Mapping[str, object]) -> dict[str, Any]:
    """Return the arguments of `ReadSettings` that a mapping holds; those that are None left out.

    Names are those of `main_names`. Whether values fit together is seen when they are put into
    `ReadSettings`: another may take their place before.

    Raises:
        UsageError: an unknown name, two of one setting, or a value that it does not take.

    >>> settings_from_document({"shuffle-seed": 32, "batch_size": 8, "host": "1/4"})
    {'shuffle_seed': 32, 'batch': 8, 'host': Host(index=1, count=4)}
    """
    arguments: dict[str, Any] = {}
    for key, value in main_names(document).items():
        setting = SETTING_BY_NAME.get(key)
        if setting is None:
            raise no_such_setting(key, SETTING_BY_NAME)
        if value is None:
            continue
        try:
            arguments[setting.field] = setting.kind.from_document(value)
        except UsageError as error:
            raise UsageError(f"{setting.name}={shown(value)}: {error}") from None
    return arguments


def no_such_setting(key: object, names: Collection[str]) -> UsageError:
    """Return the error of a key that is none of the names of settings.

    >>> str(no_such_setting("batchsize", SETTING_BY_NAME))
    'batchsize: no such setting; did you mean batch?'
    """
    aliases = (alias for alias, one in SETTING_BY_ALIAS.items() if one.name in names)
    near = nearest(key, [*names, *aliases], 1)
    cure = near_or_all(main_name(near[0]) if near else key, names)
    if not near and len(names) > _FEW:
        cure = "shardctl config lists them"
    return UsageError(f"{printable(str(key))}: no such setting; {cure}")


_FEW = 12  # names that fit into an error


# What a reader may have of its own; the rest is behind it, or holds for all readers of a script.
READER_SETTINGS = (
    *("cycle", "cpus", "block", "shuffle_files", "shuffle_seed", "reshuffle", "deterministic"),
    *("repeat_files", "reverse", "file_order", "host", "host_by"),
)


def with_known_settings(pipeline: Pipeline, made: Callable[..., Any]) -> Pipeline:
    """Return a pipeline whose readers have their settings by their own names, in their order.

    Sources of counted elements are readers, too.

    made: `ReadSettings`, which checks them, and itself asks for this.

    >>> from shardctl.settings.read_settings import ReadSettings
    >>> from shardctl.stages.text import parse_stages, text_of
    >>> pipeline = parse_stages("read(a, block_length=1, cycle_length=2)")
    >>> text_of(with_known_settings(pipeline, ReadSettings))
    'read(a, cycle=2, block=1)'

    Raises:
        UsageError: no setting of a reader, or a value that it does not take.
    """

    from shardctl.stages.pipelines import with_changed, with_sources_read

    def known(read: Read) -> Read:
        arguments = reader_arguments(read)
        try:
            settings = made(**arguments)
        except UsageError as error:
            raise UsageError(f"read: {error}") from None
        # In the order of the table, so that equal readers are equal however they are written.
        own = [setting for setting in SETTINGS if setting.field in arguments]
        kept = ((one.name, one.kind.to_document(getattr(settings, one.field))) for one in own)
        return replace(read, settings=tuple(kept))

    return with_changed(with_sources_read(pipeline), read=known)


def reader_arguments(read: Read) -> dict[str, Any]:
    """Return the settings of a reader of its own as arguments of `ReadSettings`.

    Raises:
        UsageError: no setting of a reader, or a value of another kind.
    """
    try:
        named = main_names(dict(read.settings))
        for name in named:
            if name not in READER_SETTINGS and name in SETTING_BY_NAME:
                raise UsageError(f"{name} is no setting of a reader")
            if name not in READER_SETTINGS:
                raise no_such_setting(name, READER_SETTINGS)
        # A part keeps tuples to be hashable; documents have lists.
        listed = {k: list(v) if isinstance(v, tuple) else v for k, v in named.items()}
        arguments = settings_from_document(listed)
        if HOST_MODES[arguments.get("host_by", DEFAULT_HOST_MODE)].reads_all:
            raise UsageError(f"host_by={arguments['host_by']} is shard(N, I) behind the reader")
    except UsageError as error:
        raise UsageError(f"read: {error}") from None  # text: they are no options
    return arguments
