/* Every metric, one row: id, kind, name without the prefix "lanegate_", labels, help. */
#ifndef METRICS_TABLE_H
#define METRICS_TABLE_H

#define METRIC_TABLE(X)                                                                                      \
    X(INGEST_REQUESTS, COUNTER, "ingest_requests_total", "source,outcome", "Hooks by source and answer")     \
    X(INGEST_REFUSED, COUNTER, "ingest_refused_total", "reason",                                             \
      "Requests refused before a source took them")                                                          \
    X(INGEST_RATE_LIMITED, COUNTER, "ingest_rate_limited_total", "source,limit",                             \
      "Hooks answered 429 rate_limited, by the limit that refused them")                                     \
    X(INGEST_DURATION, HISTOGRAM, "ingest_duration_seconds", "", "From the complete request to its answer")  \
    X(VERIFY_FAILURES, COUNTER, "verify_failures_total", "source,reason", "Failed verifications")            \
    X(QUARANTINE_RELEASED, COUNTER, "quarantine_released_total", "source",                                   \
      "Hooks that were verified again and left the quarantine")                                              \
    X(QUARANTINE_HOOKS, GAUGE, "quarantine_hooks", "source", "Hooks in quarantine")                          \
    X(QUARANTINE_BYTES, GAUGE, "quarantine_bytes", "source", "Their bytes")                                  \
    X(DEDUPE_KEYS, GAUGE, "dedupe_keys", "", "Dedupe keys that are remembered")                              \
    X(STORE_COMMIT_DURATION, HISTOGRAM, "store_commit_duration_seconds", "", "One commit with its sync")     \
    X(STORE_COMMIT_BATCH, HISTOGRAM, "store_commit_batch_size", "", "Hooks in one commit")                   \
    X(STORE_COMMIT_FAILURES, COUNTER, "store_commit_failures_total", "",                                     \
      "Commits that failed at the log or the sync")                                                          \
    X(STORE_QUEUE_HOOKS, GAUGE, "store_queue_hooks", "", "Hooks waiting for their commit")                   \
    X(STORE_QUEUE_BYTES, GAUGE, "store_queue_bytes", "", "Their bytes")                                      \
    X(STORE_DISK_BYTES, GAUGE, "store_disk_bytes", "", "Size of the store's files")                          \
    X(DISK_FREE_BYTES, GAUGE, "disk_free_bytes", "", "Free space where the store is")                        \
    X(DISPATCH_DELIVERIES, COUNTER, "dispatch_deliveries_total", "source,sink,result",                       \
      "Attempts by their outcome")                                                                           \
    X(DISPATCH_DEAD, COUNTER, "dispatch_dead_lettered_total", "source,sink,class", "Rows given up on")       \
    X(DISPATCH_FILTERED, COUNTER, "dispatch_filtered_total", "source,sink",                                  \
      "Hooks that a sink's filter left out")                                                                 \
    X(DISPATCH_KEY_MISSING, COUNTER, "dispatch_lane_key_missing_total", "source,sink,reason",                \
      "Hooks of ordered sinks without a key")                                                                \
    X(DISPATCH_UNORDERED, COUNTER, "dispatch_unordered_total", "source,sink",                                \
      "Hooks an ordered sink takes outside its lanes")                                                       \
    X(DISPATCH_BREAKER, COUNTER, "dispatch_breaker_transitions_total", "source,sink,state",                  \
      "Breaker transitions")                                                                                 \
    X(DISPATCH_ATTEMPT_DURATION, HISTOGRAM, "dispatch_attempt_duration_seconds", "source,sink,result",       \
      "One attempt")                                                                                         \
    X(DISPATCH_LAG, HISTOGRAM, "dispatch_lag_seconds", "source,sink", "From received to delivered")          \
    X(DISPATCH_LANES, GAUGE, "dispatch_lanes", "source,sink,state", "Lanes by state")                        \
    X(DISPATCH_LANE_DEPTH_MAX, GAUGE, "dispatch_lane_depth_max", "source,sink", "Rows in the deepest lane")  \
    X(DISPATCH_BLOCKED_MAX, GAUGE, "dispatch_lane_blocked_seconds_max", "source,sink",                       \
      "Since the first failed attempt of the oldest failing head")                                           \
    X(DISPATCH_OLDEST, GAUGE, "dispatch_oldest_pending_seconds", "source,sink",                              \
      "Age of the oldest pending hook")                                                                      \
    X(DISPATCH_BEHIND, GAUGE, "dispatch_rows_behind_blocked", "source,sink",                                 \
      "Rows that wait behind a blocked head")                                                                \
    X(QUEUE_PENDING, GAUGE, "queue_pending", "", "Rows still owed")                                          \
    X(QUEUE_INFLIGHT, GAUGE, "queue_inflight", "", "Attempts running")                                       \
    X(QUEUE_DEAD, GAUGE, "queue_dead", "", "Dead letters")                                                   \
    X(SCRIPT_BREACHES, COUNTER, "script_breaches_total", "module,function,kind",                             \
      "Budgets that a script broke")                                                                         \
    X(SCRIPT_DURATION, HISTOGRAM, "script_duration_seconds", "module,function", "One call of a script")      \
    X(HTTP_CONNECTIONS, GAUGE, "http_connections", "", "Open client connections")                            \
    X(HTTP_BUFFERED_BYTES, GAUGE, "http_buffered_bytes", "", "Unhandled input of all connections")           \
    X(CONFIG_RELOADS, COUNTER, "config_reloads_total", "result", "Reloads of the configuration")             \
    X(CONFIG_GENERATION, GAUGE, "config_generation", "", "Configurations that ran so far: 1 from the start") \
    X(PROCESS_RSS, GAUGE, "process_resident_memory_bytes", "", "Resident memory")

#endif
