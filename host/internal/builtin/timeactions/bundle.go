// Package timeactions is the host's bundle time: time.sleep. Start with [Bundle].
package timeactions

import (
	"context"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Bundle returns the bundle time.
func Bundle(version string) *tea.Bundle {
	return &tea.Bundle{
		Name: "time", Version: version, Description: "Waits.",
		Actions: []tea.Action{
			tea.NewAction("time.sleep", "Waits for some time.", sleep, tea.Idempotent(), tea.Reads()),
		},
	}
}

// The maximum is a year: longer waits are mistakes and overflow.
type sleepParams struct {
	Seconds float64 `json:"seconds" minimum:"0" maximum:"31622400" doc:"time to wait; can have a fraction"`
}

type sleepResult struct {
	Success bool    `json:"success" doc:"always true"`
	Seconds float64 `json:"seconds" doc:"the requested time"`
}

// sleep ends early with an error if the call is canceled or times out.
func sleep(ctx context.Context, _ *tea.Request, p sleepParams) (sleepResult, error) {
	select {
	case <-time.After(time.Duration(p.Seconds * float64(time.Second))):
		return sleepResult{Success: true, Seconds: p.Seconds}, nil
	case <-ctx.Done():
		return sleepResult{}, tea.AsError(ctx.Err())
	}
}
