#!/usr/bin/env bash
# Counts the rows of the study's table 5.7 whose setting is `mem_wb_sync_store_finish` by sets of states, apart from the search that takes the step at once.
#
#   results/finish.sh 5 6 7 8 9 10 12 13 14
#
# The reduced system has the states of the full one in which no such step is possible, since the steps are confluent and end. At most one is possible at a time
# (the memory takes part), so these are the states less the steps. A copy of the action gives the steps: the transitions that it adds.
# MU_CHECK (the program, default: the release build). Ends with an error if a published number differs.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${MU_CHECK:-target/release/mu-check}
[ $# -ge 1 ] || { sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2; }
twice=$(mktemp --suffix=.spec)
trap 'rm -f "$twice"' EXIT
args='(core_id, g_address(bs . n), g_data(bs . n), g_nr(bs . n))'
sed -e "s/^        wb_sync_store_finish$args \.\$/        (wb_sync_store_finish$args + wb_copy$args) ./" \
    -e 's/^        mem_sync_store_finish(core_id, a, d, n) \.$/        (mem_sync_store_finish(core_id, a, d, n) + mem_copy(core_id, a, d, n)) ./' \
    -e 's/^    wb_sync_store_finish, mem_sync_store_finish,/    wb_copy, mem_copy, copied, &/' \
    -e 's/^  allow({$/  allow({ copied,/' -e 's/^  comm({$/  comm({ wb_copy | mem_copy -> copied,/' specs/arcx.spec >"$twice"
[ "$(grep -c 'wb_copy\|mem_copy' "$twice")" = 4 ] || { echo "the specification is not the one that this script edits" >&2; exit 1; }
key() { sed -E "s/.*\"$1\":\"?([^,\"}]*).*/\1/" <<<"$2"; }
status=0
echo "| N | states | steps taken at once | states without one | published | seconds |"
echo "|---|---|---|---|---|---|"
for n; do
  one=$("$program" explore specs/arcx.spec -D max_operation_id="$n" --engine symbolic -q --format json)
  two=$("$program" explore "$twice" -D max_operation_id="$n" --engine symbolic -q --format json)
  states=$(key states "$one") steps=$(($(key transitions "$two") - $(key transitions "$one")))
  [ "$states" = "$(key states "$two")" ] || { echo "N = $n: the copy changes the states" >&2; exit 1; }
  published=$(awk -F'\t' -v n="$n" '$1 == "explore" && $2 == n && $3 == "mem_wb_sync_store_finish" { print $4 }' results/published.tsv)
  seconds=$(awk -v a="$(key seconds "$one")" -v b="$(key seconds "$two")" 'BEGIN { printf "%.1f", a + b }')
  echo "| $n | $states | $steps | $((states - steps)) | $published | $seconds |"
  [ -z "$published" ] || [ "$published" = $((states - steps)) ] || { echo "N = $n: the published number differs" >&2; status=1; }
done
exit $status
