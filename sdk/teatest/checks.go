package teatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Check is one requirement of the protocol.
type Check struct {
	// Name is short, such as "cancellation".
	Name string
	// Needs are the probe actions that the check requires.
	Needs []string
	// Remote means that the check is about the wire and does not apply to a
	// bundle that is linked in.
	Remote bool
	// Run makes the check. The error is what the plugin did wrong.
	Run func(ctx context.Context, s *Subject) error
}

// Applies reports whether the check can be made on the subject.
func (c Check) Applies(s *Subject) bool {
	if _, remote := s.Target.(*Process); c.Remote && !remote {
		return false
	}
	return !slices.ContainsFunc(c.Needs, func(action string) bool { return s.Manifest.Find(action) == nil })
}

// Checks returns the requirements of the protocol, in a sensible order.
func Checks() []Check {
	return slices.Concat(basicChecks(), callChecks(), sizeChecks(), callbackChecks(), wireChecks())
}

// Subject is an opened plugin to check. It is safe for concurrent use.
type Subject struct {
	Target   Target
	Manifest tea.Manifest
	// Settings are those of Instance.
	Settings tea.Settings
	Instance Instance
}

// NewSubject asks the target for its manifest and opens an instance.
func NewSubject(ctx context.Context, target Target, settings tea.Settings) (*Subject, error) {
	manifest, err := target.Describe(ctx)
	if err != nil {
		return nil, fmt.Errorf("describe: %w", err)
	}
	inst, err := target.Open(ctx, settings)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	return &Subject{Target: target, Manifest: manifest, Settings: settings, Instance: inst}, nil
}

// call invokes an action and returns its result in the value model. A nil host
// means an empty one.
func (s *Subject) call(ctx context.Context, action string, params any, host tea.Host) (any, error) {
	return invoke(ctx, s.Instance, &tea.Request{Action: action, Params: tea.ValuePayload(params), Call: tea.Call{Attempt: 1}, Host: host})
}

func invoke(ctx context.Context, inst Instance, req *tea.Request) (any, error) {
	if req.Host == nil {
		req.Host = &Host{}
	}
	resp, err := inst.Invoke(ctx, req)
	if err != nil {
		return nil, err
	}
	return resp.Result.Value()
}

// equal returns nil if got is want, otherwise the difference. Both are in the
// value model.
func equal(want, got any) error {
	if value.Equal(want, got) {
		return nil
	}
	return fmt.Errorf("result differs (-want +got):\n%s", cmp.Diff(want, got))
}

// failsWith returns nil if err is an action's error of that type.
func failsWith(err error, want tea.ErrorType) error {
	var e *tea.Error
	switch {
	case err == nil:
		return fmt.Errorf("no error, want %s", want)
	case !errors.As(err, &e):
		return fmt.Errorf("%w is not an action's error, want %s", err, want)
	case e.Type != want:
		return fmt.Errorf("error %q, want type %s", err, want)
	}
	return nil
}

// sameManifest compares two manifests as JSON.
func sameManifest(want, got tea.Manifest) error {
	w, err := json.MarshalIndent(want, "", " ")
	if err != nil {
		return err
	}
	g, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		return err
	}
	if diff := cmp.Diff(string(w), string(g)); diff != "" {
		return fmt.Errorf("manifest differs (-want +got):\n%s", diff)
	}
	return nil
}
