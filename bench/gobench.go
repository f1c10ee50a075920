package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// promise is a Go benchmark that measures a figure.
type promise struct {
	// Benchmark is the benchmark's name without the prefix, and Metric its unit in
	// the output of go test.
	Benchmark, Metric string
	// What follows the benchmark's name if it measures several figures.
	What string
	// Unit is the displayed unit, and Scale the factor to convert to it.
	Unit  string
	Scale float64
	Limit float64
}

// suite holds the benchmarks of one package.
type suite struct {
	Package string
	// Prefix begins the names of the figures.
	Prefix string
	// Pattern selects benchmarks, in the syntax of go test.
	Pattern  string
	Promises []promise
}

// promises lists the figures of Go benchmarks. Other benchmarks that a pattern selects
// are shown as they are.
func promises() []suite {
	return []suite{
		{Package: "./host", Prefix: "engine", Pattern: "^Benchmark(Chain3|FanOut5|LuaNode|Load)$", Promises: []promise{
			{Benchmark: "Load/equal/1000", Metric: "ns/op", Unit: "ms", Scale: 1e-6, Limit: 15},
			{Benchmark: "Load/different/1000", Metric: "ns/op", Unit: "ms", Scale: 1e-6, Limit: 15},
			{Benchmark: "Chain3", Metric: "ns/op", Unit: "us", Scale: 1e-3, Limit: 12},
			{Benchmark: "FanOut5", Metric: "ns/op", Unit: "us", Scale: 1e-3, Limit: 40},
			{Benchmark: "LuaNode", Metric: "ns/node", Unit: "us", Scale: 1e-3, Limit: 10},
		}},
		{Package: "./host/internal/checkpoint", Prefix: "journal", Pattern: "^Benchmark(AppendSync1KB|BareAppend1KB)$", Promises: []promise{
			{Benchmark: "AppendSync1KB", Metric: "median-ns/op", Unit: "us", Scale: 1e-3},
			{Benchmark: "BareAppend1KB", Metric: "median-ns/op", Unit: "us", Scale: 1e-3},
		}},
		{Package: "./cmd/tea-mcp", Prefix: "mcp server", Pattern: "^BenchmarkCall$", Promises: []promise{
			{Benchmark: "Call/sync", Metric: "ns/op", What: ", a workflow with one Lua node", Unit: "ms", Scale: 1e-6},
			{Benchmark: "Call/exit", Metric: "ns/op", What: ", a workflow with one Lua node", Unit: "ms", Scale: 1e-6},
		}},
		{Package: "./cmd/tea-wasm", Prefix: "browser", Pattern: "^Benchmark(Browser|Memory)$", Promises: []promise{
			{Benchmark: "Browser/Ready", Metric: "ms", Unit: "ms", Scale: 1, Limit: 800},
			{Benchmark: "Browser/Chain3", Metric: "ms", Unit: "ms", Scale: 1, Limit: 0.6},
			{Benchmark: "Browser/LuaNode", Metric: "ms", Unit: "ms", Scale: 1, Limit: 0.25},
			{Benchmark: "Memory", Metric: "ms-retrieve", What: ", ltm.retrieve among 10,000 entries", Unit: "ms", Scale: 1, Limit: 1.5},
			{Benchmark: "Memory", Metric: "ms-store", What: ", ltm.store among 10,000 entries", Unit: "ms", Scale: 1, Limit: 6},
			{Benchmark: "Memory", Metric: "ms-search", What: ", ltm.search among 10,000 entries", Unit: "ms", Scale: 1, Limit: 5},
			{Benchmark: "Memory", Metric: "ms-ready", What: ", first search after a reload", Unit: "ms", Scale: 1, Limit: 1800},
			{Benchmark: "Memory", Metric: "MB-linear", What: ", linear memory after a reload", Unit: "MB", Scale: 1, Limit: 32},
		}},
		{Package: "./cmd/tea-serve", Prefix: "serve", Pattern: "^Benchmark(Runs|Start|Idle|Ready|Soak)$", Promises: servePromises()},
		{Package: "./plugins/mcp", Prefix: "mcp client", Pattern: "^BenchmarkCall$", Promises: []promise{
			{Benchmark: "Call/action", Metric: "ns/op", What: ", a tool of a process", Unit: "us", Scale: 1e-3},
			{Benchmark: "Call/bare", Metric: "ns/op", What: ", the same with the SDK alone", Unit: "us", Scale: 1e-3},
		}},
		{Package: "./host/subproc", Prefix: "plugin", Pattern: "^Benchmark(RoundTrip|LuaLoop|NodeCalls|Tokens)$", Promises: pluginPromises()},
		{Package: "./plugins/memory", Prefix: "memory", Pattern: "^Benchmark(Store|StoreAgainstInsert|StoreTogether|StoreItems|Among|BulkLoad|Start|Assemble|Data.*|VectorQuery)$", Promises: memoryPromises()},
		{Package: "./plugins/memory/cloud/postgres", Prefix: "memory on PostgreSQL", Pattern: "^BenchmarkCalls$", Promises: storePromises()},
		{Package: "./plugins/memory/cloud/libsql", Prefix: "memory on libSQL", Pattern: "^BenchmarkCalls$", Promises: storePromises()},
		{Package: "./plugins/memory/cloud/d1", Prefix: "memory on D1", Pattern: "^BenchmarkCalls$", Promises: storePromises()},
		{Package: "./plugins/memory/internal/vector", Prefix: "vectors", Pattern: "^BenchmarkExact$", Promises: []promise{
			{Benchmark: "Exact/10000", Metric: "ms-median", Unit: "ms", Scale: 1, Limit: 6},
		}},
		{Package: "./plugins/memory/internal/vector", Prefix: "vectors", Pattern: "^BenchmarkGraph$/^clusters$/^100000$/^default$|^BenchmarkGraph$/^noise$/^10000$/^default$", Promises: []promise{
			{Benchmark: "Graph/clusters/100000/default/inside", Metric: "ms-median", Unit: "ms", Scale: 1, Limit: 2},
		}},
		{Package: "./plugins/graph", Prefix: "graph", Pattern: "^Benchmark(Neighbors|StoreEntity|StoreEntities|RetrieveContext|Process|Growth|Million)$", Promises: graphPromises()},
		{Package: "./plugins/web/internal/local", Prefix: "web", Pattern: "^BenchmarkPages$", Promises: []promise{
			{Benchmark: "Pages/scrape", Metric: "pages/s", Unit: "pages/s", Scale: 1},
			{Benchmark: "Pages/scrape", Metric: "ns/page", What: ", a page", Unit: "ms", Scale: 1e-6, Limit: 20},
			{Benchmark: "Pages/crawl", Metric: "pages/s", Unit: "pages/s", Scale: 1},
			{Benchmark: "Pages/crawl", Metric: "ns/page", What: ", a page", Unit: "ms", Scale: 1e-6, Limit: 20},
		}},
		{Package: "./plugins/graph/internal/cozo", Prefix: "graph on CozoDB", Pattern: "^Benchmark(Put|Batches)$|^BenchmarkHops$/^1000000$", Promises: durablePut},
		{Package: "./plugins/graph/internal/kuzu", Prefix: "graph on Kuzu", Pattern: "^BenchmarkPut$", Promises: durablePut},
		{Package: "./plugins/graph/internal/sqlite", Prefix: "graph on SQLite", Pattern: "^BenchmarkPut$", Promises: durablePut},
		{Package: "./bench", Prefix: "growth", Pattern: ".", Promises: []promise{
			{Benchmark: "DurableStep", Metric: "median-ns/step", Unit: "ms", Scale: 1e-6, Limit: 0.4},
			{Benchmark: "Plan/concurrent", Metric: "ns/subtask", What: ", besides its action", Unit: "us", Scale: 1e-3, Limit: 150},
			{Benchmark: "StateThroughBranches", Metric: "x-state", Unit: "x", Scale: 1, Limit: 2},
		}},
	}
}

