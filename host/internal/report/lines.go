package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/internal/engine"
)

// state is how the node of a line stands.
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
	path, label string
	// item is which item of a map the line is for, "" for another node.
	item     string
	depth    int
	state    state
	started  time.Time
	elapsed  time.Duration
	attempts int64
	passes   int64
	// items is how many items a map has, ended how many have ended.
	items, ended int64
	// nodes is how many lines of a branch are folded into this one.
	nodes  int
	tokens int64
	// note is an error or a question.
	note string
	// uses is the node's action; slow says that its wait was reported.
	uses string
	slow bool
	// text is the end of what a model has said so far.
	text string
}

const (
	// mostLines is how many lines wait for the ones before them to end.
	mostLines = 400
	// mostText is how much of a model's text is kept.
	mostText = 2000
)

// lines are the nodes that are at work, in the order in which they are shown:
// what is inside another node stands behind it.
type lines struct {
	open   []*line
	byPath map[string]*line
	// ended counts what was given out.
	ended int
	// branches are the branches at work, by path, with the label of the item
	// where they belong to a map.
	branches map[string]string
	// fold makes one line of the nodes of a branch that ended well.
	fold bool
}

func newLines(fold bool) *lines {
	return &lines{byPath: map[string]*line{}, branches: map[string]string{}, fold: fold}
}

// take brings the lines up to an event.
func (ls *lines) take(e engine.Event) {
	switch e.Type {
	case engine.EventNodeStart:
		l := ls.at(e)
		l.state, l.started, l.uses = running, e.Time, text(e, "uses")
	case engine.EventNodeEnd:
		ls.end(ls.at(e), e)
	case engine.EventNodeError:
		l := ls.at(e)
		l.state, l.note = failed, text(e, "error_type")+": "+text(e, "error")
		l.elapsed, l.attempts, l.text = duration(e), integer(e, "attempts"), ""
	case engine.EventRetry:
		if e.Node != "" {
			l := ls.at(e)
			l.attempts = integer(e, "attempt") + 1
			l.note = text(e, "error")
		}
	case engine.EventLoop:
		ls.pass(e)
	case engine.EventToken:
		if l := ls.byPath[e.Path]; l != nil {
			l.text += text(e, "text")
			if len(l.text) > mostText {
				l.text = l.text[len(l.text)-mostText/2:]
			}
		}
	case engine.EventInterrupt:
		l := ls.at(e)
		l.state, l.note = waiting, question(e)
	case engine.EventBranchStart:
		ls.branchStart(e)
	case engine.EventBranchEnd:
		ls.branchEnd(e)
	}
}

func (ls *lines) end(l *line, e engine.Event) {
	l.state, l.text, l.note = done, "", ""
	if s, _ := e.Fields["skipped"].(bool); s {
		l.state = skipped
	}
	l.elapsed, l.attempts = duration(e), integer(e, "attempts")
	if usage, ok := e.Fields["usage"].(map[string]any); ok {
		l.tokens, _ = usage["total_tokens"].(int64)
	}
}

// branchStart notes which item of a map a branch is for.
func (ls *lines) branchStart(e engine.Event) {
	count := integer(e, "count")
	if count == 0 {
		ls.branches[e.Path] = ""
		return
	}
	name := fmt.Sprintf("%d/%d", integer(e, "index")+1, count)
	if item, ok := e.Fields["item"]; ok {
		name += " " + compact(item)
	}
	ls.branches[e.Path] = name
	if l := ls.byPath[outer(e.Path)]; l != nil {
		l.items = count
	}
}

// branchEnd folds a branch that ended well, and shows one that failed as a
// whole, by its time-out for instance; a node's failure has its own line.
func (ls *lines) branchEnd(e engine.Event) {
	isItem := ls.branches[e.Path] != ""
	delete(ls.branches, e.Path)
	if l := ls.byPath[outer(e.Path)]; l != nil && isItem {
		l.ended++
	}
	if ok, _ := e.Fields["success"].(bool); ok {
		if ls.fold {
			ls.foldBranch(e, isItem)
		}
		return
	}
	for _, l := range ls.open {
		if inside(l.path, e.Path) && l.state == running {
			l.state, l.note, l.text = failed, text(e, "error_type")+": "+text(e, "error"), ""
			l.elapsed = e.Time.Sub(l.started)
		}
	}
}

