local notes = {}

notes.__tea_actions__ = {
  merge = {
    description = "Merges a note that changed on two devices: both texts, in the order of the alphabet.",
    params = {
      type = "object",
      properties = {
        ["local"] = {description = "the note on this device, null if it was deleted"},
        remote = {description = "the note of the others, null if it was deleted"},
      },
    },
  },
}

function notes.register_actions(registry)
  registry.merge = function(state, params)
    local here, there = params["local"], params.remote
    if not here or not there then
      return {body = (here or there).body} -- a change wins over a deletion
    end
    local texts = {here.body.value, there.body.value}
    table.sort(texts) -- the same on every device
    return {body = {value = table.concat(texts, "; ")}}
  end
end

return notes
