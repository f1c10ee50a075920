// Command tea-plugin-plan serves the planning actions to a tea host.
package main

import (
	"github.com/the-edge-agent/tea/plugins/plan"
	"github.com/the-edge-agent/tea/sdk/serve"
)

func main() { serve.Main(plan.Bundle()) }
