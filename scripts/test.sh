#!/bin/sh
# One part of the tests: scripts/test.sh PYTHON JOBS MARKERS
#
# A few tests that fail while others keep the machine busy are run once more, alone. What fails again
# fails; what passes is named at the end: it races with something, and is to be mended all the same.
set -u
python=$1 jobs=$2 markers=$3
most=3
"$python" -m pytest --cache-clear -n "$jobs" -m "$markers" && exit 0
status=$?
[ "$status" -eq 1 ] || exit "$status"  # interrupted, or nothing could be collected
failed=$("$python" - <<'PY'
import json, pathlib
print("\n".join(json.loads(pathlib.Path(".pytest_cache/v/cache/lastfailed").read_text())))
PY
) || exit 1
count=$(printf '%s\n' "$failed" | grep -c .)
if [ "$count" -lt 1 ] || [ "$count" -gt "$most" ]; then exit 1; fi
printf '\n%s failed beside others; once more, alone:\n' "$count"
"$python" -m pytest -p no:randomly --last-failed --last-failed-no-failures none -m "$markers" || exit 1
printf '\nPassed alone, so these race with something:\n%s\n\n' "$failed"
