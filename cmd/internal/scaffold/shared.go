package scaffold

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the archive
	"fmt"
	"io"

	"golang.org/x/tools/txtar"
)

// shared is a compressed text archive of files of the repository.
//
//go:embed shared.txtar.gz
var shared []byte

// readShared returns the files of the archive.
func readShared() ([]txtar.File, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(shared))
	if err != nil {
		return nil, fmt.Errorf("read the embedded files: %w", err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		return nil, fmt.Errorf("read the embedded files: %w", err)
	}
	return txtar.Parse(text).Files, nil
}
