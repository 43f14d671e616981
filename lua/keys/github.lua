-- GitHub: one lane a repository; what belongs to an organisation alone goes by it.
local M = {}

---@param hook lanegate.Hook
function M.by_repository(hook)
  local repository = hook:get "repository.full_name"
  if repository then return repository:lower() end -- GitHub's names know no case
  local organisation = hook:get "organization.login"
  return organisation and "org:" .. organisation:lower()
end

-- A branch at a time: pushes to one branch stay in order, different branches do not wait for each other.
---@param hook lanegate.Hook
function M.by_branch(hook)
  local repository, ref = hook:get "repository.full_name", hook:get "ref"
  return repository and ref and repository:lower() .. "@" .. ref:gsub("^refs/heads/", "")
end

return M
