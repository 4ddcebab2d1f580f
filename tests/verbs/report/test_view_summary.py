"""The answers at the top: what they come to, in words, with a link to more."""

from __future__ import annotations

from dataclasses import replace

from shardctl.dataset.dataset import Dataset, Split
from shardctl.verbs.lint.answer import Lint
from shardctl.verbs.report.answer import Report, report
from shardctl.verbs.report.shown import NotShown
from tests.verbs.report.reports import lacking, mnist, section, shared, text_of


def said(made: Report) -> str:
    return text_of(section(made, "summary"))


def test_an_order_that_nothing_shuffles_is_bad_and_what_would_help_is_named() -> None:
    html = section(mnist(), "summary")
    assert "Is it shuffled? No shuffle Score 0.00 of 1" in text_of(html)
    assert "Most would help: " in text_of(html)
    assert '<li class="bad">\n<h3><a href="#shuffle">Is it shuffled?' in html


def test_hosts_by_files_do_not_keep_step() -> None:
    # 20 and 16 examples in batches of 4.
    assert "Do the hosts keep step? No 2 hosts, 4 to 5 batches; host 0 has the most" in said(
        shared()
    )


def test_hosts_that_keep_step() -> None:
    data = Dataset(name="even", splits=(Split(name="train", shard_lengths=(8, 8)),))
    assert "Yes 2 hosts, 4 batches each." in said(report(data, settings={"batch": 2}, hosts=2))


def test_a_hang_is_told_with_its_step() -> None:
    # By files 20 and 16 examples of batches of 4: one makes 5 steps, the other 4.
    text = said(shared())
    assert "No, it hangs At step 4, counted from 0, 1 host waits for ever for the one" in text


def test_an_evaluation_that_ends() -> None:
    # 10,000 examples on 8 hosts are 1,250 each, in batches of 256: 5 steps.
    assert (
        "Does the evaluation end? (if 8 hosts shared it) Yes 5 steps on each of 8 hosts."
        in said(mnist())
    )


def test_examples_that_are_lost_are_counted() -> None:
    data = Dataset(name="odd", splits=(Split(name="test", shard_lengths=(10,)),))
    made = report(data, "test", {"batch": 4, "drop_remainder": True}, hosts=1)
    assert "Yes 2 steps on the one host. 2 examples of 10 are never seen." in said(made)


def test_findings_are_counted_by_severity_and_linked() -> None:
    made = shared()
    html = section(made, "summary")
    assert 'href="#findings"' in html
    assert "warning" in said(made)


def test_what_nobody_said_is_counted() -> None:
    assert said(mnist()).endswith("2 things are assumed that nobody said.")  # hosts, batch
    made = report("mnist", settings={"batch": 8})
    assert said(made).endswith("One thing is assumed that nobody said.")
    assert 'href="#about"' in section(made, "summary")
    assert "assumed" not in said(report("mnist", settings={"batch": 8}, hosts=1))


def test_what_is_not_known_says_why() -> None:
    text = said(lacking())
    assert "Is it shuffled? Not known the quality of an order needs 2 examples" in text
    assert "Does the evaluation end? (if 8 hosts shared it) Not known" in text
    assert "Do the hosts keep step? (if 8 hosts shared it) Refused" in text


def test_an_evaluation_that_tfds_refuses_does_not_begin() -> None:
    # TFDS raises for an InputContext with fewer files than hosts (core/reader.py).
    splits = (
        Split(name="train", shard_lengths=(8,) * 4),
        Split(name="test", shard_lengths=(7, 30)),
    )
    settings = {"batch": 4, "host_by": "files"}
    made = report(Dataset(name="few", splits=splits), settings=settings, hosts=4)
    text = said(made)
    assert "Does the evaluation end? Refused TFDS refuses an InputContext with fewer files" in text
    assert "hangs" not in text
    body = text_of(section(made, "evaluation"))
    assert "Refused: TFDS refuses an InputContext with fewer files than hosts: 2 for 4." in body
    assert "Refused" not in text_of(section(shared(), "evaluation"))


def test_a_pipeline_without_an_order_is_not_said_to_be_sound() -> None:
    made = mnist()
    assert isinstance(made.lint, Lint)
    quiet = replace(made, lint=replace(made.lint, findings=()))
    assert "What goes wrong? Nothing found" in said(quiet)
    refused = replace(quiet, order=NotShown(reason="too few files"))
    assert "What goes wrong? Not known too few files" in said(refused)
