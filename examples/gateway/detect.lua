-- Finds what is unusual in a day of readings and log lines.
--
-- A reading is {at = seconds since midnight, value = number}. A finding is
-- {kind, device, time, title, detail, severity, log}.
local detect = {}

-- seconds turns 2026-03-14T13:20:05Z into seconds since midnight.
local function seconds(time)
  local h, m, s = string.match(time, "T(%d%d):(%d%d):(%d%d)")
  return tonumber(h) * 3600 + tonumber(m) * 60 + tonumber(s)
end

local function clock(at)
  return string.format("%02d:%02d", math.floor(at / 3600), math.floor(at % 3600 / 60))
end

local function duration(span)
  local minutes = math.floor(span / 60 + 0.5)
  if minutes < 60 then return minutes .. " min" end
  return string.format("%d h %02d min", math.floor(minutes / 60), minutes % 60)
end

local function median(list)
  local sorted = {}
  for i, v in ipairs(list) do sorted[i] = v end
  table.sort(sorted)
  local half = #sorted / 2
  if half == math.floor(half) then return (sorted[half] + sorted[half + 1]) / 2 end
  return sorted[math.ceil(half)]
end

local function finding(kind, from, to, severity, title, detail)
  local time = from == to and "at " .. clock(from) or "from " .. clock(from) .. " to " .. clock(to)
  return {kind = kind, time = time, from_s = from, to_s = to,
    severity = severity, title = title, detail = detail}
end

