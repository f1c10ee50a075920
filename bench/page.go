package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// writePage writes docs/reference/performance.md and its drawings from the figures of the
// last `make bench`.
func writePage() error {
	r, err := readReport()
	if err != nil {
		return fmt.Errorf("run make bench first: %w", err)
	}
	var page strings.Builder
	fmt.Fprintf(&page, "# Performance\n\nWritten by `make performance` from the figures of `make bench`, on %s/%s with %d CPUs and %s. Times are medians. "+
		"`make bench` measures more on your machine, and compares the figures with their limits.\n\n", r.OS, r.Arch, r.CPUs, r.Go)
	page.WriteString("| figure | value | unit |\n| --- | ---: | --- |\n")
	for _, s := range shown {
		for _, f := range r.Figures {
			if f.Name == s.figure {
				fmt.Fprintf(&page, "| %s | %s | %s |\n", s.label, number(f.Value), f.Unit)
				break
			}
		}
	}
	fmt.Fprintf(&page, "\n## Growth\n\nMedians of %d measurements. %s Chains and fan-outs have one caller for each core; a map has one caller.\n\n", r.Times, r.quiet())
	drawn := charts(r.Growth)
	if !r.isQuiet() {
		drawn = drawn[:1] // elapsed times cannot be compared
	}
	for _, c := range drawn {
		if err := os.WriteFile(filepath.Join("docs", "reference", c.file), []byte(c.svg()), 0o600); err != nil {
			return err
		}
		fmt.Fprintf(&page, "![%s](%s)\n\n", c.title, c.file)
	}
	header := true
	growthTable(r.Growth, func(cells ...string) {
		if !r.isQuiet() {
			cells = append(cells[:3], cells[4])
		}
		fmt.Fprintf(&page, "| %s |\n", strings.Join(cells, " | "))
		if header {
			fmt.Fprintf(&page, "| ---%s |\n", strings.Repeat(" | ---:", len(cells)-1))
			header = false
		}
	})
	return os.WriteFile(filepath.Join("docs", "reference", "performance.md"), []byte(page.String()), 0o600)
}

// chart draws lines over a logarithmic horizontal axis.
type chart struct {
	file, title string
	lines       []line
}

type line struct {
	name string
	x, y []float64
}

// charts returns the drawings of the table "growth": CPU time over the size, and the gain of
// more cores at the largest size.
func charts(points []Point) []chart {
	sizes := chart{file: "growth-size.svg", title: "CPU time of a unit in microseconds on one core, by size"}
	cores := chart{file: "growth-cores.svg", title: "Elapsed time against one core at the largest size, by cores"}
	bySize, byCores := map[string]*line{}, map[string]*line{}
	var names []string
	for _, p := range points {
		if bySize[p.Row] == nil {
			bySize[p.Row], byCores[p.Row] = &line{name: p.Row}, &line{name: p.Row}
			names = append(names, p.Row)
		}
		l := byCores[p.Row]
		if p.Cores == 1 {
			s := bySize[p.Row]
			s.x, s.y = append(s.x, float64(p.Size)), append(s.y, p.CPU)
			l.x, l.y = nil, nil // the points of a larger size follow
		}
		l.x, l.y = append(l.x, float64(p.Cores)), append(l.y, p.Wall)
	}
	for _, name := range names {
		l := byCores[name]
		one := l.y[0]
		for i := range l.y {
			l.y[i] /= one
		}
		sizes.lines, cores.lines = append(sizes.lines, *bySize[name]), append(cores.lines, *l)
	}
	return []chart{sizes, cores}
}

