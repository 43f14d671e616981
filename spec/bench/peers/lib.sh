# shellcheck shell=bash disable=SC2154
# Starts the peers; sourced after spec/bench/lib.sh. Each start_... leaves the address in $peer_address, and the ids of what
# runs in $peer_pids, for stop_peers.
peers=$bench/peers
peer_pids=()

peers_there() {
  "$peers/install" >"$dir/peers" 2>&1 || {
    cat "$dir/peers" >&2
    fail "the peers are not all here: spec/bench/peers/install --yes"
  }
}

start_redis() {
  mkdir -p "$dir/redis"
  redis=$(free_address)
  settle_disk
  redis_port=${redis#*:}
  spawn redis redis-server "$peers/redis.conf" --port "$redis_port" --dir "$dir/redis"
  peer_pids+=("$spawned")
  wait_for 10 connects "$redis" || fail "redis does not start: $(cat "$dir/redis.out")"
}

start_nginx() {
  start_redis
  peer_address=$(free_address)
  sed -e "s|@THREADS@|$threads|; s|@DIR@|$dir|; s|@PEERS@|$peers|; s|@ADDRESS@|$peer_address|; s|@REDIS_PORT@|$redis_port|" \
    "$peers/nginx.conf.in" >"$dir/nginx.conf"
  spawn nginx nginx -p "$dir" -e "$dir/nginx.log" -c "$dir/nginx.conf"
  peer_pids+=("$spawned")
  wait_for 10 connects "$peer_address" || fail "nginx does not start: $(cat "$dir/nginx.err" "$dir/nginx.log")"
}

start_fastify() {
  start_redis
  peer_address=$(free_address)
  spawn fastify node "$peers/fastify.js" "${peer_address#*:}" "$redis_port" "${PEER_PROCESSES:-$threads}"
  peer_pids+=("$spawned")
  wait_for 20 connects "$peer_address" || fail "fastify does not start: $(cat "$dir/fastify.err")"
}

start_worker() { # RECEIVER
  spawn worker node "$peers/worker.js" "$1" "$redis_port" "${PEER_CONCURRENCY:-64}"
  peer_pids+=("$spawned")
  wait_for 20 grep -q ready "$dir/worker.out" || fail "the worker does not start: $(cat "$dir/worker.err")"
}

# The last started first; Redis and what it kept go last.
stop_peers() {
  local i
  for ((i = ${#peer_pids[@]} - 1; i >= 0; i--)); do
    stop "${peer_pids[i]}"
  done
  peer_pids=()
  rm -rf "$dir/redis"
}
