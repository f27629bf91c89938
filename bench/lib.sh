# What the comparisons here share; sourced, not run. Servers whose process ids stand in pids end with the script, and the
# folder in work goes.

pids=()

say() { printf '== %s\n' "$*"; }
die() { printf 'bench: %s\n' "$*" >&2; exit 1; }

stop_servers() {
  local pid
  for pid in "${pids[@]:-}"; do
    [[ -n $pid ]] || continue
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true # it ends by the signal, which is no success
  done
  pids=()
  rm -rf "$work"
}

# new_work NAME: makes the folder in work, on a disk: on a file system in memory a flush of the audit log costs nothing, and
# what is measured would be false.
new_work() {
  local state=$PWD/.cache/bench
  mkdir -p "$state"
  work=$(mktemp -d "$state/$1.XXXXXX")
  trap stop_servers EXIT
  trap 'exit 130' INT TERM
}

free_port() {
  local port
  while :; do
    port=$((20000 + RANDOM % 20000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
}
