package report

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/plaintext"
)

// Options configure a report. The zero value prints plain lines.
type Options struct {
	// Size returns the terminal's columns and rows; nil = not a terminal.
	Size func() (columns, rows int)
	// Color allows colours; ASCII restricts glyphs to ASCII characters.
	Color, ASCII bool
	// Quiet prints errors only.
	Quiet bool
	// Now is the clock; nil = time.Now.
	Now func() time.Time
	// Mask removes secrets from a text; nil = none. Lines of files that contain secrets
	// are not shown. Callers mask the other texts.
	Mask func(string) string
	// Quotes reports whether lines of a file may be shown; nil = of all files.
	Quotes func(file string) bool
}

// Report writes diagnostics and the progress of runs to one writer, usually
// stderr. It is safe for concurrent use.
type Report struct {
	o     Options
	style style

	mu    sync.Mutex
	out   io.Writer
	lines *lines
	// partial is the beginning of an incomplete log line.
	partial []byte
	// buffering buffers all output while the caller of Hold uses the terminal.
	buffering bool
	above     bytes.Buffer
	screen    screen
	stop      chan struct{}
	stopped   chan struct{}
	// slowCheck finds slow nodes if there are no live lines.
	slowCheck *time.Timer
	closed    bool

	// queue has the events that are not shown yet. Its lock is held only briefly:
	// a run waits while it emits an event.
	queueMu sync.Mutex
	queue   []flow.Event
}

const (
	// redrawEvery is the interval between redraws of the live lines.
	redrawEvery = 100 * time.Millisecond
	// slowCheckInterval is the interval at which plain output looks for slow nodes.
	slowCheckInterval = time.Second
	// longRetry is the wait from which plain output reports a retry.
	longRetry = time.Second
	// showAfter and mostQueued bound how long and how many events wait.
	showAfter  = 20 * time.Millisecond
	mostQueued = 4096
)

// New returns a report that writes to w. The caller must call [Report.Close].
func New(w io.Writer, o Options) *Report {
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &Report{o: o, style: newStyle(o.Color, o.ASCII), out: w}
	r.lines = newLines(r.live())
	return r
}

func (r *Report) live() bool { return r.o.Size != nil && !r.o.Quiet }

// Event shows an event of a run soon: the run does not wait for the output.
func (r *Report) Event(e flow.Event) {
	if r.o.Quiet {
		return
	}
	r.queueMu.Lock()
	r.queue = append(r.queue, e)
	waiting := len(r.queue)
	r.queueMu.Unlock()
	switch waiting {
	case 1:
		time.AfterFunc(showAfter, r.show)
	case mostQueued:
		r.show()
	}
}

// show shows the events in the queue.
func (r *Report) show() {
	r.lock()
	defer r.mu.Unlock()
	if !r.live() {
		r.flush()
	} // otherwise the next tick shows it
}

// lock locks the report with all events of the queue in its lines.
func (r *Report) lock() {
	r.mu.Lock()
	r.queueMu.Lock()
	events := r.queue
	r.queue = nil
	r.queueMu.Unlock()
	for _, e := range events {
		r.take(e)
	}
}

// take updates the lines with an event, and moves ended lines above them.
func (r *Report) take(e flow.Event) {
	r.lines.take(e)
	r.begin()
	if e.Type == flow.EventDryRun {
		params, _ := value.Encode(e.Field("params")) // of the value model
		fmt.Fprintf(&r.above, "dry run: %s would call %s %s\n", oneLine(e.Path), oneLine(e.Text("call")), oneLine(plaintext.Cut(string(params), mostText)))
	}
	if !r.live() {
		if wait := milliseconds(e, "wait_ms"); e.Type == flow.EventRetry && wait >= longRetry {
			fmt.Fprintf(&r.above, "%s: %s\n", oneLine(e.Path), retrying(r.lines.uses(e), wait, failure(e)))
		}
		for _, l := range r.lines.settled(true) {
			r.above.WriteString(r.plainLine(l) + "\n")
		}
		return
	}
	if settled := r.lines.settled(false); len(settled) > 0 {
		columns, _ := r.o.Size()
		for _, l := range settled {
			r.above.WriteString(r.lineText(l, columns) + "\n")
		}
	}
}

