package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/the-edge-agent/tea/host"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Point is a cell of the table "growth": the median times per unit of work, such as an item,
// for one row, size and number of cores.
type Point struct {
	Row   string `json:"row"`
	Unit  string `json:"unit"`
	Size  int    `json:"size"`
	Cores int    `json:"cores"`
	// Wall and CPU are the elapsed time and the CPU time in microseconds.
	Wall float64 `json:"wall_us"`
	CPU  float64 `json:"cpu_us"`
}

// growthRow is measured at each of its sizes and with 1, 2, 4, ... cores.
type growthRow struct {
	name, unit string
	sizes      [3]int
	// run does the work of one measurement and returns the number of units. If callers is
	// set, each core calls it concurrently.
	run     func(ctx context.Context, size, cores int) (units int, err error)
	callers bool
}

// measureGrowth measures all rows. Rows and core counts are interleaved, so that other work
// on the machine affects all of them. load is the load average before and after.
func measureGrowth(ctx context.Context, times int) (points []Point, load [2]float64, err error) {
	rows, done, err := growthRows()
	if err != nil {
		return nil, load, err
	}
	defer done()
	load[0] = loadAverage()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for size := range rows[0].sizes {
		wall, cpu := map[Point][]time.Duration{}, map[Point][]time.Duration{}
		for range times {
			for _, row := range rows {
				for cores := 1; cores <= runtime.NumCPU(); cores *= 2 {
					at := Point{Row: row.name, Unit: row.unit, Size: row.sizes[size], Cores: cores}
					w, c, err := row.measure(ctx, at)
					if err != nil {
						return nil, load, fmt.Errorf("%s, %d: %w", row.name, at.Size, err)
					}
					wall[at], cpu[at] = append(wall[at], w), append(cpu[at], c)
				}
			}
		}
		for at := range wall {
			median := at
			median.Wall, median.CPU = perItem(wall[at], 1), perItem(cpu[at], 1)
			points = append(points, median)
		}
	}
	order := func(p Point) int { return slices.IndexFunc(rows, func(r growthRow) bool { return r.name == p.Row }) }
	slices.SortFunc(points, func(a, b Point) int {
		return 1e9*(order(a)-order(b)) + 1e3*(a.Size-b.Size) + a.Cores - b.Cores
	})
	load[1] = loadAverage()
	return points, load, nil
}

// measure runs one measurement and returns the times per unit.
func (row growthRow) measure(ctx context.Context, at Point) (wall, cpu time.Duration, err error) {
	runtime.GOMAXPROCS(at.Cores)
	callers := 1
	if row.callers {
		callers = at.Cores
	}
	began, spent := time.Now(), cpuTime()
	var group sync.WaitGroup
	failed, units := make([]error, callers), make([]int, callers)
	for i := range callers {
		group.Go(func() { units[i], failed[i] = row.run(ctx, at.Size, at.Cores) })
	}
	group.Wait()
	n := time.Duration(max(1, units[0]*callers))
	return time.Since(began) / n, (cpuTime() - spent) / n, errors.Join(failed...)
}

// cpuTime returns the CPU time of this process and its finished children.
func cpuTime() time.Duration {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}

// loadAverage returns the load average of the last minute.
func loadAverage() (n float64) {
	data, _ := os.ReadFile("/proc/loadavg") // 0 without it
	_, _ = fmt.Sscan(string(data), &n)
	return n
}

