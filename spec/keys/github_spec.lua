local t = require "lanegate.testing"

describe("keys.github", function()
  local push = t.fixture "payloads/github_push.http"

  it("goes by the repository, whatever the case of its name", function()
    local key = { "keys.github", "by_repository" }
    assert.lane("codertocat/hello-world", key, push)
    assert.same_lane(push, t.hook { json = { repository = { full_name = "CODERTOCAT/hello-world" } } }, key)
  end)

  it("goes by the organisation where there is no repository", function()
    assert.lane("org:octo-org", { "keys.github", "by_repository" }, t.fixture "payloads/github_member_added.http")
  end)

  it("has no key for what names neither", function()
    assert.keyless({ "keys.github", "by_repository" }, t.hook { json = { zen = "Keep it logically awesome." } }, "script_type")
  end)

  it("keeps branches apart", function()
    local key = { "keys.github", "by_branch" }
    assert.lane("codertocat/hello-world@main", key, push)
    local next_branch = t.hook { json = { ref = "refs/heads/next", repository = { full_name = "codertocat/hello-world" } } }
    assert.other_lane(push, next_branch, key)
  end)
end)
