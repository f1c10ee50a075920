package report

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/internal/execpath"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

func at(ms int) time.Time { return time.UnixMilli(int64(ms)) }

func event(ms int, kind flow.EventType, path string, members map[string]any) flow.Event {
	node := path[strings.LastIndexAny(path, "/>")+1:]
	return flow.Event{Time: at(ms), Type: kind, Node: node, Path: path, Fields: fields(members)}
}

func started(path string) flow.Event { return event(0, flow.EventNodeStart, path, nil) }

func ended(path string, ms float64) flow.Event {
	return event(0, flow.EventNodeEnd, path, map[string]any{"duration_ms": ms})
}

// fanOut is a fan-out whose second branch ends first.
var fanOut = []flow.Event{
	started("a"), ended("a", 1),
	event(0, flow.EventBranchStart, "a>b", map[string]any{"branch": "b"}),
	event(0, flow.EventBranchStart, "a>c", map[string]any{"branch": "c"}),
	started("a>b/b"), started("a>c/c"), ended("a>c/c", 2),
	event(0, flow.EventBranchEnd, "a>c", map[string]any{"branch": "c", "success": true}),
	event(0, flow.EventRetry, "a>b/b", map[string]any{"attempt": int64(1), "error": "slow"}),
	event(0, flow.EventNodeEnd, "a>b/b", map[string]any{"duration_ms": 3.0, "attempts": int64(2), "usage": map[string]any{"total_tokens": int64(40)}}),
	event(0, flow.EventBranchEnd, "a>b", map[string]any{"branch": "b", "success": true}),
	started("join"), ended("join", 4),
}

func TestPlainLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := New(&out, Options{})
	for _, e := range fanOut {
		r.Event(e)
	}
	r.Event(event(0, flow.EventNodeEnd, "off", map[string]any{"skipped": true}))
	r.Event(started("bad"))
	r.Event(event(0, flow.EventNodeError, "bad", map[string]any{
		"error": "no\x1b[2J\nroute", "error_type": "timeout", "duration_ms": 1500.0, "attempts": int64(3),
	}))
	r.Event(event(0, flow.EventInterrupt, "ask", map[string]any{"question": "Go on?"}))
	r.Close()
	want := `a: done (1ms)
a>c/c: done (2ms)
a>b/b: done (3ms, 2 attempts, 40 tokens)
join: done (4ms)
off: skipped
bad: failed (1.5s, 3 attempts): timeout: no [2J route
ask: waiting: Go on?
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// Each node that takes long is mentioned once; what contains it is not.
func TestSlowNodesReportWhatTheyWaitFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		size func() (int, int)
		want string
	}{
		{"plain", nil, "ask: waiting for llm.call (5s)\nloop[0]/think: still running (5s)\n"},
		{"terminal", func() (int, int) { return 80, 24 }, "waiting for llm.call"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			var now atomic.Int64
			r := New(&out, Options{Size: c.size, ASCII: true, Now: func() time.Time { return at(int(now.Load())) }})
			r.Event(event(0, flow.EventNodeStart, "ask", map[string]any{"uses": "llm.call"}))
			r.Event(started("loop"))
			r.Event(started("loop[0]/think"))
			r.redraw()
			if strings.Contains(out.String(), "waiting") {
				t.Errorf("too early: %s", &out)
			}
			now.Store(5000)
			r.redraw()
			r.redraw()
			r.Close()
			if c.size == nil && out.String() != c.want || !strings.Contains(out.String(), c.want) {
				t.Errorf("got %s", &out)
			}
		})
	}
}

// While a node waits before a retry, the output names the wait and the error,
// and no call that is not running.
func TestRetriesReportWhyTheyWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		size func() (int, int)
		want string
	}{
		{"plain", nil, `ask: retrying http.get in 13s (rate_limited: HTTP 429 [2J slow down)
branch>b: retrying in 2s (timeout: too slow)
ask: waiting for http.get (5s)
`},
		{"terminal", wide, "ask  7s, retrying http.get in 6s (rate_limited: HTTP 429 [2J slow down), a...\n"},
		{"terminal after the wait", wide, "ask  18s, waiting for http.get, attempt 2, rate_limited: HTTP 429 [2J slow...\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			var now atomic.Int64
			r := New(&out, Options{Size: c.size, ASCII: true, Now: func() time.Time { return at(int(now.Load())) }})
			r.Event(event(0, flow.EventNodeStart, "ask", map[string]any{"uses": "http.get"}))
			again := event(0, flow.EventRetry, "ask", map[string]any{
				"attempt": int64(1), "wait_ms": 12500.0, "error": "HTTP 429\x1b[2J slow down", "error_type": "rate_limited",
			})
			branch := event(0, flow.EventRetry, "branch>b", map[string]any{"attempt": int64(1), "wait_ms": 2000.0, "error": "too slow", "error_type": "timeout"})
			branch.Node = ""
			short := event(0, flow.EventRetry, "ask", map[string]any{"attempt": int64(1), "wait_ms": 20.0, "error": "no route", "error_type": "connection_error"})
			r.Event(short)
			r.Event(again)
			r.Event(branch)
			now.Store(7000)
			r.redraw()
			if c.name != "terminal" {
				now.Store(18000)
				r.redraw()
				r.redraw()
			}
			if got := out.String(); !strings.Contains(got, c.want) || c.size == nil && got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			r.Close()
		})
	}
}

func live(out *bytes.Buffer, size func() (int, int)) *Report {
	return New(out, Options{Size: size, ASCII: true, Now: func() time.Time { return at(0) }})
}

func wide() (int, int) { return 80, 24 }

// On a terminal the branches of a fan-out are below it in the order in which
// they are written, whichever ends first.
func TestTerminalShowsBranchesInOrder(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := live(&out, wide)
	for _, e := range fanOut {
		r.Event(e)
	}
	r.Close()
	want := []string{
		"+ a  1ms",
		"  + b  3ms, attempt 2, 40 tokens",
		"  + c  2ms",
		"+ join  4ms",
	}
	if diff := cmp.Diff(want, screenOf(out.String(), 80)); diff != "" {
		t.Error(diff)
	}
}

// screenOf replays output on a terminal and returns the lines on it. It
// supports line breaks, carriage returns, cursor up, erase below and colours.
func screenOf(text string, columns int) []string {
	var rows [][]rune
	row, column := 0, 0
	put := func(r rune) {
		if column == columns {
			row, column = row+1, 0
		}
		for len(rows) <= row {
			rows = append(rows, nil)
		}
		for len(rows[row]) <= column {
			rows[row] = append(rows[row], ' ')
		}
		rows[row][column] = r
		column++
	}
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; r {
		case '\n':
			row, column = row+1, 0
		case '\r':
			column = 0
		case '\x1b':
			n := 0
			for i += 2; runes[i] >= '0' && runes[i] <= ';'; i++ {
				n = n*10 + int(runes[i]-'0')
			}
			switch runes[i] {
			case 'A':
				row = max(0, row-n)
			case 'J':
				rows = rows[:min(row, len(rows))]
			}
		default:
			put(r)
		}
	}
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = strings.TrimRight(string(r), " ")
	}
	return out
}

// What runs is shown with the end of what a model says; a log line goes above
// it and leaves no rest of what was drawn there.
func TestLogLinesDoNotMixWithLiveLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := live(&out, wide)
	r.Event(started("think"))
	r.Event(event(0, flow.EventToken, "think", map[string]any{"text": "Once upon\na \x1b[31mtime"}))
	r.redraw()
	if _, err := r.Write([]byte("level=WARN msg=care")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Write([]byte("ful\n")); err != nil {
		t.Fatal(err)
	}
	want := []string{"level=WARN msg=careful", "| think  0s", "  Once upon a [31mtime"}
	if diff := cmp.Diff(want, screenOf(out.String(), 80)); diff != "" {
		t.Error(diff)
	}
	r.Event(ended("think", 5))
	r.Close()
	want = []string{"level=WARN msg=careful", "+ think  5ms"}
	if diff := cmp.Diff(want, screenOf(out.String(), 80)); diff != "" {
		t.Error(diff)
	}
}

// No line is wider than the terminal, and no more are drawn than fit.
func TestFitsTheTerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := live(&out, func() (int, int) { return 20, 6 })
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "日本語日本語日本語日本語"} {
		r.Event(started(name))
	}
	r.redraw()
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	if len(lines) > 5 {
		t.Errorf("%d lines on a terminal of 6:\n%s", len(lines), out.String())
	}
	if want := "  ... 5 more"; lines[len(lines)-1] != want {
		t.Errorf("last line = %q, want %q", lines[len(lines)-1], want)
	}
	for _, l := range r.lines.open.Below("") {
		if width := lineWidth(r, l, 20); width >= 20 {
			t.Errorf("line of %s is %d wide", l.path, width)
		}
	}
	r.Close()
}

// A terminal that becomes narrower breaks the existing lines; they are
// erased all the same.
func TestResizeErasesBrokenLines(t *testing.T) {
	t.Parallel()
	s := screen{widths: []int{30, 10}, columns: 40}
	if got := s.rows(16); got != 3 {
		t.Errorf("rows = %d, want 3", got)
	}
}

func TestLoopShowsOnePass(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := live(&out, wide)
	pass := func(n int64, path string) flow.Event {
		return flow.Event{Type: flow.EventLoop, Node: "loop", Path: path, Fields: fields(map[string]any{"iteration": n})}
	}
	r.Event(started("loop"))
	r.Event(pass(0, "loop[0]"))
	r.Event(started("loop[0]/x"))
	r.Event(ended("loop[0]/x", 1))
	r.Event(pass(1, "loop[1]"))
	r.Event(started("loop[1]/x"))
	r.redraw()
	want := []string{"| loop  0s, 2 passes", "  | x  0s"}
	if diff := cmp.Diff(want, screenOf(out.String(), 80)); diff != "" {
		t.Error(diff)
	}
	r.Close()
}

// items is a map of two items with two steps each, of which the second item
// ends first.
var items = []flow.Event{
	started("each"),
	event(0, flow.EventBranchStart, "each[0]", map[string]any{"branch": "each[0]", "index": int64(0), "count": int64(2), "item": "red"}),
	started("each[0]"), started("each[0]/fetch"),
	event(0, flow.EventBranchStart, "each[1]", map[string]any{"branch": "each[1]", "index": int64(1), "count": int64(2)}),
	started("each[1]"), started("each[1]/fetch"), ended("each[1]/fetch", 1), ended("each[1]", 2),
	event(0, flow.EventBranchEnd, "each[1]", map[string]any{"branch": "each[1]", "success": true, "duration_ms": 2.0}),
}

func TestItemsOfAMap(t *testing.T) {
	t.Parallel()
	var plain bytes.Buffer
	r := New(&plain, Options{})
	var screen bytes.Buffer
	l := live(&screen, wide)
	for _, e := range items {
		r.Event(e)
		l.Event(e)
	}
	l.redraw()
	r.Close()
	if diff := cmp.Diff("each[1]/fetch: done (1ms)\neach[1] 2/2: done (2ms)\n", plain.String()); diff != "" {
		t.Error(diff)
	}
	want := []string{`| each  0s, 1/2`, `  | 1/2 "red"  0s`, "    | fetch  0s"}
	if diff := cmp.Diff(want, screenOf(screen.String(), 80)); diff != "" {
		t.Error(diff)
	}
	l.Close()
}

// Branches are shown in the order in which they start, whichever node of them
// starts first.
func TestBranchesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := live(&out, wide)
	for _, e := range []flow.Event{
		started("a"), ended("a", 1),
		event(0, flow.EventBranchStart, "a>b", map[string]any{"branch": "b"}),
		event(0, flow.EventBranchStart, "a>c", map[string]any{"branch": "c"}),
		started("a>c/c"), started("a>b/b"),
	} {
		r.Event(e)
	}
	r.redraw()
	want := []string{"+ a  1ms", "  | b  0s", "  | c  0s"}
	if diff := cmp.Diff(want, screenOf(out.String(), 80)); diff != "" {
		t.Error(diff)
	}
	r.Close()
}

// On a terminal a branch of several nodes is one line when it has ended well.
func TestFinishedBranchesFold(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := live(&out, wide)
	for _, e := range []flow.Event{
		started("a"), ended("a", 1),
		event(0, flow.EventBranchStart, "a>b", map[string]any{"branch": "b"}),
		started("a>b/b"), ended("a>b/b", 1), started("a>b/c"), ended("a>b/c", 1),
		event(0, flow.EventBranchStart, "a>d", map[string]any{"branch": "d"}),
		started("a>d/d"),
		event(0, flow.EventBranchEnd, "a>b", map[string]any{"branch": "b", "success": true, "duration_ms": 7.0}),
	} {
		r.Event(e)
	}
	r.redraw()
	want := []string{"+ a  1ms", "  + b  7ms, 2 nodes", "  | d  0s"}
	if diff := cmp.Diff(want, screenOf(out.String(), 80)); diff != "" {
		t.Error(diff)
	}
	r.Close()
}

// Nothing is drawn while the caller of Hold uses the terminal.
func TestHoldBuffersOutput(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := live(&out, wide)
	r.Event(started("ask"))
	release := r.Hold()
	before := out.Len()
	r.Event(started("other"))
	r.Event(ended("other", 1))
	if _, err := r.Write([]byte("log\n")); err != nil {
		t.Fatal(err)
	}
	if out.Len() != before {
		t.Errorf("written while held: %q", out.String()[before:])
	}
	release()
	if !strings.Contains(out.String()[before:], "log\n") {
		t.Error("what came meanwhile is lost")
	}
	r.Close()
}

// Many goroutines may use one report.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := live(&out, wide)
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		wg.Go(func() {
			for range 50 {
				r.Event(started(name))
				_, _ = r.Write([]byte("line\n"))
				r.Event(ended(name, 1))
			}
		})
	}
	wg.Wait()
	r.Close()
	if n := strings.Count(out.String(), "line\n"); n != 200 {
		t.Errorf("%d log lines, want 200", n)
	}
}

func TestDiagnosticsShowTheLine(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(file, []byte("nodes:\n\t- näme: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	list := diag.List{
		{Code: "TEA1", Severity: diag.Error, Pos: diag.Pos{File: file, Line: 2, Column: 4, Path: "nodes[0]"}, Message: "bad key", Hint: "write name"},
		{Code: "TEA2", Severity: diag.Warning, Pos: diag.Pos{File: "gone.yaml", Line: 1, Column: 1}, Message: "odd"},
	}
	var out bytes.Buffer
	New(&out, Options{}).Diagnostics(list)
	want := file + `:2:4: error TEA1: bad key (nodes[0])
  2 |     - näme: x
    |       ^~~~
  hint: write name
gone.yaml:1:1: warning TEA2: odd
1 error, 1 warning
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	New(&out, Options{Quiet: true}).Diagnostics(list[1:])
	if out.Len() > 0 {
		t.Errorf("quiet prints a warning: %q", &out)
	}
}

