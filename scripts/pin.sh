#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Remakes scripts/requirements-*.txt, with the hashes of every wheel, from scripts/requirements-*.in. For maintainers, who need uv.
set -euo pipefail
cd "$(dirname "$0")"
for in in requirements-*.in; do
    uv pip compile --quiet --universal --generate-hashes --python-version 3.10 --fork-strategy fewest \
        --no-annotate --custom-compile-command "scripts/pin.sh" "$in" -o "${in%.in}.txt"
done
