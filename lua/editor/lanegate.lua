---@meta
-- Definitions for editors: what a key function sees. Add this folder to the language server's library
-- (Lua.workspace.library). Nothing here is ever run.

---A hook as a key function sees it: read-only, and dead after the call.
---@class lanegate.Hook
---@field id string a UUID
---@field tenant string
---@field source string
---@field method string
---@field path string
---@field content_type string?
---@field received_at number unix milliseconds
---@field remote_ip string
---@field verified boolean did its signature pass? False while a verifier is asked.
---@field body string the exact bytes
local Hook = {}

---The first header of that name, in any case.
---@param name string
---@return string?
function Hook:header(name) end

---All headers of that name.
---@param name string
---@return string[]
function Hook:headers(name) end

---@return fun(): string?, string?
function Hook:each_header() end

---A decoded parameter of the query.
---@param name string
---@return string?
function Hook:query(name) end

---A decoded parameter of a form body.
---@param name string
---@return string?
function Hook:form(name) end

---What stands at a JSON path: a string, a number as its exact text, a boolean, or nil.
---@param path string "data.object.customer", "items.0.id"
---@return string|boolean|nil
function Hook:get(path) end

---The body as tables; integers of 15 digits or more are strings.
---@return any value, string? err
function Hook:json() end

---@class lanegate
---@field null userdata
---@field unordered userdata return it: this hook takes no lane
lanegate = {}

---@param text string
---@return string bytes 32 of them
function lanegate.sha256(text) end

---@param secret string
---@param text string
---@return string bytes 32 of them
function lanegate.hmac_sha256(secret, text) end

---@param text string
---@return string
function lanegate.hex(text) end

---@param text string
---@return string
function lanegate.base64(text) end

---@param text string
---@return any value, string? err
function lanegate.json_decode(text) end
