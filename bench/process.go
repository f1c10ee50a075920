package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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
	if err := buildPeers(ctx, plugins); err != nil {
		return nil, err
	}
	// The user's existing runs are not measured.
	state := filepath.Join(plugins, "state")
	plain, err := timeCommand(ctx, state, filepath.Join("bin", "tea"), "run", "bench/testdata/plain.yaml")
	if err != nil {
		return nil, err
	}
	plugin, err := timeCommand(ctx, state, filepath.Join("bin", "tea"), "run", "bench/testdata/plugin.yaml", "--plugins", plugins)
	if err != nil {
		return nil, err
	}
	bare, err := timeCommand(ctx, state, filepath.Join(plugins, "bare-plugin"), "call")
	if err != nil {
		return nil, err
	}
	large := filepath.Join(plugins, "large.yaml")
	if err := os.WriteFile(large, largeWorkflow(1000), 0o600); err != nil {
		return nil, err
	}
	validate, err := timeCommand(ctx, state, filepath.Join("bin", "tea"), "validate", large)
	if err != nil {
		return nil, err
	}
	return []Figure{
		{Name: "tea run, no plugin", Value: plain.median, Unit: "ms", Limit: 5},
		{Name: "tea run, no plugin, shortest", Value: plain.shortest, Unit: "ms"},
		{Name: "tea run, no plugin, peak RSS", Value: plain.rss, Unit: "MB", Limit: 16},
		{Name: "tea run, one plugin call", Value: plugin.median, Unit: "ms", Limit: 20},
		{Name: "tea run, one plugin call, shortest", Value: plugin.shortest, Unit: "ms"},
		{Name: "tea run, one plugin call, peak RSS of the host", Value: plugin.rss, Unit: "MB"},
		{Name: "bare go-plugin, start and one call", Value: bare.median, Unit: "ms"},
		{Name: "bare go-plugin, start and one call, shortest", Value: bare.shortest, Unit: "ms"},
		{Name: "tea validate, 1,000 Lua nodes", Value: validate.median, Unit: "ms", Limit: 20},
	}, nil
}

// budgets are the maximum costs of a start on any machine that builds tea, busy or not.
// They detect a library that works before main, but tolerate noise.
func budgets() map[string]float64 {
	return map[string]float64{
		"tea run, no plugin, shortest":       15,
		"tea run, no plugin, peak RSS":       17,
		"tea run, one plugin call, shortest": 45,
	}
}

// checkStarts measures the starts and checks their budgets.
func checkStarts(ctx context.Context, progress io.Writer) error {
	figures, err := measureProcesses(ctx)
	if err != nil {
		return err
	}
	var over []error
	for i, f := range figures {
		budget := budgets()[f.Name]
		figures[i].Limit = budget
		if budget > 0 && f.Value > budget {
			over = append(over, fmt.Errorf("%s: %.1f %s, the budget is %.0f", f.Name, f.Value, f.Unit, budget))
		}
	}
	return errors.Join(append(over, writeTable(progress, figures))...)
}

// cost is the cost of the runs of one workflow: the median and the shortest time in ms,
// and the median of the peak resident sets in MB. On a busy machine a few runs grow
// more, because their garbage collection has to wait.
type cost struct{ median, shortest, rss float64 }

// largeWorkflow returns a workflow of distinct Lua nodes.
func largeWorkflow(nodes int) []byte {
	var text bytes.Buffer
	text.WriteString("nodes:\n")
	for i := range nodes {
		fmt.Fprintf(&text, "  - name: n%d\n    run: |\n      local step = %[1]d\n      return {last = step}\n", i)
	}
	return text.Bytes()
}

// timeCommand runs a program repeatedly, with its data in state.
func timeCommand(ctx context.Context, state, program string, args ...string) (cost, error) {
	var took []time.Duration
	var resident []int64
	var c cost
	for i := range starts + 1 {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			return c, fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out)
		}
		if i == 0 {
			continue // reads the files and the plugin's manifest for the first time
		}
		took = append(took, time.Since(began))
		if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			resident = append(resident, int64(usage.Maxrss)) //nolint:unconvert // it has 32 bits on some systems
		}
	}
	slices.Sort(took)
	c.shortest = float64(took[0].Microseconds()) / 1000
	c.median = float64(took[len(took)/2].Microseconds()) / 1000
	if slices.Sort(resident); len(resident) > 0 {
		c.rss = float64(resident[len(resident)/2]) / 1000 // Linux counts KiB
	}
	return c, nil
}