// begin starts the periodic work once: the live lines, or the search for slow
// nodes.
func (r *Report) begin() {
	switch {
	case r.stop != nil || r.slowCheck != nil:
	case r.live():
		r.stop, r.stopped = make(chan struct{}), make(chan struct{})
		go r.tick(r.stop, r.stopped)
	default:
		r.slowCheck = time.AfterFunc(slowAfter, func() {
			r.redraw()
			r.lock()
			defer r.mu.Unlock()
			if !r.closed {
				r.slowCheck.Reset(slowCheckInterval)
			}
		})
	}
}

// tick redraws the live lines until stop is closed.
func (r *Report) tick(stop, stopped chan struct{}) {
	defer close(stopped)
	ticker := time.NewTicker(redrawEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			r.redraw()
		}
	}
}

// redraw redraws the live lines and reports what slow nodes wait for.
func (r *Report) redraw() {
	r.lock()
	defer r.mu.Unlock()
	if r.buffering {
		return
	}
	for _, l := range r.lines.slow(r.o.Now()) {
		if !r.live() {
			fmt.Fprintf(&r.above, "%s: %s (%s)\n", oneLine(string(l.path)), l.wait(), slowAfter)
		}
	}
	if !r.live() {
		for _, l := range r.lines.counts(r.o.Now()) {
			fmt.Fprintf(&r.above, "%s: running (%s)\n", oneLine(string(l.path)), l.progress())
		}
	}
	r.flush()
}

// flush writes the buffered lines above the live lines and redraws those.
func (r *Report) flush() {
	if r.buffering {
		return
	}
	if !r.live() {
		if r.above.Len() > 0 {
			_, _ = r.out.Write(r.above.Bytes()) // there is nowhere to report the error
			r.above.Reset()
		}
		return
	}
	columns, rows := r.o.Size()
	region := r.region(columns, rows)
	if r.above.Len() == 0 && len(region) == 0 && r.screen.empty() {
		return
	}
	r.screen.draw(r.out, r.above.Bytes(), region, columns)
	r.above.Reset()
}

// print writes a text immediately.
func (r *Report) print(text string) {
	r.lock()
	defer r.mu.Unlock()
	r.above.WriteString(text)
	r.flush()
}

// Write writes log lines, each as a whole, above the live lines.
func (r *Report) Write(p []byte) (int, error) {
	r.lock()
	defer r.mu.Unlock()
	r.partial = append(r.partial, p...)
	if end := bytes.LastIndexByte(r.partial, '\n'); end >= 0 {
		r.above.WriteString(Printable(string(r.partial[:end+1])))
		r.partial = append(r.partial[:0], r.partial[end+1:]...)
		r.flush()
	}
	return len(p), nil
}

// Hold clears the live lines and buffers all output until the caller calls the
// returned function, so that the caller can use the terminal.
func (r *Report) Hold() (release func()) {
	r.lock()
	defer r.mu.Unlock()
	if r.live() && !r.buffering {
		r.screen.draw(r.out, r.above.Bytes(), nil, 0)
		r.above.Reset()
	}
	r.buffering = true
	return func() {
		r.lock()
		defer r.mu.Unlock()
		r.buffering = false
		r.flush()
	}
}

// Close stops the live lines and prints the final state of open ones.
func (r *Report) Close() {
	r.lock()
	stop := r.stop
	r.stop, r.closed = nil, true
	if r.slowCheck != nil {
		r.slowCheck.Stop()
	}
	r.mu.Unlock()
	if stop != nil {
		close(stop)
		<-r.stopped
	}
	r.lock()
	defer r.mu.Unlock()
	r.buffering = false
	if len(r.partial) > 0 {
		r.above.WriteString(Printable(string(r.partial)) + "\n")
		r.partial = nil
	}
	for _, l := range r.lines.rest() {
		if r.live() {
			columns, _ := r.o.Size()
			r.above.WriteString(r.lineText(l, columns) + "\n")
		} else if l.state == waiting {
			r.above.WriteString(r.plainLine(l) + "\n")
		}
	}
	r.flush()
}
