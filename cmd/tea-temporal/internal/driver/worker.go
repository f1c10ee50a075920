package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
)

// Command returns the command worker.
func Command() teacmd.Command {
	return teacmd.WorkerCommand("worker", "Execute runs of a Temporal server.", func() teacmd.Worker { return new(workerCmd) })
}

type workerCmd struct {
	teacmd.WorkerFlags
	HandOver    bool     `xor:"version" help:"Ask the runs of the queue to continue with a later version of tea, whose workers must have started. Use it with the version that they began with."`
	TakeBack    bool     `xor:"version" help:"Continue also the runs that were handed over to a later version of tea that has not continued them."`
	Codec       string   `config:"" placeholder:"HOST:PORT" help:"Decrypt values for Temporal's UI and CLI at this address of this machine."`
	CodecOrigin []string `config:"" placeholder:"URL" help:"Origins of the UI whose pages can use --codec. Default: a UI on this machine at the ports 8233 and 8080."`
}

// worker executes runs.
type worker struct {
	*connection
	workflows workflows
	// generation is the generation of the program, except in tests.
	generation int
	// handsOver leaves runs that have not begun to later workers, and takesBack begins
	// runs that were handed over to them.
	handsOver, takesBack bool
}

func newWorker(c *connection, h *host.Host, secrets map[string]any) *worker {
	return &worker{connection: c, workflows: workflows{host: h, secrets: secrets, store: c.storeID}, generation: generation}
}

// stopTimeout is how long running calls may continue when a worker stops.
const stopTimeout = 20 * time.Second

// maxBlocked bounds how long the engine works between two waits, such as to replay a
// long run.
const maxBlocked = 30 * time.Second

func (k *worker) options() sdkworker.Options {
	return sdkworker.Options{Identity: k.identity(), WorkerStopTimeout: stopTimeout, DeadlockDetectionTimeout: maxBlocked, MaxHeartbeatThrottleInterval: liveInterval}
}

// Work executes runs until the service stops.
func (f *workerCmd) Work(s *teacmd.Service) error {
	c, err := await(s.Context, f.TemporalFlags, s.Log)
	if c == nil {
		return err
	}
	defer c.close()
	k := newWorker(c, s.Host, s.Secrets())
	k.handsOver, k.takesBack = f.HandOver, f.TakeBack
	defer k.workflows.close()
	queue := cmp.Or(f.Queue, defaultQueue)
	if f.HandOver {
		asked, err := k.handOverAll(s.Context, queue)
		if err != nil {
			return err
		}
		s.Announce(fmt.Sprintf("asked %d runs to continue with a later version", asked))
	}
	w := sdkworker.New(c.client, queue, k.options())
	k.register(w)
	if err := w.Start(); err != nil {
		return fmt.Errorf("start the worker: %w", err)
	}
	plugins := &offers{worker: k, queue: queue, stops: map[string]func(){}}
	defer plugins.stop()
	if _, err := plugins.add(s.Host.PluginNames()); err != nil {
		return err
	}
	if f.Codec != "" {
		stop, err := f.serveCodec(s, c.store)
		if err != nil {
			return err
		}
		defer stop()
	}
	if err := c.addAttributes(s.Context); err != nil {
		s.Log.Warn("runs have no search attributes; add TeaWorkflow, TeaStatus and TeaNode of the type Keyword to the namespace", "error", err)
	}
	s.Announce("working on queue " + queue)
	if c.store != nil {
		go c.prune(s)
	}
	plugins.watch(s)
	w.Stop()
	return nil
}

// offers are the plugins whose calls a worker takes from separate queues.
type offers struct {
	worker *worker
	queue  string
	stops  map[string]func()
}

// add offers the new plugins, and returns their names.
func (o *offers) add(names []string) (added []string, err error) {
	for _, plugin := range names {
		if o.stops[plugin] != nil {
			continue
		}
		if o.stops[plugin], err = o.worker.offer(pluginQueue(o.queue, plugin)); err != nil {
			delete(o.stops, plugin)
			return added, err
		}
		added = append(added, plugin)
	}
	return added, nil
}

func (o *offers) stop() {
	for _, stop := range o.stops {
		stop()
	}
}

// pluginsEvery is the interval at which a worker checks for installed plugins.
const pluginsEvery = 2 * time.Second

// watch offers newly installed plugins until the service stops.
func (o *offers) watch(s *teacmd.Service) {
	tick := time.NewTicker(pluginsEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.Context.Done():
			return
		}
		added, err := o.add(s.Host.PluginNames())
		if err != nil {
			s.Log.Warn("a plugin is not offered", "error", err)
		}
		if len(added) > 0 {
			o.worker.workflows.renew()
			s.Announce("new plugins: " + strings.Join(added, ", "))
		}
	}
}

// offer takes calls from a queue without runs.
func (k *worker) offer(queue string) (stop func(), err error) {
	o := k.options()
	o.DisableWorkflowWorker, o.MaxConcurrentActivityTaskPollers = true, 1
	w := sdkworker.New(k.client, queue, o)
	w.RegisterDynamicActivity(k.act, activity.DynamicRegisterOptions{})
	if err := w.Start(); err != nil {
		return nil, fmt.Errorf("start the worker of the queue %s: %w", queue, err)
	}
	return w.Stop, nil
}

// pruneEvery is the interval at which a worker removes the values of runs that Temporal
// has removed.
const pruneEvery = time.Hour

func (c *connection) prune(s *teacmd.Service) {
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		if err := c.pruneBlobs(s.Context, time.Now().Add(-minBlobAge)); err != nil {
			s.Log.Warn("values of old runs remain", "error", err)
		}
		select {
		case <-tick.C:
		case <-s.Context.Done():
			return
		}
	}
}

// pruneBlobs removes the values of runs that the server no longer has.
func (c *connection) pruneBlobs(ctx context.Context, before time.Time) error {
	return blobs{c.store}.prune(ctx, c.namespace, before, func(run string) (bool, error) {
		_, err := c.describe(ctx, run, "")
		if errors.As(err, new(*serviceerror.NotFound)) {
			return true, nil
		}
		return false, err
	})
}

// register registers the workflow and the activity for all names.
func (k *worker) register(w interface {
	RegisterDynamicWorkflow(w any, o workflow.DynamicRegisterOptions)
	RegisterDynamicActivity(a any, o activity.DynamicRegisterOptions)
	RegisterActivity(a any)
},
) {
	w.RegisterDynamicWorkflow(k.execute, workflow.DynamicRegisterOptions{})
	w.RegisterDynamicActivity(k.act, activity.DynamicRegisterOptions{})
	w.RegisterActivity(recordOutcome)
	w.RegisterActivity(recordCall)
}
