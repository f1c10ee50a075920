package teacmd

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/trace"
)

// openCollector connects the service with the collector of --otlp-endpoint.
func (s *Service) openCollector() error {
	f := s.flags
	if f.OTLPEndpoint == "" {
		if len(f.OTLPHeader) > 0 {
			return usageErrorf("--otlp-header has no effect without --otlp-endpoint")
		}
		return nil
	}
	headers := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(f.OTLPHeader)) {
		value, ok := s.Secret(f.OTLPHeader[name])
		if !ok {
			return usageErrorf("--otlp-header %s=%s: there is no such secret; pass it with --secrets", name, f.OTLPHeader[name])
		}
		headers[name] = value
	}
	var err error
	if s.Collector, err = trace.NewCollector(trace.CollectorOptions{
		Endpoint: f.OTLPEndpoint, Headers: headers, Version: s.Version, Instance: s.instance(), Logger: s.Log,
	}); err != nil {
		return usageErrorf("--otlp-endpoint: %w", err)
	}
	return nil
}

// instance returns the name of this server among others: one server uses a
// directory of runs at a time.
func (s *Service) instance() string {
	name, err := os.Hostname()
	if err != nil {
		return s.Runs
	}
	return name + ":" + s.Runs
}

// tracer returns the tracer of a run. Tracers share their collectors, so the end of
// a run does not wait until its spans are sent.
func (s *Service) tracer(wf *host.Workflow, mask host.Mask) (*trace.Tracer, error) {
	o := trace.Options{File: s.flags.TraceFile, Mask: mask, Logger: s.Log, Collector: s.Collector}
	if s.Collector != nil {
		o.Exporter = trace.OTLP
	}
	if err := s.app.readTrace(&o, wf, s.options.Secrets); err != nil {
		return nil, err
	}
	if o.Exporter == trace.OTLP && o.Collector == nil {
		key := fmt.Sprintf("%q %q", o.Endpoint, o.Headers)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.collectors[key] == nil {
			c, err := trace.NewCollector(trace.CollectorOptions{Endpoint: o.Endpoint, Headers: o.Headers, Version: s.Version, Logger: s.Log})
			if err != nil {
				return nil, err
			}
			s.collectors[key] = c
		}
		o.Collector = s.collectors[key]
	}
	return trace.New(o)
}

// closeCollectors sends the spans that are left, for a while.
func (s *Service) closeCollectors() {
	ctx, cancel := context.WithTimeout(context.Background(), traceGrace)
	defer cancel()
	all := slices.Collect(maps.Values(s.collectors))
	if s.Collector != nil {
		all = append(all, s.Collector)
	}
	for _, c := range all {
		if err := c.Close(ctx); err != nil {
			s.Log.Warn("spans are lost", "error", err)
		}
	}
}
