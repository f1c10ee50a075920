// Command tea-plugin-memory-cloud serves the memory actions to a tea host, with all databases and storage outside of
// the device. It replaces tea-plugin-memory and is installed under that name.
package main

import (
	"os"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/cloud"
	"github.com/the-edge-agent/tea/sdk/serve"
)

func main() {
	// When memory runs out, the kernel should end this process rather than the host, which restarts it. The file exists
	// on Linux only.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
	serve.Main(memory.ProcessBundle(os.Exit, cloud.Options()...))
}
