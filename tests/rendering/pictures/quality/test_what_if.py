"""What other settings would score, as bars."""

from __future__ import annotations

import pytest

from shardctl.core.settings.read_settings import ReadSettings
from shardctl.planning.quality.quality import quality
from shardctl.rendering.pictures.picture import Box
from shardctl.rendering.pictures.what_if import what_if_picture
from shardctl.rendering.text.quantities import human_bytes
from tests.planning.quality.quality_orders import even_dataset, quality_alone
from tests.rendering.pictures.drawn import check_labels


@pytest.mark.long
def test_what_if_has_a_bar_of_each_change_and_the_memory_of_buffers() -> None:
    plan = quality("imagenet2012", "train", {"shuffle_seed": 1, "buffer": 10_000, "buffer_seed": 2})
    picture = what_if_picture(plan)
    bars = [mark for mark in picture.marks if isinstance(mark, Box)]
    scores = [choice.score.value for choice in plan.alternatives]
    assert [bar.width for bar in bars] == pytest.approx(
        [bars[0].width * score / scores[0] for score in scores]
    )
    assert [bar.role for bar in bars] == ["other"] + ["data"] * (len(bars) - 1)
    buffers = {choice.change: choice.num_bytes for choice in plan.alternatives if choice.num_bytes}
    assert buffers
    shown = {row[0]: row[3] for row in picture.numbers.rows if row[3]}
    assert shown == {change: human_bytes(size) for change, size in buffers.items()}
    assert "Does most: cycle 256." in picture.alternative
    assert picture.caption.endswith("Beside the score is the memory that a new buffer takes.")


def test_memory_is_in_no_caption_where_no_buffer_is_new() -> None:
    picture = what_if_picture(quality("mnist", "train", {"stages": "shuffle(9000, seed=3)"}))
    assert len(picture.numbers.rows) > 1
    assert not any(row[3] for row in picture.numbers.rows)
    assert "memory" not in picture.caption


@pytest.mark.long
def test_no_name_of_a_change_loses_what_tells_it_apart() -> None:
    picture = what_if_picture(quality("imagenet2012", "train", {}))
    names = [row[0] for row in picture.numbers.rows]
    drawn = {mark.text for mark in picture.marks if hasattr(mark, "text")}
    assert len(names) > 8
    assert set(names) <= drawn


def test_without_alternatives_there_is_the_present_score() -> None:
    plan = quality_alone(even_dataset(1000, 10), ReadSettings())
    picture = what_if_picture(plan)
    check_labels(picture.marks, picture.height)
    assert picture.numbers.rows == [("as it is", f"{plan.score.value:.4f}", "no shuffle", "")]
