local units = {}

-- round rounds a number to some digits behind the point.
local function round(number, digits)
  local factor = 10 ^ digits
  return math.floor(number * factor + 0.5) / factor
end

-- What the action takes, for `tea validate` and `tea actions`.
units.__tea_actions__ = {
  to_celsius = {
    description = "Converts degrees Fahrenheit to Celsius.",
    params = {
      type = "object",
      properties = {fahrenheit = {type = "number", description = "the temperature"}},
      required = {"fahrenheit"},
    },
  },
}

function units.register_actions(registry)
  registry.to_celsius = function(state, params)
    return {celsius = round((params.fahrenheit - 32) * 5 / 9, 1)}
  end
end

return units
