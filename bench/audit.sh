#!/usr/bin/env bash
# What the audit log costs: the gate of the benchmark with its log durable on a disk and signed, and the same gate with no
# log at all, under the same load, in turns. See bench/README.md.
#
# ROUNDS (9), DURATION in seconds (3), CONNECTIONS (256), OUT (bench/audit.md). Short rounds in turns, so that what else the
# machine does meets both sides alike.
set -euo pipefail
cd "$(dirname "$0")/.."

ROUNDS=${ROUNDS:-9}
DURATION=${DURATION:-3}
CONNECTIONS=${CONNECTIONS:-256}
OUT=${OUT:-bench/audit.md}

# shellcheck source=bench/lib.sh
source bench/lib.sh
new_work audit

command -v wrk >/dev/null || die "wrk is missing: make bench installs it"

token=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
(umask 077 && printf '%s,system:serviceaccount:bench:agent,1,system:serviceaccounts\n' "$token" >"$work/tokens.csv")
go build -o "$work/" ./hack/auditgate

declare -A port pid
start() { # SIDE ARGUMENTS...
  local side=$1
  shift
  port[$side]=$(free_port)
  "$work/auditgate" --token-auth-file "$work/tokens.csv" --listen "127.0.0.1:${port[$side]}" "$@" >"$work/$side.log" 2>&1 &
  pids+=("$!")
  pid[$side]=$!
  local i
  for ((i = 0; i < 100; i++)); do
    curl -s -o /dev/null --max-time 2 "http://127.0.0.1:${port[$side]}/" && return
    sleep 0.1
  done
  tail -n 5 "$work/$side.log" >&2
  die "$side did not start"
}

value() { sed -nE "s/.*[ ]$1=([0-9.]+).*/\1/p" <<<"$2"; }

load() { # SIDE SECONDS: the line RESULT of load.lua
  wrk -t1 "-c$CONNECTIONS" "-d${2}s" --latency --timeout 5s -s bench/load.lua "http://127.0.0.1:${port[$1]}" \
    -- bench/requests/allow.json gate /v1alpha1/review "$token" >"$work/wrk.txt"
  grep '^RESULT' "$work/wrk.txt" || { cat "$work/wrk.txt" >&2; die "wrk gave no result"; }
}

# ticks PID: processor time so far, in clock ticks, of the process with all its threads.
ticks() {
  local line
  line=$(<"/proc/$1/stat")
  # shellcheck disable=SC2086 # the fields are meant to be split
  set -- ${line##*) }
  echo $((${12} + ${13}))
}

measure() { # SIDE ROUND
  local line before after
  before=$(ticks "${pid[$1]}")
  line=$(load "$1" "$DURATION")
  after=$(ticks "${pid[$1]}")
  [[ $(value wrong "$line") == 0 && $(value errors "$line") == 0 ]] || die "$1: not every answer was an Allow: $line"
  awk -v side="$1" -v rps="$(value rps "$line")" -v p50="$(value p50us "$line")" -v p99="$(value p99us "$line")" \
    -v n="$(value requests "$line")" -v ticks=$((after - before)) -v hz="$(getconf CLK_TCK)" \
    'BEGIN { printf "%s %.0f %d %d %.1f\n", side, rps, p50, p99, ticks / hz * 1e6 / n }' >>"$work/results"
  [[ $1 == on ]] && value requests "$line" >>"$work/count"
  say "round $2, log $1: $(value rps "$line") requests/s, p99 $(value p99us "$line") us"
}

median() { # SIDE COLUMN
  awk -v side="$1" -v col="$2" '$1 == side { print $col }' "$work/results" | sort -g |
    awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# ratios COLUMN: the middle one of the rounds' ratios, with the log to without, in percent. The two sides of a round follow
# each other, so that a busy machine is busy for both.
ratios() {
  awk -v col="$1" '{ v[$1] = $col } NR % 2 == 0 { printf "%.1f\n", 100 * v["on"] / v["off"] }' "$work/results" | sort -g |
    awk '{ v[NR] = $1 } END { printf "%.0f\n", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

load_before=$(cut -d' ' -f1 /proc/loadavg)
start on --audit-log "$work/audit.jsonl" --audit-key "$work/key.json"
start off
for side in on off; do load "$side" 2 >/dev/null; done
for ((round = 1; round <= ROUNDS; round++)); do
  if ((round % 2)); then order="on off"; else order="off on"; fi # neither side is always the first
  for side in $order; do measure "$side" "$round"; done
done

records=$(wc -l <"$work/audit.jsonl")
allowed=$(awk '{ n += $1 } END { print n }' "$work/count")
((records >= allowed)) || die "the log has $records records for $allowed answers"
"$work/auditgate" --verify --audit-log "$work/audit.jsonl" --audit-key "$work/key.json" || die "the log is not whole"

report() {
  echo "# What the audit log costs"
  echo
  echo "Written by bench/audit.sh; bench/README.md says what is compared. An Allow of a tool that writes, so that each answer"
  echo "waits for its record to be on the disk."
  echo
  echo "| median of the rounds | log durable and signed | no log | with the log, median of each round's ratio |"
  echo "| --- | ---: | ---: | ---: |"
  local row
  for row in "requests/s:2" "p50, us:3" "p99, us:4" "processor time per request, us:5"; do
    printf '| %s | %.0f | %.0f | %d %% |\n' "${row%%:*}" "$(median on "${row##*:}")" "$(median off "${row##*:}")" "$(ratios "${row##*:}")"
  done
  echo
  echo "- machine: $(sed -nE 's/^model name\s*: //p' /proc/cpuinfo | head -n 1), $(nproc) processors, load before the run $load_before"
  echo "- log on $(df --output=fstype "$state" | tail -n 1), $records records for $allowed answers, verified after the run"
  echo "- $(go version | cut -d' ' -f3-4), wrk with 1 thread and $CONNECTIONS connections, $ROUNDS rounds of $DURATION s, medians"
  echo
  echo "| side | requests/s | p50, us | p99, us | processor us |"
  echo "| --- | ---: | ---: | ---: | ---: |"
  awk '{ printf "| %s | %s | %s | %s | %s |\n", $1, $2, $3, $4, $5 }' "$work/results"
}
report | tee "$OUT"
