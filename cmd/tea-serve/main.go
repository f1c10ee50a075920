// Command tea-serve is tea with the command serve, which runs the workflows of a
// directory by schedule, webhook, file or request. tea runs it for `tea serve`.
package main

import (
	"os"
	_ "time/tzdata" // a device may lack the time zone database

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/cmd/tea-serve/internal/server"
)

// release and commit are set by scripts/build.
var release, commit string

func main() {
	os.Exit(teacmd.Main(teacmd.Options{Release: release, Commit: commit, Commands: []teacmd.Command{server.Command()}, Remote: teacmd.RemoteCommands(), Journal: server.Journal()}))
}
