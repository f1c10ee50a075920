// Command tea-plugin-llm serves the LLM actions to a tea host.
package main

import (
	"github.com/the-edge-agent/tea/plugins/llm"
	"github.com/the-edge-agent/tea/sdk/serve"
)

func main() { serve.Main(llm.Bundle()) }
