#!/usr/bin/env bash
# Side by side: one decision over HTTP by Gatewright (its audit log durable before an Allow leaves) and by OPA (no log),
# the same rules and the same body, on loopback, one side under load at a time, in turns. See bench/README.md.
#
# ROUNDS (3), DURATION in seconds (10), CONNECTIONS (32), OUT (bench/last.md). SIDES=opa measures OPA alone.
set -euo pipefail
cd "$(dirname "$0")/.."

ROUNDS=${ROUNDS:-3}
DURATION=${DURATION:-10}
CONNECTIONS=${CONNECTIONS:-32}
OUT=${OUT:-bench/last.md}
SIDES=${SIDES:-"gate opa"}
GATE_PATH=/v1alpha1/review
OPA_PATH=/v1/data/gatewright/review/decision
CALLER=system:serviceaccount:bench:agent

# shellcheck source=bench/lib.sh
source bench/lib.sh
new_work run

need_wrk() {
  command -v wrk >/dev/null && return
  say "installing the package wrk with apt-get, which only this comparison needs"
  apt-get install -y --no-install-recommends wrk >/dev/null 2>&1 ||
    { apt-get update >/dev/null && apt-get install -y --no-install-recommends wrk >/dev/null; } ||
    die "wrk is missing and could not be installed: install it by hand"
}

start_opa() {
  opa_port=$(free_port)
  # Its best: rules optimised ahead, data kept in the form that evaluation reads, no log at all.
  .cache/bin/opa build --optimize 1 --entrypoint gatewright/review/decision --output "$work/bundle.tar.gz" bench/opa
  .cache/bin/opa run --server --addr "127.0.0.1:$opa_port" --log-level error --skip-version-check \
    --optimize-store-for-read-speed --bundle "$work/bundle.tar.gz" >"$work/opa.log" 2>&1 &
  opa_pid=$!
  pids+=("$opa_pid")
  wait_for opa "$opa_port"
}

start_gate() {
  gate_port=$(free_port)
  token=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
  (umask 077 && printf '%s,%s,1,system:serviceaccounts\n' "$token" "$CALLER" >"$work/tokens.csv")
  bin/gatewright serve --manifests bench/gatewright --audit-log "$work/audit.jsonl" \
    --approval-log "$work/approvals.jsonl" --token-auth-file "$work/tokens.csv" \
    --listen "127.0.0.1:$gate_port" >"$work/gate.log" 2>&1 &
  gate_pid=$!
  pids+=("$gate_pid")
  wait_for gate "$gate_port"
}

# wait_for SIDE PORT: until it answers anything at all, 30 s at most.
wait_for() {
  local i
  for ((i = 0; i < 150; i++)); do
    curl -s -o /dev/null --max-time 2 "http://127.0.0.1:$2/" && return
    kill -0 "${pids[-1]}" 2>/dev/null || break
    sleep 0.2
  done
  tail -n 20 "$work/$1.log" >&2
  die "$1 did not start"
}

# uuid7: a fresh uid, as load.lua makes them.
uuid7() {
  local ms hex
  ms=$(printf '%012x' "$(date +%s%3N)")
  hex=$(od -An -N10 -tx1 /dev/urandom | tr -d ' \n')
  echo "${ms:0:8}-${ms:8:4}-7${hex:0:3}-8${hex:3:3}-${hex:6:12}"
}

# ask SIDE FILE: one decision, as text.
ask() {
  local body
  body=$(sed "s/@UID@/$(uuid7)/" "$2")
  if [[ $1 == gate ]]; then
    curl -s --max-time 5 -H 'Content-Type: application/json' -H "Authorization: Bearer $token" \
      --data-binary "$body" "http://127.0.0.1:$gate_port$GATE_PATH"
  else
    curl -s --max-time 5 -H 'Content-Type: application/json' \
      --data-binary "{\"input\":{\"caller\":\"$CALLER\",${body#\{}}" "http://127.0.0.1:$opa_port$OPA_PATH"
  fi
}

