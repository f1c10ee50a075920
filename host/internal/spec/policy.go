package spec

import (
	"time"

	"github.com/the-edge-agent/tea/sdk/diag"
)

// OnError says what a failure does after the retries.
type OnError string

// What a failure can do. OnErrorCheckpoint is OnErrorStop with the
// checkpoint promised.
const (
	OnErrorDefault    OnError = ""
	OnErrorStop       OnError = "stop"
	OnErrorCheckpoint OnError = "checkpoint_and_exit"
	OnErrorContinue   OnError = "continue"
	OnErrorFallback   OnError = "fallback"
)

// Retry says how often and how soon a failed call is tried again. Pointers
// are nil where the file says nothing, so that a node inherits per field.
type Retry struct {
	diag.Pos
	MaxRetries *int
	Base, Max  *time.Duration
	Multiplier *float64
	// Jitter is the share of the wait that is drawn at random, 0 to 1; true
	// in a file is 0.5.
	Jitter *float64
	// RetryOn are the error types to retry; empty = those marked retryable.
	RetryOn []string
}

// ErrorPolicy is the error_policy section.
type ErrorPolicy struct {
	Retry
	OnFailure OnError
}

// Parallel is config.parallel or a node's parallel: how branches run.
type Parallel struct {
	diag.Pos
	Timeout        time.Duration
	FailFast       *bool
	MaxConcurrency int
	// Retry repeats a whole branch.
	Retry   *Retry
	Breaker *Breaker
}

// Breaker is a circuit breaker for the branches of one fan-out, kept per
// branch entry over the whole run.
type Breaker struct {
	FailureThreshold int
	ResetTimeout     time.Duration
	HalfOpenMaxCalls int
}
