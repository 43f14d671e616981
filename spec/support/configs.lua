-- Configurations that flows share: text, with what differs filled in.
local configs = {}

-- options: sinks (text of the list), source (further text of the source), top (further text of the table),
-- retry (text), http (text inside http)
function configs.demo(options)
  return ([[
return {
  data_dir = "data",
  log = { level = "info", format = "json" },
  http = { listen = "127.0.0.1:0", threads = 2, %s },
  admin = { listen = "127.0.0.1:0" },
  store = { min_free_bytes = "16MiB", %s },
  egress = { allow_private = { "127.0.0.1/32" }, allow_http = true },
  dispatch = { retry = { %s } },
  %s
  sources = { demo = { %s
    sinks = { %s } } },
}
]]):format(options.http or "", options.store or "", options.retry or [[base_ms = 10, max_ms = 50]], options.top or "",
    options.source or "", options.sinks)
end

-- An ordered HTTP sink keyed by x-entity-id.
function configs.ordered_sink(url, more)
  return ([[{ type = "http", name = "receiver", url = "%s", ordered = true,
      ordering_key = { header = "x-entity-id" }, %s },]]):format(url, more or "")
end

function configs.plain_sink(url, name, more)
  return ([[{ type = "http", name = "%s", url = "%s", %s },]]):format(name, url, more or "")
end

return configs
