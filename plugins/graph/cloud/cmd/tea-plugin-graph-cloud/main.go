// Command tea-plugin-graph-cloud serves the graph actions to a tea host, with
// exports and imports in object storage. It replaces tea-plugin-graph and is
// installed under that name.
package main

import (
	"github.com/the-edge-agent/tea/plugins/graph"
	"github.com/the-edge-agent/tea/plugins/graph/cloud"
	"github.com/the-edge-agent/tea/sdk/serve"
)

func main() { serve.Main(graph.Bundle(cloud.Options()...)) }
