#!/bin/sh
# Runs parts of the tests, one after the other: scripts/test.sh PYTHON JOBS PART...
# PART: fast, slow, page, all (these three in one run), npm, bridges, postgres, gateways, cluster, frameworks.
# The times it prints are for two idle cores: of a desktop, and of a small machine in a data centre.
set -eu
python=$1 jobs=$2
shift 2
unset PYTHONDONTWRITEBYTECODE # without bytecode, each worker needs ten seconds more to import the tests
parts=$# part=0 began=$(date +%s)

for name; do
    part=$((part + 1))
    unset HUBBUB_TEST_GATEWAY HUBBUB_TEST_POSTGRES
    profile=fast prepare= warnings=error where=tests workers=$((jobs + 1)) # workers wait for threads and processes half of the time
    case $name in
    all) markers="not npm and not frameworks and not bridges and not postgres and not cluster" time="6 to 15 minutes" \
        what="tests within one process, with processes, and of the page in Chromium" profile=full \
        prepare="tests.interaction.nginx tests.browser.support.chromium" ;;
    fast) markers="not slow and not browser and not frameworks and not bridges and not postgres and not cluster" what="tests within one process" time="1 to 3 minutes" ;;
    slow) markers="(slow or hypothesis) and not browser and not npm and not postgres and not cluster" what="real processes, and properties with all their examples" time="3 to 8 minutes" \
        profile=full prepare=tests.interaction.nginx ;;
    page) markers=browser what="the page in Chromium" time="3 to 5 minutes" workers=$jobs \
        prepare=tests.browser.support.chromium ;;
    npm) markers=npm what="coding agents and MCP hosts from npm" time="2 minutes" workers=$jobs \
        prepare="tests.e2e.support.opencode tests.e2e.support.conformance tests.e2e.support.openai_clients tests.e2e.support.node tests.browser.support.chromium" ;;
    bridges) markers=bridges what="IRC and Matrix, with real servers" time="2 minutes" workers=$jobs \
        prepare="tests.bridges.servers tests.bridges.homeserver" ;;
    postgres) markers=postgres what="the store on a real Postgres" time="10 minutes" workers=1 \
        prepare=tests.postgres_server ;;
    gateways) markers="not slow and not hypothesis" what="the guarantees of the hub, through gateways and on Postgres" time="1 to 3 minutes" \
        prepare=tests.postgres_server where="tests/interaction/test_hub_*.py tests/interaction/test_gateways.py" \
        HUBBUB_TEST_GATEWAY=1 HUBBUB_TEST_POSTGRES=1 && export HUBBUB_TEST_GATEWAY HUBBUB_TEST_POSTGRES ;;
    cluster) markers=cluster what="three nodes that share networks" time="3 to 6 minutes" workers=1 \
        prepare=tests.postgres_server ;;
    frameworks) markers=frameworks what="agents of other frameworks" time="half a minute" workers=$jobs \
        warnings=ignore where=tests/frameworks ;; # their warnings; and that environment lacks what other tests import
    *) echo "no such part: $name (all, fast, slow, page, npm, bridges, postgres, gateways, cluster, frameworks)" >&2 && exit 2 ;;
    esac
    printf '\nPart %s of %s, %s: %s (about %s)\n' "$part" "$parts" "$name" "$what" "$time"
    for each in $prepare; do "$python" -m "$each"; done # reports what is missing, and how to install it
    status=0
    HYPOTHESIS_PROFILE=${HYPOTHESIS_PROFILE:-$profile} \
        "$python" -m pytest -q -n "$workers" --dist worksteal -W "$warnings" -m "$markers" $where || status=$?
    if [ "$status" -ne 0 ]; then
        [ "$part" -eq "$parts" ] || printf '\nPart %s of %s failed; the parts after it did not run.\n' "$part" "$parts"
        exit "$status"
    fi
done
printf '\nAll passed, in %s seconds.\n' "$(($(date +%s) - began))"
