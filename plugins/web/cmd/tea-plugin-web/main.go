// Command tea-plugin-web serves the web actions to a tea host.
package main

import (
	"github.com/the-edge-agent/tea/plugins/web"
	"github.com/the-edge-agent/tea/sdk/serve"
)

func main() { serve.Main(web.Bundle()) }
