"""The table of settings: each entry reaches every place that lists settings, by all its names."""

from __future__ import annotations

import ast
import inspect
import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.base.phrase import option_name
from shardctl.cli.options.order import OrderOptions
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.draw.step_rows import settings_words
from shardctl.errors import UsageError
from shardctl.loaders.loader import LOADERS
from shardctl.order.order import Order
from shardctl.order.reader_order import ReaderOrder
from shardctl.settings import names, read_settings, table
from shardctl.settings.names import SHARED_NAMES, main_name, main_names, settings_from_document
from shardctl.settings.read_settings import ReadSettings, settings_in_force, settings_of_document
from shardctl.settings.table import SETTING_BY_FIELD, SETTINGS, Setting
from shardctl.spec.host import Host
from shardctl.spec.subsplit import SplitRange
from shardctl.stages.text import parse_stages
from shardctl.verbs.diff.causes import setting_causes
from tests.golden import assert_answers, values
from tests.order.order_cases import changed
from tests.order.order_cases import read_settings as any_settings
from tests.strategies import error_line

GUIDE = Path(read_settings.__file__).parent.parent / "guide" / "orders.md"
# What else has to be set for a setting to be taken, and values of each; the first is no default.
NEEDS: dict[str, dict[str, Any]] = {
    "cpus": {"cycle": "auto"},
    "shuffle_seed": {"shuffle_files": True},
    "reshuffle": {"shuffle_seed": 1},
    "buffer_seed": {"buffer": 5},
    "buffer_reshuffle": {"buffer": 5},
    "host_by": {"host": Host(index=0, count=2)},
    "drop_remainder": {"batch": 4},
    "loader_version": {"loader": "torch"},
    **{
        setting.field: {"loader": next((n for n in LOADERS if setting.is_read_by(n)), "hf")}
        for setting in SETTINGS
        if setting.about == "loader" and not setting.field.startswith("loader")
    },
}
VALUES: dict[str, tuple[Any, ...]] = values(Path(__file__).with_name("values.txt"), globals())
DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(ReadSettings)}
# What is in force with a setting besides itself.
WITH = {"shuffle_files": ["reshuffle"], "buffer": ["buffer_reshuffle"]}
SILENT = {"deterministic", "buffer_reshuffle"}  # no line of an answer names them
WRONG: dict[type[table.SettingKind], tuple[Any, ...]] = {
    table.WholeNumber: ("3", 1.5, True, [1]),
    table.BufferSize: ("3", 1.5, False, 0, -1, -3),
    table.Switch: ("no", 1, 0.0, []),
}


def values_of(setting: Setting) -> tuple[Any, ...]:
    if setting.name in VALUES:
        return VALUES[setting.name]
    is_switch = isinstance(setting.kind, table.Switch)
    return (DEFAULTS[setting.field] is not True, True, False) if is_switch else (5, 1)


def settings_with(setting: Setting, value: Any) -> ReadSettings:
    needed = {**NEEDS.get(setting.name, {}), setting.field: value}
    if needed.get("cycle") == "auto":
        needed.setdefault("cpus", 7)
    return ReadSettings(**needed)


def in_force(**settings: Any) -> dict[str, Any]:
    return settings_in_force(ReadSettings(**settings), ordered=False)


each_setting = pytest.mark.parametrize("setting", SETTINGS, ids=[s.name for s in SETTINGS])


def test_the_table_the_fields_the_options_and_the_documents_list_the_same() -> None:
    names = [setting.field for setting in SETTINGS]
    assert names == list(DEFAULTS) == [name for name, *_ in OrderOptions.parameters()]
    assert [s.name for s in SETTINGS if not s.is_rare] == list(in_force())
    of_tfds = {s.name for s in SETTINGS if s.is_read_by("tfds")} - {"loader"}
    shown = in_force(stages="repeat | take(3)")
    assert set(shown) == of_tfds
    assert shown["stages"] == ["repeat", {"take": 3}]


@each_setting
def test_an_entry_says_what_it_is_where_people_look(setting: Setting) -> None:
    assert setting.help[0].isupper() or setting.help.startswith(("ds.", "tf"))
    assert setting.help.endswith(".")
    assert setting.stands_for
    assert setting.kind.metavar or isinstance(setting.kind, table.Switch)
    assert option_name(setting.field) == setting.option
    said = re.search(r"\[default: ([\w-]+)\]", setting.help)
    assert said is None or said[1] in ("yes", str(DEFAULTS[setting.field]))
    # The class documents it, and the guide names its option.
    lines = inspect.cleandoc(ReadSettings.__doc__ or "")
    assert re.search(rf"^([a-z_]+, )*{setting.field}(, [a-z_]+)*:", lines, re.MULTILINE)
    option = setting.option.removeprefix("--")
    assert re.search(rf"`[^`]*--(no-)?{option}\b(?!-)", GUIDE.read_text("utf-8"))
    source = ast.parse(inspect.getsource(read_settings))
    annotated = {n.target.id for n in ast.walk(source) if isinstance(n, ast.AnnAssign)}  # type: ignore[union-attr]
    assert setting.field in annotated


