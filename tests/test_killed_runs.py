"""What kill tests see of a training script: a right one passes, each kind of wrong one fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.killed_runs import Moment, Script, check_killed_runs, script_of_guide, whole_run

# A training script in Python alone: its weights are the sum of what it was trained on.
SCRIPT = """
import sys
import time
from pathlib import Path

run = Path(sys.argv[1])
run.mkdir(exist_ok=True)
kept = run / "checkpoint"
step, weights = map(int, kept.read_text().split()) if kept.exists() else (0, 0)
with open(run / "trained.log", "a") as log:
    while step < 30:
        weights += (step + 1) ** 2
        step += 1
        print(step, f"example{step}", file=log, flush=True)
        time.sleep(0.01)
        if step % 4 == 0 or step == 30:
            (run / "new").write_text(f"{step} {weights}")
            (run / "new").replace(kept)
"""
RESTORED = "map(int, kept.read_text().split())"
MOMENTS = [Moment(by="steps", at=6), Moment(by="files", at=2), Moment(by="steps", at=5)]


def script_at(path: Path, text: str) -> Script:
    path.write_text(text)
    return Script(
        path=path,
        arguments=(),
        loaded=False,
        outcome=lambda run: {"weights": int((run / "checkpoint").read_text().split()[1])},
    )


@pytest.mark.long
def test_a_right_script_ends_as_if_nobody_had_killed_it(tmp_path: Path) -> None:
    script = script_at(tmp_path / "train.py", SCRIPT)
    whole = whole_run(script, tmp_path / "whole")
    assert whole.steps[30] == "example30"
    assert whole.outcome == {"weights": sum(n * n for n in range(1, 31))}
    report = check_killed_runs(script, whole, tmp_path / "given", kills=MOMENTS)
    assert [step > 1 for _, step in report.kills] == [True, True, True]
    report = check_killed_runs(script, whole, tmp_path / "random", kills=8, seed=3)
    assert len(report.kills) == 8


@pytest.mark.long
@pytest.mark.parametrize(
    ("restored", "message"),
    [
        ("(int(kept.read_text().split()[0]), 0)", "weights"),  # the weights are forgotten
        ("(8, 30)", "after|weights"),  # the step of one checkpoint, the weights of another
        (f"(n + 1 for n in {RESTORED})", "after|weights"),  # a batch is left out
    ],
)
def test_a_wrong_script_is_noticed(tmp_path: Path, restored: str, message: str) -> None:
    right = script_at(tmp_path / "train.py", SCRIPT)
    whole = whole_run(right, tmp_path / "whole")
    wrong = script_at(tmp_path / "wrong.py", SCRIPT.replace(RESTORED, restored))
    with pytest.raises(AssertionError, match=message):
        check_killed_runs(wrong, whole, tmp_path / "killed", kills=MOMENTS)


@pytest.mark.long
def test_a_script_that_fails_says_why(tmp_path: Path) -> None:
    script = script_at(tmp_path / "train.py", SCRIPT)
    whole = whole_run(script, tmp_path / "whole")
    broken = script_at(tmp_path / "broken.py", SCRIPT.replace(RESTORED, "1 / 0"))
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        check_killed_runs(broken, whole, tmp_path / "killed", kills=MOMENTS)


def test_the_scripts_of_guides_are_found() -> None:
    assert script_of_guide("training", "checkpoint_train.py").startswith("# checkpoint_")
