#!/usr/bin/env bash
# need.sh: installs Debian packages whose command or file is missing.
#
#   need.sh WHAT=PACKAGE...     WHAT is a command of the PATH, or an absolute path that may hold *
#
# Does nothing when all are there. Where it cannot install (no apt-get, or neither root nor sudo), it says what is missing and
# returns 0: what needs the package says so itself when it runs.
set -euo pipefail

missing=()
for pair in "$@"; do
  what=${pair%%=*}
  case $what in
  /*) compgen -G "$what" >/dev/null || missing+=("${pair#*=}") ;;
  *) command -v "$what" >/dev/null || missing+=("${pair#*=}") ;;
  esac
done
[ ${#missing[@]} -gt 0 ] || exit 0

sudo=()
[ "$(id -u)" = 0 ] || sudo=(sudo -n)
if ! command -v apt-get >/dev/null || ! "${sudo[@]}" true 2>/dev/null; then
  echo "need: missing ${missing[*]}, and this user cannot install packages; run: apt-get install ${missing[*]}" >&2
  exit 0
fi
echo "need: installing ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get)
if ! { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
  tail -n 20 "$log" >&2
  echo "need: apt-get could not install ${missing[*]}" >&2
  exit 1
fi
