-- Hooks as Stripe, GitHub and Shopify send them: whole payloads of the documented shapes, their headers, signed. What a
-- test wants to tell apart is a parameter: the entity that the hook is of, and its number `n` in that entity's life.
local sign = require "support.sign"

local providers = {}

local function fill(text, values)
  return (text:gsub("%$(%l+)", function(name) return tostring(assert(values[name], name)) end))
end

-- Digits or hex digits that look like the provider's, the same for the same arguments.
local function token(length, ...)
  return sign.sha256(table.concat({ ... }, "/")):sub(1, length)
end

local INVOICE = [[
{
  "id": "evt_1$event",
  "object": "event",
  "api_version": "2024-06-20",
  "created": 1764576000,
  "data": {
    "object": {
      "id": "in_1$invoice",
      "object": "invoice",
      "account_country": "DE",
      "account_name": "Acme GmbH \u2013 caf\u00e9 & s\u00f6hne",
      "amount_due": 4900,
      "amount_paid": 4900,
      "amount_remaining": 0,
      "attempt_count": 1,
      "attempted": true,
      "auto_advance": false,
      "automatic_tax": { "enabled": true, "liability": { "type": "self" }, "status": "complete" },
      "billing_reason": "subscription_cycle",
      "charge": "ch_3$invoice",
      "collection_method": "charge_automatically",
      "currency": "eur",
      "customer": "$customer",
      "customer_address": { "city": "K\u00f6ln", "country": "DE", "line1": "Domkloster 4", "line2": null,
        "postal_code": "50667", "state": null },
      "customer_email": "jo@example.com",
      "customer_tax_ids": [],
      "default_payment_method": null,
      "discounts": [],
      "effective_at": 1764576000,
      "lines": {
        "object": "list",
        "data": [
          {
            "id": "il_1$invoice",
            "object": "line_item",
            "amount": 4900,
            "currency": "eur",
            "description": "1 \u00d7 Team plan (at \u20ac49.00 / month)",
            "discountable": true,
            "livemode": true,
            "metadata": { "number": "$n" },
            "period": { "end": 1767254400, "start": 1764576000 },
            "plan": { "id": "price_1team", "object": "plan", "amount": 4900, "amount_decimal": "4900",
              "interval": "month", "interval_count": 1, "product": "prod_team", "usage_type": "licensed" },
            "proration": false,
            "quantity": 1,
            "subscription": "sub_1$subscription",
            "type": "subscription"
          }
        ],
        "has_more": false,
        "total_count": 1,
        "url": "/v1/invoices/in_1$invoice/lines"
      },
      "livemode": true,
      "metadata": {},
      "number": "ACME-$n",
      "paid": true,
      "payment_intent": "pi_3$invoice",
      "status": "paid",
      "status_transitions": { "finalized_at": 1764576001, "paid_at": 1764576002 },
      "subscription": "sub_1$subscription",
      "subtotal": 4118,
      "tax": 782,
      "total": 4900,
      "webhooks_delivered_at": null
    }
  },
  "livemode": true,
  "pending_webhooks": 2,
  "request": { "id": "req_$event", "idempotency_key": "$event" },
  "type": "invoice.paid"
}]]

-- One invoice of a customer was paid.
function providers.stripe(secret, customer, n)
  local body = fill(INVOICE, { event = token(24, "event", customer, n), invoice = token(24, "invoice", customer, n),
    subscription = token(24, "subscription", customer), customer = customer, n = n })
  local name, signature = sign.stripe(secret, body)
  return { [name] = signature, ["Content-Type"] = "application/json; charset=utf-8", Accept = "*/*; q=0.5, application/xml",
    ["Cache-Control"] = "no-cache", ["User-Agent"] = "Stripe/1.0 (+https://stripe.com/docs/webhooks)" }, body
end

local PUSH = [[{"ref":"refs/heads/main","before":"$before","after":"$after","repository":{"id":186853002,
"node_id":"MDEwOlJlcG9zaXRvcnkxODY4NTMwMDI=","name":"$name","full_name":"acme/$name","private":true,"owner":{"name":"acme",
"email":null,"login":"acme","id":21031067,"node_id":"MDQ6VXNlcjIxMDMxMDY3","type":"Organization","site_admin":false},
"html_url":"https://github.com/acme/$name","description":null,"fork":false,"url":"https://github.com/acme/$name",
"created_at":1557933565,"updated_at":"2026-11-30T09:12:44Z","pushed_at":1764576000,"homepage":null,"size":1043,
"stargazers_count":0,"language":"C","has_issues":true,"license":null,"topics":[],"visibility":"private","forks":0,
"open_issues":2,"watchers":0,"default_branch":"main","stargazers":0,"master_branch":"main","organization":"acme"},
"pusher":{"name":"jo","email":"jo@example.com"},"organization":{"login":"acme","id":21031067,"description":""},
"sender":{"login":"jo","id":1034,"node_id":"MDQ6VXNlcjEwMzQ=","type":"User","site_admin":false},"created":false,
"deleted":false,"forced":false,"base_ref":null,"compare":"https://github.com/acme/$name/compare/$before...$after",
"commits":[{"id":"$after","tree_id":"$before","distinct":true,"message":"number $n: \u00fcber \ud83d\ude80\n\nSigned-off-by: Jo",
"timestamp":"2026-12-01T08:00:00+01:00","url":"https://github.com/acme/$name/commit/$after","author":{"name":"Jo",
"email":"jo@example.com","username":"jo"},"committer":{"name":"GitHub","email":"noreply@github.com","username":"web-flow"},
"added":[],"removed":[],"modified":["src/main.c"]}],"head_commit":{"id":"$after","tree_id":"$before","distinct":true,
"message":"number $n","timestamp":"2026-12-01T08:00:00+01:00","author":{"name":"Jo","email":"jo@example.com"},
"committer":{"name":"GitHub","email":"noreply@github.com"},"added":[],"removed":[],"modified":["src/main.c"]}}]]

