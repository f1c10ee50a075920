// Command tea-plugin-memory serves the memory actions to a tea host.
package main

import (
	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/sdk/serve"
)

func main() { serve.Main(memory.Bundle()) }
