package teacmd

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/trace"
)

// openCollector connects the service to the collector of --otlp-endpoint.
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

// instance returns a name that no other server uses: only one server uses a
// directory of runs at a time.
func (s *Service) instance() string {
	name, err := os.Hostname()
	if err != nil {
		return s.Runs
	}
	return name + ":" + s.Runs
}

// tracer returns the tracer of a run. Tracers share their collectors, so the end of
// a run does not wait until its spans are sent. The caller closes the tracer and then
// calls release.
func (s *Service) tracer(wf *host.Workflow, mask host.Mask) (_ *trace.Tracer, release func(), err error) {
	o := trace.Options{File: s.flags.TraceFile, Mask: mask, Logger: s.Log, Collector: s.Collector}
	if s.Collector != nil {
		o.Exporter = trace.OTLP
	}
	if err := s.app.readTrace(&o, wf, s.options.Secrets); err != nil {
		return nil, nil, err
	}
	release = func() {}
	if o.Exporter == trace.OTLP && o.Collector == nil {
		if o.Collector, release, err = s.collectors.use(trace.CollectorOptions{Endpoint: o.Endpoint, Headers: o.Headers, Version: s.Version, Logger: s.Log}); err != nil {
			return nil, nil, err
		}
	}
	t, err := trace.New(o)
	if err != nil {
		release()
		return nil, nil, err
	}
	return t, release, nil
}

// maxIdleCollectors is how many unused collectors are kept. Changed workflows may
// name other ones.
const maxIdleCollectors = 8

// collectors are the collectors of workflows, by their options. It is safe for
// concurrent use. The zero value is empty.
type collectors struct {
	mu  sync.Mutex
	all map[string]*usedCollector
}

// usedCollector is a collector with the number of runs that use it.
type usedCollector struct {
	*trace.Collector
	uses int
}

// use returns the collector with these options. The caller calls release when the run
// has ended. If there are too many collectors, use closes the idle ones.
func (c *collectors) use(o trace.CollectorOptions) (_ *trace.Collector, release func(), err error) {
	key := fmt.Sprintf("%q %q", o.Endpoint, o.Headers)
	c.mu.Lock()
	defer c.mu.Unlock()
	used := c.all[key]
	if used == nil {
		used = new(usedCollector)
		if used.Collector, err = trace.NewCollector(o); err != nil {
			return nil, nil, err
		}
		c.closeIdle(o.Logger)
		if c.all == nil {
			c.all = map[string]*usedCollector{}
		}
		c.all[key] = used
	}
	used.uses++
	return used.Collector, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		used.uses--
	}, nil
}

// closeIdle closes the unused collectors if there are too many. The caller holds the
// mutex.
func (c *collectors) closeIdle(log *slog.Logger) {
	if len(c.all) < maxIdleCollectors {
		return
	}
	maps.DeleteFunc(c.all, func(_ string, idle *usedCollector) bool {
		if idle.uses == 0 {
			go closeCollector(idle.Collector, log)
		}
		return idle.uses == 0
	})
}

// closeCollector sends the remaining spans for up to traceGrace.
func closeCollector(c *trace.Collector, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), traceGrace)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		log.Warn("spans are lost", "error", err)
	}
}

// closeCollectors sends the remaining spans for up to traceGrace.
func (s *Service) closeCollectors() {
	var closing sync.WaitGroup
	defer closing.Wait()
	if s.Collector != nil {
		closing.Go(func() { closeCollector(s.Collector, s.Log) })
	}
	for _, c := range s.collectors.all {
		closing.Go(func() { closeCollector(c.Collector, s.Log) })
	}
}
