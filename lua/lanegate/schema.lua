-- Every option of config.lua, one row each: its name, type (types.lua), default, bounds, and the sentence that
-- explains it. Checks, defaults, /v1/config and config/README.md all come from these rows.
--
--   default    in the words of the file ("72h"); a function of the host where the machine decides, with `shown`
--              as its words in the reference
--   public     its value may be shown by /v1/config and `lanegate config`; everything else is shown as "(set)"
--   later      not built yet: refused by that name, never ignored
--   required   must be given
--   sink       only for sinks of that type
--
-- The unit is in the name: _ms takes 30000 or "30s", _bytes takes 8388608 or "8MiB".

local schema = {}

local DAY_MS = 24 * 60 * 60 * 1000
local YEAR_MS = 366 * DAY_MS
local TIB = 2 ^ 40

local retry = {
  { name = "base_ms", type = "ms", default = 100, min = 1, max = DAY_MS, public = true,
    doc = "Wait after the first failed attempt; it doubles with each further one, times a random factor." },
  { name = "max_ms", type = "ms", default = "5m", shown = '`"5m"`, `"60s"` on an ordered sink', min = 1, max = YEAR_MS,
    public = true, doc = "The longest wait between two attempts." },
  { name = "give_up_after_ms", type = "ms", default = "72h", min = 1, max = YEAR_MS, public = true,
    doc = "A hook is exhausted this long after its first attempt; breaker and pause time do not count." },
  { name = "max_attempts", type = "integer", min = 1, max = 1000000, public = true,
    doc = "A hook is exhausted after so many attempts. Unset: only time decides." },
  { name = "jitter", type = "boolean", default = true, public = true,
    doc = "Multiply each wait by a random factor between 0.5 and 1.0." },
}
schema.retry = retry

local breaker = {
  { name = "failures", type = "integer", default = 10, min = 1, max = 1000000, public = true,
    doc = "Failures of different lanes, without an ok between, that stop a sink." },
  { name = "open_ms", type = "ms", default = "5s", min = 1, max = DAY_MS, public = true,
    doc = "Wait before the first probe; doubles each time the breaker opens again." },
  { name = "max_open_ms", type = "ms", default = "60s", min = 1, max = DAY_MS, public = true,
    doc = "The longest wait before a probe." },
}

local dlq = {
  { name = "max_rows", type = "integer", default = 1000000, min = 1, max = 1000000000, public = true,
    doc = "Dead letters of a source; when it has so many, its hooks are answered 503 `dlq_full`, and those of no other source." },
  { name = "max_bytes", type = "bytes", default = "10GiB", min = 1, max = 1024 * TIB, public = true,
    doc = "Their bytes, heads and bodies." },
  { name = "retention_ms", type = "ms", min = 1, max = 100 * YEAR_MS, public = true,
    doc = "Dead letters older than that are discarded, which is logged. One that holds its lane never is. Unset: they stay." },
}
schema.dlq = dlq

local limit = {
  { name = "rate", type = "number", required = true, min = 0.001, max = 1000000, public = true, doc = "Hooks a second." },
  { name = "burst", type = "integer", min = 1, max = 1000000, public = true, doc = "Hooks at once." },
}

-- How a provider's hooks are verified -----------------------------------------------------------------------------

local function secret(doc)
  return { name = "secret", type = "secrets", required = true, doc = doc .. " A list while rotating: any of them fits." }
end

local function tolerance(default)
  return { name = "tolerance_ms", type = "ms", default = default or "5m", min = 1000, max = DAY_MS, public = true,
    doc = "How far a time stamp may be from now, either way." }
end

local function public_key(doc)
  return { name = "public_key", type = "public_keys", required = true, public = true,
    doc = doc .. " A list while rotating." }
end

