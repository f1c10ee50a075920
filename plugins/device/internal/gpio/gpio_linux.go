package gpio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/the-edge-agent/tea/plugins/device/internal/guard"
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

const (
	settingsKey = "gpio"
	linesPath   = "settings.gpio.lines"
)

// Settings are the settings under settings.gpio.
type Settings struct {
	Lines map[string]Line `json:"lines,omitempty" doc:"the lines by name"`
}

// Line is a line of a chip.
type Line struct {
	Chip            string      `json:"chip" minLength:"1" doc:"name or label of the chip, such as gpiochip0"`
	Line            string      `json:"line,omitempty" doc:"name of the line, such as GPIO17"`
	Offset          *int        `json:"offset,omitempty" minimum:"0" maximum:"65535" doc:"number of the line, if it has no name"`
	ActiveLow       bool        `json:"active_low,omitempty" doc:"whether the low level is true"`
	Bias            string      `json:"bias,omitempty" enum:"pull_up,pull_down,disabled" doc:"resistor of the line; default: as it is"`
	Drive           string      `json:"drive,omitempty" enum:"open_drain,open_source" doc:"how an output drives the line; default: both levels"`
	DebounceSeconds float64     `json:"debounce_seconds,omitempty" minimum:"0" maximum:"10" doc:"time for which a level must last before gpio.watch has it"`
	MaxPulseSeconds float64     `json:"max_pulse_seconds,omitempty" default:"10" minimum:"0.001" maximum:"3600" doc:"longest pulse"`
	Write           *guard.Rule `json:"write,omitempty" doc:"makes the line an output, and limits gpio.write and gpio.pulse; {} allows both levels"`
}

// JSONSchema returns the schema, which requires a name or a number.
func (Line) JSONSchema() *schema.Schema {
	type plain Line
	return schema.With[plain](`{"oneOf": [{"required": ["line"]}, {"required": ["offset"]}]}`)
}

// Part returns the part of the bundle.
func Part() part.Part {
	return part.New(settingsKey, func(s Settings, guards *guard.Guards) any { return newClient(s, guards, kernel{}) },
		part.Action(settingsKey, "read", "Reads the level of a GPIO line.", (*client).Read, tea.Idempotent(), tea.Reads()),
		part.Action(settingsKey, "write", "Sets the level of a GPIO line.", (*client).Write, tea.Once(), tea.DryRun()),
		part.Action(settingsKey, "pulse", "Sets the level of a GPIO line for a time.", (*client).Pulse, tea.Once(), tea.DryRun()),
		part.Action(settingsKey, "watch", "Passes on the changes of a GPIO line until the call ends; for the trigger stream of tea serve.", (*client).Watch, tea.Streaming(), tea.Idempotent(), tea.Reads()),
	)
}

// client uses the lines of a workflow.
type client struct {
	guards *guard.Guards
	system system
	lines  map[string]*output
}

// output is a line with its settings. An output is held until the client is closed, because
// the kernel resets a line that nobody holds.
type output struct {
	name   string
	config Line
	// slot is held by the call that uses the line.
	slot chan struct{}
	held *os.File
}

func newClient(s Settings, guards *guard.Guards, system system) *client {
	c := &client{guards: guards, system: system, lines: map[string]*output{}}
	for name, config := range s.Lines {
		c.lines[name] = &output{name: name, config: config, slot: make(chan struct{}, 1)}
	}
	return c
}

// Close releases the lines.
func (c *client) Close() error {
	var errs []error
	for _, l := range c.lines {
		l.slot <- struct{}{}
		if l.held != nil {
			errs = append(errs, l.held.Close())
		}
		<-l.slot
	}
	return errors.Join(errs...)
}

// take returns a line, which no other call uses until release is called.
func (c *client) take(ctx context.Context, name string) (l *output, release func(), err error) {
	if l, err = part.Entry(linesPath, "line", c.lines, name); err != nil {
		return nil, nil, err
	}
	select {
	case l.slot <- struct{}{}:
		return l, func() { <-l.slot }, nil
	case <-ctx.Done():
		return nil, nil, tea.Errorf(tea.AsError(ctx.Err()).Type, "the GPIO line %q was in use until the call ended", name)
	}
}

type readParams struct {
	Line string `json:"line" doc:"name of a line in settings.gpio.lines"`
}

// readResult is the result of gpio.read, and what gpio.watch passes on.
type readResult struct {
	Success bool   `json:"success" doc:"always true"`
	Line    string `json:"line"`
	Value   bool   `json:"value" doc:"the level; true is high, or low with active_low"`
}

// Read implements gpio.read. It leaves the direction of a line as it is.
func (c *client) Read(ctx context.Context, _ *tea.Request, p readParams) (*readResult, error) {
	l, release, err := c.take(ctx, p.Line)
	if err != nil {
		return nil, err
	}
	defer release()
	v, err := c.level(l)
	if err != nil {
		return nil, err
	}
	return &readResult{Success: true, Line: p.Line, Value: v}, nil
}

// level returns the level of a line.
func (c *client) level(l *output) (bool, error) {
	f := l.held
	if f == nil {
		mode := uint64(asInput)
		if l.config.Write != nil {
			mode = asIs
		}
		var err error
		if f, err = c.request(l, mode, false); err != nil {
			return false, err
		}
		defer f.Close()
	}
	v, err := c.get(f)
	if err != nil {
		return false, tea.Errorf(tea.ConnectionError, "read the GPIO line %q: %w", l.name, err)
	}
	return v, nil
}

