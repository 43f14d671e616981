-- The shipped configuration. It runs as it is:  lanegate serve --config config/config.lua
-- Every option is in README.md beside this file; `lanegate check` names what is wrong with a file, line by line.

-- Hooks of one entity are delivered strictly one after the other; those of different entities do not wait for each
-- other. This header says whose hook it is.
local by_entity = { header = "x-entity-id" }

return {
  -- Relative paths are relative to this file.
  data_dir = "data",

  http = { listen = "127.0.0.1:4000" }, -- where providers post: POST /webhooks/demo
  admin = { listen = "127.0.0.1:4002" }, -- where you look and ask: /v1/lanes, /metrics

  -- Deliveries to this machine, and without TLS, are closed unless opened here.
  egress = { allow_private = { "127.0.0.1/32" }, allow_http = true },

  sources = {
    demo = {
      -- Takes anything. A real source says how its provider signs:
      --   verify = { type = "standard_webhooks", secret = env "WEBHOOK_SECRET" },
      verify = { type = "none" },

      sinks = {
        -- A line in the gateway's log for each hook.
        { type = "log", name = "log", ordered = true, ordering_key = by_entity },

        -- A receiver: `lanegate receive --listen 127.0.0.1:4100` prints what it gets.
        { type = "http", name = "receiver", url = "http://127.0.0.1:4100/hooks",
          ordered = true, ordering_key = by_entity,
          -- Try again after 0.1, 0.2, 0.4 ... seconds, at most 2 seconds apart, so that a drill is not dull.
          retry = { max_ms = "2s" } },
      },
    },
  },
}
