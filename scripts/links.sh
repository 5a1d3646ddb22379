#!/usr/bin/env bash
# links.sh: times of collectives on emulated links in real time beside the theory. It judges nothing: a busy machine wakes
# ranks late.
set -euo pipefail
cd "$(dirname "$0")/.."
bin/carve bench comm --emulate dgx-h100 --time-scale 1000 --ranks 16 --time 500ms --max-bytes 256KiB --json \
  --op all_reduce,all_gather,reduce_scatter,all_to_all |
  sed -E 's/.*"op":"([^"]*)".*"bytes":([0-9]*).*"time_us":([0-9.e+]*).*"theory_us":([0-9.e+]*).*/\1 \2 \3 \4/' |
  awk '$4 > 1000 { printf "%-16s %9d B  measured %9.0f us  theory %9.0f us  %+.1f %%\n", $1, $2, $3, $4, 100 * ($3 / $4 - 1) }'
