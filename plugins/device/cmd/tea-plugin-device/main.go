// Command tea-plugin-device serves the actions for machines and devices to a tea host.
package main

import (
	"github.com/the-edge-agent/tea/plugins/device"
	"github.com/the-edge-agent/tea/sdk/serve"
)

func main() { serve.Main(device.Bundle()) }
