"""Functions of a user's script: found, called, and their datasets taken."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import shardctl.tfds
from shardctl.errors import ShardctlError, UsageError
from shardctl.tfds.inspecting.graph import operation_of
from shardctl.tfds.inspecting.script import ScriptFunction, inspect_script
from shardctl.tfds.inspecting.watch import Lines, is_of_script
from tests.cases import first

pytestmark = pytest.mark.tensorflow  # the bridge runs the scripts, which imports it

SCRIPT = Path(__file__).with_name("script.txt").read_text("utf-8")


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("COUNT = 6\n")
    (tmp_path / "broken.py").write_text("def make(:\n")
    monkeypatch.chdir(tmp_path)
    for name in ("train", "beside", "broken"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return str(tmp_path / "train.py")


def test_words_are_arguments() -> None:
    words = ["a", "3", "0.5", "seed=7", "name=x=y", "on=True", "off=None", "-1"]
    found = ScriptFunction.parsed("a/b.py:make", words)
    assert found.arguments == ("a", 3, 0.5, -1)
    assert found.named == {"seed": 7, "name": "x=y", "on": True, "off": None}
    for wrong in ("train.py", "train.py:", ":make", "train.py:make it"):
        with pytest.raises(UsageError, match=r"written as train\.py:make_dataset"):
            ScriptFunction.parsed(wrong)


def test_a_function_of_a_file_or_of_a_module(
    script: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for reference in (f"{script}:make", "train:make"):
        path = [*sys.path]
        (found,) = inspect_script(ScriptFunction.parsed(reference, ["8", "seed=4"]))
        assert [stage.call for stage in found.stages] == ["range(8)", "shuffle(3, seed=4)"]
        assert found.stages[1].line is not None
        assert str(found.stages[1].line) == "train.py:9"
        assert sys.path == path
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "printed while it runs" in printed.err
    (made,) = inspect_script(ScriptFunction.parsed(f"{script}:made"))
    assert [str(stage.line) for stage in made.stages] == ["train.py:26"]
    with pytest.raises(UsageError, match="a dataset and no function"):
        inspect_script(ScriptFunction.parsed(f"{script}:made", ["3"]))
    (default,) = inspect_script(ScriptFunction.parsed(f"{script}:make"))
    assert default.stages[0].call == "range(6)"


def test_several_datasets_have_names(script: str) -> None:
    found = inspect_script(ScriptFunction.parsed(f"{script}:several"))
    assert [one.name for one in found] == ["train", "eval.0", "eval.1"]
    (only,) = inspect_script(ScriptFunction.parsed(f"{script}:several"), only="eval.1")
    assert only.stages[0].call == "range(5)"
    with pytest.raises(UsageError, match=r"it returns: train, eval\.0, eval\.1"):
        inspect_script(ScriptFunction.parsed(f"{script}:several"), only="test")
    (beside,) = inspect_script(ScriptFunction.parsed(f"{script}:with_info"))
    assert (beside.name, beside.stages[0].call) == ("", "range(9)")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("train.py:mak", "train.py has no function 'mak'; it has: make, "),
        ("gone.py:make", "no file 'gone.py'"),
        ("gone.module:make", "no module 'gone.module'"),
        ("train.py:fails", r"train.py:fails failed with \w+: .*\(train.py:9: return tf.data"),
        ("train.py:leaves", r"train.py:leaves failed with SystemExit: 3 \(train.py:21: sys.exit"),
        ("train.py:nothing", "train.py:nothing returned None, no tf.data.Dataset"),
        ("broken.py:make", r"failed with SyntaxError: .*broken.py:1\)"),
        ("train.py:parses", r"SystemExit: 2 .*let a function take what is needed"),
    ],
)
def test_a_function_that_fails_is_one_line(script: str, reference: str, message: str) -> None:
    before = [*sys.path], [*sys.argv], sys.stdout
    with pytest.raises(UsageError, match=message) as caught:
        inspect_script(ScriptFunction.parsed(reference))
    assert "\n" not in str(caught.value)
    assert ([*sys.path], [*sys.argv], sys.stdout) == before


@pytest.mark.parametrize("words", [[], ["train"], ["train", "sed=7"], ["--seed=7", "split=test"]])
def test_arguments_that_do_not_fit_are_said_with_those_that_do(
    script: str, words: list[str]
) -> None:
    fits = r"^train.py:needs\(split, \*, seed\): .*; its arguments are the words after --, as in"
    with pytest.raises(UsageError, match=fits):
        inspect_script(ScriptFunction.parsed("train.py:needs", words))


def test_files_listed_without_a_seed_are_told_of_the_call_of_the_script(
    tf: Any, tmp_path: Path
) -> None:
    for index in range(3):
        name = f"toy-train.tfrecord-0000{index}-of-00003"
        with tf.io.TFRecordWriter(str(tmp_path / name)) as writer:
            writer.write(b"record")
    listed = tf.data.Dataset.list_files(str(tmp_path / "*"))
    (found,) = shardctl.tfds.inspect(listed.interleave(tf.data.TFRecordDataset)).open
    assert found.cure is not None
    assert found.cure.text == "seed=0 in list_files"


# What a function returns in place of a dataset, after the shapes of flax, clu and TFDS.

SHAPES = Path(__file__).with_name("shapes.txt").read_text("utf-8")
CONFIG = """
class Fields(dict):
    __getattr__, __setattr__ = dict.__getitem__, dict.__setitem__
