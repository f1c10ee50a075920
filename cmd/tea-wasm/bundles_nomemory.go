//go:build js && nomemory

package main

import tea "github.com/the-edge-agent/tea/sdk"

// bundles returns none: the tag nomemory leaves the memory out.
func bundles() []*tea.Bundle { return nil }
