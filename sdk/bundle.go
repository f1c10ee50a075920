package tea

import (
	"context"
	"fmt"
	"regexp"
	"sync"

	"github.com/the-edge-agent/tea/sdk/schema"
)

// Bundle is a set of actions that is built, shipped and configured together.
// Its fields must not change after the first call of a method.
type Bundle struct {
	// Name is short and lower case; the binary is called tea-plugin-NAME.
	Name string
	// Version is a semantic version without a leading v.
	Version string
	// Description is a sentence or two.
	Description string
	// Actions are the actions of the bundle.
	Actions []Action
	// Settings are the top-level keys of a workflow's settings that the bundle
	// reads, each with its schema (nil allows anything). The bundle gets no
	// other settings.
	Settings map[string]*schema.Schema
	// Open opens an instance for one set of settings; requests carry it. It is
	// called before the first request, once for each workflow with other
	// settings, and can be nil. An instance that is an io.Closer is closed at
	// the end.
	Open func(ctx context.Context, settings Settings) (instance any, err error)
}

// Manifest describes a bundle. It is the answer of `describe`, and is stored
// next to a packed plugin.
type Manifest struct {
	Name        string                    `json:"name"`
	Version     string                    `json:"version"`
	Description string                    `json:"description,omitempty"`
	Protocol    int                       `json:"protocol"`
	Actions     []ActionInfo              `json:"actions"`
	Settings    map[string]*schema.Schema `json:"settings,omitempty"`
	// Files are further files that the plugin consists of, such as the script
	// behind a wrapper, relative to the directory of the binary. A stored
	// manifest is stale when one of them has changed.
	Files []string `json:"files,omitempty"`
}

// ProtocolVersion is the major version of the plugin protocol of this SDK.
const ProtocolVersion = 1

// Manifest returns the description of the bundle.
func (b *Bundle) Manifest() Manifest {
	m := Manifest{Name: b.Name, Version: b.Version, Description: b.Description, Protocol: ProtocolVersion, Settings: b.Settings, Actions: make([]ActionInfo, len(b.Actions))}
	for i, a := range b.Actions {
		m.Actions[i] = a.Info()
	}
	return m
}

var (
	bundleName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`) })
	version    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]+(\.[0-9]+){0,2}([-+][0-9A-Za-z.+-]+)?$`) })
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
	return nil
}

// Find returns the action with that name, or nil.
func (b *Bundle) Find(name string) *Action {
	for i := range b.Actions {
		if b.Actions[i].Name == name {
			return &b.Actions[i]
		}
	}
	return nil
}
