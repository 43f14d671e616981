-- Behind nginx (nginx.conf beside this file): it has the certificate and the public port.
return {
  data_dir = "/var/lib/lanegate",

  http = { listen = "127.0.0.1:4000" }, -- nobody but nginx comes here

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
