package memory

import (
	"context"
	"log/slog"
	"sync"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Bundle is the set of actions, to be linked into a host. Instances of one bundle
// that have the same folder share its database.
//
// DuckDB cannot stop every SQL query. While such a query of memory.sql_query or
// data.query continues in the background, further ones are refused. A program that
// runs SQL that it does not trust uses SQLite or the plugin.
//
// Options add databases and storage outside of the device.
func Bundle(options ...Option) tea.Bundle { return bundle(nil, options) }

// Exit codes and times of ProcessBundle.
const (
	overrunCode = 3
	// answerTime is how long the process lives on, for the answers under way, which a
	// busy machine delays; growingTime is that while the query takes more and more memory.
	answerTime  = 2 * time.Second
	growingTime = 200 * time.Millisecond
)

// ProcessBundle is Bundle for a separate process, which a host starts again
// when it has ended. The process ends by exit, usually os.Exit, after an SQL
// query that the database could not stop. What was acknowledged is kept.
func ProcessBundle(exit func(code int), options ...Option) tea.Bundle {
	end := sync.OnceFunc(func() { exit(overrunCode) })
	return bundle(func(growing bool) {
		slog.Error("the memory's process ends since an SQL query cannot be stopped; the next call starts it again")
		after := answerTime
		if growing {
			after = growingTime
		}
		time.AfterFunc(after, end)
	}, options)
}

func bundle(overrun func(growing bool), options []Option) tea.Bundle {
	shared := newFolders(overrun, options)
	return tea.Bundle{
		Name:        "memory",
		Version:     "0.1.0",
		Description: "What an agent remembers: short-term and long-term memory, vectors, sessions, files, tables, context; in one embedded database or in one that devices share.",
		Settings:    shared.backends.settings(),
		Env:         append(shared.backends.env(), warmupVariable),
		Exclusive:   []string{memoryKey + ".path"},
		Open:        func(ctx context.Context, settings tea.Settings) (any, error) { return shared.open(ctx, settings) },
		Actions:     actions(),
	}
}
