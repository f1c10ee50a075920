// Command tea-temporal is tea with the engine temporal and the command worker: it
// runs workflows on a Temporal server. tea runs it for `tea worker` and for
// --engine temporal.
package main

import (
	"os"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/cmd/tea-temporal/internal/driver"
)

// release and commit are set by scripts/build.
var release, commit string

func main() {
	os.Exit(teacmd.Main(teacmd.Options{
		Release: release, Commit: commit, Engine: driver.Engine{}, EngineCommands: teacmd.EngineCommands(),
		Commands: []teacmd.Command{driver.Command()},
	}))
}
