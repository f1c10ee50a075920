// Command tea runs agent workflows. Package teacmd is its command line.
package main

import (
	"os"

	teacmd "github.com/the-edge-agent/tea/cmd"
)

// release is set by the build of a release.
var release string

func main() { os.Exit(teacmd.Main(teacmd.Options{Release: release})) }
