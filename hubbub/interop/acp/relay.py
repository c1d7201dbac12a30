"""Relays bytes between a program's MCP client (stdin and stdout) and the agent's socket.

The program starts this file as an MCP server, with the socket's path and the session's key. The
server itself is in the agent's process (`network.py`). This file imports nothing from Hubbub, to
start fast.
"""

from __future__ import annotations

import os
import socket
import sys
import threading


def main(path: str, key: str) -> None:
    """Relay until either side closes."""
    agent = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    agent.connect(path)
    agent.sendall(key.encode() + b"\n")
    threading.Thread(target=_relay_stdin, args=(agent,), daemon=True).start()
    while chunk := agent.recv(65536):
        while chunk:
            chunk = chunk[os.write(1, chunk) :]


def _relay_stdin(agent: socket.socket) -> None:
    while chunk := os.read(0, 65536):
        agent.sendall(chunk)
    agent.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main(*sys.argv[1:])
