package memory

import (
	"context"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"
)

// defaultEngine is the engine without settings.memory.engine: a browser has
// IndexedDB. See package browser.
const defaultEngine = "wasm"

// inPage: see platform.go.
const inPage = true

// dataFolder names the folder of the memory, in which the engine wasm stores
// nothing.
const dataFolder = "/"

// checkPlatform returns an error for settings that do not work on this platform.
func (s *settings) checkPlatform() error {
	if s.LTM.EnableSync || s.LTM.OfflineFallback || s.LTM.Storage.EnableSync || s.LTM.Storage.OfflineFallback || s.Sync.URL != "" || s.Sync.Path != "" || s.Blobs != "" {
		return tea.Errorf(tea.DependencyMissing, "this build of the memory does not synchronise in a browser; remove settings.memory.sync and blobs, and settings.ltm.storage, enable_sync and offline_fallback")
	}
	return nil
}

// scratchFolder names a folder, which only actions use that a page does not have.
func scratchFolder() (string, error) { return "/tea-memory", nil }

func (f *folder) openEmbedded(context.Context, func()) error {
	return tea.Errorf(tea.DependencyMissing, "the memory's engine %s does not run in a browser; set settings.memory.engine: wasm", f.settings.Engine)
}

// actions are those that a page has: the others need an embedded database, or more
// code than a page should load.
func actions() []tea.Action {
	return slices.Concat(shortTermActions(), ltmActions(), vectorActions())
}
