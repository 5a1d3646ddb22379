#!/usr/bin/env bash
# soak.sh TIME: proves the whole matrix of layouts once, then repeats the tests under the race detector in a new random order each time,
# until TIME (30m, 2h) is over or one fails; and then prints the times of emulated links beside their theory.
set -euo pipefail
cd "$(dirname "$0")/.."
case $1 in
*h) seconds=$((${1%h} * 3600)) ;;
*m) seconds=$((${1%m} * 60)) ;;
*s) seconds=${1%s} ;;
*) echo "soak: $1 is not a time such as 90s, 30m or 2h" >&2 && exit 2 ;;
esac
bin/carve verify --matrix
round=0
while [ "$SECONDS" -lt "$seconds" ]; do
  round=$((round + 1))
  echo "soak: round $round, $SECONDS of $seconds s"
  CGO_ENABLED=1 go test -race -shuffle=on -count=1 ./...
done
echo "soak: $round rounds passed"
scripts/links.sh
