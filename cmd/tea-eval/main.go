// Command tea-eval is tea with the command eval, which runs workflows on cases and grades
// the results. tea runs it for `tea eval`.
package main

import (
	"os"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/cmd/tea-eval/internal/evaluate"
)

// release and commit are set by scripts/build.
var release, commit string

func main() {
	os.Exit(teacmd.Main(teacmd.Options{Release: release, Commit: commit, Commands: []teacmd.Command{evaluate.Command()}}))
}
