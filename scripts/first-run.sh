#!/usr/bin/env bash
# first-run.sh [TIME]: types the first command of the README in a fresh copy of the tree, with nothing prepared by an earlier run, and with
# a limit on the time of training.
set -euo pipefail
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
scripts/copy.sh "$copy"
cd "$copy"
export CARVE_CACHE=$copy/.cache
go run ./cmd/carve train --time "${1:-20s}" </dev/null
