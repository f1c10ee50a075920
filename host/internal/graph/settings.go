package graph

import (
	"maps"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/sdk/diag"
)

// unreadSettings warns of top-level keys of the settings that neither a bundle
// nor a template reads.
func (c *compiler) unreadSettings() {
	if c.env.Settings == nil || c.settings[""] || len(c.env.Unread) > 0 {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(c.wf.Settings)) {
		if slices.Contains(c.env.Settings, key) || c.settings[key] || strings.HasPrefix(key, "x-") {
			continue
		}
		hint := "if a plugin does, it is missing: `tea plugin list` shows those that are found"
		if near := diag.Suggest(key, c.env.Settings); near != "" {
			hint = near + " Else, " + hint
		}
		c.diags.Warnf(diagcode.UnreadSettings, c.wf.SettingsText.KeyPos(diag.Key("", key)), hint, "nothing here reads settings.%s", key)
	}
}
