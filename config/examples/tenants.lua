-- Many customers, one gateway: POST /webhooks/{tenant}/{source}.
--
-- A source without a tenant is shared: the URL's tenant becomes the hook's, and keeps its lanes apart from everybody else's. A
-- source of a named tenant answers under that name alone.
local partners = env "PARTNERS_SECRET"

return {
  data_dir = "/var/lib/lanegate",
  http = { listen = "0.0.0.0:4000", routing = "tenant_path" },

  -- Hooks a second; a customer's own is changed at run time by PUT /v1/tenants/{tenant}/rate-limit.
  rate_limits = {
    default = { rate = 50, burst = 500 },
    tenants = { acme = { rate = 500, burst = 5000 } },
  },

  sources = {
    events = {
      -- Signed with one secret, so that a tenant's name in the URL can be believed.
      verify = { type = "standard_webhooks", secret = partners },
      dedupe = "standard_webhooks",
      sinks = {
        { type = "http", name = "app", url = "https://app.example.com/hooks", secret = env "APP_WHSEC",
          ordered = true, ordering_key = { json = "account_id" } },
      },
    },

    -- POST /webhooks/acme/ledger: a customer with a receiver of its own.
    ledger = {
      tenant = "acme",
      verify = { type = "standard_webhooks", secret = env "ACME_SECRET" },
      dedupe = "standard_webhooks",
      sinks = {
        { type = "http", name = "ledger", url = "https://ledger.acme.example/hooks", secret = env "ACME_WHSEC",
          ordered = true, ordering_key = { json = "entry.account" }, concurrency = 8 },
      },
    },
  },
}
