"""What README.md and the guides show is what happens: sessions, exit codes, Python examples."""

from __future__ import annotations

import ast
import doctest
from pathlib import Path

import pytest
import yaml
from rich.markdown import Markdown

from shardctl.cli.main import COMMANDS
from shardctl.verbs.demo.answer import demo_files
from tests.sessions import (
    DOCUMENTS,
    MOST_COLUMNS,
    README,
    REPOSITORY,
    WITH_BUCKET,
    Block,
    blocks,
    dialogue,
    exchanges,
    faults,
    matches,
    update,
    updated,
)

DEMO = dict(demo_files())
each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
SESSION = """\
# Which files?

```yaml
# toy.yaml
splits: {train: {shard_lengths: [3, 4]}}
```

```console
$ shardctl plan 'train[:2]' -d toy.yaml
train[:2] in toy
...
total: 1 file, 9 examples
$ shardctl plan trian -d toy.yaml 2>&1 | wc -l
1
$ echo $?
0
```
"""


# Whose programs train, whose files Beam counts, or that ask of every loader: seconds each.
_SLOW = (
    *("keras-evaluation.md", "keras.md", "loaders-compared.md", "petabyte.md", "pipeline.md"),
    *("training.md", "own-script.md", "rehearse.md"),
)
# Those that TensorFlow reads for, and others with questions of a tenth of a second and more.
_WITH_TENSORFLOW = (
    *_SLOW,
    "bare-files.md",
    "code.md",
    "questions.md",
    "remote-data.md",
    "verify.md",
)
_LONG = (
    *("README.md", "hugging-face.md", "install.md", "loaders.md"),
    *("report.md", "resume.md", "shuffling.md", "snapshots-in-ci.md", "stages.md"),
)
_MARKS = [
    (pytest.mark.slow, _SLOW),
    (pytest.mark.tensorflow, _WITH_TENSORFLOW),
    (pytest.mark.long, _LONG),
]


def test_the_test_of_guides_is_run_in_a_demo(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    assert list(exchanges(README, folder))
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    assert {name: there[name].read_bytes() for name in DEMO} == DEMO


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(
            path, marks=[mark for mark, names in _MARKS if path.name in names], id=path.name
        )
        for path in DOCUMENTS
    ],
)
def test_every_command_answers_as_shown(document: Path, tmp_path: Path) -> None:
    if document.name in WITH_BUCKET:
        pytest.importorskip("gcp_storage_emulator")
        pytest.importorskip("gcsfs")
    folder = tmp_path / "here"
    folder.mkdir()
    wrong = faults(list(exchanges(document, folder)))
    assert not wrong, "\n".join([f"{document.name} shows another answer than:", *wrong])


# Programs that other tests run, which look for them in their guides.
_RUN_ELSEWHERE = (
    *("checkpoint_train.py", "over.py", "fit_train.py", "flax_train.py", "hosts_train.py"),
    *("evaluate.py", "unpadded.py", "grain_train.py", "grain_fit.py", "torch_train.py"),
    *("lightning_train.py", "ray_train.py", "linen_train.py", "jax_train.py", "clu_train.py"),
    *("clu_moved.py", "clu_settings.py", "maxtext_train.py", "moved.py", "beside.py"),
    *("ddp_train.py", "accelerate_loop.py", "trainer_loop.py"),
)


@each_document
def test_every_block_is_a_session_a_file_or_parses(document: Path) -> None:
    kinds = {block.kind for block in blocks(document)}
    assert kinds & {"console", "python"}
    # No other would be run or checked.
    assert kinds <= {"console", "python", "yaml", "json", "sh", "diff"}
    commands = commands_of(document)
    for block in blocks(document):
        if block.kind in ("yaml", "json"):
            assert isinstance(yaml.safe_load(block.text), dict)
            assert is_used(block, commands, document), "no command sees this file"
        elif block.kind == "python" and ">>> " in block.text:
            assert doctest.DocTestParser().get_examples(block.text)
        elif block.kind == "python":
            ast.parse(block.text)
            assert block.file is not None, "a program has its name in a comment, and is run"
            words = {word for one in commands for word in one.replace(":", " ").split()}
            imported = f"from {Path(block.file).stem} import"
            used = block.file in words or any(imported in one.text for one in blocks(document))
            assert used or block.file in _RUN_ELSEWHERE
        elif block.kind == "diff":
            assert is_used(block, commands, document), "no command applies this change"
    # A row of a table after a blank line, or one of too few cells, would be a paragraph.
    inline = [t.content for t in Markdown(document.read_text("utf-8")).parsed if t.type == "inline"]
    assert inline
    assert [text for text in inline if text.startswith("|") or "\n|" in text] == []


# These a reader saves where a guide shows them: tools find them by their names.
_SAVED_BY_READERS = ("shardctl.yaml", ".pre-commit-config.yaml")


