"""Asks a process to fork one for a shell: `python -ISs forked_program.py ADDRESS SCRIPT ARGUMENT..`

It loads next to nothing, as a shell of a test starts it as often as it runs a command.
"""

import _socket
import os
import sys


def _main() -> int:
    job = {"command": sys.argv[2:], "folder": os.getcwd(), "environment": dict(os.environ)}
    data = repr(job).encode()
    server = _socket.socket(_socket.AF_UNIX)
    server.connect(sys.argv[1])
    files = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)]
    server.sendmsg([len(data).to_bytes(4, "big")], rights)
    server.sendall(data)
    server.recv(4)  # the number of the process
    code = int.from_bytes(server.recv(4), "big", signed=True)
    return code if code >= 0 else 128 - code


os._exit(_main())
