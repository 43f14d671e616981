-- Stripe: what happens to one customer reaches billing in the order in which it came.
--
-- STRIPE_WHSEC is the endpoint's signing secret ("whsec_...", in Stripe's dashboard); BILLING_WHSEC signs our deliveries, so that
-- billing can tell that they are ours.
return {
  data_dir = "/var/lib/lanegate",
  http = { listen = "0.0.0.0:4000" },

  -- Billing lives in our network and speaks plain http there.
  egress = { allow_private = { "10.0.0.0/8" }, allow_http = true },

  sources = {
    stripe = {
      verify = { type = "stripe", secret = env "STRIPE_WHSEC" },
      dedupe = "stripe", -- Stripe sends an event again when our answer was lost: it is accepted once

      sinks = {
        {
          type = "http", name = "billing", url = "http://10.0.3.7:8080/hooks", secret = env "BILLING_WHSEC",
          only = { json = "type", match = { "invoice.*", "customer.*", "charge.*" } },
          ordered = true,
          -- Most events name their customer; customer.created and its like are the customer.
          ordering_key = { first = { { json = "data.object.customer" }, { json = "data.object.id" } } },
          -- Billing answers 409 to what it is not ready for: that is tried again in place, and holds up this customer alone.
          on_dead = { refused = "skip", exhausted = "hold" },
        },
      },
    },
  },
}