-- episodes joins readings for which bad(reading) holds into {first, last,
-- worst}; two that are less than `apart` seconds apart belong together.
local function episodes(readings, apart, bad)
  local list, open = {}, nil
  for _, r in ipairs(readings) do
    local badness = bad(r)
    if badness then
      if not open or r.at - open.last > apart then
        open = {first = r.at, last = r.at, count = 0, badness = -1}
        list[#list + 1] = open
      end
      open.last, open.count = r.at, open.count + 1
      if badness > open.badness then open.badness, open.worst = badness, r end
    end
  end
  return list
end

local actions = {}

-- read_log keeps the lines that are worth more than routine.
function actions.read_log(_, params)
  local lines, count = {}, 0
  for line in string.gmatch(params.text, "[^\n]+") do
    count = count + 1
    local time, level, unit, text = string.match(line, "^(%S+) (%u+)%s+([%a]+)%[%d+%]: (.*)$")
    if level == "ERROR" or level == "WARN" then
      lines[#lines + 1] = {at = seconds(time), level = level, unit = unit, text = text,
        device = string.match(text, "^(%l+%-%d+) ") or ""}
    end
  end
  return {lines = lines, count = count}
end

-- by_device sorts rows of the CSV file into one entry per device, with its
-- log lines.
function actions.by_device(_, params)
  local devices, known = {}, {}
  for _, row in ipairs(params.rows) do
    local d = known[row.device]
    if not d then
      d = {name = row.device, metric = row.metric, unit = row.unit, readings = {}, log = {}}
      known[row.device], devices[#devices + 1] = d, d
    end
    d.readings[#d.readings + 1] = {at = seconds(row.time), value = tonumber(row.value)}
  end
  for _, line in ipairs(params.lines) do
    local d = known[line.device]
    if d then d.log[#d.log + 1] = line end
  end
  return {devices = devices}
end

-- statistics gives the middle, the spread and the course of the day.
function actions.statistics(_, params)
  local values, low, high, sum = {}, math.huge, -math.huge, 0
  for i, r in ipairs(params.readings) do
    values[i] = r.value
    low, high, sum = math.min(low, r.value), math.max(high, r.value), sum + r.value
  end
  local middle = median(values)
  local away = {}
  for i, v in ipairs(values) do away[i] = math.abs(v - middle) end

  local marks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}
  local course = {}
  for hour = 0, 23 do
    local top
    for _, r in ipairs(params.readings) do
      if math.floor(r.at / 3600) == hour and (not top or r.value > top) then top = r.value end
    end
    course[hour + 1] = top and marks[1 + math.floor((top - low) / math.max(high - low, 1e-9) * 7)] or "·"
  end
  return {count = #values, min = low, max = high, mean = sum / #values, median = middle,
    -- 1.4826 makes the median deviation comparable to a standard deviation
    spread = math.max(1.4826 * median(away), 1e-6), course = table.concat(course)}
end

-- outliers are readings whose robust z-score is beyond a threshold.
function actions.outliers(_, params)
  local s, list = params.stats, {}
  for _, e in ipairs(episodes(params.readings, 3600, function(r)
    local z = math.abs(r.value - s.median) / s.spread
    return z > params.threshold and z
  end)) do
    local far = string.format("%.1f times the usual spread away: %.2f at %s, where %.2f is normal",
      e.badness, e.worst.value, clock(e.worst.at), s.median)
    if e.count == 1 then
      list[#list + 1] = finding("outlier", e.first, e.last, "low", "a single reading far off", "It is " .. far)
    else
      list[#list + 1] = finding("outlier", e.first, e.last, e.count > 6 and "high" or "medium",
        "far from normal for " .. duration(e.last - e.first),
        string.format("%d readings, the farthest %s", e.count, far))
    end
  end
  return {findings = list}
end

-- limits are readings above what the device may have.
function actions.limits(_, params)
  local list = {}
  for _, e in ipairs(episodes(params.readings, 1800, function(r)
    return params.max and r.value > params.max and r.value
  end)) do
    list[#list + 1] = finding("limit", e.first, e.last, "high",
      "above its limit for " .. duration(e.last - e.first),
      string.format("%d readings above %g, the highest %.2f at %s", e.count, params.max, e.worst.value, clock(e.worst.at)))
  end
  return {findings = list}
end

-- gaps are times without a reading.
function actions.gaps(_, params)
  local list, before = {}, nil
  for _, r in ipairs(params.readings) do
    if before and r.at - before > params.longest then
      list[#list + 1] = finding("gap", before, r.at, "medium", "no reading for " .. duration(r.at - before),
        string.format("%d readings are missing", (r.at - before) / params.interval - 1))
    end
    before = r.at
  end
  return {findings = list}
end

-- stuck finds a sensor that says the same again and again.
function actions.stuck(_, params)
  local list, first, count = {}, nil, 0
  local function close(last)
    if count >= params.most then
      list[#list + 1] = finding("stuck", first.at, last.at, "medium", "the same reading for " .. duration(last.at - first.at),
        string.format("%d readings in a row are exactly %.2f", count, first.value))
    end
  end
  local last
  for _, r in ipairs(params.readings) do
    if first and r.value == first.value then
      count = count + 1
    else
      if last then close(last) end
      first, count = r, 1
    end
    last = r
  end
  if last then close(last) end
  return {findings = list}
end

-- bursts are many errors of one unit, about no device, within a short time.
function actions.bursts(_, params)
  local by_unit, units = {}, {}
  for _, line in ipairs(params.lines) do
    if line.level == "ERROR" and line.device == "" then
      if not by_unit[line.unit] then
        by_unit[line.unit], units[#units + 1] = {}, line.unit
      end
      table.insert(by_unit[line.unit], line)
    end
  end
  local list = {}
  for _, unit in ipairs(units) do
    for _, e in ipairs(episodes(by_unit[unit], params.window, function() return 0 end)) do
      if e.count >= params.least then
        local f = finding("burst", e.first, e.last, "medium",
          string.format("%d errors within %s", e.count, duration(e.last - e.first)), "The first says: " .. e.worst.text)
        f.device, f.log, f.from_s, f.to_s = unit, {}, nil, nil
        list[#list + 1] = f
      end
    end
  end
  return {findings = list}
end

-- evidence adds to each finding the log lines of its device around its time.
function actions.evidence(_, params)
  local list = {}
  for _, f in ipairs(params.findings) do
    local lines, seen, more = {}, {}, 0
    for _, line in ipairs(params.log) do
      if line.at >= f.from_s - params.around and line.at <= f.to_s + params.around then
        if seen[line.text] then
          more = more + 1
        else
          seen[line.text] = true
          lines[#lines + 1] = clock(line.at) .. " " .. line.level .. " " .. line.text
        end
      end
    end
    if more > 0 then lines[#lines + 1] = "... and " .. more .. " more like these" end
    f.device, f.log, f.from_s, f.to_s = params.device, lines, nil, nil
    list[#list + 1] = f
  end
  return {findings = list}
end

function detect.register_actions(registry)
  for name, action in pairs(actions) do registry[name] = action end
end

return detect
