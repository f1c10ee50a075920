package driver

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	teacmd "github.com/the-edge-agent/tea/cmd"
)

// Command returns the command worker.
func Command() teacmd.Command {
	return teacmd.WorkerCommand("worker", "Execute runs of a Temporal server.", func() teacmd.Worker { return new(workerCmd) })
}

type workerCmd struct{ teacmd.WorkerFlags }

const (
	defaultAddress   = "localhost:7233"
	defaultNamespace = "default"
	defaultQueue     = "tea"
)

// dialTimeout bounds the wait for the server.
const dialTimeout = 30 * time.Second

// dial connects to the server of the flags.
func dial(ctx context.Context, f teacmd.TemporalFlags, logger *slog.Logger) (client.Client, error) {
	address := cmp.Or(f.Temporal, defaultAddress)
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := client.DialContext(ctx, client.Options{
		HostPort: address, Namespace: cmp.Or(f.Namespace, defaultNamespace), Logger: log.NewStructuredLogger(logger),
		ExternalStorage: storage(f.Blobs),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the Temporal server at %s: %w", address, err)
	}
	return c, nil
}

// worker executes runs.
type worker struct {
	client    client.Client
	workflows workflows
}

// stopTimeout is how long running calls have when a worker stops.
const stopTimeout = 20 * time.Second

// maxBlocked bounds the time that the engine takes between two waits, such as to
// replay a long run.
const maxBlocked = 30 * time.Second

// Work executes runs until the service stops.
func (c *workerCmd) Work(s *teacmd.Service) error {
	connection, err := dial(s.Context, c.TemporalFlags, s.Log)
	if err != nil {
		return err
	}
	defer connection.Close()
	k := &worker{client: connection, workflows: workflows{host: s.Host, secrets: s.Secrets()}}
	defer k.workflows.close()
	queue := cmp.Or(c.Queue, defaultQueue)
	w := sdkworker.New(connection, queue, sdkworker.Options{WorkerStopTimeout: stopTimeout, DeadlockDetectionTimeout: maxBlocked})
	k.register(w)
	if err := w.Start(); err != nil {
		return fmt.Errorf("start the worker: %w", err)
	}
	s.Announce("working on queue " + queue)
	<-s.Context.Done()
	w.Stop()
	return nil
}

// register registers the workflow and the activity, for all names.
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
