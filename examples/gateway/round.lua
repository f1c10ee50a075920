-- What is prepared for the technician's round: the actions that a plan of it
-- can use. A real one would ask the store and the calendar.
local M = {}

local function store()
  return tea.action("file.read", {path = "data/store.json", parse = "json"}).content
end

local actions = {}

actions["round.part"] = function(params)
  local part = store().parts[params.part]
  if not part then error("the store does not have " .. tostring(params.part)) end
  if part.count == 0 then return "none left, order it" end
  return part.count .. " in shelf " .. part.shelf
end

actions["round.visit"] = function(params)
  local place = store().devices[params.device]
  if not place then error("there is no device " .. tostring(params.device)) end
  return place
end

function M.register_actions(registry)
  registry.part = function(_, params) return {text = actions["round.part"](params)} end
  registry.visit = function(_, params) return {text = actions["round.visit"](params)} end

  -- Runs the action that the model chose for a step, one of those above.
  registry.prepare = function(_, params)
    local action = actions[params.action]
    if not action then error("unknown action " .. tostring(params.action)) end
    return {text = action(params.params or {})}
  end
end

local function one(name, about)
  return {type = "object", properties = {[name] = {type = "string", description = about}}, required = {name}}
end

M.__tea_actions__ = {
  part = {description = "Looks a spare part up in the store.", params = one("part", "its name")},
  visit = {description = "Says where a device is and what is needed to get there.", params = one("device", "its name")},
}

return M