# check SIDE: every rule stops what it should stop; otherwise the sides would not do the same work.
check() {
  local file name want got
  for file in bench/requests/*.json; do
    name=$(basename "$file" .json)
    want=Block
    [[ $name == allow ]] && want=Allow
    got=$(ask "$1" "$file")
    [[ $got == *"\"outcome\":\"$want\""* ]] || die "$1 does not answer $want to $name: ${got:0:400}"
  done
  say "$1 answers all of bench/requests as it should"
}

# ticks PID: processor time so far, in clock ticks, of the process with all its threads.
ticks() {
  local line
  line=$(<"/proc/$1/stat")
  # shellcheck disable=SC2086 # the fields are meant to be split
  set -- ${line##*) } # utime and stime are the fields 14 and 15, here less the two that were cut off
  echo $((${12} + ${13}))
}

# load SIDE SECONDS: prints the line RESULT of load.lua, and adds the requests to SIDE.count.
load() {
  local port path bearer
  if [[ $1 == gate ]]; then
    port=$gate_port path=$GATE_PATH bearer=$token
  else
    port=$opa_port path=$OPA_PATH bearer=
  fi
  wrk -t1 "-c$CONNECTIONS" "-d${2}s" --latency --timeout 5s -s bench/load.lua "http://127.0.0.1:$port" \
    -- bench/requests/allow.json "$1" "$path" "$bearer" >"$work/wrk.txt"
  grep '^RESULT' "$work/wrk.txt" || { cat "$work/wrk.txt" >&2; die "wrk gave no result"; }
  sed -n 's/^# /not an Allow: /p' "$work/wrk.txt" >&2
  value requests "$(grep '^RESULT' "$work/wrk.txt")" >>"$work/$1.count"
}

value() { sed -nE "s/.*[ ]$1=([0-9.]+).*/\1/p" <<<"$2"; }

# measure SIDE ROUND: one line in results: side rps p50us p99us cpu-us-per-request.
measure() {
  local pid_name=${1}_pid before after line
  before=$(ticks "${!pid_name}")
  line=$(load "$1" "$DURATION")
  after=$(ticks "${!pid_name}")
  [[ $(value wrong "$line") == 0 && $(value errors "$line") == 0 ]] || die "$1: not every answer was an Allow: $line"
  awk -v side="$1" -v rps="$(value rps "$line")" -v p50="$(value p50us "$line")" -v p99="$(value p99us "$line")" \
    -v n="$(value requests "$line")" -v ticks=$((after - before)) -v hz="$(getconf CLK_TCK)" \
    'BEGIN { printf "%s %.0f %d %d %.1f\n", side, rps, p50, p99, ticks / hz * 1e6 / n }' >>"$work/results"
  say "round $2, $1: $(tail -n 1 "$work/results" | awk '{ printf "%d requests/s, p50 %d us, p99 %d us, %s us of processor", $2, $3, $4, $5 }')"
}

# median SIDE COLUMN
median() {
  awk -v side="$1" -v col="$2" '$1 == side { print $col }' "$work/results" | sort -g |
    awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

row() {
  local what=$1 col=$2 format=$3 better=$4 gate opa
  gate=$(median gate "$col") opa=$(median opa "$col")
  awk -v what="$what" -v f="$format" -v g="$gate" -v o="$opa" -v better="$better" 'BEGIN {
    printf "| %s | " f " | " f " | %.2f |\n", what, g, o, better == "more" ? g / o : o / g }'
}

facts() {
  local cpu
  cpu=$(sed -nE 's/^model name\s*: //p' /proc/cpuinfo | head -n 1)
  echo "- machine: ${cpu:-$(uname -m)}, $(nproc) processors, load before the run $load_before"
  echo "- audit log on $(df --output=fstype "$state" | tail -n 1), $audit_lines records for $allowed answers"
  echo "- $(go version | cut -d' ' -f3-4), OPA $(.cache/bin/opa version | sed -n 's/^Version: //p'), wrk with 1 thread and $CONNECTIONS connections, $ROUNDS rounds of $DURATION s, medians"
}

report() {
  echo "# One decision over HTTP"
  echo
  echo "Written by \`make bench\` (bench/compare.sh); bench/README.md says what is compared."
  echo
  echo "| | Gatewright, durable audit | OPA, no log | Gatewright is better by |"
  echo "| --- | ---: | ---: | ---: |"
  row "requests/s" 2 "%.0f" more
  row "p50, us" 3 "%.0f" less
  row "p99, us" 4 "%.0f" less
  row "processor time per request, us" 5 "%.1f" less
  echo
  facts
  echo
  echo "Rounds, in order:"
  echo
  echo "| side | requests/s | p50, us | p99, us | processor us |"
  echo "| --- | ---: | ---: | ---: | ---: |"
  awk '{ printf "| %s | %s | %s | %s | %s |\n", $1, $2, $3, $4, $5 }' "$work/results"
}

# audited: every answer has its record, or the log was not durable and nothing was measured.
audited() {
  audit_lines=$(wc -l <"$work/audit.jsonl")
  allowed=$(awk '{ n += $1 } END { print n }' "$work/gate.count")
  ((audit_lines >= allowed)) || die "the audit log has $audit_lines records for $allowed answers"
}

need_wrk
load_before=$(cut -d' ' -f1 /proc/loadavg)
for side in $SIDES; do
  "start_$side"
  check "$side"
  say "$side: warming up"
  load "$side" 3 >/dev/null
done
for ((round = 1; round <= ROUNDS; round++)); do
  for side in $SIDES; do
    measure "$side" "$round"
  done
done
if [[ $SIDES == *gate* && $SIDES == *opa* ]]; then
  audited
  report | tee "$OUT"
fi
