package runhtml_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/host/internal/runhtml"
)

func written(t *testing.T, p *runhtml.Page) string {
	t.Helper()
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What a workflow or a model says is text on the page, never markup.
func TestTextsAreEscaped(t *testing.T) {
	t.Parallel()
	const evil = "<script>alert(\"1\")</script>\x1b]0;title\a\u009b2J\u202e"
	p := runhtml.New()
	p.Workflow, p.Run, p.Note = evil, evil, evil
	p.Add(runhtml.Event{Type: "node_start", Path: evil})
	p.Add(runhtml.Event{Type: "node_error", Path: evil, ErrorType: evil, Error: evil})
	p.Add(runhtml.Event{Type: "interrupt", Path: "ask", Question: evil})
	page := written(t, p)
	if strings.Contains(page, "<script") {
		t.Errorf("the page has markup of the run:\n%s", page)
	}
	if strings.ContainsAny(page, "\x1b\a\u009b\u202e") {
		t.Error("the page has control characters of the run")
	}
	if want := "&lt;script&gt;alert("; !strings.Contains(page, want) {
		t.Errorf("the page lacks %q", want)
	}
}

// A run of any length has a page of bounded size that states what it omits.
func TestLongRunsAreBounded(t *testing.T) {
	t.Parallel()
	p := runhtml.New()
	for i := range 5000 {
		at := time.UnixMilli(int64(i))
		path := fmt.Sprintf("each[%d]", i)
		p.Add(runhtml.Event{Type: "node_start", Path: path, Time: at})
		p.Add(runhtml.Event{Type: "node_error", Path: path, Time: at, ErrorType: "timeout", Error: "slow"})
	}
	page := written(t, p)
	if n := strings.Count(page, "3000 more are not listed"); n != 2 {
		t.Errorf("the page says %d times what is left out, want for the timeline and the errors", n)
	}
}
