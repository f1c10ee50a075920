// Command tea-plugin-greeter serves the actions of greeter to a tea host.
package main

import (
	"github.com/the-edge-agent/tea/sdk/serve"

	greeter "example.com/tea-plugin-greeter"
)

func main() { serve.Main(greeter.Bundle()) }
