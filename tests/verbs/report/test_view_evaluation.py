"""The evaluation: where it hangs, what cures it, what becomes of remainders."""

from __future__ import annotations

from tests.verbs.report.reports import lacking, section, shared, text_of


def test_a_hang_its_cures_and_the_call_that_pads() -> None:
    html = section(shared(), "evaluation")
    text = text_of(html)
    assert "36 examples on 2 hosts of 1 device, in batches of 4 a device, 4 a host." in text
    assert "Hangs at step 4, counted from 0: host 0 waits there for 1 host" in text
    assert '<code class="short">--pad</code>' in html
    assert "<code>shardctl.tfds.evaluation(builder, &#x27;test&#x27;" in html
    assert "remainders are left ragged* dropped padded" in text
    assert "<svg" in html


def test_an_evaluation_that_is_not_shown() -> None:
    assert text_of(section(lacking(), "evaluation")).startswith("Not shown: tiny has no split")
