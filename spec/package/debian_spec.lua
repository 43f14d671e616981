-- The Debian package holds what it should, and depends on what the binary needs. Installing it is tried by try-install.
local process = require "support.process"

local function output(...)
  local code, out, err = process.run { ... }
  assert.equal(0, code, out .. err)
  return out
end

describe("the Debian package", function()
  local dir, file
  setup(function()
    if process.run { "sh", "-c", "command -v dpkg-shlibdeps && command -v cpack" } ~= 0 then return end
    dir = process.temp_dir()
    output("cpack", "--config", os.getenv "LANEGATE_BUILD" .. "/CPackConfig.cmake", "-G", "DEB", "-B", dir)
    file = output("sh", "-c", "ls " .. dir .. "/*.deb"):match "%S+"
  end)
  teardown(function() if dir then process.remove(dir) end end)

  local function needs_tools()
    if not file then pending "no dpkg-shlibdeps here (Debian's package dpkg-dev)" end
    return file == nil
  end

  it("holds the program, its service, its pages and its configuration", function()
    if needs_tools() then return end
    local list = output("dpkg-deb", "--contents", file)
    for _, path in ipairs { "./usr/bin/lanegate", "./usr/lib/lanegate/lanegate/testing.lua",
      "./usr/lib/lanegate/lanegate/testing_core.so", "./usr/lib/systemd/system/lanegate.service", "./etc/lanegate/config.lua",
      "./usr/share/man/man1/lanegate.1", "./usr/share/man/man1/lanegate-dlq.1",
      "./usr/share/bash-completion/completions/lanegate", "./usr/share/zsh/vendor-completions/_lanegate",
      "./usr/share/fish/vendor_completions.d/lanegate.fish", "./usr/share/doc/lanegate/copyright",
      "./usr/share/doc/lanegate/config.md", "./usr/share/doc/lanegate/examples/stripe.lua",
      "./usr/share/lanegate/alerts.yml", "./usr/share/lanegate/grafana.json" } do
      assert.truthy(list:find(" " .. path:gsub("[%-.]", "%%%0") .. "\n"), path .. " is not in\n" .. list)
    end
    assert.is_nil(list:find("/usr/local", 1, true))
    assert.is_nil(list:find("share/made", 1, true))
  end)

  it("depends on the libraries it links, and keeps what an administrator wrote", function()
    if needs_tools() then return end
    local fields = output("dpkg-deb", "--field", file)
    for _, library in ipairs { "libh2o-evloop", "libluajit2", "libjansson4", "libssl3", "libsqlite3", "libcurl4",
      "ca-certificates" } do
      assert.truthy(fields:find(library, 1, true), library .. " is not in\n" .. fields)
    end
    assert.equal("/etc/lanegate/config.lua\n", output("dpkg-deb", "--info", file, "conffiles"))
  end)

  it("has scripts a shell can read", function()
    if needs_tools() then return end
    for _, script in ipairs { "postinst", "prerm", "postrm" } do
      local path = dir .. "/" .. script
      process.write_file(path, output("dpkg-deb", "--info", file, script))
      output("sh", "-n", path)
    end
  end)
end)
