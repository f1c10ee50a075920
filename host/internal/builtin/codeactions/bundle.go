// Package codeactions holds code.execute, which runs Lua that came from data.
// The code runs in a child process of its own with limits on memory, CPU time
// and output, so that nothing in it can harm the host: see [Run] for the
// child's side.
package codeactions

import (
	"context"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// Bundle makes the bundle. command starts the child process, which must call
// [Run]; without one the action says that it is not available.
func Bundle(version string, command []string) *tea.Bundle {
	return &tea.Bundle{
		Name: "code", Version: version, Description: "Runs Lua that came from data, in a process of its own.",
		Actions: []tea.Action{tea.NewMethod("code.execute", "Runs Lua code from data in a child process with limits; needs settings.code.enabled.",
			(*runner).execute, tea.Idempotent())},
		Settings: map[string]*schema.Schema{"code": schema.Of[settings]()},
		Open: func(_ context.Context, s tea.Settings) (any, error) {
			r := &runner{command: command}
			return r, s.Decode("code", &r.settings)
		},
	}
}

// settings is settings.code.
type settings struct {
	Enabled bool `json:"enabled,omitempty" doc:"whether code.execute may run at all"`
}

type runner struct {
	command  []string
	settings settings
}

type params struct {
	Code           string  `json:"code" doc:"Lua; sees the global input, returns a value"`
	Input          any     `json:"input,omitempty" doc:"what the code sees as input"`
	TimeoutSeconds float64 `json:"timeout_seconds,omitempty" default:"5" minimum:"0.001" maximum:"3600" doc:"how long the code may run"`
	MemoryMB       int     `json:"memory_mb,omitempty" default:"64" minimum:"1" maximum:"4096" doc:"memory beyond that of the idle child, in MiB"`
	MaxOutputBytes int     `json:"max_output_bytes,omitempty" default:"65536" minimum:"0" doc:"how much print may write"`
}

type result struct {
	Success         bool    `json:"success"`
	ReturnValue     any     `json:"return_value" doc:"what the code returned"`
	Stdout          string  `json:"stdout" doc:"what the code printed"`
	ExecutionTimeMS float64 `json:"execution_time_ms" doc:"how long it ran, in milliseconds"`
}

func (r *runner) execute(ctx context.Context, req *tea.Request, p params) (result, error) {
	if !r.settings.Enabled {
		return result{}, tea.Errorf(tea.PermissionDenied, "code.execute is off; set settings.code.enabled: true to let workflows run code that came from data")
	}
	if len(r.command) == 0 {
		return result{}, tea.Errorf(tea.DependencyMissing, "this host has no child process for code.execute; set host.Options.CodeRunner")
	}
	input, err := inputOf(req)
	if err != nil {
		return result{}, err
	}
	j := job{
		Code: p.Code, Input: input, Timeout: time.Duration(p.TimeoutSeconds * float64(time.Second)),
		Memory: int64(p.MemoryMB) << 20, MaxOutput: p.MaxOutputBytes,
	}
	return r.spawn(ctx, j)
}

// inputOf takes the parameter as a value again: a trip through Go types would
// turn the integers in it into floats.
func inputOf(req *tea.Request) ([]byte, error) {
	v, err := req.Params.Value()
	if err != nil {
		return nil, err
	}
	object, _ := v.(map[string]any)
	return tea.ValuePayload(object["input"]).JSON()
}
