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
// data.query continues in the background, further ones are refused. Programs that
// run untrusted SQL should use SQLite or the plugin.
//
// Options add remote databases and storage.
func Bundle(options ...Option) tea.Bundle { return bundle(nil, options) }

// Exit codes and times of ProcessBundle.
const (
	overrunCode = 3
	// answerTime is how long the process keeps running to send pending answers;
	// growingAnswerTime replaces it while the query takes more and more memory.
	answerTime        = 2 * time.Second
	growingAnswerTime = 200 * time.Millisecond
)

// ProcessBundle is Bundle for a separate process that a host restarts when it
// ends. It calls exit, usually os.Exit, after an SQL query that the database
// could not stop. Acknowledged writes are kept.
func ProcessBundle(exit func(code int), options ...Option) tea.Bundle {
	end := sync.OnceFunc(func() { exit(overrunCode) })
	return bundle(func(growing bool) {
		slog.Error("the memory's process exits because an SQL query cannot be stopped; the next call starts it again")
		after := answerTime
		if growing {
			after = growingAnswerTime
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
