// Command tea-plugin-memory serves the memory actions to a tea host.
package main

import (
	"os"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/sdk/serve"
)

func main() {
	// When memory runs out, the kernel ends this process rather than the host,
	// which starts it again. Other systems have no such file.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
	serve.Main(memory.ProcessBundle(os.Exit))
}