// foldBranch drops the lines of a branch that ended well. An item counts in the
// line of its map; another branch keeps its first line.
func (ls *lines) foldBranch(e engine.Event, isItem bool) {
	var first *line
	kept := ls.open[:0]
	for _, l := range ls.open {
		switch {
		case !inside(l.path, e.Path) && l.path != e.Path:
			kept = append(kept, l)
			continue
		case first == nil && !isItem:
			first = l
			first.nodes = 1
			kept = append(kept, l)
			continue
		case first != nil:
			first.nodes++
			first.elapsed = duration(e)
			first.tokens += l.tokens
		}
		delete(ls.byPath, l.path)
		ls.ended++
	}
	ls.open = kept
}

// pass begins another pass of a loop: what ended well in the last one makes
// room.
func (ls *lines) pass(e engine.Event) {
	loop := strings.TrimSuffix(e.Path, "]")
	if i := strings.LastIndexByte(loop, '['); i >= 0 {
		loop = loop[:i]
	}
	l := ls.byPath[loop]
	if l == nil {
		return
	}
	l.passes = integer(e, "iteration") + 1
	kept := ls.open[:0]
	for _, other := range ls.open {
		if inside(other.path, loop) && (other.state == done || other.state == skipped) {
			delete(ls.byPath, other.path)
			ls.ended++
			continue
		}
		kept = append(kept, other)
	}
	ls.open = kept
}

// at finds the line of an event's node or adds one.
func (ls *lines) at(e engine.Event) *line {
	if l := ls.byPath[e.Path]; l != nil {
		return l
	}
	l := &line{path: e.Path, label: label(e.Path), started: e.Time}
	if name := ls.branches[e.Path]; name != "" {
		l.label, l.item = name, name
	}
	place := len(ls.open)
	if parent := ls.parent(e.Path); parent != nil {
		l.depth = parent.depth + 1
	} else {
		l.depth = strings.Count(e.Path, ">")
	}
	// Behind the last line that has the same ancestor.
	for scope := outer(e.Path); scope != ""; scope = outer(scope) {
		last := -1
		for i, other := range ls.open {
			if other.path == scope || inside(other.path, scope) {
				last = i
			}
		}
		if last >= 0 {
			place = last + 1
			break
		}
	}
	ls.open = append(ls.open, nil)
	copy(ls.open[place+1:], ls.open[place:])
	ls.open[place] = l
	ls.byPath[e.Path] = l
	return l
}

// parent finds the nearest open line around a path.
func (ls *lines) parent(path string) *line {
	for scope := outer(path); scope != ""; scope = outer(scope) {
		if l := ls.byPath[scope]; l != nil {
			return l
		}
	}
	return nil
}

// settled gives and drops the lines that have ended and have nothing open in
// front of them; with all, or where too many wait, whatever has ended.
func (ls *lines) settled(all bool) []*line {
	all = all || len(ls.open) > mostLines
	var out []*line
	kept := ls.open[:0]
	for i, l := range ls.open {
		if !l.state.ended() || !all && ls.foldsLater(l) {
			if !all {
				kept = append(kept, ls.open[i:]...)
				break
			}
			kept = append(kept, l)
			continue
		}
		out = append(out, l)
		delete(ls.byPath, l.path)
		ls.ended++
	}
	ls.open = kept
	return out
}

// foldsLater reports whether a line belongs to a branch that is at work, which
// may fold.
func (ls *lines) foldsLater(l *line) bool {
	if !ls.fold || l.state == failed {
		return false
	}
	for scope := l.path; scope != ""; scope = outer(scope) {
		if _, ok := ls.branches[scope]; ok {
			return true
		}
	}
	return false
}

// slowAfter is how long a node runs before it is said what it waits for.
const slowAfter = 5 * time.Second

// slow returns the innermost nodes that have been running for slowAfter, each
// once.
func (ls *lines) slow(now time.Time) []*line {
	var out []*line
	for i, l := range ls.open {
		if l.state != running || l.slow || now.Sub(l.started) < slowAfter {
			continue
		}
		if i+1 < len(ls.open) && inside(ls.open[i+1].path, l.path) { // it is a container
			continue
		}
		l.slow = true
		out = append(out, l)
	}
	return out
}

// wait says what a running node waits for.
func (l *line) wait() string {
	if l.uses == "" {
		return "still running"
	}
	return "waiting for " + l.uses
}

// rest gives and drops all lines.
func (ls *lines) rest() []*line {
	out := ls.open
	ls.open, ls.byPath = nil, map[string]*line{}
	return out
}
