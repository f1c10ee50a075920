package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

// exporter exports ended spans. export is not called concurrently.
type exporter interface {
	export(s *span)
	// close exports the remaining spans, within ctx.
	close(ctx context.Context) error
}

// Tracer creates spans from the events of runs. It is safe for concurrent use, by several
// runs at the same time.
type Tracer struct {
	contents bool
	mask     host.Mask
	// exports is false if there is no exporter: then no spans are created.
	exports   bool
	exporters []exporter

	mu   sync.Mutex
	runs map[string]*tracedRun
}

// New returns a tracer; without an exporter it does nothing. The error reports that the
// file cannot be opened or an option is not valid. The caller closes it after the runs.
func New(o Options) (*Tracer, error) {
	t := &Tracer{contents: o.Contents, mask: o.Mask, runs: map[string]*tracedRun{}}
	log := cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	resource := resourceOf(o.Version, "")
	switch o.Exporter {
	case "":
	case Console:
		out := o.Console
		if out == nil {
			out = os.Stderr
		}
		t.exporters = append(t.exporters, newConsole(out))
	case File:
		if o.File == "" {
			return nil, errors.New("the exporter file needs the name of a file")
		}
	case OTLP:
		if o.Collector != nil {
			t.exporters = append(t.exporters, shared{o.Collector})
			break
		}
		c, err := NewCollector(CollectorOptions{Endpoint: o.Endpoint, Headers: o.Headers, Version: o.Version, Logger: log})
		if err != nil {
			return nil, err
		}
		t.exporters = append(t.exporters, c)
	default:
		return nil, fmt.Errorf("there is no exporter %q; use console, file or otlp", o.Exporter)
	}
	if o.File != "" {
		f, err := openFile(o.File, resource, log)
		if err != nil {
			return nil, errors.Join(err, t.Close(context.Background()))
		}
		t.exporters = append(t.exporters, f)
	}
	t.exports = len(t.exporters) > 0
	return t, nil
}

// Event processes the next event of a run: set it as [host.RunOptions].Events. Export
// failures are logged and do not affect the run.
func (t *Tracer) Event(e flow.Event) {
	if !t.exports {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.runs[e.RunID]
	if r == nil {
		r = newTracedRun(t, e)
		t.runs[e.RunID] = r
	}
	r.take(e)
	if e.Type == flow.EventRunEnd {
		delete(t.runs, e.RunID)
	}
}

// export passes an ended span to every exporter.
func (t *Tracer) export(s *span) {
	for _, e := range t.exporters {
		e.export(s)
	}
}

// Close exports the remaining spans, within ctx, and closes the exporters. Later events
// are lost.
func (t *Tracer) Close(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all error
	for _, e := range t.exporters {
		all = errors.Join(all, e.close(ctx))
	}
	t.exporters = nil
	return all
}
