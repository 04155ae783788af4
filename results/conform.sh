#!/usr/bin/env bash
# Prints tables of conform.md.
#
#   results/conform.sh faults              the seeded faults of the machines and of ARCx, each with its K and its smallest test
#   results/conform.sh suites DIR          the same for each machine and its model, and the suites, written to DIR
#   results/conform.sh any                 programs of every length: the machines, three processors, and ARCx
#
# MU_CHECK (the program, default: the release build) can be set.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${MU_CHECK:-target/release/mu-check}

usage() { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
# machine, interface, and further options; prints the tables.
tables() {
  local machine=$1 interface=$2
  shift 2
  printf '\n### %s\n\n' "$machine"
  # Exit code 1: a fault is not found.
  { "$program" conform "specs/$machine.spec" --interface "specs/$interface.interface" --fault "specs/$machine.faults" --no-progress -q "$@" || [[ $? == 1 ]]; } |
    grep -E '^\||^faults|^suite' | sed -E 's/^(faults|suite) +(.*)$/\n\2\n/; s/ in [^ ]*: /: /'
}
own=machines/machine
arcx=(-D max_operation_id=1 --operations 3)

case ${1:-} in
  faults)
    tables machines/sc $own --against sc --operations 3
    tables machines/tso $own --against tso --operations 3
    tables machines/pso $own --against pso --operations 3
    tables machines/msi machines/msi --against sc --operations 4
    tables arcx arcx "${arcx[@]}"
    ;;
  suites)
    [[ $# == 2 ]] || usage
    tables machines/sc $own --against sc --operations 3 --suite "$2/sc"
    tables machines/tso $own --against tso --operations 3 --suite "$2/tso"
    tables machines/pso $own --against pso --operations 3 --suite "$2/pso"
    tables machines/msi machines/msi --against sc --operations 4 --suite "$2/msi"
    tables arcx arcx "${arcx[@]}" --against tso --suite "$2/arcx-tso"
    tables arcx arcx "${arcx[@]}" --against rcsc --suite "$2/arcx-rcsc"
    ;;
  any)
    any() { printf '\n### %s\n\n' "$*"; "$program" conform "specs/$1.spec" --interface "specs/$2.interface" --operations any --no-progress "${@:3}" || [[ $? == 1 || $? == 3 ]]; }
    any machines/sc machines/direct -D values=3
    any machines/tso machines/buffer -D values=3
    any machines/tso machines/buffer -D values=3 -D slots=3 -D fences=1 -D updates=1
    any machines/pso machines/buffer -D values=3
    any machines/msi machines/msi -D values=3
    for m in tso/buffer pso/buffer; do
      any "machines/${m%/*}" "machines/${m#*/}" -D values=3 -D slots=1 -D processors=3
    done
    any arcx arcx -D byte_size=3 -D max_operation_id=any
    ;;
  *) usage ;;
esac
