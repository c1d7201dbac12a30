"""A small coding agent that speaks ACP; the first word of a message chooses what it does.

It uses no library, so that it can break the protocol. In its workspace, `sessions.json` holds its
sessions across restarts, and `log.jsonl` the requests that it received.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
OPTIONS = [
    {"optionId": "yes", "kind": "allow_once", "name": "Yes"},
    {"optionId": "always", "kind": "allow_always", "name": "Always"},
    {"optionId": "no", "kind": "reject_once", "name": "No"},
]


class Program:
    """The state of one process."""

    def __init__(self) -> None:
        self.lock, self.answers = threading.Lock(), dict[int, Any]()
        self.answered = threading.Condition()
        self.cancelled: dict[str, threading.Event] = {}
        self.servers: dict[str, list[Json]] = {}
        self.requests = 0
        self.logged_out = "shy" in sys.argv
        self.modes = dict[str, str]()
        self.replaying: str | None = None

    def write(self, text: str) -> None:
        with self.lock:
            os.write(1, text.encode()) if len(text) < 65536 else self._all(text.encode())

    def _all(self, data: bytes) -> None:
        while data:
            data = data[os.write(1, data) :]

    def send(self, **message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")

    def update(self, session: str, kind: str, /, **more: Any) -> None:
        update = {"sessionUpdate": kind, **more}
        self.send(method="session/update", params={"sessionId": session, "update": update})

    def say(self, session: str, text: str) -> None:
        self.update(session, "agent_message_chunk", content={"type": "text", "text": text})

    def begin(self, method: str, params: Json) -> int:
        """Send the client a request, whose answer `wait` returns."""
        with self.answered:
            self.requests += 1
            id = self.requests
        self.send(id=id, method=method, params=params)
        return id

    def wait(self, id: int) -> Any:
        with self.answered:
            self.answered.wait_for(lambda: id in self.answers)
            return self.answers.pop(id)

    # Requests of the client ---------------------------------------------------------------------

    def run(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                with self.answered:
                    self.answers[message["id"]] = message.get("result", message.get("error"))
                    self.answered.notify_all()
            else:
                log(message)
                threading.Thread(target=self.handle, args=(message,), daemon=True).start()

    def handle(self, message: Json) -> None:
        params = message.get("params") or {}
        if self.replaying is not None:
            self.say(self.replaying, "what was said before")
            self.replaying = None
        match message["method"]:
            case "initialize":
                capabilities = {"loadSession": "forgetful" not in sys.argv}
                methods = [{"id": "key", "name": "A key", "description": "Set THE_KEY."}]
                result: Any = {"protocolVersion": 1, "agentCapabilities": capabilities}
                result["authMethods"] = methods
            case "authenticate":
                self.logged_out = params["methodId"] != "key" or "THE_KEY" not in os.environ
                result = {}
            case "session/new" if self.logged_out:
                error = {"code": -32000, "message": "Authentication required"}
                return self.send(id=message["id"], error=error)
            case "session/new":
                id = f"s{len(load_sessions()) + 1}"
                save_session(id, [])
                self.servers[id] = params["mcpServers"]
                result = {"sessionId": id, **self.begin_mode(id)}
            case "session/load":
                id = params["sessionId"]
                self.servers[id] = params["mcpServers"]
                if id not in load_sessions():
                    error = {"code": -32002, "message": "Resource not found"}
                    return self.send(id=message["id"], error=error)
                self.say(id, "what was said before")
                result = self.begin_mode(id)
                if "late" in sys.argv:  # as Gemini CLI
                    self.replaying = id
            case "session/set_mode":
                self.modes[params["sessionId"]] = params["modeId"]
                result = {}
            case "session/prompt":
                result = self.prompt(params["sessionId"], params["prompt"])
                if "error" in result:
                    return self.send(id=message["id"], error=result["error"])
            case "session/cancel":
                return self.cancelled[params["sessionId"]].set()
            case _:
                return None
        return self.send(id=message["id"], result=result)

    def begin_mode(self, session: str) -> Json:
        """As Claude Code: in the mode `auto`, it does not ask."""
        if not {"auto", "late"}.intersection(sys.argv):
            return {}
        self.modes[session] = "auto"
        offered = [{"id": id, "name": id} for id in ("auto", "default")]
        return {"modes": {"currentModeId": "auto", "availableModes": offered}}

    def prompt(self, session: str, blocks: list[Json]) -> Json:
        self.cancelled[session] = threading.Event()
        text = blocks[-1]["text"]
        last = re.findall(r"<incoming_message [^>]*> <content>(.*?)</content>", text, re.DOTALL)[-1]
        command, _, rest = last.partition(" ")
        save_session(session, [*load_sessions()[session], last])
        if command == "refuse":  # as Codex
            return {
                "error": {"code": -32603, "message": "Internal error", "data": {"message": rest}}
            }
        result = getattr(self, f"do_{command}")(session, rest)
        return {"stopReason": "end_turn", **(result or {})}

    # Commands -----------------------------------------------------------------------------------

    def do_say(self, session: str, text: str) -> None:
        for piece in re.findall(r".{1,3}", text, re.DOTALL):
            self.say(session, piece)

    def do_recall(self, session: str, text: str) -> None:
        self.say(session, f"{session}: {', '.join(load_sessions()[session])}")

    def do_work(self, session: str, path: str) -> Json:
        """A plan, a thought, a call that reads, and one that changes a file, without asking."""
        thought = {"type": "text", "text": "It is about a file."}
        self.update(session, "agent_thought_chunk", content=thought)
        self.say(session, "I look first.")
        entries = [
            {"content": "look", "priority": "high", "status": "completed"},
            {"content": "write", "priority": "low", "status": "pending"},
        ]
        self.update(session, "plan", entries=entries)
        read = {"toolCallId": "t1", "title": "Read a file", "kind": "read"}
        self.update(session, "tool_call", **read, status="pending", rawInput={"path": path})
        text = {"type": "content", "content": {"type": "text", "text": "it is empty"}}
        self.update(
            session, "tool_call_update", toolCallId="t1", status="completed", content=[text]
        )
        self.say(session, "Now I write.")
        self.write_file(session, "t2", path)
        self.say(session, f"{path} is written.")
        cost = {"amount": 0.25, "currency": "USD"}
        self.update(session, "usage_update", used=900, size=1000, cost=cost)
        return {"usage": {"inputTokens": 800, "outputTokens": 90, "totalTokens": 900}}

    def write_file(self, session: str, id: str, path: str) -> None:
        full = os.path.join(os.getcwd(), path)
        change = {"type": "diff", "path": full, "oldText": None, "newText": "print('hello')\n"}
        call = {"title": "write", "kind": "edit", "rawInput": {"path": path}}
        self.update(session, "tool_call", toolCallId=id, status="in_progress", **call)
        with open(full, "w") as file:
            file.write("print('hello')\n")
        self.update(
            session, "tool_call_update", toolCallId=id, status="completed", content=[change]
        )

    def permission(self, session: str, id: str, path: str) -> int:
        change = {"type": "diff", "path": path, "oldText": "", "newText": "print('hello')\n"}
        call: Json = {"toolCallId": id, "title": "write", "kind": "edit"}
        call |= {"rawInput": {"path": path}, "content": [change]}
        request = {"sessionId": session, "toolCall": call, "options": OPTIONS}
        return self.begin("session/request_permission", request)

    def do_edit(self, session: str, path: str) -> Json | None:
        if self.modes.get(session) == "auto":
            self.write_file(session, "e1", path)
            return None
        outcome = self.wait(self.permission(session, "e1", path))["outcome"]
        if outcome["outcome"] == "cancelled":
            return {"stopReason": "cancelled"}
        if outcome["optionId"] == "yes":
            self.write_file(session, "e1", path)
            self.say(session, "written")
        else:
            self.say(session, "not written")
        return None

    def do_twice(self, session: str, path: str) -> None:
        """Ask twice at the same time for permission for one call."""
        both = [self.permission(session, "e1", path) for _ in range(2)]
        self.say(session, ", ".join(self.wait(id)["outcome"].get("optionId") for id in both))

    def do_send(self, session: str, text: str) -> None:
        """Send through the network's MCP server: `send NAME TEXT`."""
        to, _, body = text.partition(" ")
        with self.mcp(session) as server:
            result = server.call(
                "tools/call", name="send_text_message", arguments={"to": to, "text": body}
            )
        self.say(session, "sent" if not result.get("isError") else result["content"][0]["text"])

    def do_tools(self, session: str, text: str) -> None:
        with self.mcp(session) as server:
            tools = server.call("tools/list")["tools"]
        self.say(session, ", ".join(tool["name"] for tool in tools))

    def mcp(self, session: str) -> McpClient:
        (server,) = (s for s in self.servers[session] if s["name"] == "hubbub")
        return McpClient([server["command"], *server["args"]])

    def do_hold(self, session: str, text: str) -> Json:
        self.say(session, "I wait.")
        self.cancelled[session].wait()
        return {"stopReason": "cancelled"}

    def do_report(self, session: str, path: str) -> None:
        """Report what somebody writes to this pipe."""
        self.say(session, "It says: ")
        with open(path) as pipe:
            self.say(session, pipe.read())

    def do_spend(self, session: str, dollars: str) -> Json:
        """Work in many steps, each at this price."""
        for n in range(1, 50):
            cost = {"amount": n * float(dollars), "currency": "USD"}
            self.update(session, "usage_update", used=100, size=1000, cost=cost)
            call = {"toolCallId": f"c{n}", "title": "look", "kind": "read"}
            self.update(session, "tool_call", **call, status="completed")
            if self.cancelled[session].wait(0.3):
                return {"stopReason": "cancelled"}
        return {}

    # Misbehaviour -------------------------------------------------------------------------------

    def do_never(self, session: str, text: str) -> None:
        """Ignore cancellation and the end of stdin."""
        threading.Event().wait()

    def do_flood(self, session: str, text: str) -> Json:
        while not self.cancelled[session].is_set():
            self.say(session, "x" * 16_000)
        return {"stopReason": "cancelled"}

    def do_garbage(self, session: str, text: str) -> None:
        while True:
            self.write("[1]\nWARN: this is no protocol\n\x00\xff{\n")

    def do_bigline(self, session: str, text: str) -> None:
        self.write("x" * (17 * 1024 * 1024))

    def do_die(self, session: str, text: str) -> None:
        sys.stderr.write("out of luck\n")
        sys.stderr.flush()
        os._exit(3)

    def do_nonsense(self, session: str, text: str) -> Json:
        """Send updates and an answer that are JSON but violate the protocol."""
        self.send(method="session/update", params=[session])
        self.update(session, "of_a_later_version", new=True)
        self.update(session, "tool_call", title=7)
        self.update("another", "agent_message_chunk", content={"type": "text", "text": "lost"})
        return {"stopReason": 7}


