"""Puts small faults into a room of the package by cosmic-ray, and prints those no test notices.

`python -m tests.mutants shardctl/saved` is run in the repository's folder. It changes a copy. The
tests are those of the room and the examples of its docstrings; options of pytest come last, as in
`-m 'not tensorflow'`.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

# Of annotations and decorators, as of those in lines with an @: no test need notice them.
_LEFT_OUT = ("%BitOr%", "%RemoveDecorator", "%VariableInserter", "%VariableReplacer")
_CONFIG = """[cosmic-ray]
module-path = "{room}"
timeout = 300.0
test-command = {tests!r}
[cosmic-ray.distributor]
name = "local"
"""


def main(words: Sequence[str] | None = None) -> None:
    """Plant a sample of faults, one by one; one of the room's tests is to fail for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("room", type=Path, help="a folder of the package, or a file")
    parser.add_argument("--seed", default="1", help="another seed, other faults")
    parser.add_argument("--count", type=int, default=25)
    asked, options = parser.parse_known_args(words)
    inside = (asked.room if asked.room.is_dir() else asked.room.parent).relative_to("shardctl")
    tested = next(one for one in (inside, *inside.parents) if Path("tests", one).is_dir())
    tests = [sys.executable, "-m", "pytest", "-qx", "-n0", "-p", "no:cacheprovider"]
    tests += [f"tests/{tested}", f"shardctl/{inside}", *options]
    with tempfile.TemporaryDirectory() as folder:
        listed = subprocess.check_output(
            ["git", "ls-files", "-co", "--exclude-standard"], text=True
        )
        for file in filter(os.path.isfile, listed.splitlines()):
            Path(folder, file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, Path(folder, file))
        config = _CONFIG.format(room=asked.room, tests=shlex.join(tests))
        Path(folder, "faults.toml").write_text(config, encoding="utf-8")
        ours = {**os.environ, "PYTHONPATH": folder}
        for words in (tests, ["cosmic-ray", "init"], ["cosmic-ray", "exec"]):
            if words[-1] == "exec":
                with closing(sqlite3.connect(Path(folder, "faults.sqlite"))) as session, session:
                    _keep_some(session, asked.count, asked.seed)
            files = [] if words is tests else ["faults.toml", "faults.sqlite"]
            subprocess.run([*words, *files], cwd=folder, env=ours, check=True)
        report = ["cr-report", "--show-diff", "--surviving-only", "faults.sqlite"]
        subprocess.run(report, cwd=folder, check=True)


def _keep_some(session: sqlite3.Connection, count: int, seed: str) -> None:
    """Keep one fault, by chance, of each of so many places, of which some have a dozen."""
    for kind in _LEFT_OUT:
        session.execute("delete from mutation_specs where operator_name like ?", [kind])
    columns = "module_path, start_pos_row, start_pos_col, operator_name, occurrence, job_id"
    places: dict[object, list[str]] = {}
    for path, row, column, *_, job in sorted(
        session.execute(f"select {columns} from mutation_specs")
    ):
        if not Path(path).read_text(encoding="utf-8").splitlines()[row - 1].startswith("@"):
            places.setdefault((path, row, column), []).append(job)
    chance = random.Random(seed)
    chosen = chance.sample(list(places.values()), min(count, len(places)))
    kept = [[chance.choice(jobs)] for jobs in chosen]
    session.execute("create temp table kept (job_id)")
    session.executemany("insert into kept values (?)", kept)
    for table in ("mutation_specs", "work_items"):
        session.execute(f"delete from {table} where job_id not in (select job_id from kept)")


if __name__ == "__main__":
    main()