@each_setting
def test_a_document_gives_back_what_is_set(setting: Setting) -> None:
    for value in values_of(setting):
        if setting.name == "cycle" and value == "auto":
            continue  # a document has the number that it comes to
        given = settings_with(setting, value)
        if setting.name != "cpus":
            shown = settings_from_document(settings_in_force(given, ordered=False))
            kept = replace(given, **{setting.field: shown[setting.field]})
            assert kept == given
        stated = {setting.name: setting.kind.to_document(value)}
        assert replace(given, **settings_from_document(stated)) == given


@each_setting
def test_a_change_is_a_cause_and_is_said(setting: Setting) -> None:
    changed = settings_in_force(settings_with(setting, values_of(setting)[0]), ordered=False)
    needed = dict(NEEDS.get(setting.name, {}))
    if setting.name == "cpus":
        needed["cpus"] = 1
    before = in_force(**needed)
    # CPUs are in force as the cycle length that they come to.
    name = "cycle" if setting.name == "cpus" else setting.name
    named = [cause.name for cause in setting_causes(before, changed)]
    assert named == [name, *WITH.get(setting.name, ())]
    if setting.name not in SILENT:
        assert settings_words(before) != settings_words(changed)


@each_setting
def test_none_and_values_of_another_kind(setting: Setting) -> None:
    nothing: dict[str, Any] = {setting.field: None}
    if DEFAULTS[setting.field] is None:
        assert getattr(ReadSettings(**nothing), setting.field) is None
    else:
        with pytest.raises(UsageError, match=rf"^{setting.field}=None: "):
            ReadSettings(**nothing)
    for wrong in WRONG.get(type(setting.kind), (3, True, 2.5)):
        with pytest.raises(UsageError, match=rf"^{setting.field}=.*: .*"):
            ReadSettings(**{**NEEDS.get(setting.name, {}), setting.field: wrong})


def taken(kind: table.SettingKind, value: Any) -> Any:
    """Return a value as it is kept, which a document gives back."""
    kept = kind.take(value)
    if isinstance(kind, table.StageList):  # which the settings read
        return kept
    document = json.loads(json.dumps(kind.to_document(kept)))
    assert kind.take(kind.from_document(document)) == kept
    return kept


def test_what_a_kind_takes() -> None:
    names = {
        **vars(table),
        "parse_stages": parse_stages,
        "MOST": 2**63 - 1,
        "np": np,
        "take": taken,
    }
    names["parse_stages"] = parse_stages
    path = Path(__file__).parent / "golden" / "kinds.txt"
    assert_answers(path, lambda question: repr(eval(question, names)))


def test_stages_are_taken_as_text_and_as_a_list() -> None:
    for one in ("cache | take(3)", ["cache", {"take": 3}], ("cache", "take(3)")):
        assert ReadSettings(stages=one).stages == parse_stages("cache | take(3)")  # type: ignore[arg-type]


# Documents: what an answer shows gives the same order when it is pasted back.


LENGTHS = (3, 0, 7, 12, 5, 4)


def order_of(settings: ReadSettings, *, ordered: bool = False) -> Order:
    files = ShardFiles(pattern="d-\0", num_shards=len(LENGTHS))
    split = Split(name="train", shard_lengths=LENGTHS, files=(files,))
    dataset = Dataset(name="d", splits=(split,), ordered=ordered)
    return ReaderOrder(dataset, [SplitRange(split=split, start=1, stop=30)], settings)


@pytest.mark.long
@given(
    any_settings(hosts=("even", "files", "examples")),
    st.integers(0, 2),
    st.none() | st.permutations([f"d-0000{i}" for i in range(6)]),
    st.none() | st.integers(1, 50),
)
def test_what_was_in_force_gives_the_same_order(
    settings: ReadSettings, pass_index: int, file_order: list[str] | None, cpus: int | None
) -> None:
    more: dict[str, Any] = {"pass_index": 0 if settings.repeat_files else pass_index}
    if file_order is not None and not settings.reverse:
        more["file_order"] = tuple(file_order)
    if cpus is not None:
        more |= {"cycle": "auto", "cpus": cpus}
    settings = changed(settings, **more)
    shown = settings_in_force(settings, ordered=False)
    again = ReadSettings(**settings_from_document(json.loads(json.dumps(shown))))
    assert settings_in_force(again, ordered=False) == shown
    order, same = order_of(settings), order_of(again)
    stop = order.num_examples
    assert stop == same.num_examples
    assert order.read(0, stop).tolist() == same.read(0, stop).tolist()