@each_document
def test_the_demo_has_the_files_of_a_guide(document: Path) -> None:
    files = {block.file: block for block in blocks(document) if block.file is not None}
    for name, block in files.items():
        if name not in _SAVED_BY_READERS:
            text = block.text.partition("\n")[2] if block.kind == "json" else block.text
            assert DEMO[name] == text.encode(), f"{name} is another file in another guide"


def commands_of(document: Path) -> list[str]:
    consoles = [block for block in blocks(document) if block.kind == "console"]
    return [exchange.command for block in consoles for exchange in dialogue(block)]


def is_used(block: Block, commands: list[str], document: Path) -> bool:
    """Return whether a block of YAML or JSON is a file of a session, or the job of a runner."""
    if block.file is None:
        return "runs-on" in block.text
    if block.file == "shardctl.yaml":
        return bool(commands)
    if block.file == ".pre-commit-config.yaml":
        hooks = yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text("utf-8"))
        named = [
            hook["id"] for repo in yaml.safe_load(block.text)["repos"] for hook in repo["hooks"]
        ]
        return {*named} == {hook["id"] for hook in hooks}
    top = block.file.partition("/")[0]  # a file in a folder, which is what commands name
    other_files = (one.text for one in blocks(document) if one.file not in (None, block.file))
    return any(top in text for text in (*commands, *other_files))


@each_document
def test_a_command_is_shown_in_lines_that_a_terminal_has_room_for(document: Path) -> None:
    consoles = [block for block in blocks(document) if block.kind == "console"]
    typed = [f"$ {exchange.typed}" for block in consoles for exchange in dialogue(block)]
    typed += [block.text for block in blocks(document) if block.kind == "sh" and document != README]
    assert [one for one in typed if max(map(len, one.splitlines())) > MOST_COLUMNS] == []


def test_every_command_has_a_session() -> None:
    shown = [command.split() for document in DOCUMENTS for command in commands_of(document)]
    named = {words[1] for words in shown if words[0] == "shardctl"}
    assert sorted(set(COMMANDS) - named) == []


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """A document in which an answer is wrong."""
    path = tmp_path / "toy.md"
    path.write_text(SESSION)
    return path


_TRIAN = "```console\n$ shardctl plan trian -d mnist\n...\n"
_LOGS = "import sys\nprint('out')\nprint('log', file=sys.stderr)\n"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (
            SESSION,
            "$ shardctl plan 'train[:2]' -d toy.yaml\n"
            "train[:2] in toy\n...\ntotal: 1 file, 2 examples\n",
        ),
        (f"{_TRIAN}```\n", "$ shardctl plan trian -d mnist\nexits with 2: show `echo $?`"),
        (f"{_TRIAN}$ echo $?\n1\n```\n", "$ echo $?\n2\n"),
        # A file of JSON has no comment, and what a Python program logs is not shown.
        (
            '```json\n# data/a.json\n{"a": 1}\n```\n```console\n$ cat data/a.json\n{"a": 1}\n```\n',
            None,
        ),
        (f"```python\n# a.py\n{_LOGS}```\n```console\n$ python a.py\nout\n```\n", None),
    ],
)
def test_what_is_answered_otherwise_is_noticed(
    text: str, wrong: str | None, document: Path, tmp_path: Path
) -> None:
    document.write_text(text)
    folder = tmp_path / "here"
    folder.mkdir()
    found = faults(list(exchanges(document, folder)))
    assert found == ([] if wrong is None else [wrong])


def test_a_wrong_python_example_is_noticed(document: Path, tmp_path: Path) -> None:
    document.write_text("```python\n>>> 1 + 1\n3\n```\n")
    with pytest.raises(AssertionError, match="Expected:\n    3\nGot:\n    2"):
        list(exchanges(document, tmp_path / "here"))


def test_an_update_writes_what_is_answered_and_nothing_else(document: Path) -> None:
    assert update(document) == 1
    assert document.read_text() == SESSION.replace("9 examples", "2 examples")
    assert update(document) == 0


@pytest.mark.parametrize(
    ("shown", "answer", "expected"),
    [
        ("a\n", "a\n", "a\n"),
        ("a\n...\n", "b\nc\n", "b\n...\n"),
        ("...\nz 1\n", "a\nb\nz 2\n", "...\nz 2\n"),
        ("a\n...\nmiddle 1\n...\nz\n", "a\nb\nmiddle 2\nc\nz\n", "a\n...\nmiddle 2\n...\nz\n"),
        ("a\n...\nno:\n...\n", "a\nno\nno: that is why\nz\n", "a\n...\nno: that is why\n...\n"),
        ("a\n...\nb\nc\n", "x\n", "x\n"),  # shorter than what was shown
        ("", "new\n", "new\n"),
    ],
)
def test_lines_left_out_stay_left_out(shown: str, answer: str, expected: str) -> None:
    assert updated(shown, answer) == expected
    assert matches(answer, expected)
