"""Worker processes of loaders: that none is left behind."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading


def end_with_parent() -> None:
    """Let a worker process of Grain end when the process dies that it works for.

    Grain 0.2.18 ends its workers itself, but for those of a process that was killed: they would
    wait for it for ever.
    """
    workers = sys.modules.get("grain._src.python.dataset.transformations.process_prefetch")
    parent = multiprocessing.parent_process()
    if parent is None or not getattr(workers, "_is_in_worker_process", False):
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, name="shardctl-end-with-parent", daemon=True).start()
