"""What is read: every setting in force is there with its origin, defaults folded away."""

from __future__ import annotations

from tests.verbs.report.reports import section, shared, text_of


def test_every_setting_is_there_with_who_says_so() -> None:
    made = shared()
    html = section(made, "data").replace("<wbr>", "")
    stated, folded = html.split("defaults, which nobody changed</summary>")
    for item in made.in_force:
        assert item.name in (folded if item.origin.source == "default" else stated)
    assert "read.buffer 5 argument buffer" in text_of(html)
    assert "read.shuffle_files true follows from read.shuffle_seed" in text_of(html)
    assert "default (TFDS's)" in text_of(html)


def test_the_dataset_and_its_shards() -> None:
    text = text_of(section(shared(), "data"))
    assert "dataset toy what is read of it train" in text
    assert "train 36 4 unknown 6 10 9.0 1.111" in text
