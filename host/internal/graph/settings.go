package graph

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Settings are the settings of a workflow. Their strings can be templates that
// use secrets.
type Settings struct{ compiled *expr.Value }

// UseSecrets reports whether the settings depend on secrets.
func (s *Settings) UseSecrets() bool { return len(s.compiled.Templates()) > 0 }

// Resolve returns the settings for a run's secrets. They are shared and must
// not be changed.
func (s *Settings) Resolve(ctx context.Context, secrets map[string]any) (map[string]any, error) {
	v, err := s.compiled.Eval(ctx, secretScope(secrets))
	object, _ := v.(map[string]any)
	return object, err
}

// secretScope is the scope of templates in settings.
type secretScope map[string]any

func (s secretScope) Lookup(name string) (any, bool) { return map[string]any(s), name == "secrets" }

// compileSettings compiles the templates in the settings. The value of an
// environment variable is not a template.
func (c *compiler) compileSettings() *Settings {
	var places map[string]spec.Text
	if c.wf.SettingsText != nil {
		places = c.wf.SettingsText.Places
	}
	v, problems := expr.CompileTemplates(c.wf.Settings,
		func(path, _ string) bool { return expr.IsTemplate(places[path].Value) },
		func(path string, line, column int) diag.Pos { return places[path].At(line, column) })
	*c.diags = append(*c.diags, problems...)
	for _, located := range v.Templates() {
		text := places[located.Path]
		for _, ref := range located.Template.Roots() {
			if ref.Root != "secrets" {
				c.diags.Errorf(diagcode.UnknownRoot, text.At(ref.Line, ref.Column),
					"settings may use {{ secrets.NAME }} and ${VARIABLE}; write {% raw %}...{% endraw %} around braces that are not a template",
					"settings have no name %q", ref.Root)
				continue
			}
			c.readName(text.At(ref.Line, ref.Column), ref.Root, ref.Path)
		}
	}
	return &Settings{compiled: v}
}

// unreadSettings warns of top-level keys of the settings that neither a bundle
// nor a template reads.
func (c *compiler) unreadSettings() {
	if c.env.Settings == nil || c.settings[""] {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(c.wf.Settings)) {
		if slices.Contains(c.env.Settings, key) || c.settings[key] || strings.HasPrefix(key, "x-") {
			continue
		}
		hint := "if a plugin reads it, the plugin is missing: `tea plugin list` shows the plugins that are found"
		if near := diag.Suggest(key, c.env.Settings); near != "" {
			hint = near + " Else, " + hint
		}
		c.diags.Warnf(diagcode.UnreadSettings, c.wf.SettingsText.KeyPos(diag.Key("", key)), hint, "nothing reads settings.%s", key)
	}
}
