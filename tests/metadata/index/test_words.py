"""What names of files and folders say: their kind, split, dataset and version."""

from __future__ import annotations

from pathlib import Path

from shardctl.metadata.index.name_words import (
    NUMBER,
    dataset_of_folder,
    file_kind,
    named_split,
    split_word,
)
from tests.golden import assert_answers


def said(question: str) -> str:
    what, _, text = question.partition(" ")
    if what == "kinds":
        return " ".join(sorted({file_kind(name).name for name in text.split()}))
    if what == "dataset":
        return " ".join(map(str, dataset_of_folder(text)))
    if what == "folder":
        return str(split_word(text))
    folder, slash, name = text.rpartition("/")
    found = named_split(folder + slash, name.replace("#", NUMBER))
    return str(found and found.split)


def test_what_names_say() -> None:
    assert dataset_of_folder("") == (None, None)
    assert_answers(Path(__file__).parent / "golden" / "words.txt", said)
