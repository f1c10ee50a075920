// Command tea-plugin-graph serves the graph actions to a tea host.
package main

import (
	"github.com/the-edge-agent/tea/plugins/graph"
	"github.com/the-edge-agent/tea/sdk/serve"
)

func main() { serve.Main(graph.Bundle()) }
