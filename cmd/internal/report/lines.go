package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/internal/execpath"
)

// state is the state of a line's node.
type state int

const (
	running state = iota
	waiting
	done
	skipped
	failed
)

func (s state) ended() bool { return s >= done }

// line is one node of the run.
type line struct {
	path execpath.Path
	// item is the map item of the line; nil for any other node.
	item    *item
	depth   int
	state   state
	started time.Time
	// attempted is when the current attempt starts, in the future while the node
	// waits before a retry.
	attempted time.Time
	elapsed   time.Duration
	attempts  int64
	passes    int64
	// items is the number of items of a map, ended the number of ended items;
	// folded reports whether successful items have no lines, and counted is when the
	// count was last reported.
	items, ended int64
	folded       bool
	counted      time.Time
	// nodes is the number of lines of a branch that are folded into this one.
	nodes  int
	tokens int64
	// note is an error or a question.
	note string
	// uses is the node's action; slow reports whether its wait was reported.
	uses string
	slow bool
	// inner is the reason of the last failure inside the node.
	inner string
	// text is the end of a model's output so far.
	text string
}

// item is an item of a map.
type item struct {
	index, count int64
	value        any
}

func (i *item) String() string {
	name := fmt.Sprintf("%d/%d", i.index+1, i.count)
	if i.value != nil {
		name += " " + compact(i.value)
	}
	return name
}

// branch is a running branch.
type branch struct {
	// item is nil unless this is a branch of a map.
	item *item
	// fold combines the branch's nodes in one line if it succeeds.
	fold bool
}

const (
	// mostItems is the number of items from which plain output lists only failed
	// ones.
	mostItems = 100
	// mostLines bounds the ended lines that wait for the lines before them.
	mostLines = 400
	// mostText is the length of a model's output that is kept.
	mostText = 2000
)

// lines are the running nodes in display order: nodes inside another node
// follow it. The cost of an event does not depend on their number.
type lines struct {
	// failed is the path of the last failure that was shown with its reason.
	failed string
	open   execpath.Tree[*line]
	// finished counts the open lines whose node has ended; fresh are the lines
	// that ended since the last call of settled.
	finished int
	fresh    []*line
	// branches has the running branches by path.
	branches map[execpath.Path]branch
	// fold combines the nodes of each successful branch in one line.
	fold bool
}

func newLines(fold bool) *lines { return &lines{branches: map[execpath.Path]branch{}, fold: fold} }

// take updates the lines with an event.
func (ls *lines) take(e flow.Event) {
	switch e.Type {
	case flow.EventNodeStart:
		l := ls.at(e)
		ls.turn(l, running)
		l.started, l.attempted, l.uses = e.Time, e.Time, e.Text("uses")
	case flow.EventNodeEnd:
		ls.end(ls.at(e), e)
	case flow.EventNodeError:
		l := ls.at(e)
		ls.turn(l, failed)
		ls.explain(l, failure(e))
		l.elapsed, l.attempts, l.text = milliseconds(e, "duration_ms"), integer(e, "attempts"), ""
	case flow.EventRetry:
		if e.Node != "" {
			l := ls.at(e)
			l.attempts = integer(e, "attempt") + 1
			l.note, l.attempted, l.slow = failure(e), e.Time.Add(milliseconds(e, "wait_ms")), false
		}
	case flow.EventLoop:
		ls.pass(e)
	case flow.EventToken:
		if l, ok := ls.open.Get(execpath.Path(e.Path)); ok {
			l.text += e.Text("text")
			if len(l.text) > mostText {
				l.text = l.text[len(l.text)-mostText/2:]
			}
		}
	case flow.EventInterrupt:
		l := ls.at(e)
		ls.turn(l, waiting)
		l.note = question(e)
	case flow.EventBranchStart:
		ls.branchStart(e)
	case flow.EventBranchEnd:
		ls.branchEnd(e)
	}
}

