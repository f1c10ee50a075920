package main

import (
	"context"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/trace"
)

// tracer makes the tracer that --trace-file and settings.trace ask for; where
// they ask for none it does nothing.
func (a *app) tracer(f *runFlags, wf *host.Workflow, secrets map[string]any) (*trace.Tracer, error) {
	o := trace.Options{
		File: f.TraceFile, Mask: a.mask, Console: a.report, Version: version(), Logger: a.logger(f.reportFlags),
	}
	settings, err := wf.Settings(secrets)
	if err != nil {
		return nil, err
	}
	if err := o.Read(settings); err != nil {
		return nil, err
	}
	return trace.New(o)
}

// traceGrace is how long a collector may take when the run is over.
const traceGrace = 5 * time.Second

func (a *app) closeTracer(t *trace.Tracer) {
	ctx, cancel := context.WithTimeout(context.Background(), traceGrace)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		a.logger(reportFlags{}).Warn("spans are lost", "error", err)
	}
}
