-- http.tls: what is said of files before anybody shakes a hand. Whether they do is judged by the program itself.

local config = require "lanegate.config"
local fake_host = require "fake_host"

local SOURCES = "sources = { shop = { sinks = { { type = 'log' } } } }"
local FILES = { ["/c"] = "", ["/k"] = "", ["/a"] = "" }

local function load(tls, given, resolve)
  given = given or {}
  given.files = given.files or FILES
  return config.load("return {\nhttp = { tls = " .. tls .. " }, " .. SOURCES .. " }", "config.lua", fake_host.new(given),
    resolve ~= false)
end

local function says(title, tls, expected, given)
  it(title, function()
    local _, faults = load(tls, given)
    assert.same({ "config.lua:2: " .. expected }, faults)
  end)
end

describe("a certificate", function()
  it("is taken with its key", function()
    local asked
    local loaded = load("{ cert = '/c', key = '/k', client_ca = '/a' }",
      { judges = { judge_tls = function(...) asked = { ... } end } })
    assert.same({ cert = "/c", key = "/k", client_ca = "/a" }, loaded.root.http.tls)
    assert.same({ "/c", "/k", "/a" }, asked)
    assert.same(loaded.root.http.tls, loaded.shown.http.tls)
  end)
  it("is not asked for", function()
    assert.same({}, config.load("return { " .. SOURCES .. " }", "config.lua", fake_host.new(), true).root.http.tls)
  end)
  it("is not read where files are not at hand", function()
    local loaded = load("{ cert = env 'CERT', key = '/nowhere' }",
      { judges = { judge_tls = function() error("asked") end } }, false)
    assert.is_table(loaded)
  end)
  says("comes with a key", "{ cert = '/c' }", "http.tls: must have both cert and key, or neither")
  says("is what a key is for", "{ key = '/k' }", "http.tls: must have both cert and key, or neither")
  says("is what others are checked beside", "{ client_ca = '/a' }", "http.tls.client_ca: has no meaning without cert and key")
  says("can be read", "{ cert = '/none', key = '/k' }",
    'http.tls.cert: must be a file that can be read, got "/none": No such file or directory')
  says("is judged, each file in its place", "{ cert = '/c', key = '/k' }", 'http.tls.key: "/k" is another one\'s',
    { judges = { judge_tls = function() return 'key: "/k" is another one\'s' end } })
  says("is judged as a whole", "{ cert = '/c', key = '/k' }", "http.tls: OpenSSL has a bad day",
    { judges = { judge_tls = function() return "OpenSSL has a bad day" end } })
end)
