package host

import (
	"cmp"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/host/internal/builtin/fileroot"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/script"
	"github.com/the-edge-agent/tea/host/internal/settings"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Settings returns the workflow's settings with ${VAR} and {{ secrets.NAME }}
// replaced. The value of a variable has the type that the reader of the key
// expects. The caller must not change them.
func (wf *Workflow) Settings(secrets map[string]any) (map[string]any, error) {
	r, err := wf.resolve(secrets)
	return r.settings, err
}

// manifests returns the manifests of the bundles and of the plugins whose manifests
// are known.
func (h *Host) manifests() []tea.Manifest {
	var manifests []tea.Manifest
	for _, b := range h.bundles {
		manifests = append(manifests, b.Manifest())
	}
	if h.o.Plugins != nil {
		manifests = append(manifests, h.o.Plugins.Manifests()...)
	}
	return manifests
}

// luaOptions reads settings.lua. A value of the wrong type, already reported, counts
// as absent.
func luaOptions(given map[string]any) script.Options {
	object, _ := given[settings.LuaKey].(map[string]any)
	return script.Options{
		Timeout:     time.Duration(number(object["timeout_seconds"]) * float64(time.Second)),
		MemoryBytes: int64(number(object["memory_mb"]) * (1 << 20)),
	}
}

// missingDir returns [fileroot.Lazy.MissingDir] for the settings of a workflow. It reads
// them on the first call, since few workflows write files.
func missingDir(given map[string]any) func(string) string {
	files := sync.OnceValue(func() *fileroot.Lazy {
		raw, err := tea.ValuePayload(given[fileroot.SettingsKey]).JSON()
		if err != nil || expr.IsTemplate(string(raw)) { // with secrets
			return nil
		}
		files, _ := fileroot.OpenLazily(tea.Settings{fileroot.SettingsKey: raw}, "")
		return files
	})
	return func(path string) string {
		if files() == nil {
			return ""
		}
		return files().MissingDir(path)
	}
}

// pluginsKey is the key of the settings with the limits of plugins.
const pluginsKey = settings.PluginsKey

// maxSilence reads settings.plugins for one plugin; 0 is the default.
func maxSilence(given map[string]any) func(plugin string) time.Duration {
	all, _ := given[pluginsKey].(map[string]any)
	return func(plugin string) time.Duration {
		own, _ := all[plugin].(map[string]any)
		return time.Duration(cmp.Or(number(own["call_timeout_seconds"]), number(all["call_timeout_seconds"])) * float64(time.Second))
	}
}

func number(v any) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}
