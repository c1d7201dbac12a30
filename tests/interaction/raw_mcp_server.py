"""An MCP server for tests, over stdio, that sends whatever it is given, valid or not.

python raw_mcp_server.py JSON, with {"tools": [...], "then": [...], "error": {...}, "result": {...},
"prints": ""}: the tools that it lists, those that it lists after a call, its answer to every call,
and a text in Latin-1 that it prints first. Without an answer, it answers with the name of the tool.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from pydantic import JsonValue

__all__: list[str] = []


def main() -> None:
    sys.setrecursionlimit(10_000)
    script: dict[str, JsonValue] = json.loads(sys.argv[1])
    sys.stdout.buffer.write(str(script.get("prints", "")).encode("latin-1"))
    sys.stdout.flush()
    for line in sys.stdin:
        request = json.loads(line)
        if request["method"] == "tools/call" and "then" in script:
            script["tools"] = script.pop("then")
            changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            print(json.dumps(changed), flush=True)
        if "id" in request:
            answer = _answer(request["method"], request.get("params") or {}, script)
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)


def _answer(
    method: str, params: Mapping[str, JsonValue], script: Mapping[str, JsonValue]
) -> Mapping[str, JsonValue]:
    match method:
        case "initialize":
            result: JsonValue = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "raw", "version": "1"},
            }
            return {"result": result}
        case "tools/list":
            return {"result": {"tools": script["tools"]}}
        case "tools/call" if "error" in script:
            return {"error": script["error"]}
        case "tools/call" if "result" in script:
            return {"result": script["result"]}
        case "tools/call":
            return {"result": {"content": [{"type": "text", "text": params["name"]}]}}
    return {"error": {"code": -32601, "message": f"no method {method}"}}


if __name__ == "__main__":
    main()