type writeParams struct {
	Line  string `json:"line" doc:"name of a line in settings.gpio.lines that has write"`
	Value bool   `json:"value" doc:"the level"`
}

type writeResult struct {
	Success bool   `json:"success" doc:"always true"`
	Line    string `json:"line"`
	DryRun  bool   `json:"dry_run" doc:"true if nothing was set because of dry_run in the settings"`
}

func (c *client) Write(ctx context.Context, req *tea.Request, p writeParams) (*writeResult, error) {
	return c.change(ctx, req, p.Line, p.Value, fmt.Sprint(p.Value), func(_ context.Context, l *output) error { return c.set(l, p.Value) })
}

// change lets the guards check a change of a line, and makes it.
func (c *client) change(ctx context.Context, req *tea.Request, name string, v bool, shown string, change func(ctx context.Context, l *output) error) (*writeResult, error) {
	l, err := part.Entry(linesPath, "line", c.lines, name)
	if err != nil {
		return nil, guard.NotSent(err)
	}
	result := &writeResult{Success: true, Line: name}
	result.DryRun, err = c.guards.Permit(ctx, req, guard.Write{
		Setting: diag.Key(linesPath, name) + ".write", Machine: l.config.Chip, Target: fmt.Sprintf("the GPIO line %q", name),
		Rule: l.config.Write, Value: v, Shown: shown,
	}, func(ctx context.Context) error {
		l, release, err := c.take(ctx, name)
		if err != nil {
			return guard.NotSent(err)
		}
		defer release()
		return change(ctx, l)
	})
	return result, err
}

// set sets the level of an output. A line that is not held gets it with the request, so
// that it never has another one.
func (c *client) set(l *output, v bool) error {
	if l.held == nil {
		f, err := c.request(l, asOutput, v)
		if err != nil {
			return guard.NotSent(err)
		}
		l.held = f
		return nil
	}
	if err := c.put(l.held, v); err != nil {
		return guard.Refused(tea.Errorf(tea.ConnectionError, "set the GPIO line %q: %w", l.name, err))
	}
	return nil
}

type pulseParams struct {
	Line    string  `json:"line" doc:"name of a line in settings.gpio.lines that has write"`
	Seconds float64 `json:"seconds" minimum:"0.001" maximum:"3600" doc:"length of the pulse"`
	Value   bool    `json:"value,omitempty" default:"true" doc:"level during the pulse"`
}

// Pulse implements gpio.pulse. The line always returns to its level.
func (c *client) Pulse(ctx context.Context, req *tea.Request, p pulseParams) (*writeResult, error) {
	if l := c.lines[p.Line]; l != nil && p.Seconds > l.config.MaxPulseSeconds {
		return nil, guard.NotSent(tea.Errorf(tea.PermissionDenied, "a pulse of %v seconds is longer than max_pulse_seconds of the GPIO line %q (%v)", p.Seconds, p.Line, l.config.MaxPulseSeconds))
	}
	return c.change(ctx, req, p.Line, p.Value, fmt.Sprintf("%v for %v seconds", p.Value, p.Seconds), func(ctx context.Context, l *output) (err error) {
		before, err := c.level(l)
		if err != nil {
			return guard.NotSent(err)
		}
		if before == p.Value {
			return guard.NotSent(tea.Errorf(tea.ValidationError, "the GPIO line %q is already %v, so a pulse would not change it", l.name, before))
		}
		if err := c.set(l, p.Value); err != nil {
			return err
		}
		defer func() {
			if back := c.set(l, before); back != nil {
				err = guard.Unknown(tea.Errorf(tea.ConnectionError, "the GPIO line %q did not return to %v after the pulse: %w", l.name, before, back))
			}
		}()
		timer := time.NewTimer(part.Seconds(p.Seconds))
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return guard.Unknown(tea.Errorf(tea.AsError(ctx.Err()).Type, "the pulse on the GPIO line %q was shorter, because the call ended", l.name))
		}
	})
}

// Watch implements gpio.watch: the level, then each change of it.
func (c *client) Watch(ctx context.Context, req *tea.Request, p readParams) (struct{}, error) {
	l, release, err := c.take(ctx, p.Line)
	if err != nil {
		return struct{}{}, err
	}
	defer release()
	if l.config.Write != nil {
		return struct{}{}, tea.Errorf(tea.ValidationError, "the GPIO line %q is an output (%s.write), which has no edges to watch", p.Line, diag.Key(linesPath, p.Line))
	}
	f, err := c.request(l, asEdges, false)
	if err != nil {
		return struct{}{}, err
	}
	defer f.Close()
	defer context.AfterFunc(ctx, func() { _ = f.Close() })() // ends the read
	v, err := c.get(f)
	for err == nil {
		if err := part.Emit(ctx, req, readResult{Success: true, Line: p.Line, Value: v}); err != nil {
			return struct{}{}, err
		}
		v, err = nextEdge(f)
	}
	if ctx.Err() != nil {
		return struct{}{}, ctx.Err()
	}
	return struct{}{}, tea.Errorf(tea.ConnectionError, "watch the GPIO line %q: %w", p.Line, err)
}
