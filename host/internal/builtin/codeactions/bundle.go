// Package codeactions is the host's bundle code: code.execute runs Lua from
// data in a separate child process with limits on memory, CPU time and output,
// so that it cannot harm the host. Start with [Bundle]; [Run] is the child's
// side.
package codeactions

import (
	"context"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Bundle returns the bundle code. command starts the child process, which must
// call [Run]; without it the action fails.
func Bundle(version string, command []string) *tea.Bundle {
	return &tea.Bundle{
		Name: "code", Version: version, Description: "Runs Lua from data in a separate process.",
		Actions: []tea.Action{tea.NewMethod("code.execute", "Runs Lua code from data in a child process with limits; needs settings.code.enabled.",
			(*runner).execute, tea.Idempotent(), tea.Reads())},
		Settings: map[string]*schema.Schema{"code": schema.Of[settings]()},
		Open: func(_ context.Context, s tea.Settings) (any, error) {
			r := &runner{command: command}
			return r, s.Decode("code", &r.settings)
		},
	}
}

type settings struct {
	Enabled bool `json:"enabled,omitempty" doc:"whether code.execute is enabled"`
}

type runner struct {
	command  []string
	settings settings
}

type params struct {
	Code           string  `json:"code" doc:"Lua; sees the global input, returns a value"`
	Input          any     `json:"input,omitempty" doc:"the value of the global input"`
	TimeoutSeconds float64 `json:"timeout_seconds,omitempty" default:"5" minimum:"0.001" maximum:"3600" doc:"timeout of the code"`
	MemoryMB       int     `json:"memory_mb,omitempty" default:"64" minimum:"1" maximum:"4096" doc:"memory limit in MiB, on top of what the idle child uses"`
	MaxOutputBytes int     `json:"max_output_bytes,omitempty" default:"65536" minimum:"0" doc:"maximum output of print, in bytes"`
}

type result struct {
	Success         bool    `json:"success"`
	ReturnValue     any     `json:"return_value" doc:"the return value of the code"`
	Stdout          string  `json:"stdout" doc:"the output of print"`
	ExecutionTimeMS float64 `json:"execution_time_ms" doc:"run time in milliseconds"`
}

func (r *runner) execute(ctx context.Context, _ *tea.Request, p params) (result, error) {
	if !r.settings.Enabled {
		return result{}, tea.Errorf(tea.PermissionDenied, "code.execute is disabled; set settings.code.enabled: true to allow workflows to run code from data")
	}
	if len(r.command) == 0 {
		return result{}, tea.Errorf(tea.DependencyMissing, "this host has no child process for code.execute; set host.Options.CodeRunner")
	}
	input, err := value.Encode(p.Input)
	if err != nil {
		return result{}, err
	}
	j := job{
		Code: p.Code, Input: input, Timeout: time.Duration(p.TimeoutSeconds * float64(time.Second)),
		Memory: int64(p.MemoryMB) << 20, MaxOutput: p.MaxOutputBytes,
	}
	return r.spawn(ctx, j)
}