// servePromises are the figures of tea serve.
func servePromises() []promise {
	return []promise{
		{Benchmark: "Runs/exit", Metric: "ns/op", What: ", 8 clients", Unit: "ms", Scale: 1e-6, Limit: 2},
		{Benchmark: "Runs/sync", Metric: "ns/op", What: ", 8 clients", Unit: "ms", Scale: 1e-6, Limit: 5},
		{Benchmark: "Start", Metric: "ms-p99", What: ", p99 at 100 a second", Unit: "ms", Scale: 1, Limit: 10},
		{Benchmark: "Idle", Metric: "MB-resident", What: ", RSS", Unit: "MB", Scale: 1, Limit: 25},
		{Benchmark: "Idle", Metric: "%-cpu", What: ", of a processor", Unit: "%", Scale: 1, Limit: 0.2},
		{Benchmark: "Idle", Metric: "B-written", What: ", in 10 s", Unit: "B", Scale: 1},
		{Benchmark: "Ready", Metric: "ns/op", What: ", with 1,000 waiting runs", Unit: "ms", Scale: 1e-6, Limit: 1000},
		{Benchmark: "Soak", Metric: "x-before", What: ", RSS after 10,000 runs against 2,000", Unit: "x", Scale: 1, Limit: 1.25},
	}
}

