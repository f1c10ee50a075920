local plant = {}

plant.__tea_actions__ = {
  temperature = {
    description = "Gives the temperature of a device in degrees Celsius.",
    params = {
      type = "object",
      properties = {device = {type = "string", description = "name of the device"}},
      required = {"device"},
    },
  },
}

local readings = {["pump-1"] = 71.5, ["fan-1"] = 38.2}

function plant.register_actions(registry)
  registry.temperature = function(state, params)
    local celsius = readings[params.device]
    if not celsius then error("there is no device " .. params.device) end
    return {celsius = celsius}
  end
end

return plant
