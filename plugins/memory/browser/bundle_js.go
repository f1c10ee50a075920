package browser

import (
	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory"
)

// Bundle returns the memory's bundle with the engine wasm, to be linked into a host
// for js/wasm.
func Bundle() tea.Bundle {
	return memory.Bundle(memory.WithBackend(Backend()), memory.WithBackend(objectsBackend()), memory.WithOnline(online))
}
