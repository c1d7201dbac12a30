#!/bin/sh
# install.sh VENV REQUIREMENT: make a virtual environment and install this project into it.
# With uv where uv is there, else with venv and pip; both as this machine has them configured.
# CONSTRAINTS names another file than constraints.txt; /dev/null: the newest that fit.
# FIRST is a package to install before, whose wishes for versions give way to the project's.
set -eu

venv=$1
what=$2
constraints=${CONSTRAINTS:-constraints.txt}
first=${FIRST:-}
wanted='import sys; sys.exit(sys.version_info < (3, 11))'

say() { printf '%s\n' "$*" >&2; }

find_python() {
    for name in ${PYTHON:-} python3.11 python3.12 python3.13 python3.14 python3 python; do
        if command -v "$name" >/dev/null 2>&1 && "$name" -c "$wanted" >/dev/null 2>&1; then
            command -v "$name"
            return 0
        fi
    done
    return 1
}

with_uv() {
    command -v uv >/dev/null 2>&1 || return 1
    if [ ! -x "$venv/bin/python" ]; then
        uv venv --quiet --python "${python:-3.11}" "$venv" || return 1
    fi
    [ -z "$first" ] || uv pip install --quiet --python "$venv/bin/python" "$first" || return 1
    uv pip install --quiet --python "$venv/bin/python" -c "$constraints" -e "$what"
}

with_pip() {
    if [ -z "$python" ]; then
        say "Hubbub needs Python 3.11 or newer, and none is on the PATH: install one (or uv), or name it with PYTHON=/path/to/python make run."
        return 1
    fi
    if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        rm -rf "$venv"
        if ! "$python" -m venv "$venv"; then
            rm -rf "$venv"
            say "$python cannot make virtual environments: install its venv package (on Debian and Ubuntu python3-venv), or uv."
            return 1
        fi
    fi
    [ -z "$first" ] || "$venv/bin/python" -m pip install --quiet "$first" || return 1
    # The constraints also hold for what builds the project.
    PIP_CONSTRAINT=$constraints PIP_DISABLE_PIP_VERSION_CHECK=1 \
        "$venv/bin/python" -m pip install --quiet -e "$what"
}

python=$(find_python) || python=
if [ -x "$venv/bin/python" ] && ! "$venv/bin/python" -c "$wanted" >/dev/null 2>&1; then
    rm -rf "$venv" # made by a Python that is gone or too old
fi
say "Installing Hubbub into $venv (once; takes a minute) ..."
with_uv && exit 0
if command -v uv >/dev/null 2>&1; then
    say "uv did not manage; trying pip ..."
fi
with_pip || exit 2
