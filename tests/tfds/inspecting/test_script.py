"""Functions of a user's script: found, called, and their datasets taken."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import shardctl.tfds
from shardctl.errors import UsageError
from shardctl.tfds.inspecting.graph import operation_of
from shardctl.tfds.inspecting.script import ScriptFunction, inspect_script
from shardctl.tfds.inspecting.watch import Lines, is_of_script

pytestmark = pytest.mark.tensorflow  # the bridge runs the scripts, which imports it

SCRIPT = """
import sys
import tensorflow as tf
from beside import COUNT
print("printed while it is imported")

def make(count=COUNT, seed=None, name="x"):
    print("printed while it runs", sys.argv)
    return tf.data.Dataset.range(count).shuffle(3, seed=seed)

def several():
    return {"train": make(9, 1), "eval": [make(4, 2), make(5, 3)], "note": "text"}

def with_info():
    return make(9, 1), "info"

def fails():
    return make("nine")

def leaves():
    sys.exit(3)

def nothing():
    pass

made = tf.data.Dataset.range(7)

def needs(split, *, seed):
    return make(9, seed)

def parses():
    import argparse
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    return make(parser.parse_args().data)
"""


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
        ("train.py:nothing", "train.py:nothing returned nothing; a tf.data.Dataset is needed"),
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
