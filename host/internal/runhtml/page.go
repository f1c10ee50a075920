// Package runhtml renders a run as one self-contained HTML page: the graph
// coloured by status, a timeline of the nodes, tokens, retries and errors.
//
// Start with [New], add the run's events in order, and call [Page.Write].
package runhtml

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/internal/inspect"
	"github.com/the-edge-agent/tea/host/internal/report"
)

// mostRows bounds the node executions and the problems on a page, which states
// how many more there are.
const mostRows = 2000

// Event has the fields of an event that the page shows. Secrets must be masked.
type Event struct {
	Type       string    `json:"event"`
	Time       time.Time `json:"ts"`
	Path       string    `json:"path"`
	Error      string    `json:"error"`
	ErrorType  string    `json:"error_type"`
	Question   string    `json:"question"`
	Skipped    bool      `json:"skipped"`
	Success    *bool     `json:"success"`
	Attempts   int       `json:"attempts"`
	DurationMS float64   `json:"duration_ms"`
	Steps      int       `json:"steps"`
	Tokens     int64     `json:"tokens"`
	USD        float64   `json:"usd"`
	Usage      struct {
		TotalTokens int64 `json:"total_tokens"`
	} `json:"usage"`
}

// execution is one visit of a node.
type execution struct {
	path, status string
	start, end   time.Time
	attempts     int
	tokens       int64
}

type problem struct {
	time          time.Time
	path, message string
}

// Page collects the events of a run; create it with [New]. It is not safe for
// concurrent use.
type Page struct {
	Run, Workflow, Status string
	StartedAt, UpdatedAt  time.Time
	// Diagram is the workflow's graph; if it is nil, Note has the reason.
	Diagram *inspect.Diagram
	Note    string

	executions []*execution
	open       map[string]*execution
	problems   []problem
	first, end time.Time
	left       int // executions that are not listed
	unlisted   int // problems that are not listed
	steps      int
	tokens     int64
	usd        float64
	status     map[string]string // of the nodes of the diagram
}

// New returns a page without events.
func New() *Page {
	return &Page{open: map[string]*execution{}, status: map[string]string{}}
}

// Add adds the next event of the run.
func (p *Page) Add(e Event) {
	if p.first.IsZero() {
		p.first = e.Time
	}
	p.end = e.Time
	switch e.Type {
	case "node_start":
		p.begin(e)
	case "node_end":
		status := "done"
		if e.Skipped {
			status = "skipped"
		}
		p.finish(e, status)
	case "node_error":
		p.finish(e, "failed")
		p.problem(e, e.ErrorType+": "+e.Error)
	case "retry":
		p.problem(e, "retried after "+cmp.Or(e.ErrorType, "error")+": "+e.Error)
	case "branch_end":
		if e.Success != nil && !*e.Success {
			p.problem(e, "branch failed: "+e.ErrorType+": "+e.Error)
		}
	case "interrupt":
		p.finish(e, "waiting")
		p.problem(e, "waiting: "+cmp.Or(e.Question, "interrupt"))
	case "run_end":
		// Those of a resumed run include the earlier usage.
		p.steps, p.tokens, p.usd = e.Steps, e.Tokens, e.USD
		if e.Error != "" {
			p.problem(e, "run failed: "+e.Error)
		}
	}
}

func (p *Page) begin(e Event) *execution {
	x := &execution{path: e.Path, status: "running", start: e.Time, end: e.Time}
	p.open[e.Path] = x
	if len(p.executions) < mostRows {
		p.executions = append(p.executions, x)
	} else {
		p.left++
	}
	return x
}

func (p *Page) finish(e Event, status string) {
	x := p.open[e.Path]
	if x == nil {
		x = p.begin(e)
		x.start = e.Time.Add(-time.Duration(e.DurationMS * float64(time.Millisecond)))
	}
	if status != "waiting" {
		delete(p.open, e.Path)
	}
	x.status, x.end, x.attempts, x.tokens = status, e.Time, e.Attempts, e.Usage.TotalTokens
	p.status[nodeKey(e.Path)] = status
}

func (p *Page) problem(e Event, message string) {
	if len(p.problems) < mostRows {
		p.problems = append(p.problems, problem{e.Time, e.Path, message})
	} else {
		p.unlisted++
	}
}

// nodeKey returns the path of a node in the diagram, without branches, indexes
// and visits: each/fetch for each[3]/fetch#2, check for start>disk/check.
func nodeKey(path string) string {
	var names []string
	for _, part := range strings.Split(path, "/") {
		if strings.Contains(part, ">") {
			continue // a branch of a fan-out is of the same graph
		}
		if i := strings.IndexAny(part, "[#~"); i > 0 {
			part = part[:i]
		}
		names = append(names, part)
	}
	return strings.Join(names, "/")
}

