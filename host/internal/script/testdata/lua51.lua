-- Writes the answers of Lua 5.1 to the lines of lua51.txt, each of which is code
-- and, after a tab, the answer: lua5.1 lua51.lua <lua51.txt >answers
local function show(ok, ...)
  if not ok then return "error" end
  local out = {}
  for i = 1, select("#", ...) do
    local v = select(i, ...)
    if type(v) == "number" then
      if v ~= v then v = "nan" else v = string.format("%.17g", v) end
    elseif type(v) == "string" then
      v = '"' .. string.gsub(v, "[%c\"\\\128-\255]", function(c) return string.format("\\%03d", string.byte(c)) end) .. '"'
    elseif type(v) ~= "nil" and type(v) ~= "boolean" then
      v = type(v)
    end
    out[i] = tostring(v)
  end
  return table.concat(out, ", ")
end

local function answer(code)
  local f = loadstring("return " .. code) or loadstring(code)
  if not f then return "error" end
  return show(pcall(f))
end

if io then
  for line in io.lines() do
    local code = string.match(line, "^[^\t]*")
    print(code .. "\t" .. answer(code))
  end
end
