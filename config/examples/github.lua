-- GitHub: a deployer that must see the pushes of one repository in order, and a chat bot that takes anything at once.
return {
  data_dir = "/var/lib/lanegate",
  http = { listen = "0.0.0.0:4000" },

  sources = {
    github = {
      -- Two secrets while they are rotated: the new one first, the old one until GitHub has the new one everywhere.
      verify = { type = "github", secret = { env "GITHUB_SECRET", env("GITHUB_SECRET_OLD", env "GITHUB_SECRET") } },
      dedupe = "github", -- "Redeliver" of what was delivered is answered as a duplicate; of a dead letter, it is delivered again

      sinks = {
        {
          type = "http", name = "deployer", url = "https://deployer.example.com/hooks", secret = env "DEPLOYER_WHSEC",
          only = { header = "x-github-event", match = { "push", "create", "delete" } },
          ordered = true, ordering_key = { json = "repository.full_name" },
          timeout_ms = "20s", -- it answers when the deployment has begun
        },
        { type = "http", name = "chat", url = "https://chat.example.com/github", secret = env "CHAT_WHSEC", rate = 20 },
      },
    },
  },
}