// svg returns the drawing.
func (c chart) svg() string {
	const width, height, left, top = 400.0, 220.0, 50.0, 30.0
	colors := []string{"#1b6ca8", "#c0392b", "#27864a", "#8e44ad", "#7f8c8d"}
	low, high, most := math.Inf(1), 0.0, 0.0
	for _, l := range c.lines {
		for i := range l.x {
			low, high, most = min(low, l.x[i]), max(high, l.x[i]), max(most, l.y[i])
		}
	}
	x := func(v float64) float64 { return left + width*math.Log(v/low)/math.Log(max(high/low, 2)) }
	y := func(v float64) float64 { return top + height*(1-v/most) }
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 290" font-family="sans-serif" font-size="12"><rect width="800" height="290" fill="white"/><text x="%g" y="16">%s</text>`+"\n", left, c.title)
	for i := range 5 {
		v := most * float64(i) / 4
		fmt.Fprintf(&out, `<path d="M%g %.1fh%g" stroke="#ddd"/><text x="%g" y="%.1f" text-anchor="end">%s</text>`+"\n", left, y(v), width, left-6, y(v)+4, number(v))
	}
	for v := low; v <= high; v *= max(2, math.Pow(10, math.Floor(math.Log10(high/low)/2))) {
		fmt.Fprintf(&out, `<text x="%.1f" y="%g" text-anchor="middle">%s</text>`+"\n", x(v), top+height+18, number(v))
	}
	for i, l := range c.lines {
		var path strings.Builder
		for k := range l.x {
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(k, 1)], x(l.x[k]), y(l.y[k]))
		}
		color, row := colors[i%len(colors)], top+20*float64(i)+10
		fmt.Fprintf(&out, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/><path d="M%g %gh20" stroke="%s" stroke-width="2"/><text x="%g" y="%g">%s</text>`+"\n",
			path.String(), color, left+width+20, row, color, left+width+46, row+4, l.name)
	}
	return out.String() + "</svg>\n"
}

// shown are the figures on the page.
var shown = []struct{ figure, label string }{
	{"tea run, no plugin", "`tea run` of one Lua node, start to exit"},
	{"tea run, no plugin, peak RSS", "its peak RSS"},
	{"tea run, one plugin call", "`tea run` with one call of a plugin"},
	{"bare go-plugin, start and one call", "the same with go-plugin alone"},
	{"tea validate, 1,000 Lua nodes", "`tea validate` of 1,000 Lua nodes"},
	{"engine Chain3", "a chain of three calls, in memory"},
	{"engine FanOut5", "a fan-out of five calls, in memory"},
	{"engine LuaNode", "a Lua node with 20 keys in the state"},
	{"fan-out of 100000 items, tea run, median per item", "a map of 100,000 items, `tea run`, per item"},
	{"fan-out of 10000 items, tea run -c, median per item", "a map of 10,000 items with a checkpoint, per item"},
	{"growth DurableStep", "a step of a loop, on disk before the next one"},
	{"growth Journal/1000, file per step", "the checkpoint of a step with 1 KB"},
	{"growth State/10000KB", "a chain of ten over a state of 10 MB"},
	{"plugin RoundTrip", "a call of a plugin"},
	{"plugin RoundTrip, of it the bare call", "of that, the call with go-plugin alone"},
	{"plugin NodeCalls/map", "a call of a plugin in a map"},
	{"plugin LuaLoop/records/1MB", "a call of a plugin with 1 MB of records"},
	{"idle plugin, RSS", "an idle plugin, RSS"},
	{"streamed token, model to reader of tea run, median", "a streamed token, model to reader"},
	{"serve Runs/exit, 8 clients", "a run of `tea serve`, eight clients"},
	{"serve Start, p99 at 100 a second", "its start, p99 at 100 a second"},
	{"serve Idle, RSS", "`tea serve` without work, RSS"},
	{"mcp server Call/exit, a workflow with one Lua node", "a tool of `tea mcp`"},
	{"mcp client Call/action, a tool of a process", "a tool of an MCP server"},
	{"memory Store/sqlite/plugin, median", "`ltm.store`, SQLite"},
	{"memory StoreItems/sqlite/plugin, per item", "an item of a large `ltm.store`, SQLite"},
	{"memory Among/sqlite/plugin/100000/retrieve", "`ltm.retrieve` among 100,000 entries, SQLite"},
	{"memory Among/sqlite/plugin/100000/search", "`ltm.search` among 100,000 entries, SQLite"},
	{"memory Among/duckdb/plugin/100000/search", "`ltm.search` among 100,000 entries, DuckDB"},
	{"memory DataQuery/100000/sqlite/consolidated, median", "`data.query` over 100,000 rows, SQLite"},
	{"memory DataQuery/100000/duckdb/consolidated, median", "`data.query` over 100,000 rows, DuckDB"},
	{"memory VectorQuery/sqlite/inside", "`vector.query` among 100,000 vectors, SQLite"},
	{"memory Assemble/sqlite/files=1000/same", "`context.assemble` over 1,000 files"},
	{"memory Start/full, RSS", "the memory plugin with DuckDB, RSS"},
	{"graph Neighbors/memory/2hops", "two hops among 10,000 entities, in memory"},
	{"graph Neighbors/cypher/2hops", "the same, Kuzu"},
	{"graph RetrieveContext/memory", "`graph.retrieve_context`, in memory"},
	{"web Pages/scrape, a page", "a page of `web.scrape`"},
	{"growth Plan/concurrent, besides its action", "a subtask of a plan, without its action"},
	{"memory DataInsert/1000/sqlite, median", "`data.insert` of 1,000 rows, SQLite"},
}
