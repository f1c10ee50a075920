-- Splits a page of Markdown at its headings.
local M = {}

function M.register_actions(registry)
  registry.sections = function(state, params)
    local found, title, lines, fence = {}, params.name, {}, false
    local function finish()
      local text = table.concat(lines, "\n")
      if text:find("%S") then
        found[#found + 1] = {
          key = "docs/" .. params.name .. "#" .. title,
          value = {title = title, text = text},
          metadata = {page = params.name},
        }
      end
      lines = {}
    end
    for line in (params.text .. "\n"):gmatch("(.-)\n") do
      if line:match("^```") then
        fence = not fence
      end
      local heading = not fence and line:match("^#+%s+(.+)$")
      if heading then
        finish()
        title = heading
      else
        lines[#lines + 1] = line
      end
    end
    finish()
    return found
  end
end

return M
