package host

import (
	"context"
	"fmt"

	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/confine"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// The serve section of a workflow, for programs that start its runs.
type (
	// ServeConfig is the section as written.
	ServeConfig = spec.Serve
	// TriggerConfig is a trigger of the section.
	TriggerConfig = spec.Trigger
	// TimerConfig is the part of a trigger of the kind cron or every.
	TimerConfig = spec.Timer
	// MQTTConfig is the part of a trigger of the kind mqtt.
	MQTTConfig = spec.MQTT
	// ValuesConfig is the part of a trigger of the kind poll or stream.
	ValuesConfig = spec.Values
	// TriggerKind is the kind of event that starts a run.
	TriggerKind = spec.TriggerKind
)

// The kinds of triggers.
const (
	TriggerCron    = spec.TriggerCron
	TriggerEvery   = spec.TriggerEvery
	TriggerAtStart = spec.TriggerAtStart
	TriggerWebhook = spec.TriggerWebhook
	TriggerWatch   = spec.TriggerWatch
	TriggerMQTT    = spec.TriggerMQTT
	TriggerOnRun   = spec.TriggerOnRun
	TriggerPoll    = spec.TriggerPoll
	TriggerStream  = spec.TriggerStream
)

// Serving is the serve section of a workflow with its templates. It is immutable
// and safe for concurrent use.
type Serving struct{ compiled *graph.Serve }

// Serving returns the serve section of the workflow. Without one, all fields of
// its configuration have their zero values.
func (wf *Workflow) Serving() *Serving { return &Serving{wf.serve} }

// ServingBy returns a serve section that is not in the workflow file; see
// [LoadServe]. The error is a [Diagnostics].
func (wf *Workflow) ServingBy(section *ServeConfig) (*Serving, error) {
	compiled, diags := graph.CompileServe(wf.spec, section, wf.env)
	return &Serving{compiled}, diags.Err()
}

// HasServing reports whether the workflow file has a serve section.
func (wf *Workflow) HasServing() bool { return wf.spec.Serve != nil }

// LoadServe reads a file with the serve sections of workflows, by their names. The
// error is a [Diagnostics], or the error of reading the file.
func LoadServe(file string) (map[string]*ServeConfig, error) {
	data, err := confine.ReadRegular(file, source.MaxBytes) // a pipe would stop the server
	if err != nil {
		return nil, err
	}
	sections, diags := spec.LoadServe(file, data)
	return sections, diags.Err()
}

// Dir returns the directory to which the workflow's paths are relative.
func (wf *Workflow) Dir() string { return absolute(wf.spec.Dir) }

// Config returns the section as written. It must not be changed.
func (s *Serving) Config() *ServeConfig { return s.compiled.Serve }

// Input returns the input of a run that an event of a trigger starts. ok is false
// if the trigger has no input mapping. The event is in the value model.
func (s *Serving) Input(ctx context.Context, trigger int, event, env map[string]any) (input map[string]any, ok bool, err error) {
	input, ok, err = s.compiled.Input(ctx, trigger, event, env)
	if err != nil {
		err = fmt.Errorf("input of the trigger %q: %w", s.Config().Triggers[trigger].Name, err)
	}
	return input, ok, err
}

// Key returns the deduplication key of an event, "" if it has none. trigger is -1 for
// an event without a trigger.
func (s *Serving) Key(ctx context.Context, trigger int, event, env map[string]any) (string, error) {
	v, err := s.compiled.Key(ctx, trigger, event, env)
	if err != nil {
		return "", fmt.Errorf("deduplication key: %w", err)
	}
	if v == nil {
		return "", nil
	}
	if text, ok := v.(string); ok {
		return text, nil
	}
	text, err := value.Encode(v)
	return string(text), err
}

// compileServe compiles the serve section.
func (wf *Workflow) compileServe(diags *diag.List) {
	section := wf.spec.Serve
	if section == nil {
		section = &spec.Serve{}
	}
	compiled, found := graph.CompileServe(wf.spec, section, wf.env)
	wf.serve = compiled
	*diags = append(*diags, found...)
}

// CheckInput checks the input of a new run. The error is a [*flow.InputError], or
// [Diagnostics] for a missing secret that the workflow reads.
func (wf *Workflow) CheckInput(input, secrets map[string]any) error {
	if err := wf.graph.MissingSecrets(secrets).Err(); err != nil {
		return err
	}
	_, err := wf.graph.Schema.Initial(wf.spec.InitialState, input)
	return err
}