// pluginPromises are the figures of calls to a plugin's process.
func pluginPromises() []promise {
	return []promise{
		{Benchmark: "LuaLoop/records/1KB", Metric: "median-ns/call", Unit: "us", Scale: 1e-3},
		{Benchmark: "LuaLoop/records/1KB", Metric: "x-bare", What: ", against bare go-plugin with JSON", Unit: "x", Scale: 1, Limit: 1.3},
		{Benchmark: "LuaLoop/text/1KB", Metric: "x-bare", What: ", against bare go-plugin with JSON", Unit: "x", Scale: 1, Limit: 1.3},
		{Benchmark: "LuaLoop/records/1MB", Metric: "median-ns/call", Unit: "ms", Scale: 1e-6},
		{Benchmark: "LuaLoop/records/1MB", Metric: "x-bare", What: ", against bare go-plugin with JSON", Unit: "x", Scale: 1, Limit: 1.2},
		{Benchmark: "LuaLoop/text/1MB", Metric: "x-bare", What: ", against bare go-plugin with JSON", Unit: "x", Scale: 1, Limit: 1.2},
		{Benchmark: "RoundTrip", Metric: "median-ns/op", Unit: "us", Scale: 1e-3, Limit: 110},
		{Benchmark: "RoundTrip", Metric: "bare-median-ns/op", What: ", of it the bare call", Unit: "us", Scale: 1e-3},
		{Benchmark: "RoundTrip", Metric: "added-ns/op", What: ", of it added", Unit: "us", Scale: 1e-3, Limit: 8},
		{Benchmark: "NodeCalls/chain", Metric: "median-ns/call", Unit: "us", Scale: 1e-3},
		{Benchmark: "NodeCalls/chain", Metric: "bare-median-ns/call", What: ", bare go-plugin with JSON", Unit: "us", Scale: 1e-3},
		{Benchmark: "NodeCalls/chain", Metric: "added-ns/call", What: ", added", Unit: "us", Scale: 1e-3, Limit: 10},
		{Benchmark: "NodeCalls/map", Metric: "median-ns/call", Unit: "us", Scale: 1e-3},
		{Benchmark: "NodeCalls/map", Metric: "bare-median-ns/call", What: ", bare go-plugin with JSON", Unit: "us", Scale: 1e-3},
		{Benchmark: "NodeCalls/map", Metric: "x-bare", What: ", against bare go-plugin with JSON", Unit: "x", Scale: 1, Limit: 1},
		{Benchmark: "Tokens", Metric: "median-ns/token", What: ", action to reader of the events", Unit: "us", Scale: 1e-3, Limit: 20},
		{Benchmark: "Tokens", Metric: "bare-median-ns/token", What: ", bare go-plugin with JSON", Unit: "us", Scale: 1e-3},
	}
}

