"""Plans of all kinds, of pipelines that stopped in the middle."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from shardctl.core.hosts.host import Host
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.planning.resume.hosts import resume_on_hosts
from shardctl.planning.resume.resume import resume
from shardctl.planning.resume.seen import resume_unseen
from tests.planning.resume.resume_cases import dataset

TOY = dataset(train=(7, 5, 2, 9, 4), test=(6, 3))
SEEN = [3, 11, 4, 20, 3]
FILES = ReadSettings(cycle=3, block=2, shuffle_seed=4)
BUFFER = ReadSettings(cycle=2, block=3, buffer=5, buffer_seed=1)


def on_host(settings: ReadSettings, mode: Any, index: int = 1, count: int = 2) -> ReadSettings:
    return replace(settings, host=Host(index=index, count=count), host_by=mode)


@cache
def plans() -> dict[str, ResumePlan]:
    """Return the plans by what they are."""
    both = replace(BUFFER, shuffle_seed=4, epochs=3, batch=4, drop_remainder=True)
    drawn = ReadSettings(
        cycle=2, block=2, shuffle_files=True, deterministic=True, global_seed=3, buffer=4, epochs=2
    )
    endless = replace(BUFFER, repeat_files=True, epochs=3)
    made = {
        "exact": resume(TOY, "train", replace(FILES, epochs=3, batch=4), consumed=33),
        "back to front": resume(
            TOY, "train[10%:90%]", ReadSettings(cycle=2, block=2, reverse=True), consumed=9
        ),
        "a sum": resume(TOY, "train+test", replace(FILES, epochs=2), consumed=11),
        "exactly once": resume(TOY, "train", both, consumed=8),
        "in exact order": resume(TOY, "train", both, consumed=8, mode="exact-order"),
        "a sum in exact order": resume(TOY, "test+train", BUFFER, consumed=8, mode="exact-order"),
        "at the start of an epoch": resume(TOY, "train", both, consumed=27, mode="exact-order"),
        "global seed": resume(TOY, "train", drawn, consumed=8, mode="exact-order"),
        "endless": resume(TOY, "train", replace(FILES, repeat_files=True, epochs=3), consumed=40),
        "endless once": resume(TOY, "train", endless, consumed=40),
        "endless in exact order": resume(TOY, "train", endless, consumed=40, mode="exact-order"),
        "of fit": resume(
            TOY, "train", replace(FILES, loop="keras-fit", pass_index=1, batch=3), consumed=9
        ),
        "nothing left": resume(TOY, "train", both, consumed=80, mode="exact-order"),
        "unseen": resume_unseen(TOY, "train", replace(BUFFER, batch=2), seen=SEEN),
        "unseen by files": resume_unseen(TOY, "train", on_host(BUFFER, "files"), seen=SEEN),
        "unseen to hosts": resume_unseen(TOY, "train", seen=SEEN, to_hosts=3),
        "to hosts": resume_on_hosts(
            TOY, "train", replace(both, epochs=2), hosts=2, to_hosts=3, consumed=[3, 5]
        ),
        "to hosts by examples": resume_on_hosts(
            TOY,
            "train",
            ReadSettings(host_by="examples", epochs=2),
            hosts=3,
            to_hosts=2,
            consumed=[4],
        ),
    }
    for mode in ("even", "files", "examples"):
        settings = on_host(replace(both, batch=None, drop_remainder=False), mode)
        made[f"host by {mode}"] = resume(
            TOY, "train", on_host(replace(FILES, epochs=2), mode), consumed=5
        )
        made[f"host by {mode} once"] = resume(TOY, "train", settings, consumed=5)
        made[f"host by {mode} in exact order"] = resume(
            TOY, "train", settings, consumed=5, mode="exact-order"
        )
    return made
