-- Signatures as providers make them, by libcrypto.
local ffi = require "ffi"
local mime = require "mime"

local sign = {}

ffi.cdef [[
const void *EVP_sha256(void);
unsigned char *HMAC(const void *md, const void *key, int key_size, const char *text, size_t size,
                    unsigned char *out, unsigned int *out_size);
unsigned char *SHA256(const char *text, size_t size, unsigned char *out);
]]
local crypto = ffi.load "libcrypto.so.3"

function sign.hmac(key, text)
  local digest = ffi.new "unsigned char[32]"
  crypto.HMAC(crypto.EVP_sha256(), key, #key, text, #text, digest, nil)
  return ffi.string(digest, 32)
end

function sign.hex(bytes)
  return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

function sign.sha256(text)
  local digest = ffi.new "unsigned char[32]"
  crypto.SHA256(text, #text, digest)
  return sign.hex(ffi.string(digest, 32))
end

-- The header in which each provider puts its signature: name, value.
function sign.github(secret, body)
  return "X-Hub-Signature-256", "sha256=" .. sign.hex(sign.hmac(secret, body))
end

function sign.shopify(secret, body)
  return "X-Shopify-Hmac-Sha256", (mime.b64(sign.hmac(secret, body)))
end

function sign.stripe(secret, body)
  local now = os.time()
  return "Stripe-Signature", ("t=%d,v1=%s"):format(now, sign.hex(sign.hmac(secret, now .. "." .. body)))
end

return sign
