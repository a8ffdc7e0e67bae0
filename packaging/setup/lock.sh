#!/bin/sh
# Renews the lock files from the bounds in pyproject.toml, for every platform and Python we support.
#   lock.sh PYTHON [--upgrade]        PYTHON has uv
# Versions that fit are kept; --upgrade takes the newest that the bounds allow.
set -eu
python=$1; shift
lock() {
    output=$1; shift
    "$python" -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --no-header --no-annotate "$@" --output-file "requirements/$output"
}
lock lock.txt pyproject.toml "$@"
lock build.txt requirements/build.in "$@"
lock test.txt pyproject.toml requirements/build.in --extra test --constraints requirements/lock.txt "$@"
lock package.txt pyproject.toml --extra package --constraints requirements/lock.txt "$@"
lock peers.txt requirements/peers.in --no-deps "$@"
lock webgpu.txt requirements/webgpu.in --no-deps "$@"
lock webgpu-tools.txt requirements/webgpu-tools.in "$@"
