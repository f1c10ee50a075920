package settings

import "github.com/the-edge-agent/tea/sdk/schema"

// The keys that the host reads itself. Those of its bundles stand with them.
const (
	EventsKey  = "events"
	LuaKey     = "lua"
	PluginsKey = "plugins"
	TraceKey   = "trace"
)

// Lua is settings.lua.
type Lua struct {
	TimeoutSeconds float64 `json:"timeout_seconds,omitempty" minimum:"0" doc:"time for one run, calls of actions included; default 30"`
	MemoryMB       float64 `json:"memory_mb,omitempty" minimum:"0" doc:"how far the heap may grow while a run lasts; default 256"`
}

// Plugins is settings.plugins.
type Plugins struct {
	CallTimeoutSeconds float64 `json:"call_timeout_seconds,omitempty" minimum:"0" doc:"how long a plugin may be silent during a call that has no timeout_seconds; default 300"`
}

// Trace is settings.trace.
type Trace struct {
	Exporter string            `json:"exporter,omitempty" enum:"console,file,otlp" doc:"where spans go; default file where a file is named, else nowhere"`
	Endpoint string            `json:"endpoint,omitempty" doc:"the collector's address; default http://localhost:4318"`
	File     string            `json:"file,omitempty" format:"path" doc:"the file that spans are appended to"`
	Headers  map[string]string `json:"headers,omitempty" secret:"true" doc:"sent with each request to the collector"`
	Contents bool              `json:"contents,omitempty" doc:"also record what is said to models and actions, and what they answer"`
}

// Events is settings.events.
type Events struct {
	MaxMB float64 `json:"max_mb,omitempty" minimum:"1" maximum:"4096" doc:"how large the log of a run's events may grow; default 16"`
}

// own are the schemas of the host's own keys.
func own() map[string]*schema.Schema {
	return map[string]*schema.Schema{
		EventsKey: schema.Of[Events](), LuaKey: schema.Of[Lua](), PluginsKey: schema.Of[Plugins](), TraceKey: schema.Of[Trace](),
	}
}
