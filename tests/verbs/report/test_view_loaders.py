"""Loaders side by side, where they were asked for, and why one does not read the dataset."""

from __future__ import annotations

from dataclasses import replace

from shardctl.verbs.quality.loaders import LoaderComparison
from shardctl.verbs.report.shown import NotShown
from tests.verbs.report.reports import mnist, section, shared, text_of


def test_every_way_to_read_is_there() -> None:
    made = shared()
    assert isinstance(made.loaders, LoaderComparison)
    text = text_of(section(made, "loaders"))
    for way in made.loaders.ways:
        assert way.reader in text
    assert "36 examples in 4 shards, batches of 4, 2 hosts." in text


def test_nobody_asked_or_it_cannot_be_shown() -> None:
    assert 'id="loaders"' not in mnist().to_html()
    made = replace(shared(), loaders=NotShown(reason="stages are of tf.data"))
    assert text_of(section(made, "loaders")) == "Not shown: stages are of tf.data"
