-- Reads a page of Markdown: its title, its first paragraph and its links to
-- other pages.
local M = {}

function M.register_actions(registry)
  registry.page = function(state, params)
    local title, paragraph, links, seen, fence = params.name, nil, {}, {}, false
    for line in (params.text .. "\n"):gmatch("(.-)\n") do
      if line:match("^```") then
        fence = not fence
      elseif not fence then
        local heading = line:match("^# (.+)$")
        if heading then
          title = heading
        elseif not paragraph and line:match("^%a") then
          paragraph = line
        end
        for target in line:gmatch("%]%(([%w%-]+%.md)[^)]*%)") do
          if target ~= params.name and not seen[target] then
            seen[target] = true
            links[#links + 1] = {from_entity = params.name, relation_type = "links_to", to_entity = target, source = params.name}
          end
        end
      end
    end
    return {
      page = {entity_id = params.name, entity_type = "page", properties = {title = title}, text = paragraph or "", source = params.name},
      links = links,
    }
  end
end

return M