-- Where a signature is and what it signs: the options of the generic schemes.
local function signature(encoding)
  return
    { name = "header", type = "header_name", required = true, public = true,
      doc = "Holds the signature, or several between commas, semicolons or blanks: any of them may fit." },
    { name = "prefix", type = "marks", shown = "none", public = true,
      doc = 'What stands in front of each signature, such as `"sha256="`. Entries without it are passed over.' },
    { name = "encoding", type = "choice", choices = { "hex", "base64" }, default = encoding, public = true,
      doc = "How a signature is written; hex in lower case, base64 with its padding." },
    { name = "template", type = "text", default = "{body}", public = true,
      doc = "What is signed: `{body}`, `{ts}`, `{method}`, `{url}`, `{header:X}` and text between them." },
    { name = "ts_header", type = "header_name", public = true, doc = "Holds the time stamp." },
    { name = "ts_field", type = "field_name", public = true,
      doc = 'Or the name of its entry in the signature header: `"t"` for `t=1700000000,v1=...`.' },
    { name = "ts_unit", type = "choice", choices = { "s", "ms" }, default = "s", public = true,
      doc = "What a time stamp counts." },
    { name = "tolerance_ms", type = "ms", min = 1000, max = DAY_MS, public = true, shown = '`"5m"` where there is a time stamp',
      doc = "How far a time stamp may be from now, either way." }
end

local function rows_of(first, ...)
  local rows = { first, ... }
  return { rows = rows }
end

local standard_webhooks = { rows = {
  { name = "secret", type = "secrets", shown = "this or `public_key`",
    doc = '`"whsec_..."`, or the base64 behind it. A list while rotating: any of them fits.' },
  { name = "public_key", type = "public_keys", public = true, shown = "this or `secret`",
    doc = '`"whpk_..."`, for `v1a` signatures. A list while rotating.' },
  tolerance(),
}, one_of = { "secret", "public_key" } }

local AS_SHOWN = "As the provider shows it, taken as text."

-- Types of `verify`.
--
--   rows     its options
--   one_of   at least one of these must be given
--   url      it signs the public `url` of the source: always, or where its template holds {url}
--   later    not built yet: known by name
schema.schemes = {
  none = { rows = {} },
  standard_webhooks = standard_webhooks,
  svix = standard_webhooks,
  stripe = rows_of(secret('`"whsec_..."`, taken as text.'), tolerance()),
  github = rows_of(secret(AS_SHOWN),
    { name = "algorithm", type = "choice", choices = { "sha256", "sha1" }, default = "sha256", public = true,
      doc = "`sha1` reads the old `X-Hub-Signature` instead." }),
  shopify = rows_of(secret("The client secret of the app.")),
  slack = rows_of(secret("The signing secret of the app."), tolerance()),
  zoom = rows_of(secret("The secret token of the app."), tolerance()),
  paddle = rows_of(secret(AS_SHOWN), tolerance("5s")),
  linear = rows_of(secret(AS_SHOWN), tolerance()),
  square = { rows = { secret("The signature key of the subscription.") }, url = "always" },
  twilio = { rows = { secret("The auth token of the account.") }, url = "always" },
  gitlab = rows_of(secret("The secret token of the hook.")),
  discord = rows_of(public_key("The application's, 64 hex digits."), tolerance()),
  sendgrid = rows_of(public_key("The verification key that they show, base64."), tolerance()),
  hmac = { rows = { secret("In the form of `secret_encoding`."),
    { name = "secret_encoding", type = "choice", choices = { "raw", "hex", "base64" }, default = "raw", public = true,
      doc = "`raw` takes the text as it is, whatever it looks like." },
    { name = "algorithm", type = "choice", choices = { "sha1", "sha256", "sha384", "sha512" }, default = "sha256",
      public = true, doc = "Of the HMAC." },
    signature("hex") }, url = "template" },
  ed25519 = { rows = { public_key("64 hex digits, or PEM."), signature("base64") }, url = "template" },
  rsa = { rows = { public_key("PEM: a public key or a certificate."),
    { name = "algorithm", type = "choice", choices = { "sha1", "sha256", "sha384", "sha512" }, default = "sha256",
      public = true, doc = "Of the digest that is signed." },
    { name = "padding", type = "choice", choices = { "pkcs1", "pss" }, default = "pkcs1", public = true,
      doc = "PKCS #1 version 1.5, or PSS." },
    signature("base64") }, url = "template" },
  ecdsa = { rows = { public_key("PEM: a public key or a certificate; or the base64 of one."),
    { name = "algorithm", type = "choice", choices = { "sha1", "sha256", "sha384", "sha512" }, default = "sha256",
      public = true, doc = "Of the digest that is signed." },
    { name = "signature_format", type = "choice", choices = { "der", "p1363" }, default = "der", public = true,
      doc = "ASN.1, or r and s one after the other." },
    signature("base64") }, url = "template" },
  bearer = rows_of(secret("The token."),
    { name = "header", type = "header_name", default = "authorization", public = true,
      doc = "`authorization` holds `Bearer` and the token; any other header the token alone." }),
  basic = rows_of({ name = "username", type = "text", required = true, public = true, doc = "The user's name." },
    secret("The password.")),
  mtls = rows_of({ name = "fingerprint", type = "fingerprints", required = true, public = true,
    doc = "SHA-256 of the client's certificate, 64 hex digits, with colons or without. A list while rotating." }),
  lua = { rows = {
    { name = "lua", type = "script_module", required = true, public = true,
      doc = 'A module under `scripts.path`, such as `"verify.hubspot"`.' },
    { name = "call", type = "script_function", required = true, public = true,
      doc = "A function of it: `function(hook, ...)` gives `true`, or `false` and a reason." },
    { name = "args", type = "secret_args", default = {},
      doc = "A list of what the function is given after the hook, secrets for instance. Never shown." },
  } },
}

