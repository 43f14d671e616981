# shellcheck shell=bash disable=SC2034
# What the benches share: facts of the machine, programs that are started and stopped, rates, ratios, rows of the table.
# Sourced first by each of them. A bench starts what it needs on loopback in a folder of its own and leaves nothing behind.
#
# Settings from the environment: BUILD, SECONDS_EACH, ROUNDS, ROWS, CONNECTIONS, THREADS, TMPDIR; see README.md.
set -euo pipefail

bench=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
root=$(dirname "$(dirname "$bench")")
build=$(readlink -m "${BUILD:-$root/build/release}")
seconds=${SECONDS_EACH:-5}
rounds=${ROUNDS:-3}
connections=${CONNECTIONS:-128}
threads=${THREADS:-$(nproc)}
name=$(basename "$0")

fail() {
  echo "spec/bench/$name: $*" >&2
  exit 1
}

# need COMMAND PACKAGE
need() {
  command -v "$1" >/dev/null || fail "$1 is missing: apt-get install $2"
}

# Benches run one after another and have a folder each; whatever still runs at the end is ended.
dir=$(mktemp -d "${TMPDIR:-/tmp}/lanegate-bench-XXXXXX")
declare -A running=()
finish() {
  {
    [ ${#running[@]} = 0 ] || kill -KILL "${!running[@]}" || true
    wait || true
  } 2>/dev/null
  rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

# ---- processes ----

# spawn NAME COMMAND...: in the background, its output in $dir/NAME.out and .err; the id in $spawned.
spawn() {
  local out=$dir/$1
  shift
  "$@" >"$out.out" 2>"$out.err" </dev/null &
  spawned=$!
  running[$spawned]=1
}

# stop PID: asks, waits for up to 60 s, insists.
stop() {
  kill "$1" 2>/dev/null || true
  local n
  for ((n = 0; n < 1200; n++)); do
    kill -0 "$1" 2>/dev/null || break
    sleep 0.05
  done
  stop_hard "$1"
}

stop_hard() {
  kill -KILL "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
  unset "running[$1]"
}

# wait_for SECONDS COMMAND...: until it succeeds; false when it never did.
wait_for() {
  wait_for_us $(($1 * 1000000)) "${@:2}"
}

wait_for_us() {
  local until=$(($(now_us) + $1))
  shift
  until "$@"; do
    [ "$(now_us)" -le "$until" ] || return 1
    sleep 0.01
  done
}

# Of the wall clock: the only one that bash has.
now_us() {
  echo "${EPOCHREALTIME/[.,]/}"
}

connects() {
  (exec 3<>"/dev/tcp/${1/://}") 2>/dev/null
}

# A loopback address that nobody listens on, below the ports that outgoing connections take. The log can't tell
# it: benches run the gateway at log level error, where it says nothing.
free_address() {
  local address
  while address=127.0.0.1:$((RANDOM % 10000 + 20000)) && connects "$address"; do :; done
  echo "$address"
}

# answers ADDRESS STATUS REQUEST [BODY]: as in answers 127.0.0.1:4000 200 "GET /health". Bash alone: with a process each time a
# start would be measured by those.
answers() {
  local line="" body=${4:-}
  {
    printf '%s HTTP/1.1\r\nHost: bench\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s' "$3" "${#body}" "$body" >&3 &&
      read -r line <&3
  } 2>/dev/null 3<>"/dev/tcp/${1/://}" || return 1
  [[ $line == "HTTP/1.1 $2 "* ]]
} 2>/dev/null

# The first line that a program prints is its address.
start_program() { # NAME COMMAND...
  spawn "$@"
  wait_for 10 test -s "$dir/$1.out" || fail "$1 does not start: $(cat "$dir/$1.err")"
  address=$(head -n 1 "$dir/$1.out")
}

# The http room alone: what every ratio of ingest is divided by.
start_bare() {
  start_program bare "$build/spec/bench/bench_http_bare" "$threads"
}

start_receiver() { # [options of bench_receiver]
  start_program receiver "$build/spec/bench/bench_receiver" "$@"
  receiver=$spawned
  receiver_address=$address
}

# ---- the gateway ----

# configure NAME SINK: a file of configuration with one source, demo, and one sink; data in $dir/data-NAME. What is not
# said here has its default.
configure() {
  cat >"$dir/$1.lua" <<END
return {
  data_dir = "$dir/data-$1",
  log = { level = "error", format = "json" },
  http = { listen = "$(free_address)", threads = $threads },
  admin = { listen = "$(free_address)" },
  store = { min_free_bytes = "64MiB" },
  egress = { allow_private = { "127.0.0.1/32" }, allow_http = true },
  sources = { demo = { sinks = { $2 } } },
}
END
}

# The cheapest honest sink: it takes every hook at once (at level error it prints nothing), so rows do not pile up and
# their outcomes are written too.
log_sink='type = "log", name = "a"'
by_customer='ordered = true, ordering_key = { json = "data.object.customer" }'
# A receiver that is down: nothing listens there. The breaker opens at once, and rows stay.
dead_sink="type = \"http\", name = \"a\", url = \"http://127.0.0.1:9/\""

gateway_addresses() { # NAME
  ingest=$(sed -n 's/.* http = { listen = "\([^"]*\)".*/\1/p' "$dir/$1.lua")
  admin=$(sed -n 's/.* admin = { listen = "\([^"]*\)".*/\1/p' "$dir/$1.lua")
}

launch_gateway() { # NAME: started, not yet ready; the moment of it in $launched_us
  gateway_addresses "$1"
  launched_us=${EPOCHREALTIME/[.,]/}
  spawn "gateway-$1" "$build/lanegate" serve --config "$dir/$1.lua"
  gateway=$spawned
}

# What the last run left to the disk is not the next one's burden.
settle_disk() {
  sync -f "$dir"
}

# A connection is not enough: the ports are open before the lanes are rebuilt.
start_gateway() { # NAME
  settle_disk
  launch_gateway "$1"
  wait_for 120 answers "$ingest" 200 "GET /health" || fail "the gateway does not start: $(tail -n 5 "$dir/gateway-$1.err")"
}

# stop_gateway [NAME]: with a name its data are removed too.
stop_gateway() {
  if [ $# = 0 ]; then
    stop "$gateway"
  else
    stop_hard "$gateway" # nobody reads them any more
    rm -rf "$dir/data-$1"
  fi
}

# Memory of a process that no file stands behind, in KiB.
anonymous_kib() {
  awk '/^RssAnon:/ { print $2 }' "/proc/$1/status"
}

# settled_kib PID: its memory once it has not changed for a second.
settled_kib() {
  local before=-1 now
  while now=$(anonymous_kib "$1") && [ "$now" != "$before" ]; do
    before=$now
    sleep 1
  done
  echo "$now"
}

# ---- load ----

# rate ADDRESS PATH: wrk, posting bodies of 1 KB as fast as answers come; answers a second, and a line on stderr when
# any was not a success. LANES says over how many keys, BODY_FILE another body, see post.lua.
rate() {
  wrk -t1 -c"$connections" -d"${seconds}s" -s "$bench/post.lua" "http://$1$2" >"$dir/wrk.out"
  grep -E 'Non-2xx|Socket errors' "$dir/wrk.out" >&2 || true
  awk '/^Requests\/sec:/ { print $2 }' "$dir/wrk.out"
}

# A run that is not counted: Node compiles what is hot while it runs.
warm() { # ADDRESS PATH
  (seconds=${WARM_SECONDS:-3} rate "$@") >"$dir/warm.out" 2>&1
}

# client OPTIONS... ADDRESS PATH: bench_rate_client, whose line field() reads. What it says on stderr is shown.
client() {
  "$build/spec/bench/bench_rate_client" -c "$connections" "$@" ||
    echo "bench_rate_client: not everything was answered" >&2
}

# field NAME TEXT: the word after NAME.
field() {
  awk -v name="$1" '{ for (i = 1; i < NF; i++) if ($i == name) { print $(i + 1); exit } }' <<<"$2"
}

# ---- arithmetic and what is shown ----

# calc EXPRESSION [FORMAT]
calc() {
  awk "BEGIN { printf \"${2:-%.2f}\", ($1) }"
}

# Microseconds as milliseconds.
ms() {
  calc "$1 / 1000" %.1f
}

# The lower one of the two in the middle, so that it is a figure that was seen.
median() {
  printf '%s\n' "$@" | sort -g | sed -n "$((($# + 1) / 2))p"
}

# 12345.6 as 12,346
count() {
  printf '%.0f' "$1" | sed ':a; s/\([0-9]\)\([0-9]\{3\}\)\(\b\)/\1,\2\3/; ta'
}

# The machine and the day, which every table begins with.
facts() {
  local model line
  model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
  line="$(date +%F), $(nproc) cores, ${model:-unknown processor}, Linux $(uname -r), data on $(df --output=fstype "$dir" | tail -n 1)"
  echo "$line, load $(cut -d' ' -f1 /proc/loadavg)"
  if [ -n "${BENCH_FACTS:-}" ]; then
    echo "$line" >>"$BENCH_FACTS"
  fi
}

# row WHAT TARGET FIGURE: a line of the README's table. bench/all collects them.
row() {
  printf '\n%s: %s (target %s)\n' "$1" "$3" "$2"
  if [ -n "${BENCH_ROWS:-}" ]; then
    printf '| %s | %s | %s |\n' "$1" "$2" "$3" >>"$BENCH_ROWS"
  fi
}

for program in lanegate spec/bench/bench_http_bare spec/bench/bench_rate_client spec/bench/bench_receiver spec/bench/bench_fill; do
  [ -x "$build/$program" ] ||
    fail "$build/$program is missing: cmake --preset release && cmake --build --preset release, or set BUILD"
done
need wrk wrk
need curl curl
