package host

import (
	"github.com/the-edge-agent/tea/host/internal/spec"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Schema gives the JSON Schema (draft-07) of workflow files, for editors. The
// parameters of the host's actions, plugins included, are in it.
func (h *Host) Schema() ([]byte, error) {
	entries, err := h.Actions()
	if err != nil {
		return nil, err
	}
	actions := make([]tea.ActionInfo, len(entries))
	for i, e := range entries {
		actions[i] = e.ActionInfo
	}
	return spec.JSONSchema(actions)
}
