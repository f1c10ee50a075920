package mcp

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Whatever a server calls its tools, each gets a valid name of an action that
// no other one has, in any order.
func FuzzActionNames(f *testing.F) {
	for _, names := range []string{"read\nwrite", "a/b\na.b\na_b", "日本\n\n-\n_", "A\na\nÀ", strings.Repeat("x", 300) + "\n" + strings.Repeat("x", 299)} {
		f.Add(names)
	}
	valid := regexp.MustCompile(`^mcp\.s_[a-z0-9_]{1,90}$`)
	f.Fuzz(func(t *testing.T, text string) {
		names := strings.Split(text, "\n")
		slices.Sort(names)
		names = slices.Compact(names)
		var defs []*mcp.Tool
		for _, name := range names {
			defs = append(defs, &mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}})
		}
		actions := actionNames("s", defs)
		manifest := tea.Manifest{Name: "mcp", Version: "1.0.0", Protocol: tea.ProtocolVersion}
		byName := map[string]string{}
		for i, action := range actions {
			if !valid.MatchString(action) {
				t.Errorf("%q has the action %q", names[i], action)
			}
			byName[names[i]] = action
			manifest.Actions = append(manifest.Actions, tea.ActionInfo{Name: action})
		}
		if err := manifest.Check(); err != nil {
			t.Error(err)
		}
		slices.Reverse(defs)
		for i, action := range actionNames("s", defs) {
			if name := defs[i].Name; byName[name] != action {
				t.Errorf("%q is %s or %s", name, byName[name], action)
			}
		}
	})
}