// explain sets the reason of a failure, unless it was shown for an inner node.
func (ls *lines) explain(l *line, reason string) {
	l.note = ""
	if l.inner != reason {
		l.note, ls.failed = reason, string(l.path)
	}
	for scope := l.path.Outer(); scope != ""; scope = scope.Outer() {
		if outer, ok := ls.open.Get(scope); ok {
			outer.inner = reason
		}
	}
}

// turn sets a line's state.
func (ls *lines) turn(l *line, s state) {
	switch was := l.state.ended(); {
	case s.ended() && !was:
		ls.finished++
		ls.fresh = append(ls.fresh, l)
	case was && !s.ended():
		ls.finished--
	}
	l.state = s
}

func (ls *lines) drop(l *line) {
	if l.state.ended() {
		ls.finished--
	}
	ls.open.Delete(l.path)
}

func (ls *lines) end(l *line, e flow.Event) {
	ls.turn(l, done)
	l.text, l.note = "", ""
	if s, _ := e.Field("skipped").(bool); s {
		ls.turn(l, skipped)
	}
	l.elapsed, l.attempts = milliseconds(e, "duration_ms"), integer(e, "attempts")
	if usage, ok := e.Field("usage").(map[string]any); ok {
		l.tokens, _ = usage["total_tokens"].(int64)
	}
}

// branchStart records the map item of a branch and reserves the branch's
// position: branches start in the order written, but their first nodes may not.
func (ls *lines) branchStart(e flow.Event) {
	path := execpath.Path(e.Path)
	ls.open.Reserve(path)
	count := integer(e, "count")
	if count == 0 {
		ls.branches[path] = branch{fold: ls.fold}
		return
	}
	fold := ls.fold || count > mostItems
	ls.branches[path] = branch{item: &item{integer(e, "index"), count, e.Field("item")}, fold: fold}
	if l, ok := ls.open.Nearest(path.Outer()); ok && l.items != count {
		l.items, l.folded, l.counted = count, fold, e.Time
	}
}

// branchEnd folds a successful branch, and shows a branch that failed as a whole,
// for example by its timeout; the failure of a node has a separate line.
func (ls *lines) branchEnd(e flow.Event) {
	path := execpath.Path(e.Path)
	b := ls.branches[path]
	delete(ls.branches, path)
	defer ls.open.Unreserve(path)
	if l, ok := ls.open.Nearest(path.Outer()); ok && b.item != nil {
		l.ended++
	}
	if ok, _ := e.Field("success").(bool); ok {
		if b.fold {
			ls.foldBranch(e, b.item != nil)
		}
		return
	}
	for _, l := range ls.branch(path) {
		switch {
		case l.state == running:
			ls.turn(l, failed)
			l.note, l.text = failure(e), ""
			l.elapsed = e.Time.Sub(l.started)
		case l.state != failed && b.fold && !ls.fold:
			ls.drop(l)
		}
	}
}

// branch returns the lines of a branch, in order; the node of an item has the
// path of its branch.
func (ls *lines) branch(path execpath.Path) []*line {
	var out []*line
	if l, ok := ls.open.Get(path); ok {
		out = append(out, l)
	}
	for _, l := range ls.open.Below(path) {
		out = append(out, l)
	}
	return out
}

// foldBranch removes the lines of a successful branch. An item is counted in the
// line of its map; any other branch keeps its first line.
func (ls *lines) foldBranch(e flow.Event, isItem bool) {
	var first *line
	for _, l := range ls.branch(execpath.Path(e.Path)) {
		if first == nil && !isItem {
			first = l
			first.nodes = 1
			continue
		}
		if first != nil {
			first.nodes++
			first.elapsed = milliseconds(e, "duration_ms")
			first.tokens += l.tokens
		}
		ls.drop(l)
	}
}

// pass begins another iteration of a loop, and removes the successful nodes of the
// last one.
func (ls *lines) pass(e flow.Event) {
	loop := execpath.Path(e.Path).Outer()
	l, ok := ls.open.Get(loop)
	if !ok {
		return
	}
	l.passes = integer(e, "iteration") + 1
	for _, other := range ls.open.Below(loop) {
		if other.state == done || other.state == skipped {
			ls.drop(other)
		}
	}
}

