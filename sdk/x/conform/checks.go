package conform

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Check is one requirement of the protocol.
type Check struct {
	// Name is short, such as "cancellation".
	Name string
	// Needs are the probe actions that the check requires.
	Needs []string
	// Remote means that the check is about the wire or the process and does not
	// apply to a bundle that is linked in.
	Remote bool
	// Remedy is the advice to the author if the check fails.
	Remedy string
	// Run makes the check. The error describes what the plugin did wrong.
	Run func(ctx context.Context, s *Subject) error
}

// skipped returns the reason why the check cannot be made on the subject, or "".
func (c Check) skipped(s *Subject) string {
	if _, remote := s.Target.(*Process); c.Remote && !remote {
		return "the bundle is linked in"
	}
	var missing []string
	for _, action := range c.Needs {
		if s.Manifest.Find(action) == nil {
			missing = append(missing, action)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "the plugin has no action " + strings.Join(missing, ", ")
}

// Checks returns the requirements of the protocol, in a sensible order.
func Checks() []Check {
	return slices.Concat(basicChecks(), callChecks(), sizeChecks(), callbackChecks(), wireChecks(), processChecks())
}

// Subject is an opened plugin to check. It is safe for concurrent use.
type Subject struct {
	Target   Target
	Manifest tea.Manifest
	// Settings are the settings of Instance.
	Settings tea.Settings
	Instance Instance
}

// newSubject asks the target for its manifest and opens an instance.
func newSubject(ctx context.Context, target Target, settings tea.Settings) (*Subject, error) {
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
	return fmt.Errorf("the result differs: %s", difference("result", want, got))
}

// failsWith returns nil if err is an action error of that type.
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

// same is [equal] for values that encoding/json can marshal.
func same(what string, want, got any) error {
	w, err := value.From(want)
	if err != nil {
		return err
	}
	g, err := value.From(got)
	if err != nil {
		return err
	}
	if value.Equal(w, g) {
		return nil
	}
	return fmt.Errorf("%s differs: %s", what, difference(what, w, g))
}

// SameManifest returns an error that describes the first difference between two
// manifests.
func SameManifest(want, got tea.Manifest) error { return same("manifest", want, got) }

// difference describes the first difference between two unequal values.
func difference(path string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		for _, key := range slices.Sorted(maps.Keys(w)) {
			if _, ok := g[key]; !ok {
				return fmt.Sprintf("%s.%s is missing, want %s", path, key, value.Brief(w[key]))
			}
			if !value.Equal(w[key], g[key]) {
				return difference(path+"."+key, w[key], g[key])
			}
		}
		for _, key := range slices.Sorted(maps.Keys(g)) {
			if _, ok := w[key]; !ok {
				return fmt.Sprintf("%s.%s is %s, want nothing", path, key, value.Brief(g[key]))
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(w) != len(g) {
			break
		}
		for i := range w {
			if !value.Equal(w[i], g[i]) {
				return difference(fmt.Sprintf("%s[%d]", path, i), w[i], g[i])
			}
		}
	}
	return fmt.Sprintf("%s is %s (%s), want %s (%s)", path, value.Brief(got), value.TypeName(got), value.Brief(want), value.TypeName(want))
}
