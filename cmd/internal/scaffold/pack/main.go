// Command pack writes the archive of files for new projects for scripts/build.
//
//	go run ./cmd/internal/scaffold/pack FILE
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/the-edge-agent/tea/cmd/internal/scaffold"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pack FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func write(name string) error {
	files, err := scaffold.Read(".", "sdk")
	if err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(files.Pack(f), f.Close())
}
