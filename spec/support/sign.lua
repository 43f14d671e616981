-- Signatures as providers make them. openssl computes; one run of it for as many texts as there are.
local mime = require "mime"
local process = require "support.process"

local sign = {}

local function bytes(hex)
  return (hex:gsub("%x%x", function(c) return string.char(tonumber(c, 16)) end))
end

-- Digests of all texts, as hex digits, in their order.
local function digests(words, texts)
  local dir = process.temp_dir()
  for i, text in ipairs(texts) do
    local path = ("%s/%d"):format(dir, i)
    process.write_file(path, text)
    words[#words + 1] = path
  end
  local code, out, err = process.run(words)
  process.remove(dir)
  assert(code == 0, err)
  local found = {}
  for hex in out:gmatch "(%x+)\n" do found[#found + 1] = hex end
  assert(#found == #texts, out)
  return found
end

function sign.sha256(text)
  return digests({ "openssl", "dgst", "-sha256" }, { text })[1]
end

function sign.hmacs(secret, texts)
  return digests({ "openssl", "dgst", "-sha256", "-hmac", secret }, texts)
end

function sign.base64(hex)
  return (mime.b64(bytes(hex)))
end

-- Headers of one hook each, for bodies that the provider sends now.
function sign.github(secret, bodies)
  local headers = {}
  for i, hex in ipairs(sign.hmacs(secret, bodies)) do headers[i] = { ["X-Hub-Signature-256"] = "sha256=" .. hex } end
  return headers
end

function sign.shopify(secret, bodies)
  local headers = {}
  for i, hex in ipairs(sign.hmacs(secret, bodies)) do headers[i] = { ["X-Shopify-Hmac-Sha256"] = sign.base64(hex) } end
  return headers
end

function sign.stripe(secret, bodies)
  local now, texts, headers = os.time(), {}, {}
  for i, body in ipairs(bodies) do texts[i] = now .. "." .. body end
  for i, hex in ipairs(sign.hmacs(secret, texts)) do headers[i] = { ["Stripe-Signature"] = ("t=%d,v1=%s"):format(now, hex) } end
  return headers
end

return sign
