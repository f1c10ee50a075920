package trace

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/internal/tracecontext"
)

// console prints the tree of a run when its root ends.
type console struct {
	out io.Writer
	// ended are the ended spans of active runs, by their parent.
	ended map[tracecontext.Trace]map[tracecontext.Span][]*span
	err   error
}

func newConsole(out io.Writer) *console {
	return &console{out: out, ended: map[tracecontext.Trace]map[tracecontext.Span][]*span{}}
}

func (c *console) export(s *span) {
	children := c.ended[s.trace]
	if s.parent != (tracecontext.Span{}) {
		if children == nil {
			children = map[tracecontext.Span][]*span{}
			c.ended[s.trace] = children
		}
		children[s.parent] = append(children[s.parent], s)
		return
	}
	delete(c.ended, s.trace)
	var b bytes.Buffer
	fmt.Fprintf(&b, "trace %s\n", s.trace)
	printSpan(&b, s, "")
	printBelow(&b, s, children, "")
	if _, err := c.out.Write(b.Bytes()); err != nil && c.err == nil {
		c.err = fmt.Errorf("print the trace: %w", err)
	}
}

func (c *console) close(context.Context) error { return c.err }

// printBelow prints the contents of a span: its entries and children, in order of time.
func printBelow(b *bytes.Buffer, s *span, children map[tracecontext.Span][]*span, indent string) {
	below := children[s.id]
	sort.SliceStable(below, func(i, k int) bool { return below[i].start.Before(below[k].start) })
	entries := slices.DeleteFunc(slices.Clone(s.entries), func(e entry) bool { return e.name == exception }) // printed with the span
	for len(below)+len(entries) > 0 {
		branch, deeper := "├─ ", "│  "
		if len(below)+len(entries) == 1 {
			branch, deeper = "└─ ", "   "
		}
		if len(below) == 0 || len(entries) > 0 && entries[0].time.Before(below[0].start) {
			printEntry(b, entries[0], indent+branch)
			entries = entries[1:]
			continue
		}
		printSpan(b, below[0], indent+branch)
		printBelow(b, below[0], children, indent+deeper)
		below = below[1:]
	}
}

func printSpan(b *bytes.Buffer, s *span, lead string) {
	fmt.Fprintf(b, "%s%s  %s", lead, s.name, s.elapsed().Round(time.Microsecond))
	if attempt, ok := s.attributes["tea.attempt"]; ok {
		fmt.Fprintf(b, "  attempt %v", attempt)
	}
	for _, key := range []string{"tea.action", "gen_ai.request.model"} {
		if v, ok := s.attributes[key]; ok && v != s.name {
			fmt.Fprintf(b, "  %v", v)
		}
	}
	if in, ok := s.attributes["gen_ai.usage.input_tokens"]; ok {
		fmt.Fprintf(b, "  %v+%v tokens", in, s.attributes["gen_ai.usage.output_tokens"])
	}
	if s.failed {
		fmt.Fprintf(b, "  FAILED %s", oneLine(s.message))
	}
	if _, ok := s.attributes["tea.unfinished"]; ok {
		b.WriteString("  unfinished")
	}
	b.WriteByte('\n')
}

func printEntry(b *bytes.Buffer, e entry, lead string) {
	fmt.Fprintf(b, "%s· %s", lead, oneLine(e.name))
	if message, ok := e.attributes["error"]; ok {
		fmt.Fprintf(b, " %s", oneLine(fmt.Sprint(message)))
	}
	b.WriteByte('\n')
}

// oneLine replaces control characters, which would break the tree or affect the terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
