package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// starts is how often a process is started for one figure.
const starts = 40

// measureProcesses starts bin/tea as a user would, from start to exit.
func measureProcesses(ctx context.Context) ([]Figure, error) {
	plugins, err := os.MkdirTemp("", "tea-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(plugins)
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", plugins, "./bench/cmd/tea-plugin-bench")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build the plugin: %w", err)
	}
	// The runs that this user keeps are not part of it.
	state := filepath.Join(plugins, "state")
	plain, err := timeRuns(ctx, state, "bench/testdata/plain.yaml")
	if err != nil {
		return nil, err
	}
	plugin, err := timeRuns(ctx, state, "bench/testdata/plugin.yaml", "--plugins", plugins)
	if err != nil {
		return nil, err
	}
	return []Figure{
		{Name: "tea run, no plugin", Value: plain.median, Unit: "ms", Limit: 10},
		{Name: "tea run, no plugin, peak RSS", Value: plain.rss, Unit: "MB", Limit: 20},
		{Name: "tea run, one plugin call", Value: plugin.median, Unit: "ms", Limit: 40},
		{Name: "tea run, one plugin call, peak RSS of the host", Value: plugin.rss, Unit: "MB"},
	}, nil
}

// cost is what the runs of one workflow took: the median time in ms, the
// highest resident set in MB.
type cost struct{ median, rss float64 }

// timeRuns runs a workflow again and again; what tea keeps goes to state.
func timeRuns(ctx context.Context, state, workflow string, flags ...string) (cost, error) {
	var took []time.Duration
	var c cost
	for i := range starts + 1 {
		cmd := exec.CommandContext(ctx, filepath.Join("bin", "tea"), append([]string{"run", workflow}, flags...)...)
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			return c, fmt.Errorf("tea run %s: %w\n%s", workflow, err, out)
		}
		if i == 0 {
			continue // reads the files and the plugin's manifest for the first time
		}
		took = append(took, time.Since(began))
		if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			c.rss = max(c.rss, float64(usage.Maxrss)/1000) // Linux counts KiB
		}
	}
	slices.Sort(took)
	c.median = float64(took[len(took)/2].Microseconds()) / 1000
	return c, nil
}
