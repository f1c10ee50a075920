local plant = {}

local device = {type = "string", description = "name of the device"}

plant.__tea_actions__ = {
  reading = {
    description = "Reads the temperature in degrees Celsius and the speed in percent of a device.",
    params = {type = "object", properties = {device = device}, required = {"device"}},
  },
  set_speed = {
    description = "Sets the speed of a device in percent.",
    params = {
      type = "object",
      properties = {device = device, percent = {type = "number", minimum = 0, maximum = 100}},
      required = {"device", "percent"},
    },
  },
}

function plant.register_actions(registry)
  registry.reading = function(state, params)
    return {device = params.device, celsius = 71.5, percent = 90}
  end
  registry.set_speed = function(state, params)
    return {device = params.device, percent = params.percent}
  end
end

return plant