local sink = {
  { name = "type", type = "choice", choices = { "http", "log" }, later_choices = { "google_pubsub" }, required = true,
    public = true, doc = "What kind of receiver: `http` posts the hook to a URL, `log` writes a line to the log." },
  { name = "name", type = "name", shown = "its type", public = true,
    doc = "Backlog and lanes belong to this name; two sinks of a source need different ones." },
  { name = "was", type = "name", public = true,
    doc = "The name this sink had before: at the next start its backlog and its dead letters move here, lane by lane. "
      .. "It may stay in the file." },
  { name = "only", type = "filter", public = true,
    doc = "`{ json = PATH, match = { globs } }` or `{ header = NAME, match = { globs } }`: other hooks make no "
      .. "delivery for this sink." },
  { name = "ordered", type = "boolean", default = false, public = true,
    doc = "Deliver the hooks of one lane one at a time, in the order they were committed." },
  { name = "ordering_key", type = "ordering_key", public = "ordering_key",
    doc = "What splits the hooks into lanes: `{ header = NAME }`, `{ json = PATH }`, `{ first = { ... } }`. Without "
      .. "one, all hooks of the sink share a lane." },
  { name = "on_missing_key", type = "choice", choices = { "keyless", "unordered" }, default = "keyless", public = true,
    doc = "Where a hook without a key goes: the keyless lane, or outside all lanes." },
  { name = "on_dead", type = "on_dead", shown = '`{ refused = "skip", exhausted = "hold" }`', public = true,
    doc = "When the head of a lane becomes a dead letter: `skip` goes on with the next, `hold` waits for an "
      .. "operator. One word stands for both." },
  { name = "concurrency", type = "integer", shown = "`dispatch.sink_concurrency`", min = 1, max = 100000, public = true,
    doc = "Attempts running at once." },
  { name = "rate", type = "number", min = 0.001, max = 1000000, public = true,
    doc = "Deliveries a second, retries included; less than one is fine. Unset: no limit." },
  { name = "retry", type = "retry", rows = retry, public = true, shown = "the source's",
    doc = "Goes over the source's, key by key." },

  { name = "url", type = "url", sink = "http", required = true, public = "origin",
    doc = "Where to post. Private addresses and plain http need `egress`." },
  { name = "method", type = "choice", sink = "http", choices = { "POST", "PUT", "PATCH" }, default = "POST",
    public = true, doc = "The request method." },
  { name = "secret", type = "sink_secrets", sink = "http",
    doc = "Signs each attempt as Standard Webhooks say: `whsec_` and base64, else the text's own bytes. A list "
      .. "while rotating: all of them sign." },
  { name = "headers", type = "headers", sink = "http", default = {}, public = "names",
    doc = "Headers sent with every attempt." },
  { name = "tls", type = "section", sink = "http", doc = "Files for a private TLS world.", rows = {
    { name = "ca", type = "file", public = true, doc = "Trust these certificates (PEM) instead of the system's." },
    { name = "cert", type = "file", public = true, doc = "Client certificate (PEM); needs `key`." },
    { name = "key", type = "file", public = true, doc = "Its private key (PEM); needs `cert`." },
  } },
  { name = "timeout_ms", type = "ms", sink = "http", default = "5s", min = 1, max = DAY_MS, public = true,
    doc = "Time for one attempt, connecting included; at most `dispatch.attempt_timeout_ms`." },
  { name = "refused", type = "statuses", sink = "http", default = { 400, 410, 413, 422 }, public = true,
    doc = "Answers by which the receiver has decided: the hook becomes a dead letter at once." },
  { name = "proxy", type = "proxy", sink = "http",
    doc = "`http://host:port` of a proxy. What the environment says is never used." },
}
schema.sink = sink

