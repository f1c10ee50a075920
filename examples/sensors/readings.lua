local M = {}

-- typed makes rows of the lines of a CSV file, which are all texts.
local function typed(_, params)
  local rows = {}
  for i, line in ipairs(params.lines) do
    rows[i] = {
      sensor = line.sensor,
      time = line.time,
      day = line.time:sub(1, 10),
      celsius = tonumber(line.celsius), -- an empty one is no reading: null
      battery = tonumber(line.battery),
    }
  end
  return {rows = rows}
end

local function report(_, params)
  local out = {"# Daily means", ""}
  out[#out + 1] = "| day | sensor | readings | mean | least | most |"
  out[#out + 1] = "| --- | --- | --- | --- | --- | --- |"
  for _, m in ipairs(params.means) do
    out[#out + 1] = ("| %s | %s | %d | %.2f | %.2f | %.2f |"):format(m.day, m.sensor, m.readings, m.mean, m.least, m.most)
  end
  for _, s in ipairs(params.low) do
    out[#out + 1] = ""
    out[#out + 1] = ("**%s**: its battery is down to %.2f V."):format(s.sensor, s.volts)
  end
  return {text = table.concat(out, "\n") .. "\n"}
end

function M.register_actions(registry)
  registry.typed = typed
  registry.report = report
end

return M
