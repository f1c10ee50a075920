-- What this plant can do. A real one would ask its machines.
local M = {}

local readings = {bearing = 71.5, motor = 48.0}
local history = {["pump-1"] = "the bearing was greased on 19 August"}

function M.register_actions(registry)
  registry.read = function(_, params)
    local celsius = readings[params.part]
    if not celsius then error("no sensor at " .. tostring(params.part)) end
    return {text = params.part .. " is at " .. celsius .. " C"}
  end

  registry.look_up = function(_, params)
    return {text = history[params.device] or "nothing is known"}
  end

  registry.write = function(_, params)
    return {text = params.text}
  end

  -- Runs the action that the planner chose for a subtask, one of those above.
  local allowed = {["plant.read"] = true, ["plant.look_up"] = true, ["plant.write"] = true}
  registry.do_it = function(_, params)
    if not allowed[params.action] then error("unknown action " .. tostring(params.action)) end
    local result = tea.action(params.action, params.params or {})
    if params.known ~= "" then
      return {text = result.text .. " (because " .. params.known:gsub("%s+$", "") .. ")"}
    end
    return {text = result.text}
  end
end

local function one(name, about)
  return {type = "object", properties = {[name] = {type = "string", description = about}}, required = {name}}
end

M.__tea_actions__ = {
  read = {description = "Reads a temperature.", params = one("part", "bearing or motor")},
  look_up = {description = "Returns what was done to a device.", params = one("device", "its name")},
  write = {description = "Writes a message to the technician.", params = one("text", "the message")},
}

return M
