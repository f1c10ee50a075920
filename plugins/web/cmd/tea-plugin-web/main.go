// Command tea-plugin-web serves the web actions to a tea host.
package main

import (
	"runtime/debug"

	"github.com/the-edge-agent/tea/plugins/web"
	"github.com/the-edge-agent/tea/sdk/serve"
)

func main() {
	debug.SetGCPercent(50) // a large page is garbage soon after it is read
	serve.Main(web.Bundle())
}
