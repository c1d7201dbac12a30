"""An MCP server for tests that says what it is told to, however wrong, over stdio.

python raw_mcp_server.py JSON, with {"tools": [...], "error": {...}}: what it lists, and what it
answers to every call; without an error the call's own name.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from pydantic import JsonValue

__all__: list[str] = []


def main() -> None:
    sys.setrecursionlimit(10_000)
    script: Mapping[str, JsonValue] = json.loads(sys.argv[1])
    for line in sys.stdin:
        said = json.loads(line)
        if "id" in said:
            answer = _answer(said["method"], said.get("params") or {}, script)
            print(json.dumps({"jsonrpc": "2.0", "id": said["id"], **answer}), flush=True)


def _answer(
    method: str, params: Mapping[str, JsonValue], script: Mapping[str, JsonValue]
) -> Mapping[str, JsonValue]:
    match method:
        case "initialize":
            info: JsonValue = {"name": "raw", "version": "1"}
            version = params["protocolVersion"]
            known: JsonValue = {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": info,
            }
            return {"result": known}
        case "tools/list":
            return {"result": {"tools": script["tools"]}}
        case "tools/call" if "error" in script:
            return {"error": script["error"]}
        case "tools/call":
            return {"result": {"content": [{"type": "text", "text": params["name"]}]}}
    return {"error": {"code": -32601, "message": f"no method {method}"}}


if __name__ == "__main__":
    main()
