-- Behind nginx (nginx.conf beside this file): it has the certificate and the public port.
return {
  data_dir = "/var/lib/lanegate",

  http = {
    listen = "127.0.0.1:4000", -- nobody but nginx comes here,
    trusted_proxies = { "127.0.0.1" }, -- and it says in X-Forwarded-For who came to it
  },

  sources = {
    github = {
      verify = { type = "github", secret = env "GITHUB_SECRET" },
      addresses = { allow = { "192.30.252.0/22", "185.199.108.0/22", "140.82.112.0/20", "143.55.64.0/20",
                              "2a0a:a440::/29", "2606:50c0::/32" } }, -- "hooks" of https://api.github.com/meta
      sinks = {
        { type = "http", name = "ci", url = "https://ci.example.com/hooks", secret = env "CI_WHSEC",
          ordered = true, ordering_key = { json = "repository.full_name" } },
      },
    },
  },
}