// durablePut is the figure for each engine of plugins/graph.
var durablePut = []promise{{Benchmark: "Put", Metric: "x-own", What: ", a durable entity against the engine's own put", Unit: "x", Scale: 1, Limit: 1.2}}

// graphPromises are the figures of plugins/graph, by backend: with 10,000 entities and
// 50,000 relations, or 200,000 and a million. Growth has no limit.
func graphPromises() []promise {
	var list []promise
	for _, backend := range []struct {
		name string
		hops [3]float64
		// resident is the memory of the process in MB.
		resident float64
	}{{"memory", [3]float64{1, 3, 10}, 30}, {"cozo", [3]float64{0.5, 1, 2.5}, 130}, {"cypher", [3]float64{4, 4, 4}, 130}} {
		for i, limit := range backend.hops {
			list = append(list, promise{Benchmark: fmt.Sprintf("Neighbors/%s/%dhops", backend.name, i+1), Metric: "ns/op", Unit: "ms", Scale: 1e-6, Limit: limit})
		}
		list = append(list,
			promise{Benchmark: "StoreEntity/" + backend.name, Metric: "ns/op", Unit: "ms", Scale: 1e-6},
			promise{Benchmark: "StoreEntities/" + backend.name, Metric: "ns/entity", Unit: "us", Scale: 1e-3, Limit: 50},
			promise{Benchmark: "RetrieveContext/" + backend.name, Metric: "ns/op", Unit: "ms", Scale: 1e-6, Limit: 15},
			promise{Benchmark: "Process/" + backend.name, Metric: "median-ns/op", What: ", start to first answer", Unit: "ms", Scale: 1e-6, Limit: 150},
			promise{Benchmark: "Process/" + backend.name, Metric: "MB-resident", What: ", RSS", Unit: "MB", Scale: 1, Limit: backend.resident},
			promise{Benchmark: "Million/" + backend.name + "/open", Metric: "ns/op", What: ", with a first answer", Unit: "ms", Scale: 1e-6, Limit: 1000},
			promise{Benchmark: "Million/" + backend.name + "/2hops", Metric: "ns/op", Unit: "ms", Scale: 1e-6, Limit: 10},
		)
	}
	for _, backend := range []string{"memory", "cozo", "cypher"} {
		for _, nodes := range []string{"1000", "10000", "100000"} {
			for _, what := range []string{"2hops", "context", "store"} {
				list = append(list, promise{Benchmark: "Growth/" + backend + "/" + nodes + "/" + what, Metric: "ns/op", Unit: "ms", Scale: 1e-6})
			}
		}
	}
	return list
}

// storePromises are the figures of memories on servers: round trips of a call.
func storePromises() []promise {
	var list []promise
	for _, call := range []struct {
		name  string
		limit float64
	}{{"ltm.retrieve", 1}, {"ltm.store", 2}, {"ltm.store,_1,000_items", 20}} {
		list = append(list, promise{Benchmark: "Calls/" + call.name, Metric: "trips/op", What: ", round trips", Unit: "trips", Scale: 1, Limit: call.limit})
	}
	return list
}

