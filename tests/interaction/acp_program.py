"""A small coding agent that speaks ACP by itself: what it does stands in the message that it gets.

It uses no library, so that it can do what none would let it do. `sessions.json` in its workspace is
what it remembers beyond its own end; `log.jsonl` is what it was asked.
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
    """Everything that runs in one process."""

    def __init__(self) -> None:
        self.lock, self.answers = threading.Lock(), dict[int, Any]()
        self.answered = threading.Condition()
        self.cancelled: dict[str, threading.Event] = {}
        self.servers: dict[str, list[Json]] = {}
        self.asked = 0
        self.stranger = "shy" in sys.argv

    def write(self, text: str) -> None:
        with self.lock:
            os.write(1, text.encode()) if len(text) < 65536 else self._all(text.encode())

    def _all(self, data: bytes) -> None:
        while data:
            data = data[os.write(1, data) :]

    def tell(self, **message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")

    def update(self, session: str, sort: str, /, **more: Any) -> None:
        told = {"sessionUpdate": sort, **more}
        self.tell(method="session/update", params={"sessionId": session, "update": told})

    def says(self, session: str, text: str) -> None:
        self.update(session, "agent_message_chunk", content={"type": "text", "text": text})

    def begin(self, method: str, params: Json) -> int:
        """Ask the client; `wait` gives the answer."""
        with self.answered:
            self.asked += 1
            id = self.asked
        self.tell(id=id, method=method, params=params)
        return id

    def wait(self, id: int) -> Any:
        with self.answered:
            self.answered.wait_for(lambda: id in self.answers)
            return self.answers.pop(id)

    # What it is asked ---------------------------------------------------------------------------

    def run(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                with self.answered:
                    self.answers[message["id"]] = message.get("result", message.get("error"))
                    self.answered.notify_all()
            else:
                note(message)
                threading.Thread(target=self.take, args=(message,), daemon=True).start()

    def take(self, message: Json) -> None:
        params = message.get("params") or {}
        match message["method"]:
            case "initialize":
                capabilities = {"loadSession": "forgetful" not in sys.argv}
                ways = [{"id": "key", "name": "A key", "description": "Set THE_KEY."}]
                result: Any = {"protocolVersion": 1, "agentCapabilities": capabilities}
                result["authMethods"] = ways
            case "authenticate":
                self.stranger = params["methodId"] != "key" or "THE_KEY" not in os.environ
                result = {}
            case "session/new" if self.stranger:
                error = {"code": -32000, "message": "Authentication required"}
                return self.tell(id=message["id"], error=error)
            case "session/new":
                id = f"s{len(remembered()) + 1}"
                remember(id, [])
                self.servers[id] = params["mcpServers"]
                result = {"sessionId": id}
            case "session/load":
                id = params["sessionId"]
                self.servers[id] = params["mcpServers"]
                if id not in remembered():
                    error = {"code": -32002, "message": "Resource not found"}
                    return self.tell(id=message["id"], error=error)
                self.says(id, "what was said before")
                result = {}
            case "session/prompt":
                result = self.prompt(params["sessionId"], params["prompt"])
            case "session/cancel":
                return self.cancelled[params["sessionId"]].set()
            case _:
                return None
        return self.tell(id=message["id"], result=result)

    def prompt(self, session: str, blocks: list[Json]) -> Json:
        self.cancelled[session] = threading.Event()
        text = blocks[-1]["text"]
        said = re.findall(r"<incoming_message [^>]*> <content>(.*?)</content>", text, re.DOTALL)[-1]
        word, _, rest = said.partition(" ")
        remember(session, [*remembered()[session], said])
        ended = getattr(self, f"do_{word}")(session, rest)
        return {"stopReason": "end_turn", **(ended or {})}

    # What it does -------------------------------------------------------------------------------

    def do_say(self, session: str, text: str) -> None:
        for piece in re.findall(r".{1,3}", text, re.DOTALL):
            self.says(session, piece)

    def do_recall(self, session: str, text: str) -> None:
        self.says(session, f"{session}: {', '.join(remembered()[session])}")

    def do_work(self, session: str, path: str) -> Json:
        """A plan, a thought, a call that reads, and one that changes a file, without asking."""
        thought = {"type": "text", "text": "It is about a file."}
        self.update(session, "agent_thought_chunk", content=thought)
        self.says(session, "I look first.")
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
        self.says(session, "Now I write.")
        self.write_file(session, "t2", path)
        self.says(session, f"{path} is written.")
        cost = {"amount": 0.25, "currency": "USD"}
        self.update(session, "usage_update", used=900, size=1000, cost=cost)
        return {"usage": {"inputTokens": 800, "outputTokens": 90, "totalTokens": 900}}

    def write_file(self, session: str, id: str, path: str) -> None:
        place = os.path.join(os.getcwd(), path)
        change = {"type": "diff", "path": place, "oldText": None, "newText": "print('hello')\n"}
        told = {"title": "write", "kind": "edit", "rawInput": {"path": path}}
        self.update(session, "tool_call", toolCallId=id, status="in_progress", **told)
        with open(place, "w") as file:
            file.write("print('hello')\n")
        self.update(
            session, "tool_call_update", toolCallId=id, status="completed", content=[change]
        )

    def permission(self, session: str, id: str, path: str) -> int:
        change = {"type": "diff", "path": path, "oldText": "", "newText": "print('hello')\n"}
        call: Json = {"toolCallId": id, "title": "write", "kind": "edit"}
        call |= {"rawInput": {"path": path}, "content": [change]}
        asked = {"sessionId": session, "toolCall": call, "options": OPTIONS}
        return self.begin("session/request_permission", asked)

    def do_edit(self, session: str, path: str) -> Json | None:
        outcome = self.wait(self.permission(session, "e1", path))["outcome"]
        if outcome["outcome"] == "cancelled":
            return {"stopReason": "cancelled"}
        if outcome["optionId"] == "yes":
            self.write_file(session, "e1", path)
            self.says(session, "written")
        else:
            self.says(session, "not written")
        return None

    def do_twice(self, session: str, path: str) -> None:
        """Ask for permission for one call twice at the same time."""
        both = [self.permission(session, "e1", path) for _ in range(2)]
        self.says(session, ", ".join(self.wait(id)["outcome"].get("optionId") for id in both))

    def do_send(self, session: str, text: str) -> None:
        """Send by the network's MCP server: `send NAME TEXT`."""
        to, _, words = text.partition(" ")
        with self.mcp(session) as server:
            called = server.call(
                "tools/call", name="send_text_message", arguments={"to": to, "text": words}
            )
        self.says(session, "sent" if not called.get("isError") else called["content"][0]["text"])

    def do_tools(self, session: str, text: str) -> None:
        with self.mcp(session) as server:
            tools = server.call("tools/list")["tools"]
        self.says(session, ", ".join(tool["name"] for tool in tools))

    def mcp(self, session: str) -> McpClient:
        (server,) = (s for s in self.servers[session] if s["name"] == "hubbub")
        return McpClient([server["command"], *server["args"]])

    def do_hold(self, session: str, text: str) -> Json:
        self.says(session, "I wait.")
        self.cancelled[session].wait()
        return {"stopReason": "cancelled"}

    def do_spend(self, session: str, dollars: str) -> Json:
        """Work on and on, at this price."""
        for n in range(1, 50):
            cost = {"amount": n * float(dollars), "currency": "USD"}
            self.update(session, "usage_update", used=100, size=1000, cost=cost)
            call = {"toolCallId": f"c{n}", "title": "look", "kind": "read"}
            self.update(session, "tool_call", **call, status="completed")
            if self.cancelled[session].wait(0.3):
                return {"stopReason": "cancelled"}
        return {}

    # What none should do ------------------------------------------------------------------------

    def do_never(self, session: str, text: str) -> None:
        """Hear of no cancellation, and of no end of stdin."""
        threading.Event().wait()

    def do_flood(self, session: str, text: str) -> Json:
        while not self.cancelled[session].is_set():
            self.says(session, "x" * 16_000)
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
        """Updates and an answer that are JSON, and none of the protocol's."""
        self.tell(method="session/update", params=[session])
        self.update(session, "of_a_later_version", new=True)
        self.update(session, "tool_call", title=7)
        self.update("another", "agent_message_chunk", content={"type": "text", "text": "lost"})
        return {"stopReason": 7}


class McpClient:
    """As much of an MCP client as it takes."""

    def __init__(self, command: list[str]):
        self.command, self.n = command, 0

    def __enter__(self) -> McpClient:
        self.process = subprocess.Popen(self.command, stdin=-1, stdout=-1, text=True)
        about = {"name": "small", "version": "1"}
        told = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
        self.call("initialize", **told)
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


def remembered() -> dict[str, list[str]]:
    try:
        with open("sessions.json") as file:
            return dict(json.load(file))
    except FileNotFoundError:
        return {}


def remember(session: str, said: list[str]) -> None:
    with _LOCK:
        known = {**remembered(), session: said}
        with open("sessions.new", "w") as file:
            json.dump(known, file)
        os.replace("sessions.new", "sessions.json")


def note(message: Json) -> None:
    with _LOCK, open("log.jsonl", "a") as file:
        file.write(json.dumps(message) + "\n")


def notes(folder: Any) -> Iterator[Json]:
    """What programs in a workspace were asked."""
    for line in (folder / "log.jsonl").read_text().splitlines():
        yield json.loads(line)


if __name__ == "__main__":
    Program().run()