// mark sets the statuses of the nodes of a diagram.
func (p *Page) mark(d *inspect.Diagram, prefix string) {
	for i := range d.Nodes {
		n := &d.Nodes[i]
		n.Status = cmp.Or(p.status[prefix+n.Name], "unreached")
		if n.Body != nil {
			p.mark(n.Body, prefix+n.Name+"/")
		}
	}
}

const style = `:root{color-scheme:light dark}body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em}` +
	`table{border-collapse:collapse;width:100%}td,th{padding:.2em .6em;text-align:left;vertical-align:top;border-bottom:1px solid #8884}` +
	`th{font-weight:600}code{font-size:.95em;overflow-wrap:anywhere}.n{text-align:right;white-space:nowrap}.time{width:45%;min-width:12em}` +
	`.span{position:relative;height:1em}.span>i{position:absolute;height:100%;min-width:2px;background:#2f855a;border-radius:2px}` +
	`.failed .span>i{background:#c53030}.waiting .span>i,.running .span>i{background:#b7791f}.skipped{opacity:.5}` +
	`.graph{overflow:auto}.status{font-weight:600}pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0}`

// Write writes the page as UTF-8 HTML.
func (p *Page) Write(w io.Writer) error {
	var b strings.Builder
	title := escape(p.Workflow + " " + p.Run)
	fmt.Fprintf(&b, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n"+
		"<title>%s</title>\n<style>%s</style>\n<h1>%s</h1>\n", title, style, escape(p.Workflow))
	p.summary(&b)
	p.writeProblems(&b)
	if err := p.graph(&b); err != nil {
		return err
	}
	p.timeline(&b)
	b.WriteString("</html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *Page) summary(b *strings.Builder) {
	b.WriteString("<table>\n")
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(b, "<tr><th>%s<td>%s\n", name, escape(text))
		}
	}
	row("Run", p.Run)
	row("Status", p.Status)
	row("Started", p.StartedAt.Local().Format(time.DateTime))
	row("Updated", p.UpdatedAt.Local().Format(time.DateTime))
	if !p.first.IsZero() {
		row("Time from first to last event", report.Brief(p.end.Sub(p.first)))
	}
	if p.steps > 0 {
		row("Steps", fmt.Sprint(p.steps))
	}
	if p.tokens > 0 {
		row("Tokens", fmt.Sprint(p.tokens))
	}
	if p.usd > 0 {
		row("Cost", fmt.Sprintf("$%.4f", p.usd))
	}
	b.WriteString("</table>\n")
}

func (p *Page) writeProblems(b *strings.Builder) {
	if len(p.problems) == 0 {
		return
	}
	b.WriteString("<h2>Errors, retries and questions</h2>\n<table>\n<tr><th>Time<th>Node<th>Message\n")
	for _, q := range p.problems {
		fmt.Fprintf(b, "<tr><td class=\"n\">+%s<td><code>%s</code><td><pre>%s</pre>\n",
			report.Brief(q.time.Sub(p.first)), escape(q.path), escape(q.message))
	}
	b.WriteString("</table>\n")
	omitted(b, p.unlisted)
}

func (p *Page) graph(b *strings.Builder) error {
	b.WriteString("<h2>Graph</h2>\n")
	if p.Diagram == nil {
		fmt.Fprintf(b, "<p>%s</p>\n", escape(p.Note))
		return nil
	}
	p.mark(p.Diagram, "")
	svg, err := p.Diagram.Draw("svg")
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "<div class=\"graph\">%s</div>\n<p>Green: done. Red: failed. Amber: waiting. Faded: skipped or not reached.</p>\n", svg)
	return nil
}

func (p *Page) timeline(b *strings.Builder) {
	b.WriteString("<h2>Timeline</h2>\n<table>\n<tr><th>Node<th>Status<th class=\"n\">Duration<th class=\"n\">Tokens<th class=\"time\">\n")
	total := max(p.end.Sub(p.first), 1)
	for _, x := range p.executions {
		status := x.status
		if x.attempts > 1 {
			status += fmt.Sprintf(", %d attempts", x.attempts)
		}
		tokens := ""
		if x.tokens > 0 {
			tokens = fmt.Sprint(x.tokens)
		}
		share := func(d time.Duration) float64 { return 100 * float64(d) / float64(total) }
		fmt.Fprintf(b, "<tr class=\"%s\"><td><code>%s</code><td>%s<td class=\"n\">%s<td class=\"n\">%s<td class=\"time\"><div class=\"span\"><i style=\"left:%.2f%%;width:%.2f%%\"></i></div>\n",
			x.status, escape(x.path), status, report.Brief(x.end.Sub(x.start)), tokens, share(x.start.Sub(p.first)), share(x.end.Sub(x.start)))
	}
	b.WriteString("</table>\n")
	omitted(b, p.left)
}

func omitted(b *strings.Builder, n int) {
	if n > 0 {
		fmt.Fprintf(b, "<p>%d more are not listed.</p>\n", n)
	}
}

// escape makes untrusted text safe for the page, and for a terminal that shows
// its source.
func escape(text string) string { return html.EscapeString(report.Printable(text)) }
