#!/usr/bin/env bash
# reproduce.sh: runs `make generate` in a copy of the work tree and fails when any file differs from the one here.
set -euo pipefail
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir "$copy/before" "$copy/after"
scripts/copy.sh "$copy/before"
scripts/copy.sh "$copy/after"
make --no-print-directory -C "$copy/after" generate
diff --recursive --brief "$copy/before" "$copy/after" || {
  echo "reproduce: make generate changes the files above; run it, look at the difference and commit it" >&2
  exit 1
}
echo "reproduce: every generated file is what make generate writes"
