"""The program of the sandboxed process: one request on stdin, one answer on stdout.

Started as `python -I child.py`, with an empty environment in an empty folder. The request contains
the import path. The function is imported only after the jail is set up.
"""

import json
import os
import sys


def main() -> None:
    request = json.load(sys.stdin)
    sys.path[:] = request["path"]
    sys.dont_write_bytecode = True
    answers = os.dup(1)
    os.dup2(2, 1)  # the function's prints go to stderr
    from hubbub.agents.tools.sandbox import function_runner

    answer = json.dumps(function_runner.answer(request)).encode()
    with os.fdopen(answers, "wb") as out:
        out.write(answer)
    sys.stdout.flush()
    os._exit(0)  # skip threads and exit handlers that the function left behind


main()