// memoryPromises are the figures of plugins/memory. A rate is shown as the time allowed
// for one call.
func memoryPromises() []promise {
	list := []promise{
		{Benchmark: "StoreAgainstInsert/duckdb", Metric: "x-insert", Unit: "x", Scale: 1, Limit: 1.2},
		{Benchmark: "StoreTogether/duckdb/plugin", Metric: "ns/op", Unit: "us", Scale: 1e-3, Limit: 667},
		{Benchmark: "StoreItems/duckdb/plugin", Metric: "ns/item", Unit: "us", Scale: 1e-3, Limit: 50},
		{Benchmark: "Store/sqlite/linked", Metric: "ns/op", Unit: "us", Scale: 1e-3, Limit: 400},
		{Benchmark: "Store/sqlite/plugin", Metric: "ns/op", Unit: "us", Scale: 1e-3, Limit: 400},
		{Benchmark: "StoreTogether/sqlite/plugin", Metric: "ns/op", Unit: "us", Scale: 1e-3, Limit: 400},
		{Benchmark: "Start/full", Metric: "median-ns/op", Unit: "ms", Scale: 1e-6, Limit: 150},
		{Benchmark: "Start/full", Metric: "MB-resident", What: ", RSS", Unit: "MB", Scale: 1, Limit: 90},
		{Benchmark: "Start/lite", Metric: "median-ns/op", Unit: "ms", Scale: 1e-6, Limit: 25},
		{Benchmark: "Start/lite", Metric: "MB-resident", What: ", RSS", Unit: "MB", Scale: 1, Limit: 25},
	}
	for _, engine := range []string{"sqlite", "duckdb"} {
		for _, n := range []string{"1000", "10000", "100000"} {
			for _, form := range []string{"linked", "plugin"} {
				among := "Among/" + engine + "/" + form + "/" + n
				list = append(list,
					promise{Benchmark: among + "/retrieve", Metric: "median-ns/op", Unit: "ms", Scale: 1e-6, Limit: 0.7},
					promise{Benchmark: among + "/search", Metric: "median-ns/op", Unit: "ms", Scale: 1e-6, Limit: 15})
			}
			// The bare insert has no process in between, so neither has this one.
			list = append(list, promise{Benchmark: "Among/" + engine + "/linked/" + n + "/store", Metric: "x-insert", Unit: "x", Scale: 1, Limit: 1.3})
		}
		list = append(list,
			promise{Benchmark: "BulkLoad/" + engine, Metric: "first-search-ms", What: ", first search", Unit: "ms", Scale: 1, Limit: 100},
			promise{Benchmark: "BulkLoad/" + engine, Metric: "reopened-search-ms", What: ", first search after a restart", Unit: "ms", Scale: 1, Limit: 200})
		for query, limit := range map[string]float64{"inside": 2.5, "tenth": 10, "thousandth": 10} {
			list = append(list, promise{Benchmark: "VectorQuery/" + engine + "/" + query, Metric: "median-ns/op", Unit: "ms", Scale: 1e-6, Limit: limit})
		}
		list = append(list, promise{Benchmark: "Assemble/" + engine + "/files=1000/same", Metric: "median-ns/op", Unit: "ms", Scale: 1e-6, Limit: 60})
	}
	return list
}

// measureGo runs the Go benchmarks, one package after the other. Together with an error
// it returns the figures of the other packages.
func measureGo(ctx context.Context) ([]Figure, error) {
	var all []Figure
	var failed []error
	for _, s := range promises() {
		results, err := s.run(ctx)
		if err != nil {
			failed = append(failed, err)
		}
		for _, r := range results {
			all = append(all, s.figures(r)...)
		}
	}
	return all, errors.Join(failed...)
}

// run runs the suite's benchmarks.
func (s suite) run(ctx context.Context) ([]benchResult, error) {
	args := []string{"test", "-run", "^$", "-bench", s.Pattern, "-benchmem", "-timeout", "30m"}
	// CozoDB is measured if it was built.
	flags, missing := exec.CommandContext(ctx, "scripts/cozo", "flags").Output()
	if missing == nil && strings.HasPrefix(s.Package, "./plugins/graph") {
		args = append(args, "-tags", "cozo")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, s.Package)...)
	if len(flags) > 0 {
		cmd.Env = append(os.Environ(), "CGO_LDFLAGS="+strings.TrimSpace(string(flags)))
	}
	cmd.Stderr = os.Stderr
	out, failure := cmd.Output()
	if failure != nil {
		failure = fmt.Errorf("run the benchmarks of %s: %w\n%s", s.Package, failure, out)
	}
	results, err := parseBench(bytes.NewReader(out))
	if err != nil {
		err = fmt.Errorf("read the benchmarks of %s: %w", s.Package, err)
	}
	return results, errors.Join(failure, err)
}

