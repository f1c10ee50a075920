package settings

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// formatPath marks settings that name a file or directory.
const formatPath = "path"

// minSecret is the minimum length at which the value of a secret setting is
// masked: a value such as "none" must not mask that word everywhere.
const minSecret = 8

// ShortSecrets returns the paths of settings that are declared secret but are too short
// to be masked.
func (d Declared) ShortSecrets(values map[string]any) []string {
	var short []string
	for key, given := range values {
		for _, s := range d.schemas[key] {
			visit(given, s, diag.Key("settings", key), nil, func(v any, s *schema.Schema, path string, _ func(any)) {
				if text, ok := v.(string); ok && s.WriteOnly && text != "" && len(text) < minSecret {
					short = append(short, path)
				}
			})
		}
	}
	slices.Sort(short)
	return slices.Compact(short)
}

// Secrets returns the strings in the settings that readers declare as secret, by
// path. A setting that is an object, such as HTTP headers, is secret as a whole.
// For a value such as "Bearer KEY", the credential alone is a secret too.
func (d Declared) Secrets(values map[string]any) map[string]any {
	secrets := map[string]any{}
	for key, given := range values {
		for _, s := range d.schemas[key] {
			visit(given, s, diag.Key("settings", key), nil, func(v any, s *schema.Schema, path string, _ func(any)) {
				if s.WriteOnly {
					addSecrets(secrets, v, path)
				}
			})
		}
	}
	return secrets
}

// scheme is the authentication scheme before a credential in an HTTP header.
var scheme = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z]+ +([^ ]+)$`) })

func addSecrets(secrets map[string]any, v any, path string) {
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			addSecrets(secrets, e, diag.Key(path, name))
		}
	case []any:
		for i, e := range v {
			addSecrets(secrets, e, diag.Index(path, i))
		}
	case string:
		if len(v) >= minSecret {
			secrets[path] = v
		}
		if m := scheme().FindStringSubmatch(v); m != nil && len(m[1]) >= minSecret {
			secrets[path+" (credential)"] = m[1]
		}
	case nil:
	default:
		secrets[path] = v
	}
}

// AbsolutePaths makes the paths in a workflow's settings absolute, in place, and
// adds default paths. Paths are relative to the directory of the file that contains
// them, a workflow or an overlay, or to the working directory for the command line.
func (d Declared) AbsolutePaths(w *spec.Workflow, settings map[string]any) map[string]any {
	if w.DataDir != "" {
		settings = withDataDir(settings, w.DataDir, absolute(w.Dir, "."))
	}
	for key, readers := range d.schemas {
		for _, s := range readers {
			settings = withDefaultPaths(settings, key, s)
			visit(settings[key], s, diag.Key("", key), func(v any) { settings[key] = v }, func(v any, s *schema.Schema, path string, set func(any)) {
				if text, ok := v.(string); ok && text != "" && s.Format == formatPath && !expr.IsTemplate(text) && !isURL(text) {
					set(absolute(dirOf(w, path), text))
				}
			})
		}
	}
	return settings
}

// withDataDir sets the default root of file actions.
func withDataDir(settings map[string]any, root, fallback string) map[string]any {
	const key = "file" // as in package fileroot
	file, ok := settings[key].(map[string]any)
	if settings[key] != nil && !ok || file["root"] != nil {
		return settings
	}
	if settings == nil {
		settings = map[string]any{}
	}
	if file == nil {
		file = map[string]any{}
		settings[key] = file
	}
	if file["root"] = root; file["fallback"] == nil {
		file["fallback"] = fallback
	}
	return settings
}

// withDefaultPaths sets the members of a setting that have a default path.
func withDefaultPaths(settings map[string]any, key string, s *schema.Schema) map[string]any {
	if s == nil || s.Properties == nil {
		return settings
	}
	for _, p := range *s.Properties {
		preset, ok := p.Schema.Default.(string)
		if !ok || p.Schema.Format != formatPath {
			continue
		}
		object, isObject := settings[key].(map[string]any)
		if settings[key] != nil && !isObject || object[p.Name] != nil {
			continue
		}
		if settings == nil {
			settings = map[string]any{}
		}
		if object == nil {
			object = map[string]any{}
			settings[key] = object
		}
		object[p.Name] = preset
	}
	return settings
}

// dirOf returns the directory of the file that contains a setting.
func dirOf(w *spec.Workflow, path string) string {
	if w.SettingsText == nil {
		return w.Dir
	}
	if text, written := w.SettingsText.Places[path]; written {
		return w.DirOf(text.Pos.File)
	}
	return w.Dir
}

// isURL reports whether a setting that can be a path is a URL, which is left
// unchanged.
func isURL(text string) bool { return strings.Contains(text, "://") }

func absolute(dir, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	abs, err := filepath.Abs(path)
	return cmp.Or(abs, fmt.Sprintf("%s (%v)", path, err))
}

// visit calls f with every value that a schema describes. set changes the value in
// place and must not be called for a shared value.
func visit(v any, s *schema.Schema, path string, set func(any), f func(v any, s *schema.Schema, path string, set func(any))) {
	if s == nil || v == nil {
		return
	}
	switch given := v.(type) {
	case map[string]any:
		for name, e := range given {
			visit(e, s.Member(name), diag.Key(path, name), func(v any) { given[name] = v }, f)
		}
	case []any:
		for i, e := range given {
			visit(e, s.Items, diag.Index(path, i), func(v any) { given[i] = v }, f)
		}
	}
	for _, form := range s.AnyOf {
		visit(v, form, path, set, f)
	}
	f(v, s, path, set)
}