func TestShortTimesInASCII(t *testing.T) {
	t.Parallel()
	for ascii, want := range map[bool]string{true: "880us", false: "880µs"} {
		if got := newStyle(false, ascii).brief(880 * time.Microsecond); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A map's item that runs out of time has no event of its node.
func TestItemThatTimesOutHasALine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := New(&out, Options{})
	r.Event(started("each"))
	r.Event(started("each[0]"))
	r.Event(started("each[0]/step"))
	r.Event(event(50, flow.EventBranchEnd, "each[0]", map[string]any{"success": false, "error": "too slow", "error_type": "timeout"}))
	r.Close()
	want := "each[0]: failed (50ms): timeout: too slow\neach[0]/step: failed (50ms): timeout: too slow\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// fields are the members of an object, by name.
func fields(members map[string]any) []flow.Field {
	var list []flow.Field
	for _, key := range slices.Sorted(maps.Keys(members)) {
		list = append(list, flow.Field{Key: key, Value: members[key]})
	}
	return list
}

// Plain output lists the items of a small map. Of a large one it lists those
// that fail, and reports the progress at intervals.
func TestPlainItemsOfALargeMap(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	var out bytes.Buffer
	r := New(&out, Options{Now: func() time.Time { return at(int(now.Load())) }})
	r.Event(started("each"))
	for i := range mostItems + 1 {
		path := string(execpath.Path("each").Index(i))
		bad := i == 7
		r.Event(event(0, flow.EventBranchStart, path, map[string]any{"index": int64(i), "count": int64(mostItems + 1), "item": "x"}))
		r.Event(started(path + "/first"))
		r.Event(ended(path+"/first", 1))
		r.Event(started(path + "/second"))
		if bad {
			r.Event(event(0, flow.EventNodeError, path+"/second", map[string]any{"error": "broken", "error_type": "timeout", "duration_ms": 2.0}))
		} else {
			r.Event(ended(path+"/second", 2))
		}
		r.Event(event(0, flow.EventBranchEnd, path, map[string]any{"success": !bad, "error": "broken"}))
		if i == 49 {
			now.Store(countEvery.Milliseconds())
			r.redraw()
			r.redraw()
		}
	}
	r.Event(ended("each", 3))
	r.Close()
	want := "each[7]/second: failed (2ms): timeout: broken\n" +
		"each: running (50 of 101 items)\n" +
		"each: done (3ms, 101 of 101 items)\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