-- A push to a repository.
function providers.github(secret, repository, n)
  local body = fill(PUSH, { name = repository, before = token(40, repository, n - 1), after = token(40, repository, n), n = n })
  local name, signature = sign.github(secret, body)
  return { [name] = signature, ["Content-Type"] = "application/json", Accept = "*/*", ["User-Agent"] = "GitHub-Hookshot/a1b2c3d",
    ["X-GitHub-Delivery"] = ("%s-%s-11ee-%s-%s"):format(token(8, "d1", repository, n), token(4, "d2", repository, n),
      token(4, "d3", repository, n), token(12, "d4", repository, n)),
    ["X-GitHub-Event"] = "push", ["X-GitHub-Hook-ID"] = "292430182", ["X-GitHub-Hook-Installation-Target-ID"] = "186853002",
    ["X-GitHub-Hook-Installation-Target-Type"] = "repository" }, body
end

local ORDER = [[{"id":$order,"admin_graphql_api_id":"gid:\/\/shopify\/Order\/$order","app_id":null,"browser_ip":null,
"buyer_accepts_marketing":true,"cancel_reason":null,"cancelled_at":null,"cart_token":null,"checkout_id":null,"closed_at":null,
"confirmed":true,"contact_email":"jon@example.com","created_at":"2026-12-01T08:00:00-05:00","currency":"EUR",
"current_subtotal_price":"389.00","current_total_discounts":"0.00","current_total_price":"389.00","customer_locale":"de-DE",
"discount_codes":[],"email":"jon@example.com","estimated_taxes":false,"financial_status":"paid","fulfillment_status":"pending",
"landing_site":"\/?utm_source=x","name":"#$n","note":"Bitte \"leise\" klingeln \u2014 danke","note_attributes":[],"number":$n,
"order_number":$n,"payment_gateway_names":["visa","bogus"],"phone":null,"presentment_currency":"EUR","processed_at":null,
"source_name":"web","subtotal_price":"389.00","tags":"tag1, tag2","tax_lines":[],"taxes_included":true,"test":false,
"token":"$token","total_discounts":"0.00","total_price":"389.00","total_weight":0,"updated_at":"2026-12-01T08:00:00-05:00",
"billing_address":{"first_name":"Stev\u00e9","address1":"123 Shipping Street","phone":"555-555-SHIP","city":"Shippington",
"zip":"40003","province":"Kentucky","country":"United States","last_name":"Shipper","latitude":null,"longitude":null},
"customer":{"id":115310627314723954,"email":"john@example.com","first_name":"John","last_name":"Smith","state":"disabled",
"verified_email":true,"tax_exempt":false,"tags":"","currency":"EUR","default_address":{"id":715243470612851245,"city":"Ottawa"}},
"line_items":[{"id":866550311766439020,"variant_id":808950810,"title":"IPod Nano - 8GB","quantity":1,"sku":"IPOD2008PINK",
"price":"199.00","grams":567,"taxable":true,"gift_card":false,"properties":[],"total_discount":"0.00"},{"id":141249953214522974,
"variant_id":null,"title":"Kabel 3\/4\"","quantity":2,"sku":"","price":"95.00","grams":0,"taxable":true,"gift_card":false,
"properties":[{"name":"Gravur","value":"f\u00fcr Zo\u00eb"}],"total_discount":"0.00"}],"shipping_lines":[{"id":271878346596884015,
"title":"Generic Shipping","price":"10.00","code":null,"source":"shopify"}],"fulfillments":[],"refunds":[]}]]

-- An order was updated. `order` is a text of digits: Shopify's ids are larger than what a double holds.
function providers.shopify(secret, order, n)
  local body = fill(ORDER, { order = order, token = token(32, order), n = n })
  local name, signature = sign.shopify(secret, body)
  return { [name] = signature, ["Content-Type"] = "application/json", ["User-Agent"] = "Shopify-Captain-Hook",
    ["X-Shopify-API-Version"] = "2026-10", ["X-Shopify-Event-Id"] = token(32, "event", order, n),
    ["X-Shopify-Order-Id"] = order, ["X-Shopify-Shop-Domain"] = "bolt.myshopify.com", ["X-Shopify-Test"] = "false",
    ["X-Shopify-Topic"] = "orders/updated", ["X-Shopify-Triggered-At"] = "2026-12-01T13:00:00.000000000Z",
    ["X-Shopify-Webhook-Id"] = token(32, "webhook", order, n) }, body
end

return providers
