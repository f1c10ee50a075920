package memory

import (
	"cmp"
	"context"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
)

// defaultEngine is the engine without settings.memory.engine: a browser has
// IndexedDB. See package browser.
const defaultEngine = "wasm"

// inPage: see platform.go.
const inPage = true

// dataFolder names the folder of the memory, in which the engine wasm stores
// nothing.
const dataFolder = "/"

// resolvePlatform replaces settings that have a special meaning on this platform:
// the memory is always on the device, and it synchronises with the storage.
func (s *settings) resolvePlatform() error {
	if s.Sync.Path != "" {
		return tea.Errorf(tea.DependencyMissing, "a browser has no folders to synchronise with; set settings.memory.sync.url in place of path")
	}
	if s.Blobs != "" && s.Sync.URL != "" && s.Blobs != s.Sync.URL {
		return tea.Errorf(tea.ValidationError, "settings.memory.sync.url and settings.ltm.storage.uri differ; in a browser both are the storage to synchronise with, so set one of them")
	}
	s.Path = "" // a page has no folders, and one memory must not be open under two names
	s.Sync.URL = cmp.Or(s.Sync.URL, s.Blobs)
	s.Sync.Engine = cmp.Or(s.Sync.Engine, "objects")
	s.Sync.Background = s.Sync.Background || s.LTM.EnableSync || s.LTM.OfflineFallback || s.LTM.Storage.EnableSync || s.LTM.Storage.OfflineFallback
	s.Blobs, s.LTM.EnableSync, s.LTM.OfflineFallback, s.LTM.Storage = "", false, false, LTMStorage{}
	return nil
}

// embedded is never created. The types of the other platforms would link their
// methods into the program.
type embedded struct{ engine database }

func (*embedded) sweep(context.Context) error             { return nil }
func (*embedded) sweepContents(context.Context) error     { return nil }
func (*folder) sharedFiles() (none file.Shared)           { return nil }
func (*folder) deviceTables() (none syncing.DeviceTables) { return nil }

func (f *folder) openEmbedded(context.Context, func(bool)) error {
	return tea.Errorf(tea.DependencyMissing, "the memory's engine %s does not run in a browser; set settings.memory.engine: wasm", f.settings.Engine)
}

// actions returns the actions of a page: the others need an embedded database, or
// more code than a page should load.
func actions() []tea.Action {
	return slices.Concat(shortTermActions(), ltmActions(), vectorActions(), syncActions(), inspectActions())
}
