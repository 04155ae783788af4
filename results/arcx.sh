#!/usr/bin/env bash
# Prints the rows of the tables in this folder for the ARCx model, with the published figures beside them.
#
#   results/arcx.sh explore 0 1 2 3          states and transitions
#   results/arcx.sh check 1a.gos 0 1 2       a formula of formulas/
#
# CONFLUENCE=none|auto|NAME (default auto): published figures stand beside the setting that they are of. COUNT=merged|all-parameters (default).
# THREADS (default: all cores) and MU_CHECK (the program, default: the release build) can be set. Seconds are wall time.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${MU_CHECK:-target/release/mu-check}
threads=${THREADS:-$(nproc)}

usage() { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
# The number or word under a key of the one JSON object.
key() { sed -E "s/.*\"$1\":\"?([^,\"}]*).*/\1/" <<<"$2"; }
confluence=${CONFLUENCE:-auto}
published() {
  awk -F'\t' -v job="$1" -v n="$2" -v column="$3" -v c="$confluence" '$1 == job && $2 == n && ($3 == "-" || $3 == c) { print $column }' results/published.tsv
}

[ $# -ge 2 ] || usage
job=$1
shift
case $job in
explore)
  echo "| N | states | transitions | seconds | states/s | peak MB | bytes a state | stop | published states | published seconds |"
  echo "|---|---|---|---|---|---|---|---|---|---|"
  for n; do
    json=$("$program" explore specs/arcx.spec -D max_operation_id="$n" --confluence "$confluence" --threads "$threads" --format json) || true
    states=$(key states "$json") seconds=$(key seconds "$json") bytes=$(key peak_memory_bytes "$json")
    awk -v OFS=' | ' -v n="$n" -v s="$states" -v t="$(key transitions "$json")" -v sec="$seconds" -v b="$bytes" -v stop="$(key stop "$json")" \
      -v ps="$(published explore "$n" 4)" -v pt="$(published explore "$n" 5)" \
      'BEGIN { printf "| %s | %s | %s | %.2f | %.0f | %.0f | %.1f | %s | %s | %s |\n", n, s, t, sec, s / (sec + 1e-9), b / 1e6, b / s, stop, ps, pt }'
  done
  ;;
check)
  formula=$1
  shift
  echo "| formula | N | verdict | states | equations | seconds | peak MB | published equations | published seconds |"
  echo "|---|---|---|---|---|---|---|---|---|"
  for n; do
    json=$("$program" specs/arcx.spec "formulas/$formula.mcf" -D max_operation_id="$n" --confluence "$confluence" \
      --count "${COUNT:-all-parameters}" --threads "$threads" -q --format json) || true
    printf '| %s | %s | %s | %s | %s | %.2f | %.0f | %s | %s |\n' "$formula" "$n" "$(key verdict "$json")" "$(key states "$json")" \
      "$(key equations "$json")" "$(key seconds "$json")" "$(awk -v b="$(key peak_memory_bytes "$json")" 'BEGIN { print b / 1e6 }')" \
      "$(published "$formula" "$n" 4)" "$(published "$formula" "$n" 5)"
  done
  ;;
*) usage ;;
esac
