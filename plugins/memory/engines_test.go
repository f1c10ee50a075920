package memory_test

import "github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"

// engines are the databases of this build.
func engines() []string {
	if duckdb.Available {
		return []string{"sqlite", "duckdb"}
	}
	return []string{"sqlite"}
}