local addresses = {
  { name = "deny", type = "ranges", default = {}, public = true,
    doc = "Ranges such as `10.0.0.0/8` or `2001:db8::/32` that are answered 403 `ip_denied`, whatever `allow` says." },
  { name = "allow", type = "ranges", default = {}, public = true,
    doc = "When it is not empty, only these get in." },
}

local source = {
  { name = "tenant", type = "name", default = "default", public = true, doc = "Who owns the hooks of this source." },
  { name = "verify", type = "verify", default = { type = "none" }, public = true,
    doc = "How to tell that a hook is genuine." },
  { name = "addresses", type = "section", rows = addresses,
    doc = "Who may post to this source, of those whom the gateway's own `addresses` let in." },
  { name = "on_verify_failure", type = "choice", choices = { "reject", "quarantine", "accept_flag" },
    default = "reject", public = true,
    doc = "`reject` answers 401; `quarantine` keeps the hook for a person to look at and answers 202; `accept_flag` takes the "
      .. "hook and marks it as failed." },
  { name = "dedupe", type = "dedupe", public = true,
    doc = "What makes two posts the same hook: a preset (`\"github\"`, `\"shopify\"`, `\"slack\"`, `\"standard_webhooks\"`, "
      .. "`\"stripe\"`, `\"svix\"`), `{ header = NAME }`, `{ headers = { NAME, NAME } }` (all of them together) or "
      .. "`{ json = PATH }` (an integer counts, by its digits). For 7 days, or as `{ preset = \"stripe\", ttl_ms = \"72h\" }`, "
      .. "`{ json = \"id\", ttl_ms = \"1d\" }` say. The second post is answered with the first one's id and "
      .. "`\"duplicate\": true`, and nothing is stored. Unset: every post is a hook of its own." },
  { name = "forward_headers", type = "header_names", public = true, shown = "all but the sensitive ones",
    doc = "Which of the provider's headers reach the sinks." },
  { name = "store_headers", type = "stored_headers", default = "all", public = true,
    doc = "`\"all\"`, or a list of the headers that are stored. Verification sees all of them; keys, filters and sinks see "
      .. "what is stored. The content type is kept in any case." },
  { name = "respond", type = "number_choice", choices = { 200, 201, 202, 204 }, default = 201, public = true,
    doc = "The status of a success, for providers that insist on one." },
  { name = "url", type = "public_url", public = true,
    doc = "The public address that the provider posts to, as it was given to them and without a query. Only schemes that sign "
      .. "it need it: `twilio`, `square`, and templates with `{url}`." },
  { name = "handshake", type = "handshake", public = "handshake",
    doc = "What the provider asks before it sends, answered in its place: `\"slack\"`, `\"zoom\"`, `\"graph\"`, or "
      .. "`{ type = \"meta\", verify_token = ... }`. GET is allowed on such a source." },
  { name = "trust_url_tenant", type = "boolean", default = false, public = true,
    doc = "With `http.routing = \"tenant_path\"`: take the tenant from the URL although nothing verifies the hook." },
  { name = "retry", type = "retry", rows = retry, public = true, shown = "dispatch's",
    doc = "Goes over dispatch's, key by key." },
  { name = "dlq", type = "partial", rows = dlq, public = true, shown = "dispatch's",
    doc = "Goes over dispatch's, key by key." },
  { name = "sinks", type = "sinks", rows = sink, required = true, public = true,
    doc = "A list of receivers, at least one." },
}

