#!/usr/bin/env bash
# Prints the rows of the tables in litmus.md.
#
#   results/litmus.sh small 10000          so many small litmus tests, written to a scratch folder, under SC, TSO and PSO
#   results/litmus.sh programs 2 3 4       specs/x86 for so many threads, under SC and TSO
#   results/litmus.sh robust               store-buffer safety: interleavings by the bound on preemptions, as written and with fences
#   results/litmus.sh figure4              the rows of figure 4 of Burckhardt and Musuvathi beside ours, in two settings
#
# THREADS (default: all cores), SECONDS_EACH (limit of a run, default 60) and MU_CHECK (the program, default: the release build) can be set.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${MU_CHECK:-target/release/mu-check}
common=(--threads "${THREADS:-$(nproc)}" --timeout "${SECONDS_EACH:-60}s" --max-memory 4GB --no-progress -q --format json)

usage() { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
# The number or word under a key.
key() { sed -E "s/.*\"$1\":\"?([^,\"}]*).*/\1/" <<<"$2"; }

# Writes N tests of 2 or 3 threads with 2 to 4 instructions each, or 4 with 2. The random numbers are our own, so that all awks write the same.
small() {
  awk -v count="$1" -v folder="$2" '
    function below(n) { seed = (seed * 16807) % 2147483647; return int(seed / 2147483647 * n) }
    BEGIN {
      split("x y z", cell, " "); split("EAX EBX ECX EDX", register, " "); seed = 20240229
      for (i = 1; i <= count; i++) {
        threads = 2 + below(3); rows = 0; condition = ""
        split("", code)
        for (t = 0; t < threads; t++) {
          n = 2 + below(3) * (threads < 4); loads = 0; rows = n > rows ? n : rows
          for (r = 0; r < n; r++) {
            c = cell[1 + below(2 + (threads > 2))]; kind = below(20)
            if (kind < 9) code[t, r] = "MOV [" c "],$" 1 + below(2)
            else if (kind < 18) {
              loads++
              code[t, r] = "MOV " register[loads] ",[" c "]"
              condition = condition (condition == "" ? "" : " /\\ ") t ":" register[loads] "=" (below(3) == 0)
            } else if (kind == 18) code[t, r] = "MFENCE"
            else code[t, r] = "LOCK INC [" c "]"
          }
        }
        file = folder "/" sprintf("t%05d.litmus", i)
        text = "X86 t" i "\n{ x=0; y=0; z=0; }\n"
        for (t = 0; t < threads; t++) text = text " P" t (t + 1 < threads ? " |" : " ;\n")
        for (r = 0; r < rows; r++) for (t = 0; t < threads; t++) text = text " " code[t, r] (t + 1 < threads ? " |" : " ;\n")
        printf "%sexists (%s)\n", text, condition == "" ? "true" : condition > file
        close(file)
      }
    }'
}

[ $# -ge 1 ] || usage
job=$1
shift
case $job in
small)
  folder=$(mktemp -d)
  trap 'rm -r "$folder"' EXIT
  small "${1:-10000}" "$folder"
  echo "| model | tests | Ok | No | Unknown | refused | states | seconds |"
  echo "|---|---|---|---|---|---|---|---|"
  for model in sc tso pso; do
    table=$("$program" litmus "$folder" --model $model --threads "${THREADS:-$(nproc)}" --no-progress -q) || [ $? = 1 ]
    awk -v m=$model '{ v[$1] = $2 } END { printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", m, v["tests"], v["Ok"], v["No"], v["Unknown"], v["refused"], v["states"], v["seconds"] }' <<<"$table"
  done
  ;;
programs)
  echo "| program | threads | model | verdict | states | transitions | steps to an unsafe state | seconds | peak MB |"
  echo "|---|---|---|---|---|---|---|---|---|"
  for file in specs/x86/*.asm; do
    for n; do
      # Code for two threads is for two threads.
      [ "$(grep -c 'begin thread_code' "$file")" = 1 ] || [ "$n" = 2 ] || continue
      for model in sc tso; do
        json=$("$program" program "$file" --threads-of "$n" --model $model "${common[@]}" 2>/dev/null) || true
        steps=$(grep -o '"event"' <<<"$json" | wc -l) || true
        [ "$(key verdict "$json")" = unsafe ] || steps=
        printf '| %s | %s | %s | %s | %s | %s | %s | %.2f | %.0f |\n' "$(basename "$file" .asm)" "$n" $model "$(key verdict "$json")" \
          "$(key states "$json")" "$(key transitions "$json")" "$steps" "$(key seconds "$json")" "$(awk -v b="$(key peak_memory_bytes "$json")" 'BEGIN { print b / 1e6 }')"
      done
    done
  done
  ;;
robust)
  folder=$(mktemp -d)
  trap 'rm -r "$folder"' EXIT
  printf 'X86 store_buffering\n{}\nP0 | P1 ;\nMOV [x],$1 | MOV [y],$1 ;\nMOV EAX,[y] | MOV EBX,[x] ;\nexists (true)\n' >"$folder/store_buffering.litmus"
  echo "| program | preemptions | interleavings | borderline | seconds |"
  echo "|---|---|---|---|---|"
  for file in "$folder/store_buffering.litmus" specs/x86/dekker.asm specs/x86/bakery.asm specs/x86/take_queue.asm; do
    for bound in 0 1 2 3 4 5 any reduced; do
      how=(--preemptions $bound)
      [ $bound = any ] && how=(--preemptions 4294967295)
      [ $bound = reduced ] && how=()
      json=$("$program" robust "$file" --count "${how[@]}" "${common[@]}" 2>/dev/null) || true
      count=${json#*\"count\":} count=${count%%\}*}
      more=
      [ "$(key stop "$count")" = complete ] || more="more than "
      name=$(basename "$file")
      printf '| %s | %s | %s%s | %s%s | %.2f |\n' "${name%.*}" $bound "$more" "$(key interleavings "$count")" "$more" "$(key borderline "$count")" "$(key seconds "$json")"
    done
  done
  echo
  echo "| program | verdict | states to it | seconds | fences | states of the proof |"
  echo "|---|---|---|---|---|---|"
  for file in "$folder/store_buffering.litmus" specs/x86/dekker.asm specs/x86/bakery.asm specs/x86/take_queue.asm; do
    found=$("$program" robust "$file" "${common[@]}" 2>/dev/null) || true
    text=$("$program" robust "$file" --fences --no-progress 2>/dev/null) || true
    name=$(basename "$file")
    printf '| %s | %s | %s | %.3f | %s | %s |\n' "${name%.*}" "$(key verdict "$found")" "$(key states "$found")" "$(key seconds "$found")" \
      "$(sed -n 's/^robust with \(.*\), and .*/\1/p' <<<"$text")" "$(sed -n 's/.* checks, \(.*\) states in .*/\1/p' <<<"$text")"
  done
  ;;
