// Command tea-plugin-python serves the actions python.* to a tea host.
package main

import (
	"github.com/the-edge-agent/tea/plugins/python"
	"github.com/the-edge-agent/tea/sdk/serve"
)

func main() { serve.Main(python.Bundle()) }
