"""The program of the sandboxed process: one request on stdin, one answer on stdout.

Started as `python -I child.py`, with an empty environment in an empty folder. The request brings
the search path; what it names is imported only when the jail stands.
"""

import json
import os
import sys


def main() -> None:
    request = json.load(sys.stdin)
    sys.path[:] = request["path"]
    sys.dont_write_bytecode = True
    answers = os.dup(1)
    os.dup2(2, 1)  # what the function prints is no answer
    from hubbub.agents.tools.sandbox import work

    answer = json.dumps(work.answer(request)).encode()
    with os.fdopen(answers, "wb") as out:
        out.write(answer)
    sys.stdout.flush()
    os._exit(0)  # nothing that the function has left behind runs on


main()
