#!/usr/bin/env bash
# Proves every system of a folder beside another prover, one run after another, and prints the rows of the table in proofs.md, the bad ones first.
#
#   results/proofs.sh FOLDER PEER [PATTERN]     FOLDER/expected.tsv lists the systems: file, model (sc or tso), verdict, ..; PEER is the other program
#
# PATTERN keeps the files that match. SECONDS_EACH (limit of a run, default 60), MU_CHECK (the program, default: the release build) and PEER_SC (what
# the peer wants for sequential consistency, default: -model SC) can be set. Times are of whole processes, the fastest of three below a second.
set -uo pipefail
[ $# -ge 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
folder=$1 peer=$2 pattern=${3:-.}
program=${MU_CHECK:-$(dirname "$0")/../target/release/mu-check}
limit=${SECONDS_EACH:-60}
rows=$(mktemp)
trap 'rm "$rows"' EXIT

# Runs a command within the limit: leaves its output in `said`, its seconds in `took`; of runs below a second the fastest of three.
timed() {
  local from code least=
  for _ in 1 2 3; do
    from=${EPOCHREALTIME/./}
    said=$(timeout $((limit + 2)) "$@" 2>&1)
    code=$?
    took=$((${EPOCHREALTIME/./} - from))
    [ -n "$least" ] && ((took > least)) || least=$took
    ((took < 1000000)) || break
  done
  took=$(awk -v t="$least" 'BEGIN { printf "%.3f", t / 1e6 }')
  [ $code != 124 ] || said=
}

while IFS=$'\t' read -r file model _; do
  timed "$program" prove "$folder/$file" --model "$model" --timeout "${limit}s" --max-memory 4GB --no-progress -q
  ours=$(awk '$1 == "verdict" { print $2 }' <<<"$said")
  why=$(sed -n 's/^why *//p' <<<"$said" | head -1 | cut -c1-80)
  mine=$took
  if [ "$model" = sc ]; then how=(${PEER_SC:--model SC}); else how=(); fi
  timed "$peer" -nocolor -quiet "${how[@]}" "$folder/$file"
  theirs=open
  grep -q UNSAFE <<<"$said" && theirs=unsafe
  grep -q 'is SAFE' <<<"$said" && theirs=safe
  [ -n "$said" ] && [ $theirs = open ] && theirs=refused
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$file" "$model" "${ours:-error}" "$mine" "$theirs" "$took" "$why" | tee -a "$rows" >&2
done < <(grep -v '^#' "$folder/expected.tsv" | grep -E "$pattern")

awk -F'\t' -v limit="$limit" '
  {
    decided = $5 == "safe" || $5 == "unsafe"; ratio = $6 / ($4 > 0.001 ? $4 : 0.001)
    kind = "same"
    if (decided && $3 != $5) { kind = "differs"; differ++ }
    else if (decided && $4 > 1 && $4 > 2 * $6) { kind = "slow"; slow++ }
    else if (!decided && ($3 == "safe" || $3 == "unsafe")) { kind = "more"; more += $5 == "open" }
    else if (!decided) { kind = "neither"; neither++ }
    if (decided && $3 == $5) { sum += log(ratio); count++ }
    order = index("differs slow    neither more    same", kind)
    shown = decided && $3 == $5 ? sprintf("%.1f", ratio) : ""
    line[NR] = sprintf("%02d\t%09.3f\t| `%s` | %s | %s | %.3f | %s | %.3f | %s | %s |", order, 10000 - (decided ? ratio : 0), $1, $2, $3, $4, $5, $6, shown, $7)
  }
  END {
    printf "%d systems; verdicts differ on %d, slower than twice and than a second on %d; geometric mean of the ratios over %d: %.1f; decided here alone, open there: %d; by neither: %d\n\n",
      NR, differ, slow, count, exp(sum / count), more, neither
    print "| system | model | mu-check | s | peer | s | ratio | why |"
    print "|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= NR; i++) print line[i] | "sort | cut -f3"
  }' "$rows"
