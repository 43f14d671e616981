-- On which line does the file say this? Reads the source of config.lua (which Lua has compiled already, so it is
-- well-formed) and gives the table constructor it returns as a tree of lines:
--
--     { line = 3, items = { http = { line = 4, items = { listen = { line = 5 } } }, [1] = ... } }
--
-- `items` is nil where the value is not written as a constructor. A local that holds a constructor is followed when
-- a value is just its name. What code makes has no node: the nearest ancestor that has one speaks for it.

local lines = {}

local OPENS = { ["("] = true, ["["] = true, ["{"] = true, ["function"] = true, ["if"] = true, ["do"] = true,
                ["repeat"] = true }
local CLOSES = { [")"] = true, ["]"] = true, ["}"] = true, ["end"] = true, ["until"] = true }
local ESCAPES = { n = "\n", t = "\t", r = "\r", a = "\a", b = "\b", f = "\f", v = "\v" }

local function unescape(text)
  text = text:gsub("\\(%d%d?%d?)", function(digits) return string.char(tonumber(digits) % 256) end)
  return (text:gsub("\\(.)", function(char) return ESCAPES[char] or char end))
end

-- The end of a long bracket that opens at `at` ("[[" or "[==["), and its level; nil when there is none.
local function long_bracket(source, at)
  local level = source:match("^%[(=*)%[", at)
  if not level then return nil end
  local _, last = source:find("]" .. level .. "]", at, true)
  return last or #source, #level
end

-- The token at `at`, which is no blank and no comment: kind ("name" "string" "number" or the symbol itself), its
-- value, and its last byte.
local function token_at(source, at)
  local word = source:match("^[%a_][%w_]*", at)
  if word then return OPENS[word] and word or CLOSES[word] and word or "name", word, at + #word - 1 end

  local quote = source:match("^[\"']", at)
  if quote then
    local last = at + 1
    while last <= #source do
      local char = source:sub(last, last)
      if char == quote then break end
      last = last + (char == "\\" and 2 or 1)
    end
    return "string", unescape(source:sub(at + 1, last - 1)), last
  end

  local last, level = long_bracket(source, at)
  if last then
    return "string", source:sub(at + level + 2, last - level - 2):gsub("^\r?\n", ""), last
  end

  local number = source:match("^%.?%d[%w_.]*", at)
  if number then
    local exponent = number:match("[eEpP]$") and source:match("^[+-]%d+", at + #number) or ""
    return "number", tonumber(number .. exponent), at + #number + #exponent - 1
  end

  local symbol = source:match("^%.%.%.", at) or source:match("^%.%.", at) or source:match("^[=~<>]=", at)
    or source:sub(at, at)
  return symbol, symbol, at + #symbol - 1
end

-- Every token as { kind, value, line }, without comments; "eof" behind the last.
local function tokenize(source)
  local tokens, at, line = {}, 1, 1
  local function pass(last) -- counts the lines from `at` to `last`
    for _ in source:sub(at, last):gmatch("\n") do line = line + 1 end
    at = last + 1
  end

  if source:sub(1, 1) == "#" then pass((source:find("\n", 1, true) or #source + 1) - 1) end
  while true do
    pass((source:find("%S", at) or #source + 1) - 1)
    if at > #source then break end
    if source:find("^%-%-", at) then
      local last = long_bracket(source, at + 2)
      pass(last or (source:find("\n", at, true) or #source + 1) - 1)
    else
      local kind, value, last = token_at(source, at)
      tokens[#tokens + 1] = { kind = kind, value = value, line = line }
      pass(last)
    end
  end
  -- Looking ahead finds the end for ever.
  local eof = { kind = "eof", line = line }
  return setmetatable(tokens, { __index = function() return eof end })
end

-- Past one expression: to the "," ";" or closing token that ends it.
local function skip_expression(tokens, i)
  local depth = 0
  while tokens[i].kind ~= "eof" do
    local kind = tokens[i].kind
    if depth == 0 and (kind == "," or kind == ";" or CLOSES[kind]) then break end
    depth = depth + (OPENS[kind] and 1 or CLOSES[kind] and -1 or 0)
    i = i + 1
  end
  return i
end

local read_items

-- The node of the value that starts at token i, and the token behind the value.
local function read_value(tokens, i, locals, line)
  local node = { line = line }
  local first = tokens[i]
  if first.kind == "{" then
    node.items, i = read_items(tokens, i, locals)
    return node, skip_expression(tokens, i)
  end
  local after = skip_expression(tokens, i)
  if first.kind == "name" and after == i + 1 and locals[first.value] then
    node.items = locals[first.value].items
  end
  return node, after
end

-- The entries of the constructor whose "{" is token i, and the token behind its "}".
function read_items(tokens, i, locals)
  local items, count = {}, 0
  i = i + 1
  while tokens[i].kind ~= "}" and tokens[i].kind ~= "eof" do
    local line, key = tokens[i].line, {} -- a key that is computed: nobody will find it
    if tokens[i].kind == "name" and tokens[i + 1].kind == "=" then
      key, i = tokens[i].value, i + 2
    elseif tokens[i].kind == "[" then
      if tokens[i + 2].kind == "]" and tokens[i + 1].kind ~= "name" then key = tokens[i + 1].value end
      i = skip_expression(tokens, i + 1) + 2 -- past "]" and "="
    else
      count = count + 1
      key = count
    end
    local before = i
    items[key], i = read_value(tokens, i, locals, line)
    if tokens[i].kind == "," or tokens[i].kind == ";" then i = i + 1 end
    if i == before then break end -- not a constructor we understand; never loop
  end
  return items, i + 1
end

-- `source` is the text of a chunk that compiles.
function lines.of(source)
  local tokens = tokenize(source)
  local locals, root, depth, i = {}, nil, 0, 1
  while tokens[i].kind ~= "eof" do
    local token = tokens[i]
    if depth == 0 and token.value == "local" and tokens[i + 2].kind == "="
        and tokens[i + 3].kind == "{" then
      local node = { line = token.line }
      locals[tokens[i + 1].value] = node
      node.items, i = read_items(tokens, i + 3, locals)
    elseif depth == 0 and token.kind == "name" and token.value == "return" then
      root, i = read_value(tokens, i + 1, locals, token.line)
    else
      depth = depth + (OPENS[token.kind] and 1 or CLOSES[token.kind] and -1 or 0)
      i = i + 1
    end
  end
  return root or { line = 1 }
end

return lines
