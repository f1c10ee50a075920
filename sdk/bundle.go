package tea

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/sdk/schema"
)

// Bundle is a set of actions that is built, shipped and configured together.
// Its fields must not change after the first call of a method; then it is safe
// for concurrent use. Its actions are called concurrently, also on one instance.
type Bundle struct {
	// Name is short and lower case; the binary is called tea-plugin-NAME.
	Name string
	// Version is a semantic version without a leading v.
	Version string
	// Description is a sentence or two.
	Description string
	// Actions are the bundle's actions.
	Actions []Action
	// Settings are the top-level keys of a workflow's settings that the bundle
	// reads, each with its schema (nil allows anything). The bundle gets no
	// other settings.
	Settings map[string]*schema.Schema
	// Open opens an instance for one set of settings; requests carry it. It is
	// called before the first request, once for each workflow with different
	// settings, and can be nil. An instance that is an io.Closer is closed at the
	// end.
	Open func(ctx context.Context, settings Settings) (instance any, err error)
	// Files are additional files that the plugin consists of, see
	// [Manifest.Files].
	Files []string
	// Env are the names of the environment variables that the bundle reads. A
	// plugin gets these and a few that every plugin gets, such as PATH and HOME,
	// and no others.
	Env []string
	// StartTimeout is the time that the plugin may need from the start of the
	// process to its first answer; 0 means the host's default, 30 s.
	StartTimeout time.Duration
	// Memory is the number of bytes that the plugin needs. It raises a lower
	// default limit of the host, not a limit from the settings.
	Memory int64
	// Exclusive are paths in the settings, such as "memory.path", whose values
	// name a resource that only one process can use at a time.
	Exclusive []string
	// Dynamic are actions that depend on the settings; nil if there are none.
	Dynamic *Dynamic
}

// Dynamic are the actions of a bundle that are determined by its settings, such
// as the tools of the servers named there. Their names begin with the name of the
// bundle and a dot.
type Dynamic struct {
	DynamicActions
	// Handle calls one of them. The parameters are an object, which Handle must
	// check. An action that does not exist is a not_found error.
	Handle Handler
}

// DynamicActions describes where a host finds the descriptions of the actions
// that depend on the settings of a bundle.
type DynamicActions struct {
	// File is the path in the settings, such as "mcp.tools_file", of the name of
	// a JSON file: an object whose member "actions" is a list of [ActionInfo].
	// The host checks workflows and calls against them. Without the file, calls
	// are not checked.
	File string `json:"file"`
	// List is the name of the action, without required parameters, that returns
	// the content of the file. `tea plugin refresh` calls it and writes the file.
	List string `json:"list"`
}

// Manifest describes a bundle. It is the answer to `describe`, and is stored next
// to a packaged plugin. It is shared and must not be changed.
type Manifest struct {
	Name        string                    `json:"name"`
	Version     string                    `json:"version"`
	Description string                    `json:"description,omitempty"`
	Protocol    int                       `json:"protocol"`
	Actions     []ActionInfo              `json:"actions"`
	Settings    map[string]*schema.Schema `json:"settings,omitempty"`
	// Files are additional files that the plugin consists of, such as the script
	// behind a wrapper, relative to the directory of the binary. A stored
	// manifest is stale once one of them has changed.
	Files []string `json:"files,omitempty"`
	// Env, StartTimeoutMS, MemoryBytes and Exclusive are declared by the bundle,
	// see [Bundle].
	Env            []string `json:"env,omitempty"`
	StartTimeoutMS int64    `json:"start_timeout_ms,omitempty"`
	MemoryBytes    int64    `json:"memory_bytes,omitempty"`
	Exclusive      []string `json:"exclusive,omitempty"`
	// Dynamic is set if the bundle has actions that depend on its settings.
	Dynamic *DynamicActions `json:"dynamic,omitempty"`
}

// ProtocolVersion is the major version of the plugin protocol of this SDK.
const ProtocolVersion = 1

// Manifest returns the description of the bundle.
func (b *Bundle) Manifest() Manifest {
	m := Manifest{
		Name: b.Name, Version: b.Version, Description: b.Description, Protocol: ProtocolVersion,
		Actions: make([]ActionInfo, len(b.Actions)), Settings: b.Settings, Files: b.Files,
		Env: b.Env, StartTimeoutMS: b.StartTimeout.Milliseconds(), MemoryBytes: b.Memory, Exclusive: b.Exclusive,
	}
	for i, a := range b.Actions {
		m.Actions[i] = a.Info()
	}
	if b.Dynamic != nil {
		m.Dynamic = &b.Dynamic.DynamicActions
	}
	return m
}

var (
	bundleName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`) })
	version    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]+(\.[0-9]+){0,2}([-+][0-9A-Za-z.+-]+)?$`) })
	variable   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`) })
	actionName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$`) })
)

// Check reports mistakes in the bundle: invalid names, duplicates, actions
// without a handler. serve.Main and the host call it.
func (b *Bundle) Check() error {
	if err := b.Manifest().Check(); err != nil {
		return err
	}
	for _, a := range b.Actions {
		if a.Handle == nil {
			return fmt.Errorf("bundle %s: action %s has no handler", b.Name, a.Name)
		}
	}
	if b.Dynamic != nil && b.Dynamic.Handle == nil {
		return fmt.Errorf("bundle %s: its dynamic actions have no handler", b.Name)
	}
	return nil
}

// Find returns the action with a name, or nil.
func (b *Bundle) Find(name string) *Action {
	for i := range b.Actions {
		if b.Actions[i].Name == name {
			return &b.Actions[i]
		}
	}
	return nil
}
