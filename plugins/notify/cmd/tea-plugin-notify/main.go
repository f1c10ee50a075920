// Command tea-plugin-notify serves notify.send to a tea host.
package main

import (
	"github.com/the-edge-agent/tea/plugins/notify"
	"github.com/the-edge-agent/tea/sdk/serve"
)

func main() { serve.Main(notify.Bundle()) }
