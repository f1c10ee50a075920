// Command tea-plugin-memory serves the memory actions with the engine bbolt.
package main

import (
	"os"

	bbolt "example.com/tea-memory-bbolt"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/sdk/serve"
)

func main() { serve.Main(memory.ProcessBundle(os.Exit, bbolt.Option())) }
