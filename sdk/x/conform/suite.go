package conform

import (
	"context"
	"fmt"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Status is the outcome of a check.
type Status string

// The outcomes of a check.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Result is the outcome of one check, with the remedy for the author.
type Result struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	// Detail describes what the plugin did wrong, or why the check was skipped.
	Detail string `json:"detail,omitempty"`
	// Remedy is the advice to the author of the plugin after a failure.
	Remedy string `json:"remedy,omitempty"`
	// Millis is the duration in milliseconds.
	Millis int64 `json:"ms"`
}

// Suite configures a run of the checks.
type Suite struct {
	// Settings are the settings of the instance that most checks use.
	Settings tea.Settings
	// Match selects checks by name; nil selects all.
	Match func(check string) bool
}

// checkTimeout bounds a check. Encoding 64 MiB can take a scripting language
// seconds.
const checkTimeout = time.Minute

// Run makes the checks on a plugin and reports each result as soon as it is known. The
// error reports that no instance could be opened and nothing was checked.
func (s Suite) Run(ctx context.Context, target Target, report func(Result)) error {
	subject, err := newSubject(ctx, target, s.Settings)
	if err != nil {
		return err
	}
	for _, check := range Checks() {
		if s.Match != nil && !s.Match(check.Name) {
			continue
		}
		if err := subject.restart(ctx); err != nil {
			report(Result{Check: check.Name, Status: Failed, Detail: err.Error(), Remedy: "the plugin ended during an earlier check and does not start again"})
			continue
		}
		report(check.result(ctx, subject))
		if ctx.Err() != nil {
			break
		}
	}
	if subject.Instance == nil { // lost by a check that has failed
		return ctx.Err()
	}
	if err := subject.Instance.Close(); err != nil && ctx.Err() == nil {
		report(Result{Check: "close", Status: Failed, Detail: err.Error(), Remedy: "answer release without an error"})
	}
	return ctx.Err()
}

// result makes the check.
func (c Check) result(ctx context.Context, s *Subject) Result {
	if why := c.skipped(s); why != "" {
		return Result{Check: c.Name, Status: Skipped, Detail: why}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	begun := time.Now()
	err := c.Run(ctx, s)
	r := Result{Check: c.Name, Status: Passed, Millis: time.Since(begun).Milliseconds()}
	if err != nil {
		r.Status, r.Detail, r.Remedy = Failed, err.Error(), c.Remedy
		if p, ok := s.Target.(*Process); ok && p.endedBy(err) {
			r.Detail, r.Remedy = fmt.Sprintf("the plugin's process ended: %s", r.Detail), "find the reason in the output of the plugin"
		}
	}
	return r
}

// restart restarts a process that has ended or has no instance, with a new instance.
func (s *Subject) restart(ctx context.Context) error {
	p, ok := s.Target.(*Process)
	if !ok || !p.ended() && s.Instance != nil {
		return nil
	}
	if err := p.restart(ctx); err != nil {
		return err
	}
	inst, err := p.Open(ctx, s.Settings)
	if err != nil {
		return err
	}
	s.Instance = inst
	return nil
}