def get_config(n=9):
    return Fields(data=Fields(n=int(n)))
"""


@pytest.fixture
def shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "shapes.py").write_text(SHAPES)
    (tmp_path / "default.py").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    for name in ("shapes", "default"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "shapes.py"


@pytest.mark.parametrize(
    ("function", "sizes"),
    [
        *((name, {"": 21}) for name in ("as_numpy", "iterator", "mapped", "generator", "flax")),
        *((name, {"": 21}) for name in ("clu", "epochs", "endless", "puts_back", "threaded")),
        ("at_the_top", {"": 21}),
        ("zipped", {"0": 21, "1": 9}),
        ("chained", {"0": 21, "1": 9}),
        ("loader", {"train": 21, "test": 9}),
        ("both", {"train": 21, "test": 21}),
        ("anew", {str(number): 5 for number in range(8)}),
        ("peeks_in_order", {"": 5}),
    ],
)
def test_what_iterates_a_dataset_is_answered_by_it(
    shapes: str, function: str, sizes: dict[str, int]
) -> None:
    found = inspect_script(ScriptFunction.parsed(f"{shapes}:{function}"))
    assert {one.name: one.stages[0].call for one in found} == {
        name: f"range({size})" for name, size in sizes.items()
    }
    for one in found:
        assert one.predictable
        is_dataset = (function, one.name) == ("loader", "train")
        assert any("iterates the dataset in Python" in said for said in one.assumptions) != (
            is_dataset
        )


@pytest.mark.parametrize(
    ("function", "passes"),
    [
        *((name, 1) for name in ("as_numpy", "iterator", "flax", "puts_back", "threaded")),
        ("epochs", 3),
    ],
)
def test_its_order_is_that_which_the_code_yields(shapes: str, function: str, passes: int) -> None:
    (found,) = inspect_script(ScriptFunction.parsed(f"{shapes}:{function}"))
    batches = list(getattr(sys.modules["shapes"], function)())
    if passes > 1:
        batches = [batch for _, batch in batches]
    ids = [number for index in range(passes) for number in found.ids(index).tolist()]
    assert [int(number) for batch in batches for number in batch] == ids


@pytest.mark.parametrize("function", ["peeks", "peeks_inside", "shared"])
def test_a_dataset_that_was_looked_at_has_another_first_pass(shapes: str, function: str) -> None:
    found = inspect_script(ScriptFunction.parsed(f"{shapes}:{function}"))
    refused = found[-1].refused
    assert refused is not None
    assert "iterates the same shuffles first" in refused
    # The prediction of the first pass would have been wrong.
    real = getattr(sys.modules["shapes"], function)()
    ids = [int(number) for batch in real for number in batch]
    assert ids != replace(found[-1], refused=None).ids().tolist()


def test_one_of_several_is_chosen_by_number_or_line(shapes: str) -> None:
    chained = ScriptFunction.parsed(f"{shapes}:chained")
    for index in ("1", "shapes.py:7"):
        if index == "1":
            (one,) = inspect_script(chained, index=index)
            assert one.stages[0].call == "range(9)"
        else:
            with pytest.raises(UsageError, match=r"is needed: 0 \(shapes.py:7\), 1 \(shapes"):
                inspect_script(chained, index=index)


@pytest.mark.parametrize(
    ("reference", "words", "how", "calls"),
    [
        ("shapes.py", [], {"expression": "make(5, seed=1)"}, ["range(5)", "shuffle(7, seed=1)"]),
        ("shapes:make", [], {"expression": "lambda: make(6)"}, ["range(6)", "shuffle(7, seed=3)"]),
        ("shapes.py:with_config", ["n=2"], {"config": "default.py"}, ["range(9)"]),
        ("shapes.py:with_config", [], {"config": "default.py:8"}, ["range(8)"]),
        ("shapes.py:with_config", ["config.data.n=7"], {"config": "default.py"}, ["range(7)"]),
        (
            "shapes.py",
            [],
            {"config": "default.py", "expression": "make(config.data.n)"},
            ["range(9)"],
        ),
    ],
)
def test_a_function_is_called_by_expression_or_config(
    shapes: str, reference: str, words: list[str], how: dict[str, str], calls: list[str]
) -> None:
    (found,) = inspect_script(ScriptFunction.parsed(reference, words, **how))
    assert [stage.call for stage in found.stages][: len(calls)] == calls


@pytest.mark.parametrize(
    ("reference", "words", "how", "message"),
    [
        ("shapes.py:fails", [], {}, r"failed with ZeroDivisionError: .* \(shapes.py:\d+: yield"),
        ("shapes.py", [], {"expression": "mak()"}, r"^shapes.py:mak\(\) failed with NameError"),
        ("shapes.py", [], {"expression": "make("}, "SyntaxError"),
        ("shapes.py", ["3"], {"expression": "make()"}, "leave out the words after --"),
        ("shapes.py:with_config", ["config.n=3"], {}, "give --config FILE"),
        ("shapes.py:with_config", ["config.m=3"], {"config": "default.py"}, "'m'; it has: data$"),
        ("shapes.py:with_config", [], {"config": "shapes.py"}, "has no function get_config"),
        ("shapes.py:with_config", [], {"config": "none.py"}, "no file 'none.py'"),
    ],
)
def test_a_bad_call_or_config_is_one_line(
    shapes: str, reference: str, words: list[str], how: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        inspect_script(ScriptFunction.parsed(reference, words, **how))
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:.* iterates the dataset in Python")
@pytest.mark.parametrize(
    "function",
    first(
        4,
        [
            *("generator", "epochs", "zipped", "peeks_inside", "as_numpy", "iterator", "flax"),
            *("clu", "chained", "mapped"),
        ],
    ),
)
def test_python_code_resumes_on_what_its_dataset_has_left(shapes: str, function: str) -> None:
    make: Any = ScriptFunction.parsed(f"{shapes}:{function}").called(callable)
    whole = list(map(str, make()))
    for steps in (0, 2, len(whole) - 1, len(whole)):
        rest = shardctl.tfds.resume_like(make, steps=steps)
        assert list(map(str, rest)) == whole[steps:]
    with pytest.raises(UsageError, match="1 more than what the function returned has"):
        shardctl.tfds.resume_like(make, steps=len(whole) + 1)


@pytest.mark.filterwarnings("ignore:.* iterates the dataset in Python")
@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("puts_back", "iterates no dataset here; call ds = resume_like"),
        ("peeks", "iterates the same shuffles first"),
        ("shared", "iterates the same shuffles first"),
        ("loader", "returned a Loader"),
        ("both", "as lambda: make"),
    ],
)
def test_what_cannot_be_resumed_around_is_resumed_inside(
    shapes: str, function: str, message: str
) -> None:
    make: Any = ScriptFunction.parsed(f"{shapes}:{function}").called(callable)
    with pytest.raises(ShardctlError, match=message):
        list(shardctl.tfds.resume_like(make, steps=1))


# Which line of a script makes each dataset; nothing of TensorFlow stays changed.


def test_what_is_made_later_is_not_watched(tf: Any) -> None:
    from tensorflow.python.data.ops import dataset_ops

    kind = dataset_ops.DatasetV2
    before = kind.__init__, kind._metadata
    lines = Lines()
    with pytest.raises(ValueError, match="of the script"), lines.watched():
        raise ValueError("of the script")
    assert (kind.__init__, kind._metadata) == before
    assert lines.of(operation_of(tf.data.Dataset.range(3))) is None


def test_libraries_are_no_scripts(tf: Any) -> None:
    assert is_of_script(__file__)
    assert not is_of_script(tf.__file__)
    assert not is_of_script(subprocess.__file__)
    assert not is_of_script("<string>")


def test_threads_watch_each_their_own_script_and_leave_nothing_behind(tf: Any) -> None:
    from tensorflow.python.data.ops import dataset_ops

    kind = dataset_ops.DatasetV2
    before = kind.__init__, kind._metadata
    first, second = Lines(), Lines()
    made: list[Any] = []

    def script(lines: Lines) -> None:
        with lines.watched():
            made.append(tf.data.Dataset.range(3))

    with first.watched():  # the other thread waits until this one is through
        thread = threading.Thread(target=script, args=(second,))
        thread.start()
        unwatched = threading.Thread(target=lambda: made.append(tf.data.Dataset.range(5)))
        unwatched.start()
        unwatched.join()
        made.append(tf.data.Dataset.range(4))
    thread.join()
    known = [
        [lines.of(operation_of(dataset)) is not None for dataset in made]
        for lines in (first, second)
    ]
    assert known == [[False, True, False], [False, False, True]]
    assert (kind.__init__, kind._metadata) == before


def test_a_script_within_a_script_has_its_lines_in_both(tf: Any) -> None:
    outer, inner = Lines(), Lines()
    with outer.watched():
        with inner.watched():
            within = tf.data.Dataset.range(3)
        without = tf.data.Dataset.range(4)
    assert outer.of(operation_of(within)) == inner.of(operation_of(within)) is not None
    assert outer.of(operation_of(without)) is not None
    assert inner.of(operation_of(without)) is None
