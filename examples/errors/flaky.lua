-- An action that fails until its call has been tried often enough. It counts
-- the tries in the log file tries.txt, since Lua keeps nothing between calls.
local M = {}

local function tries()
  local ok, file = pcall(tea.action, "file.read", {path = "tries.txt"})
  if not ok then return 0 end
  return #file.content
end

function M.register_actions(registry)
  registry.call = function(state, params)
    tea.action("file.append", {path = "tries.txt", content = "x"})
    local attempt = tries()
    if attempt < params.works_at then
      error("the line is busy (try " .. attempt .. ")")
    end
    return {attempt = attempt}
  end
end

return M
