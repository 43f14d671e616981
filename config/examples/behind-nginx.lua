-- Behind nginx (nginx.conf beside this file): it has the certificate and the public port, and tells who really called.
return {
  data_dir = "/var/lib/lanegate",

  http = {
    listen = "127.0.0.1:4000",
    -- X-Forwarded-For is believed from here and from nowhere else; limits and address rules then go by the real caller.
    trusted_proxies = { "127.0.0.1/32" },
  },

  sources = {
    github = {
      verify = { type = "github", secret = env "GITHUB_SECRET" },
      sinks = {
        { type = "http", name = "ci", url = "https://ci.example.com/hooks", secret = env "CI_WHSEC",
          ordered = true, ordering_key = { json = "repository.full_name" } },
      },
    },
  },
}
