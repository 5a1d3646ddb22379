#!/usr/bin/env bash
# fuzz.sh TIME: runs every fuzz target of the module for TIME each.
set -euo pipefail
cd "$(dirname "$0")/.."
go list -f '{{.Dir}}' ./... | while IFS= read -r dir; do
  { grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go 2>/dev/null || true; } | while read -r _ target; do
    echo "fuzz: ${dir#"$PWD"/} $target for $1"
    go test -run=NONE -fuzz="^$target\$" -fuzztime="$1" "$dir" </dev/null
  done
done
