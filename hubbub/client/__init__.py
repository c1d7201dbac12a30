"""The client library: a participant's end of the protocol. Imports the protocol.

client, calls, stream, items  `Client`, its calls in flight, its events
transport                     a WebSocket, or memory
snapshot                      requests the data that `ready` leaves out
runfile                       finds the networks of this user
"""

from __future__ import annotations

from hubbub.client.calls import Backoff
from hubbub.client.client import Client, ClientOptions
from hubbub.client.items import ConnectionLog, Disconnected, Events, Incoming
from hubbub.client.runfile import (
    DEFAULT_ADDRESS,
    Address,
    RunFile,
    find_network,
    find_run_files,
    remove_run_file,
    state_dir,
    write_run_file,
)
from hubbub.client.transport import MemoryTransport, Transport, WebSocketTransport, Wire

__all__ = [
    "DEFAULT_ADDRESS",
    "Address",
    "Backoff",
    "Client",
    "ClientOptions",
    "ConnectionLog",
    "Disconnected",
    "Events",
    "Incoming",
    "MemoryTransport",
    "RunFile",
    "Transport",
    "WebSocketTransport",
    "Wire",
    "find_network",
    "find_run_files",
    "remove_run_file",
    "state_dir",
    "write_run_file",
]