// growthRows returns the rows, and a function that releases what they use.
func growthRows() (rows []growthRow, done func(), err error) {
	dir, err := os.MkdirTemp("", "tea-bench")
	if err != nil {
		return nil, nil, err
	}
	noop := host.Func("bench.noop", "Does nothing.", func(context.Context, map[string]any) (any, error) { return nil, nil })
	h, err := host.New(host.Options{Actions: []tea.Action{noop}})
	if err != nil {
		return nil, nil, err
	}
	done = func() { h.Close(); os.RemoveAll(dir) }
	items := [3]int{1_000, 10_000, 100_000}
	loaded := map[string]*host.Workflow{}
	var mu sync.Mutex
	// runs runs a workflow several times in memory.
	runs := func(ctx context.Context, text string, size, times int) (int, error) {
		mu.Lock()
		wf := loaded[text]
		if wf == nil {
			if wf, err = h.Parse("bench.yaml", []byte(text), host.LoadOptions{}); err != nil {
				mu.Unlock()
				return 0, err
			}
			loaded[text] = wf
		}
		mu.Unlock()
		for range times {
			if res, err := wf.Run(ctx, host.RunOptions{}); err != nil || res.Err != nil {
				return 0, errors.Join(err, res.Err)
			}
		}
		return size * times, nil
	}
	const nodes = 3_000 // of one measurement
	return []growthRow{
		{name: "chain of calls, in memory", unit: "call", sizes: [3]int{3, 30, 300}, callers: true, run: func(ctx context.Context, size, _ int) (int, error) {
			return runs(ctx, chain(size), size, nodes/size)
		}},
		{name: "fan-out of calls, in memory", unit: "branch", sizes: [3]int{5, 50, 500}, callers: true, run: func(ctx context.Context, size, _ int) (int, error) {
			return runs(ctx, fanOut(size, "bench.noop"), size, nodes/size)
		}},
		{name: "map of Lua nodes, in memory", unit: "item", sizes: items, run: func(ctx context.Context, size, _ int) (int, error) {
			return runs(ctx, fmt.Sprintf(luaMap, size), size, 1)
		}},
		{name: "map, tea run", unit: "item", sizes: items, run: func(ctx context.Context, size, cores int) (int, error) {
			file := filepath.Join(dir, strconv.Itoa(size)+".yaml")
			if err := os.WriteFile(file, fmt.Appendf(nil, mapWorkflow, size), 0o600); err != nil {
				return 0, err
			}
			cmd := exec.CommandContext(ctx, filepath.Join("bin", "tea"), "run", "-q", file)
			cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+dir, "GOMAXPROCS="+strconv.Itoa(cores))
			out, err := cmd.CombinedOutput()
			if err != nil {
				return 0, fmt.Errorf("%w\n%.2000s", err, out)
			}
			return size, nil
		}},
		{name: "pool of goroutines that encode JSON, plain Go", unit: "item", sizes: items, run: plainPool},
	}, done, nil
}

// chain is a workflow of n nodes in a row.
func chain(n int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "config: {max_steps: %d}\nnodes:\n", n+1)
	for i := range n {
		fmt.Fprintf(&text, "  - {name: n%d, uses: bench.noop}\n", i)
	}
	return text.String()
}

// fanOut is a workflow of n branches of one node each, and a join.
func fanOut(n int, action string) string {
	var nodes, names strings.Builder
	for i := range n {
		fmt.Fprintf(&nodes, "  - {name: b%d, uses: %s}\n", i, action)
		fmt.Fprintf(&names, "b%d, ", i)
	}
	return fmt.Sprintf("config: {max_steps: %d}\nnodes:\n  - {name: begin}\n%s  - {name: join}\nedges:\n  - {from: begin, parallel: [%s], fan_in: join}\n",
		n+3, nodes.String(), strings.TrimSuffix(names.String(), ", "))
}

// luaMap is a map over %d items, each a Lua node.
const luaMap = `config: {max_items: 100000}
nodes:
  - {name: list, run: "local items = {} for i = 1, %d do items[i] = i end return {items = items}"}
  - {name: each, type: dynamic_parallel, items: "{{ state.items }}", steps: [{name: work, run: "return {n = item * 2}"}], fan_in: join}
  - {name: join}
`

// plainPool does the work of a map without the engine.
func plainPool(_ context.Context, size, cores int) (int, error) {
	results := make([]map[string]any, size)
	var next atomic.Int64
	var group sync.WaitGroup
	for range cores {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(size); i = next.Add(1) - 1 {
				text, _ := json.Marshal(i) // a number
				results[i] = map[string]any{"success": true, "text": string(text), "item": i}
			}
		})
	}
	group.Wait()
	return size, nil
}

// growthTable calls row with the cells of each row of the table. The last cell is the wall
// time relative to one core.
func growthTable(points []Point, row func(cells ...string)) {
	row("row", "size", "cores", "wall, us", "CPU, us", "vs. one core")
	var one Point
	for _, p := range points {
		if p.Cores == 1 {
			one = p
		}
		row(p.Row+", per "+p.Unit, strconv.Itoa(p.Size), strconv.Itoa(p.Cores), number(p.Wall), number(p.CPU), number(p.Wall/one.Wall)+"x")
	}
}
