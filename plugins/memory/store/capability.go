package store

import (
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Capability is a feature that not every backend supports. The page of a backend
// and its conformance tests list missing capabilities, and calls that need them
// fail with the error of [Unsupported].
type Capability string

// The capabilities.
const (
	// FullText is Search of a LongTermMemory with a text.
	FullText Capability = "full-text search"
	// Records are archives and memory.sync, which need a [Replica].
	Records Capability = "access to its records"
	// Contents are the contents of files, without settings.memory.blobs.
	Contents Capability = "storage for the contents of files"
	// SQL is memory.sql_query, which needs a [Selector].
	SQL Capability = "SQL"
	// Tables are the actions data.*, which need a [TableStore].
	Tables Capability = "tables"
)

// Capabilities returns all capabilities.
func Capabilities() []Capability { return []Capability{FullText, Records, Contents, SQL, Tables} }

// Engine is an engine of tea, a value of settings.memory.engine.
type Engine struct {
	Name  string
	Lacks []Capability
}

// Engines returns the engines of tea with what each lacks. Messages, the table in
// docs/guide/memory-servers.md and tests are made from it. The embedded engines are first.
func Engines() []Engine {
	return []Engine{
		{Name: string(DuckDB)},
		{Name: string(SQLite)},
		{Name: "bucket"},
		{Name: "d1", Lacks: []Capability{SQL}},
		{Name: "firestore", Lacks: []Capability{FullText, Contents, SQL}},
		{Name: "libsql", Lacks: []Capability{SQL}},
		{Name: "objects", Lacks: []Capability{SQL, Tables}},
		{Name: "postgres"},
	}
}

// EnginesWith returns the names of the engines that have a capability: "a, b or c".
func EnginesWith(c Capability) string {
	var names []string
	for _, e := range Engines() {
		if !slices.Contains(e.Lacks, c) {
			names = append(names, e.Name)
		}
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Unsupported returns the error of a call that needs a missing capability: a
// dependency_missing that wraps [ErrUnsupported]. remedy says what to do instead; "" = use
// an engine that has it.
func Unsupported(backend string, lacks Capability, remedy string) error {
	if remedy == "" {
		remedy = "use another memory, with settings.memory.engine " + EnginesWith(lacks)
	}
	return tea.Errorf(tea.DependencyMissing, "the memory's engine %s %w: it has no %s; %s", backend, ErrUnsupported, lacks, remedy)
}
