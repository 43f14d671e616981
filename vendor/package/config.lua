-- Lanegate's configuration, as the package installs it: it runs, and takes hooks from this machine alone.
--
-- `lanegate check` says what is wrong with this file; `systemctl reload lanegate` puts it in force. Every option is in
-- /usr/share/doc/lanegate/config.md, worked examples are in /usr/share/doc/lanegate/examples. Secrets come from
-- /etc/lanegate/environment (NAME=value lines, mode 0600) as env "NAME", so that this file holds none.
return {
  data_dir = "/var/lib/lanegate",

  http = { listen = "127.0.0.1:4000" }, -- where providers post: POST /webhooks/demo
  admin = { listen = "127.0.0.1:4002" }, -- where you look and ask: lanegate lanes, /metrics

  sources = {
    demo = {
      verify = { type = "none" },
      sinks = {
        { type = "log", ordered = true, ordering_key = { header = "x-entity-id" } }, -- journalctl -u lanegate
      },
    },
  },
}
