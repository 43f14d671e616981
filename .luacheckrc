std = "luajit"
max_line_length = 130
include_files = { "lua/**/*.lua", "config/**/*.lua", "spec/**/*.lua", ".luacheckrc" }
exclude_files = { "**/node_modules/**", "lua/editor/**" }
files["spec/**/*_spec.lua"] = { std = "luajit+busted" }
files["lua/**/*_spec.lua"] = { std = "luajit+busted" }
-- What config.lua may call: lua/lanegate/env.lua gives it these.
files["config/**/*.lua"] = { std = "luajit", read_globals = { "env", "file" } }
-- Key modules: the sandbox gives them `lanegate` and has no host.
files["lua/keys/*.lua"] = { std = { read_globals = { "string", "table", "math", "bit", "select", "type", "tostring",
  "tonumber", "pairs", "ipairs", "next", "error", "assert", "pcall", "xpcall", "coroutine", "setmetatable", "getmetatable",
  "require", "unpack", "rawget", "rawset", "rawequal", "lanegate" } } }