class McpClient:
    """A minimal MCP client."""

    def __init__(self, command: list[str]):
        self.command, self.n = command, 0

    def __enter__(self) -> McpClient:
        self.process = subprocess.Popen(self.command, stdin=-1, stdout=-1, text=True)
        client = {"name": "small", "version": "1"}
        self.call("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        self.write(method="notifications/initialized")
        return self

    def __exit__(self, *exc: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def write(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def call(self, method: str, **params: Any) -> Any:
        self.n += 1
        self.write(id=self.n, method=method, params=params)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.n:
                return message["result"]
        raise EOFError


_LOCK = threading.Lock()


def load_sessions() -> dict[str, list[str]]:
    try:
        with open("sessions.json") as file:
            return dict(json.load(file))
    except FileNotFoundError:
        return {}


def save_session(session: str, messages: list[str]) -> None:
    with _LOCK:
        sessions = {**load_sessions(), session: messages}
        with open("sessions.new", "w") as file:
            json.dump(sessions, file)
        os.replace("sessions.new", "sessions.json")


def log(message: Json) -> None:
    with _LOCK, open("log.jsonl", "a") as file:
        file.write(json.dumps(message) + "\n")


def logged(folder: Any) -> Iterator[Json]:
    """All requests to programs in a workspace."""
    for line in (folder / "log.jsonl").read_text().splitlines():
        yield json.loads(line)


if __name__ == "__main__":
    Program().run()
    if "stays" in sys.argv:  # as Codex, after the end of its input
        with open("pid.txt", "w") as file:
            file.write(str(os.getpid()))
        threading.Event().wait()
