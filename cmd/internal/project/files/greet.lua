-- Actions of this project, in the namespace that flow.yaml imports them under.
local M = {}

function M.register_actions(registry)
  registry.one = function(state, params)
    return {text = params.greeting .. ", " .. params.name .. "!"}
  end
end

return M
