#!/usr/bin/env bash
# copy.sh DIR: copies the work tree into DIR as a clone of it would look: what git tracks or would add, without what it ignores.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files -z --cached --others --exclude-standard |
  while IFS= read -r -d '' file; do if [ -e "$file" ]; then printf '%s\0' "$file"; fi; done |
  tar --create --null --files-from=- | tar --extract --directory="$1"