figure4)
  folder=$(mktemp -d)
  trap 'rm -r "$folder"' EXIT
  printf 'X86 five\n{}\nP0 | P1 ;\nMOV [x],$1 | MOV [z],$1 ;\nMOV EAX,[y] | MOV [y],$1 ;\n | MOV EBX,[x] ;\nexists (true)\n' >"$folder/five.litmus"
  printf 'X86 four\n{}\nP0 | P1 ;\nMOV [x],$1 | MOV [y],$1 ;\nMOV EAX,[y] | MOV EBX,[x] ;\nexists (true)\n' >"$folder/four.litmus"
  sed 's/mov ebx, 2/mov ebx, 1/' specs/x86/dekker.asm >"$folder/dekker1.asm"
  sed 's/mov ebx, 2/mov ebx, 3/' specs/x86/bakery.asm >"$folder/bakery3.asm"
  cp specs/x86/dekker.asm specs/x86/take_queue.asm "$folder"
  # Interleavings and borderline ones of a program up to a bound.
  counted() {
    local json count more=
    json=$("$program" robust "$1" --count --preemptions "$2" "${@:3}" "${common[@]}" 2>/dev/null) || true
    count=${json#*\"count\":} count=${count%%\}*}
    [ "$(key stop "$count")" = complete ] || more="more than "
    printf '%s%s / %s%s' "$more" "$(key interleavings "$count")" "$more" "$(key borderline "$count")"
  }
  echo "| program | preemptions | published total / borderline | all threads may begin | the first begins and starts the other |"
  echo "|---|---|---|---|---|"
  while read -r file bound total borderline; do
    printf '| %s | %s | %s / %s | %s | %s |\n' "${file%.*}" "$bound" "$total" "$borderline" "$(counted "$folder/$file" "$bound")" \
      "$(counted "$folder/$file" "$bound" --first 0 --starts)"
  done <<'ROWS'
five.litmus 3 10 4
four.litmus 3 10 4
dekker1.asm 1 5 4
dekker1.asm 2 36 23
dekker1.asm 3 183 50
dekker1.asm 4 1219 124
dekker1.asm 5 8472 349
dekker.asm 1 5 4
dekker.asm 2 36 23
dekker.asm 3 183 50
dekker.asm 4 1219 124
dekker.asm 5 8472 349
bakery3.asm 0 1 1
bakery3.asm 1 25 20
bakery3.asm 2 742 533
bakery3.asm 3 12436 8599
take_queue.asm 0 3 0
take_queue.asm 1 47 14
take_queue.asm 2 402 189
take_queue.asm 3 2318 1197
take_queue.asm 4 9147 5321
take_queue.asm 5 29821 17922
ROWS
  ;;
*) usage ;;
esac
