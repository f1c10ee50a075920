package store

import (
	"fmt"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Reason is why a database cannot be opened, without a remedy: it differs between
// a graph and a backup.
type Reason struct{ error }

// Unwrap returns the cause.
func (r *Reason) Unwrap() error { return r.error }

// Damaged returns the error of a call that finds invalid data in the database.
func Damaged(format string, args ...any) error {
	return Unusable(tea.InternalError, "restore a backup with graph.restore", "the graph's database is damaged: "+format, args...)
}

// Unusable returns the error of Open for a database that cannot be used. It wraps
// a [Reason].
func Unusable(kind tea.ErrorType, remedy, format string, args ...any) error {
	return tea.Errorf(kind, "%w; %s", &Reason{fmt.Errorf(format, args...)}, remedy)
}