def test_what_is_in_force_is_shown_and_what_nothing_reads_is_none() -> None:
    shown = settings_in_force(ReadSettings(), ordered=True)
    assert shown["cycle"] == 1
    again = ReadSettings(**settings_from_document(shown))
    assert order_of(again, ordered=True).read(0, 29).tolist() == list(range(1, 30))
    assert "stages" not in in_force()  # so that older documents and hashes are as they were
    plain = in_force(shuffle_files=False, shuffle_seed=3)
    for name in ("shuffle_seed", "reshuffle", "buffer_reshuffle", "host", "batch", "cpus"):
        assert plain[name] is None
    torch = in_force(loader="torch", shuffle_seed=3)
    assert (torch["loader"], torch["shuffle_seed"], torch["workers"]) == ("torch", 3, 0)
    assert not torch["drop_shard_remainder"]
    for name in ("cycle", "block", "shuffle_files", "reshuffle", "repeat_files", "loop", "host_by"):
        assert torch[name] is None


def said(question: str) -> str:
    document = ast.literal_eval(question)
    found: list[ReadSettings] = []
    error = error_line(lambda: found.append(settings_of_document(document, "x")))
    return f"{main_names(document)}\n{error or found[0]}"


def test_a_document_is_settings_by_any_of_their_names() -> None:
    assert_answers(Path(__file__).parent / "golden" / "documents.txt", said)


# Names that TFDS, tf.data and Keras have for them.


def test_a_name_is_that_of_one_setting_with_either_sign() -> None:
    aliases = names.SETTING_BY_ALIAS
    known = [*(a for s in SETTINGS for a in s.aliases), *table.SETTING_BY_NAME, *SHARED_NAMES]
    assert len(known) == len(set(known)) > len(SETTINGS) + 10
    assert all(name == name.lower().replace("-", "_") for name in known)
    for alias, setting in aliases.items():
        assert names.setting_called(alias.replace("_", "-")) is setting
        assert main_name(alias) == setting.name
    assert names.setting_called("seed") is names.setting_called("interleave_cycle_lengt") is None
    assert all(
        len(set(of)) > 1 and set(of) <= set(SETTING_BY_FIELD) for of in SHARED_NAMES.values()
    )
    assert names.which_is_meant("seed", ["global_seed", "cycle"]) is None
    assert names.which_is_meant("cycle") is None


def test_the_parameters_of_the_libraries_that_are_settings_are_understood() -> None:
    """Each of these is a parameter there today; what it means here is written down by hand."""
    tf = pytest.importorskip("tensorflow")
    tfds = pytest.importorskip("tensorflow_datasets")
    dataset = tf.data.Dataset
    meant: list[tuple[Any, str]] = [
        (
            tfds.ReadConfig,
            "interleave_cycle_length=cycle interleave_block_length=block shuffle_seed=shuffle_seed "
            "shuffle_reshuffle_each_iteration=reshuffle repeat_filenames=repeat_files "
            "experimental_interleave_sort_fn=",
        ),
        (tfds.load, "shuffle_files=shuffle_files batch_size=batch"),
        (dataset.shuffle, "buffer_size=buffer seed= reshuffle_each_iteration=buffer_reshuffle"),
        (dataset.interleave, "cycle_length=cycle block_length=block"),
        (dataset.batch, "batch_size=batch drop_remainder=drop_remainder"),
    ]
    for function, said in meant:
        for name, setting in (pair.split("=") for pair in said.split()):
            assert name in inspect.signature(function).parameters
            assert main_name(name) == setting if setting else name in SHARED_NAMES


def test_a_block_length_of_none_reads_one_example_at_a_time() -> None:
    """As tf.data has it, which is not the 16 of TFDS where nobody sets it."""
    tf = pytest.importorskip("tensorflow")

    def read(file: Any) -> Any:
        return tf.data.Dataset.range(file * 10, file * 10 + 3)

    block = main_names({"block_length": None})["block"]
    real, said = (
        tf.data.Dataset.range(2).interleave(
            read, cycle_length=2, block_length=length, num_parallel_calls=2
        )
        for length in (None, block)
    )
    assert list(real.as_numpy_iterator()) == list(said.as_numpy_iterator())
