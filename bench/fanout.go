package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/the-edge-agent/tea/host"
)

// fanOuts are the measured sizes of a fan-out, with the number of measurements.
var fanOuts = []struct{ items, times int }{{1_000, 15}, {10_000, 7}, {100_000, 3}}

// measureFanOut runs a map through bin/tea and the library, alternately.
func measureFanOut(ctx context.Context) ([]Figure, error) {
	dir, err := os.MkdirTemp("", "tea-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var figures []Figure
	for _, f := range fanOuts {
		file := filepath.Join(dir, strconv.Itoa(f.items)+".yaml")
		if err := os.WriteFile(file, fmt.Appendf(nil, mapWorkflow, f.items), 0o600); err != nil {
			return nil, err
		}
		var program, library []time.Duration
		var rss float64
		for range f.times {
			took, err := timeLibrary(ctx, file)
			if err != nil {
				return figures, err
			}
			library = append(library, took)
			took, peak, err := timeFanOut(ctx, dir, file)
			if err != nil {
				return figures, err
			}
			program, rss = append(program, took), max(rss, peak)
		}
		inProgram, inLibrary := perItem(program, f.items), perItem(library, f.items)
		name := fmt.Sprintf("fan-out of %d items", f.items)
		figures = append(figures,
			Figure{Name: name + ", tea run, median per item", Value: inProgram, Unit: "us"},
			Figure{Name: name + ", library, median per item", Value: inLibrary, Unit: "us"},
			Figure{Name: name + ", tea run against library", Value: inProgram / inLibrary, Unit: "x"},
			Figure{Name: name + ", tea run, peak RSS", Value: rss, Unit: "MB"})
	}
	// In smaller fan-outs, the start of the process is spread over fewer items.
	last := figures[len(figures)-4:]
	last[0].Limit, last[2].Limit = 20, 1.3
	return figures, nil
}

// perItem returns the median in microseconds per item.
func perItem(list []time.Duration, items int) float64 {
	slices.Sort(list)
	return float64(list[len(list)/2].Nanoseconds()) / 1000 / float64(items)
}

// measureFanOutModes runs a map through bin/tea with its state on disk, and with
// its events on stdout, alternately.
func measureFanOutModes(ctx context.Context) ([]Figure, error) {
	const items, times = 10_000, 7
	dir, err := os.MkdirTemp("", "tea-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "map.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, mapWorkflow, items), 0o600); err != nil {
		return nil, err
	}
	modes := [][]string{{"--durability", "off"}, {"-c", filepath.Join(dir, "runs")}, {"--stream", "--durability", "off"}}
	took := make([][]time.Duration, len(modes))
	for range times {
		for i, mode := range modes {
			t, _, err := timeFanOut(ctx, dir, file, mode...)
			if err != nil {
				return nil, err
			}
			took[i] = append(took[i], t)
		}
	}
	plain, durable, stream := perItem(took[0], items), perItem(took[1], items), perItem(took[2], items)
	name := fmt.Sprintf("fan-out of %d items, tea run", items)
	return []Figure{
		{Name: name + " --durability off, median per item", Value: plain, Unit: "us"},
		{Name: name + " -c, median per item", Value: durable, Unit: "us"},
		{Name: name + " --stream, against none", Value: stream / plain, Unit: "x", Limit: 1.3},
	}, nil
}

// mapWorkflow is a map whose items call an action of the host.
const mapWorkflow = `nodes:
  - name: list
    run: |
      local items = {}
      for i = 1, %d do items[i] = i end
      return {items = items}
  - name: each
    type: dynamic_parallel
    items: "{{ state.items }}"
    max_concurrency: 8
    action: {uses: json.stringify, with: {data: "{{ item }}"}}
    fan_in: join
  - {name: join, run: "return {items = {}, results = #parallel_results}"}
`

func timeLibrary(ctx context.Context, file string) (time.Duration, error) {
	began := time.Now()
	h, err := host.New(host.Options{})
	if err != nil {
		return 0, err
	}
	defer h.Close()
	wf, err := h.Load(file, host.LoadOptions{})
	if err != nil {
		return 0, err
	}
	defer wf.Close()
	res, err := wf.Run(ctx, host.RunOptions{})
	if err == nil {
		err = res.Err
	}
	return time.Since(began), err
}

func timeFanOut(ctx context.Context, state, file string, args ...string) (took time.Duration, rss float64, err error) {
	cmd := exec.CommandContext(ctx, filepath.Join("bin", "tea"), append([]string{"run", file}, args...)...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("tea run %s: %w\n%.2000s", file, err, out)
	}
	took = time.Since(began)
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		rss = float64(usage.Maxrss) / 1000 // Linux counts KiB
	}
	return took, rss, nil
}
