std = "luajit"
max_line_length = 130
include_files = { "lua/**/*.lua", "config/**/*.lua", "spec/**/*.lua", ".luacheckrc" }
exclude_files = { "**/node_modules/**" }
files["spec/**/*_spec.lua"] = { std = "luajit+busted" }
files["lua/**/*_spec.lua"] = { std = "luajit+busted" }
-- What config.lua may call: lua/lanegate/env.lua gives it these.
files["config/**/*.lua"] = { std = "luajit", read_globals = { "env", "file" } }