// figures converts a benchmark's line to the promised figures and its other metrics: the
// median if it reports one, otherwise the mean time of an operation, and its custom
// metrics.
func (s suite) figures(r benchResult) []Figure {
	var figures []Figure
	promised := make(map[string]bool)
	for _, p := range s.Promises {
		if v, ok := r.metrics[p.Metric]; ok && p.Benchmark == r.name {
			figures = append(figures, r.figure(s.Prefix, p.What, v*p.Scale, p.Unit, p.Limit))
			promised[p.Metric] = true
		}
	}
	hasMedian := slices.ContainsFunc(r.own, func(metric string) bool { return strings.Contains(metric, "median") })
	if len(figures) == 0 && !hasMedian {
		figures = append(figures, r.figure(s.Prefix, "", r.metrics["ns/op"]*1e-3, "us", 0))
	}
	for _, metric := range r.own {
		if promised[metric] {
			continue
		}
		what, v, unit := readable(metric, r.metrics[metric])
		if len(figures) == 0 {
			figures = append(figures, r.figure(s.Prefix, what, v, unit, 0))
			continue
		}
		figures = append(figures, Figure{Name: s.Prefix + " " + r.name + what, Value: v, Unit: unit})
	}
	return figures
}

// readable splits a metric such as "bare-median-ns/op" into its subject and its unit;
// nanoseconds become micro- or milliseconds.
func readable(metric string, v float64) (what string, value float64, unit string) {
	head, per, _ := strings.Cut(metric, "/")
	parts := strings.Split(head, "-")
	i := slices.IndexFunc(parts, func(part string) bool {
		return slices.Contains([]string{"ns", "us", "ms", "B", "MB", "bytes", "x"}, part)
	})
	if i < 0 {
		return "", v, metric
	}
	unit = parts[i]
	if unit == "ns" {
		v, unit = v*1e-3, "us"
		if v >= 1000 {
			v, unit = v*1e-3, "ms"
		}
	}
	words := slices.Concat(parts[:i], parts[i+1:])
	if per != "" && per != "op" {
		words = append(words, "per "+per)
	}
	if len(words) > 0 {
		what = ", " + strings.Join(words, " ")
	}
	return what, v, unit
}

// benchResult is one line of a benchmark's output.
type benchResult struct {
	name    string
	metrics map[string]float64
	// own are the custom metrics of the benchmark, in order.
	own []string
}

func (r benchResult) figure(prefix, suffix string, v float64, unit string, limit float64) Figure {
	f := Figure{Name: prefix + " " + r.name + suffix, Value: v, Unit: unit, Limit: limit}
	if bytes, ok := r.metrics["B/op"]; ok {
		f.Bytes = &bytes
	}
	if allocs, ok := r.metrics["allocs/op"]; ok {
		f.Allocs = &allocs
	}
	return f
}

// parseBench reads the Go benchmark format: a name, the iterations, then pairs
// of number and unit.
func parseBench(in io.Reader) ([]benchResult, error) {
	var results []benchResult
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		r := benchResult{name: strings.TrimPrefix(fields[0], "Benchmark"), metrics: map[string]float64{}}
		if cut := strings.LastIndexByte(r.name, '-'); cut > 0 {
			r.name = r.name[:cut] // the number of CPUs
		}
		for i := 2; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("line %q: %w", lines.Text(), err)
			}
			unit := fields[i+1]
			r.metrics[unit] = v
			if unit != "ns/op" && unit != "B/op" && unit != "allocs/op" {
				r.own = append(r.own, unit)
			}
		}
		results = append(results, r)
	}
	return results, lines.Err()
}
