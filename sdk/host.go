package tea

import (
	"context"
	"log/slog"
)

// Host is what an action can ask of its host while it runs. All methods are
// safe for concurrent use and return an error once the call is over.
type Host interface {
	// Invoke calls another action of the workflow, Lua actions and other
	// plugins included. It runs under the same node, with an idempotency key
	// derived from the caller's.
	Invoke(ctx context.Context, action string, params any) (*Response, error)
	// Describe gives an action's description; an [*Error] of type not_found
	// where there is none.
	Describe(ctx context.Context, action string) (*ActionInfo, error)
	// Log writes a record to the run's log.
	Log(ctx context.Context, level slog.Level, message string, fields map[string]any)
	// Token emits a piece of text as soon as it is there.
	Token(ctx context.Context, text string)
	// Progress reports how far the work is: a fraction from 0 to 1 (below 0
	// = unknown) and a few words.
	Progress(ctx context.Context, fraction float64, message string)
	// Note reads a durable note that this node wrote earlier under key, also
	// before a crash; found is false where there is none.
	Note(ctx context.Context, key string) (note Payload, found bool, err error)
	// SetNote stores a note in the run's checkpoint. When it returns, the
	// note is as durable as the run's other steps.
	SetNote(ctx context.Context, key string, note any) error
}

// Usage is what one request to a model has used.
type Usage struct {
	Tokens int64
	USD    float64
}

// UsageReporter is what a [Host] also implements where it keeps a budget.
// Actions call [Request.Usage], which works with every host.
type UsageReporter interface {
	// ReportUsage counts u against the run's budget. It returns an [*Error] of type budget_exceeded when the budget is
	// spent, u included.
	ReportUsage(ctx context.Context, u Usage) error
}
