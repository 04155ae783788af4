#!/usr/bin/env bash
# Prints both engines' rows for the ARCx model, all transitions, and says where their counts differ.
#
#   results/symbolic.sh 5 0 1 2 3 4 5 6 14    N from 0; the explicit engine up to the first number
#
# THREADS (default: all cores) and MU_CHECK (the program, default: the release build) can be set. Seconds are wall time.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${MU_CHECK:-target/release/mu-check}
threads=${THREADS:-$(nproc)}
[ $# -ge 2 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }

# The number or word under a key of the one JSON object; nothing if there is none.
key() { sed -nE "s/.*\"$1\":\"?([^,\"}]*).*/\1/p" <<<"$2"; }
row() {
  json=$("$program" explore specs/arcx.spec -D max_operation_id="$2" --engine "$1" --threads "$threads" -q --format json) || true
  counts="$(key states "$json") | $(key transitions "$json") | $(key deadlocks "$json")"
  awk -v n="$2" -v e="$1" -v c="$counts" -v s="$(key seconds "$json")" -v b="$(key peak_memory_bytes "$json")" -v k="$(key nodes "$json")" \
    -v p="$(key peak_nodes "$json")" -v stop="$(key stop "$json")" \
    'BEGIN { printf "| %s | %s | %s | %.2f | %.0f | %s | %s | %s |\n", n, e, c, s, b / 1e6, k, p, stop }'
}

last=$1
shift
echo "| N | engine | states | transitions | deadlocks | seconds | peak MB | nodes | most nodes at a time | stop |"
echo "|---|---|---|---|---|---|---|---|---|---|"
for n; do
  row symbolic "$n"
  found=$counts
  if [ "$n" -le "$last" ]; then
    row explicit "$n"
    [ "$counts" = "$found" ] || { echo "the counts differ at N = $n" >&2; exit 1; }
  fi
done
