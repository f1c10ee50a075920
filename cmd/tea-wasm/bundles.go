//go:build js && !nomemory

package main

import (
	tea "github.com/the-edge-agent/tea/sdk"

	memory "github.com/the-edge-agent/tea/plugins/memory/browser"
)

// bundles returns the bundles that are linked in besides the host's.
func bundles() []*tea.Bundle {
	m := memory.Bundle()
	return []*tea.Bundle{&m}
}
