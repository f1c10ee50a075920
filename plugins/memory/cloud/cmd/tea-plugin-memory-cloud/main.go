// Command tea-plugin-memory-cloud serves the memory actions to a tea host, with
// all databases and storage outside of the device. It takes the place of
// tea-plugin-memory and is installed under that name.
package main

import (
	"os"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/cloud"
	"github.com/the-edge-agent/tea/sdk/serve"
)

func main() {
	// When memory runs out, the kernel ends this process rather than the host,
	// which starts it again. Other systems have no such file.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
	serve.Main(memory.ProcessBundle(os.Exit, cloud.Options()...))
}
