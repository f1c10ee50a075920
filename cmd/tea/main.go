// Command tea runs agent workflows. Package teacmd is its command line.
package main

import (
	"os"

	teacmd "github.com/the-edge-agent/tea/cmd"
)

// release and commit are set by scripts/build.
var release, commit string

func main() { os.Exit(teacmd.Main(teacmd.Options{Release: release, Commit: commit})) }
