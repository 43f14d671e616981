-- Shopify: "cancelled" must not overtake "created". Orders and what belongs to them go by the order's id.
return {
  data_dir = "/var/lib/lanegate",
  http = { listen = "0.0.0.0:4000" },
  egress = { allow_private = { "10.0.0.0/8" }, allow_http = true },

  sources = {
    shop = {
      verify = { type = "shopify", secret = env "SHOPIFY_SECRET" }, -- the app's client secret
      dedupe = "shopify",
      respond = 200, -- Shopify takes nothing else for a yes

      sinks = {
        {
          type = "http", name = "fulfilment", url = "http://10.0.3.8:8080/hooks", secret = env "FULFILMENT_WHSEC",
          only = { header = "x-shopify-topic", match = { "orders/*", "refunds/*", "fulfillments/*" } },
          ordered = true,
          -- A refund names its order; an order is its own.
          ordering_key = { first = { { json = "order_id", integers = true }, { json = "id", integers = true } } },
        },
        {
          type = "http", name = "stock", url = "http://10.0.3.9:8080/hooks", secret = env "STOCK_WHSEC",
          only = { header = "x-shopify-topic", match = { "products/*", "inventory_levels/*" } },
        },
      },
    },
  },
}