schema.rows = {
  { name = "data_dir", type = "path", default = "data", public = true,
    doc = "The folder of the store; made (0700) when it is missing." },
  { name = "sink_header_prefix", type = "header_prefix", default = "lanegate", public = true,
    doc = "Sinks get headers `x-PREFIX-id` and so on. With `\"ankusa\"` a consumer written for that gateway's HTTP sink takes "
      .. "them as they are: the tenant `default` is not named then, and what failed verification is flagged." },
  { name = "drain_timeout_ms", type = "ms", default = "25s", min = 0, max = DAY_MS, public = true,
    doc = "How long running attempts may take when the gateway goes down." },

  { name = "log", type = "section", doc = "What it says on stderr.", rows = {
    { name = "level", type = "choice", choices = { "debug", "info", "warn", "error" }, default = "info", public = true,
      doc = "The least important level that is written." },
    { name = "format", type = "choice", choices = { "json", "text" }, shown = '`"json"`, `"text"` on a terminal',
      default = function(host) return host.terminal and "text" or "json" end, public = true,
      doc = "One JSON object a line, or text for people." },
  } },

  { name = "http", type = "section", doc = "The door for hooks.", rows = {
    { name = "listen", type = "addresses", default = "0.0.0.0:4000", public = true,
      doc = "An address and port, or a list of them; IPv6 as `[::]:4000`." },
    { name = "threads", type = "integer", default = function(host) return host.cores end, shown = "cores", min = 1,
      max = 256, public = true, doc = "Loops that read requests." },
    { name = "max_body_bytes", type = "bytes", default = "25MiB", min = 1, max = 2 ^ 30, public = true,
      doc = "A larger body is answered 413." },
    { name = "max_buffered_bytes", type = "bytes", default = "256MiB", min = 2 ^ 20, max = TIB, public = true,
      doc = "Unhandled input of all connections; beyond it the slowest is shut." },
    { name = "prefix", type = "url_prefix", default = "/webhooks", public = true,
      doc = "Hooks are posted to `PREFIX/SOURCE`." },
    { name = "routing", type = "choice", choices = { "path", "tenant_path" }, default = "path", public = true,
      doc = "`tenant_path`: hooks are posted to `PREFIX/TENANT/SOURCE`." },
    { name = "header_timeout_ms", type = "ms", default = "10s", min = 1, max = DAY_MS, public = true,
      doc = "Time for the head of a request." },
    { name = "body_timeout_ms", type = "ms", default = "30s", min = 1, max = DAY_MS, public = true,
      doc = "Time for its body." },
    { name = "idle_timeout_ms", type = "ms", default = "60s", min = 1, max = DAY_MS, public = true,
      doc = "How long a kept connection may be silent." },
    { name = "max_connections", type = "integer", default = 10000, min = 1, max = 1000000, public = true,
      doc = "Beyond it the newest is closed." },
    { name = "tls", type = "section", doc = "Files (PEM) that make the listeners speak TLS 1.2 and 1.3 only.", rows = {
      { name = "cert", type = "file", public = true,
        doc = "The server's certificate, intermediate ones behind it; needs `key`. Unset: plain HTTP." },
      { name = "key", type = "file", public = true, doc = "Its private key, without a passphrase; needs `cert`." },
      { name = "client_ca", type = "file", public = true,
        doc = "Only clients with a certificate that leads to one of these get in, on every path. Unset: a client is asked for "
          .. "its certificate when a source verifies by `mtls`, and any one is taken: the source decides." },
    } },
    { name = "trusted_proxies", type = "ranges", default = {}, public = true,
      doc = "Proxies whose `X-Forwarded-For` is believed, as ranges such as `10.0.0.0/8`. Who posted a hook is then the first "
        .. "address that is not one of theirs, from the right over all lines of the header; when all are, the leftmost. A port "
        .. "behind it (`1.2.3.4:5678`, `[::1]:80`) is left out, and what stands further left is not read. Anything else in its "
        .. "place (`unknown`) is answered 403 `ip_denied`. Unset: the address of the connection." },
  } },

  { name = "addresses", type = "section", rows = addresses,
    doc = "From where hooks may come, for all sources. A list is a table of ranges, or one text with blanks or line feeds "
      .. "between them, such as a `file`. `/health` and `/ready` are for everybody." },

  { name = "admin", type = "section", doc = "The door for operators.", rows = {
    { name = "listen", type = "address", default = "127.0.0.1:4002", public = true,
      doc = "Beyond loopback it needs tokens." },
    { name = "tokens", type = "tokens", default = {}, public = true,
      doc = "A list of `{ hash, scopes, name }`.", rows = {
        { name = "hash", type = "hash", required = true, doc = "SHA-256 of the token, 64 hex digits." },
        { name = "scopes", type = "scopes", choices = { "read", "payload", "operate", "config" }, required = true,
          public = true, doc = "What the token may do: a list of `read`, `payload`, `operate`, `config`." },
        { name = "name", type = "name", shown = "`token1`, `token2`, ...", public = true,
          doc = "Who it is, in the audit table." },
      } },
    { name = "auth", type = "choice", choices = { "none" }, public = true,
      doc = '`"none"`: no tokens beyond loopback, on purpose, behind something that asks for them.' },
  } },

  { name = "store", type = "section", doc = "What makes a hook durable.", rows = {
    { name = "type", type = "choice", choices = { "sqlite" }, later_choices = { "none" }, default = "sqlite",
      public = true, doc = "The embedded store." },
    { name = "max_batch", type = "integer", default = 1024, min = 1, max = 65536, public = true,
      doc = "Hooks in one commit." },
    { name = "max_batch_bytes", type = "bytes", default = "8MiB", min = 1, max = 2 ^ 30, public = true,
      doc = "Bytes in one commit; one larger hook is a commit of its own." },
    { name = "max_queue", type = "integer", default = 10000, min = 1, max = 10000000, public = true,
      doc = "Hooks waiting for their commit; beyond it the answer is 503 `overload`." },
    { name = "max_queue_bytes", type = "bytes", default = "256MiB", min = 1, max = TIB, public = true,
      doc = "Their bytes." },
    { name = "commit_timeout_ms", type = "ms", default = "15s", min = 100, max = DAY_MS, public = true,
      doc = "When it is unknown for so long whether a batch is stored, its connections are closed without an answer. A commit "
        .. "under way for a third of it: `/ready` says `store`, and hooks are answered 503 `store_unavailable`." },
    { name = "retention_ms", type = "ms", default = "7d", min = 0, max = 100 * YEAR_MS, public = true,
      doc = "How long delivered hooks stay." },
    { name = "max_bytes", type = "bytes", min = 2 ^ 20, max = 1024 * TIB, public = true,
      doc = "Of the store's files: beyond it the oldest delivered hooks go before their time. Unset: no bound." },
    { name = "max_dedupe_keys", type = "integer", default = 20000000, min = 1000000, max = 2000000000, public = true,
      doc = "Keys of `dedupe` that are remembered, at about 11 bytes of memory each; beyond it the oldest are forgotten before "
        .. "their time, which is logged." },
    { name = "min_free_bytes", type = "bytes", default = "1GiB", min = 0, max = 1024 * TIB, public = true,
      doc = "With less free disk the answer is 503 `disk_full`." },
  } },

  { name = "dispatch", type = "section", doc = "How hooks leave.", rows = {
    { name = "concurrency", type = "integer", default = 4096, min = 1, max = 1000000, public = true,
      doc = "Attempts running at once, all sinks." },
    { name = "sink_concurrency", type = "integer", default = 32, min = 1, max = 100000, public = true,
      doc = "The same for each sink that does not say otherwise." },
    { name = "max_inflight_bytes", type = "bytes", default = "128MiB", min = 2 ^ 20, max = TIB, public = true,
      doc = "Hooks in flight, and waiting in memory." },
    { name = "max_pending_bytes", type = "bytes", default = function(host) return math.floor(host.memory / 4) end,
      shown = "a quarter of memory", min = 2 ^ 20, max = TIB, public = true,
      doc = "Memory for what is owed; beyond it the answer is 503 `backlog_full`." },
    { name = "attempt_timeout_ms", type = "ms", default = "30s", min = 1, max = DAY_MS, public = true,
      doc = "The outer bound of any sink's own timeout." },
    { name = "retry", type = "retry", rows = retry, public = true, shown = "see below",
      doc = "When to try again; or a list of waits, such as `{ \"5s\", \"5m\", \"30m\" }`, whose last one repeats." },
    { name = "breaker", type = "section", rows = breaker,
      doc = "When to stop trying a receiver that is down." },
    { name = "dlq", type = "partial", rows = dlq, public = true, shown = "see below",
      doc = "Bounds of the dead letters, of each source." },
  } },

  { name = "ordering", type = "section", doc = "How lanes are found.", rows = {
    { name = "max_body_bytes", type = "bytes", default = "1MiB", min = 1, max = 2 ^ 30, public = true,
      doc = "Larger bodies have no JSON key." },
  } },

  { name = "scripts", type = "section", doc = "Lua keys, and what one call of them may use.", rows = {
    { name = "path", type = "path", default = "lua", public = true,
      doc = "The folder of key modules. All of its `.lua` files are read once per load." },
    { name = "max_result_bytes", type = "bytes", default = 4096, min = 1, max = 2 ^ 20, public = true,
      doc = "Length of a key that a script gives." },
    { name = "max_instructions", type = "integer", default = 100000, min = 1000, max = 100000000, public = true,
      doc = "Instructions of one call. Helpers written in C cost theirs by the bytes they work on." },
    { name = "max_memory_bytes", type = "bytes", default = "32MiB", min = 2 ^ 20, max = 2 ^ 30, public = true,
      doc = "Memory of one state: there is one for each thread and key module." },
    { name = "max_pattern_steps", type = "integer", default = 100000, min = 100, max = 100000000, public = true,
      doc = "Steps of all pattern matching of one call: about one a byte looked at." },
  } },

  { name = "egress", type = "section", doc = "Where deliveries may go.", rows = {
    { name = "allow_private", type = "ranges", default = {}, public = true,
      doc = "Private, loopback, link-local and reserved ranges that are open, such as `10.0.0.0/8`." },
    { name = "allow_http", type = "boolean", default = false, public = true, doc = "Whether plain http is allowed." },
  } },

  { name = "rate_limits", type = "section", rows = {
    { name = "default", type = "limit", rows = limit, public = true,
      doc = "Of each tenant that has none of its own." },
    { name = "tenants", type = "limits", rows = limit, default = {}, public = true,
      doc = "By tenant, such as `{ acme = { rate = 50, burst = 200 } }`. What the API sets for a tenant goes over this, until "
        .. "it is deleted there." },
    { name = "sources", type = "limits", rows = limit, default = {}, public = true,
      doc = "By source, whatever tenants send to it." },
    { name = "address", type = "limit", rows = limit, public = true,
      doc = "Of each client address, whatever it sends to; of IPv6 each /64." },
    { name = "failed_signatures", type = "limit", rows = limit, default = { rate = 20, burst = 200 }, off = true, public = true,
      shown = "`{ rate = 20, burst = 200 }`",
      doc = "Hooks whose verification fails, of one client address at one source. Beyond it the address is refused there before "
        .. "anything is verified, unless a good signature came from it within a day. `false`: no limit. Only where "
        .. "`on_verify_failure` is `reject`: what is to be kept is not limited so; see `quarantine`." },
  }, doc = "Each limit is `{ rate = 50, burst = 200 }`: 50 hooks a second (0.001 to 1000000, less than one is fine) and 200 at "
    .. "once (1 to 1000000; not said, a second's worth). A hook beyond one of them is answered 429 `rate_limited` with "
    .. "Retry-After, and nothing is stored. Charged is what is taken: each hook whose signature is good (or flagged) once at its "
    .. "tenant, its source and its address, or, when one of them refuses, at none. A provider's duplicate is a hook; what goes "
    .. "into quarantine is not, and has a limit of its own." },
  { name = "quarantine", type = "section", rows = {
    { name = "burst", type = "integer", default = 100, min = 1, max = 1000000, public = true,
      doc = "Hooks of one source at once; beyond it the answer is 429 `quarantine_rate_limited`." },
    { name = "rate", type = "number", default = 20, min = 1, max = 1000000, public = true,
      doc = "Hooks of one source a second, after that." },
    { name = "max_bytes", type = "bytes", default = "1GiB", min = 1, max = 1024 * TIB, public = true,
      doc = "Of all of them, in equal shares for the sources that use it; a source that has its share is answered 503 "
        .. "`quarantine_full`, and no other one." },
    { name = "retention_ms", type = "ms", default = "7d", min = 1000, max = 100 * YEAR_MS, public = true,
      doc = "How long they stay." },
  }, doc = "Hooks that failed verification, where a source says `on_verify_failure = \"quarantine\"`." },
  { name = "retire", type = "sink_paths", default = {}, public = true,
    doc = "Sinks that are gone for good, as `\"source/sink\"`: what is owed to them becomes dead letters at the next start "
      .. "or reload. Without it, or a `was`, the gateway neither starts nor reloads while a sink that is gone is owed hooks." },

  { name = "sources", type = "sources", rows = source, required = true, public = true,
    doc = "Where hooks come from: a table by name." },
}

return schema
