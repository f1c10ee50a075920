//go:build lite || !cgo || !((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"context"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
)

// Available reports whether this build has DuckDB.
const Available = false

// New returns a dependency_missing error with the way to get DuckDB.
func New() (engine.Driver, error) {
	return nil, tea.Errorf(tea.DependencyMissing, "this build of the memory plugin does not include DuckDB: build it with CGO_ENABLED=1 and without the tag lite (linux and darwin on amd64 and arm64, windows on amd64), or set settings.memory.engine: sqlite")
}

// Copy returns the error of New.
func Copy(context.Context, string, string, string, int64) (int64, error) {
	_, err := New()
	return 0, err
}

// Texts returns the error of New.
func Texts(context.Context, string, string, func(string)) error {
	_, err := New()
	return err
}
