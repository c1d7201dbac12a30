"""Between a program's MCP client and the agent: bytes from stdin to a socket, and back.

The program starts this file as an MCP server, with the socket's path and the session's key; the
server itself is the agent (`network.py`). It imports nothing of Hubbub, so that it starts at once.
"""

from __future__ import annotations

import os
import socket
import sys
import threading


def main(path: str, key: str) -> None:
    """Until one of the two sides ends."""
    wire = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    wire.connect(path)
    wire.sendall(key.encode() + b"\n")
    threading.Thread(target=_outwards, args=(wire,), daemon=True).start()
    while piece := wire.recv(65536):
        while piece:
            piece = piece[os.write(1, piece) :]


def _outwards(wire: socket.socket) -> None:
    while piece := os.read(0, 65536):
        wire.sendall(piece)
    wire.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main(*sys.argv[1:])
