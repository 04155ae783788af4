#!/usr/bin/env bash
# Writes the obligations of the proof of every safe system of a folder as SMT-LIB and asks a solver, which must find each unsatisfiable.
#
#   results/proofs-smt.sh FOLDER [SOLVER [PATTERN]]     FOLDER/expected.tsv lists the systems: file, model (sc or tso), ..; SOLVER reads from its standard input
#
# PATTERN keeps the files that match. The default solver is `z3 -in`. SECONDS_EACH (limit of a proof, default 20), SECONDS_SMT (of one
# obligation, default 10) and MU_CHECK (the program, default: the release build) can be set. Prints a row a system: its obligations, and how many were answered how.
set -uo pipefail
[ $# -ge 1 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
folder=$1 solver=${2:-z3 -in} pattern=${3:-.}
program=${MU_CHECK:-$(dirname "$0")/../target/release/mu-check}
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
all=0 confirmed=0 systems=0 whole=0
while IFS=$'\t' read -r file model _; do
  rm -rf "$work/smt"; mkdir "$work/smt"
  "$program" prove "$folder/$file" --model "$model" --timeout "${SECONDS_EACH:-20}s" --max-memory 4GB --no-progress -q --smt-lib "$work/smt" >"$work/said" 2>&1
  [ $? = 0 ] || continue
  # All in one run of the solver, which forgets each before the next.
  count=$(find "$work/smt" -name '*.smt2' | wc -l)
  answers=$(find "$work/smt" -name '*.smt2' | sort | while read -r f; do
    printf '(set-option :timeout %s000)\n' "${SECONDS_SMT:-10}"; cat "$f"; printf '(reset)\n'
  done | $solver 2>&1)
  unsat=$(grep -c '^unsat$' <<<"$answers")
  printf '| `%s` | %s | %s | %s | %s |\n' "$file" "$model" "$count" "$unsat" "$(grep -v '^unsat$' <<<"$answers" | sort | uniq -c | head -3 | tr '\n' ' ')"
  all=$((all + count)) confirmed=$((confirmed + unsat)) systems=$((systems + 1))
  [ "$count" != "$unsat" ] || whole=$((whole + 1))
done < <(grep -v '^#' "$folder/expected.tsv" | grep -E "$pattern")
printf '\n%s systems, %s of them confirmed whole; %s obligations, %s unsatisfiable\n' "$systems" "$whole" "$all" "$confirmed"