// at returns the line of an event's node, and adds it if necessary.
func (ls *lines) at(e flow.Event) *line {
	if l, ok := ls.open.Get(execpath.Path(e.Path)); ok {
		return l
	}
	path := execpath.Path(e.Path)
	l := &line{path: path, item: ls.branches[path].item, started: e.Time, attempted: e.Time}
	if parent, ok := ls.open.Nearest(path.Outer()); ok {
		l.depth = parent.depth + 1
	} else {
		l.depth = strings.Count(e.Path, ">")
	}
	ls.open.Set(path, l)
	return l
}

// label returns the line's name in the context of the surrounding lines.
func (l *line) label() string {
	if l.item != nil {
		return l.item.String()
	}
	return l.path.Label()
}

// settled returns and removes the ended lines with no open line before them;
// with all, or if too many wait, every ended line that cannot fold.
func (ls *lines) settled(all bool) []*line {
	fresh := ls.fresh
	ls.fresh = ls.fresh[:0]
	var out []*line
	if all {
		for _, l := range fresh {
			if now, ok := ls.open.Get(l.path); ok && now == l && l.state.ended() && !ls.foldsLater(l) {
				out = append(out, l)
				ls.drop(l)
			}
		}
		return out
	}
	all = ls.finished > mostLines
	for _, l := range ls.open.Below("") {
		if l.state.ended() && (all || !ls.foldsLater(l)) {
			out = append(out, l)
			ls.drop(l)
		} else if !all {
			break
		}
	}
	return out
}

// foldsLater reports whether a line belongs to a running branch, which can
// fold.
func (ls *lines) foldsLater(l *line) bool {
	if l.state == failed || len(ls.branches) == 0 {
		return false
	}
	for scope := l.path; scope != ""; scope = scope.Outer() {
		if ls.branches[scope].fold {
			return true
		}
	}
	return false
}

// slowAfter is the time after which the wait of a running node is reported.
const slowAfter = 5 * time.Second

// slow returns the innermost nodes that have been running for slowAfter, each
// only once.
func (ls *lines) slow(now time.Time) []*line {
	var out []*line
	for _, l := range ls.open.Below("") {
		if l.state != running || l.slow || l.folded || now.Sub(l.attempted) < slowAfter {
			continue
		}
		if ls.hasInner(l.path) {
			continue
		}
		l.slow = true
		out = append(out, l)
	}
	return out
}

// countEvery is the interval at which plain output reports how many items of a
// map have ended.
const countEvery = 10 * time.Second

// counts returns the maps whose count of ended items is due.
func (ls *lines) counts(now time.Time) []*line {
	var out []*line
	for _, l := range ls.open.Below("") {
		if l.folded && l.state == running && now.Sub(l.counted) >= countEvery {
			l.counted = now
			out = append(out, l)
		}
	}
	return out
}

// hasInner reports whether the line belongs to a running container.
func (ls *lines) hasInner(path execpath.Path) bool {
	for range ls.open.Below(path) {
		return true
	}
	return false
}

// wait describes what a running node waits for.
func (l *line) wait() string {
	if l.uses == "" {
		return "still running"
	}
	return "waiting for " + l.uses
}

// uses returns the action of an event's node, if there is one.
func (ls *lines) uses(e flow.Event) string {
	if l, ok := ls.open.Get(execpath.Path(e.Path)); ok {
		return l.uses
	}
	return ""
}

// retrying describes the wait before a retry of an action; uses is "" for
// anything else.
func retrying(uses string, wait time.Duration, why string) string {
	if uses != "" {
		uses = " " + uses
	}
	seconds := (wait + time.Second - 1).Truncate(time.Second)
	return fmt.Sprintf("retrying%s in %s (%s)", uses, seconds, oneLine(why))
}

// rest returns and removes all lines.
func (ls *lines) rest() []*line {
	var out []*line
	for _, l := range ls.open.Below("") {
		out = append(out, l)
	}
	*ls = lines{failed: ls.failed, branches: map[execpath.Path]branch{}, fold: ls.fold}
	return out
}
