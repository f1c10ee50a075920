package graph

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/sdk/diag"
)

// Settings are the settings of a workflow. Strings in them can be templates
// that use secrets.
type Settings struct {
	values    map[string]any
	templates map[string]*expr.Template
}

// UseSecrets reports whether the settings depend on secrets.
func (s *Settings) UseSecrets() bool { return len(s.templates) > 0 }

// Resolve returns the settings for a run's secrets. They are shared and must
// not be changed.
func (s *Settings) Resolve(ctx context.Context, secrets map[string]any) (map[string]any, error) {
	if len(s.templates) == 0 {
		return s.values, nil
	}
	v, err := s.resolve(ctx, s.values, "", secretScope(secrets))
	object, _ := v.(map[string]any)
	return object, err
}

func (s *Settings) resolve(ctx context.Context, v any, path string, scope expr.Scope) (out any, err error) {
	switch v := v.(type) {
	case string:
		if t := s.templates[path]; t != nil {
			return t.Eval(ctx, scope)
		}
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			if list[i], err = s.resolve(ctx, e, diag.Index(path, i), scope); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(v))
		for k, e := range v {
			if object[k], err = s.resolve(ctx, e, diag.Key(path, k), scope); err != nil {
				return nil, err
			}
		}
		return object, nil
	}
	return v, nil
}

// secretScope is the scope of templates in settings.
type secretScope map[string]any

func (s secretScope) Lookup(name string) (any, bool) { return map[string]any(s), name == "secrets" }

// compileSettings compiles the templates in the settings. The value of an
// environment variable is not a template.
func (c *compiler) compileSettings() *Settings {
	s := &Settings{values: c.wf.Settings, templates: map[string]*expr.Template{}}
	if c.wf.SettingsText == nil {
		return s
	}
	for path, text := range c.wf.SettingsText.Places {
		if !expr.IsTemplate(text.Value) {
			continue
		}
		value, _ := at(c.wf.Settings, path).(string)
		t, err := expr.Compile(value)
		if err != nil {
			c.templateError(text, err)
			continue
		}
		for _, ref := range t.Roots() {
			if ref.Root != "secrets" {
				c.diags.Errorf(diagcode.UnknownRoot, text.At(ref.Line, ref.Column),
					"settings may use {{ secrets.NAME }} and ${VARIABLE}; write {% raw %}...{% endraw %} around braces that are not a template",
					"settings have no name %q", ref.Root)
				continue
			}
			c.readName(text.At(ref.Line, ref.Column), ref.Root, ref.Path)
		}
		s.templates[path] = t
	}
	return s
}

// at returns the value at a path of settings.
func at(v any, path string) any {
	var found any
	var find func(v any, here string)
	find = func(v any, here string) {
		switch v := v.(type) {
		case []any:
			for i, e := range v {
				find(e, diag.Index(here, i))
			}
		case map[string]any:
			for k, e := range v {
				find(e, diag.Key(here, k))
			}
		default:
			if here == path {
				found = v
			}
		}
	}
	find(v, "")
	return found
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
