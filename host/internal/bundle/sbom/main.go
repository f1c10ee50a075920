// Command sbom prints the bill of materials of a Go binary in the format
// CycloneDX, for scripts/release.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/the-edge-agent/tea/host/internal/bundle"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY VERSION")
		os.Exit(2)
	}
	bom, err := bundle.Materials(os.Args[1], filepath.Base(os.Args[1]), os.Args[2])
	if err == nil {
		_, err = os.Stdout.Write(append(bom, '\n'))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}
