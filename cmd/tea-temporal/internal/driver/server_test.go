package driver

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// server is the Temporal server of all tests of the package.
var server struct {
	once    sync.Once
	dev     *testsuite.DevServer
	address string
	err     error
}

func TestMain(m *testing.M) {
	if version, report, ok := strings.Cut(os.Getenv(asPlugin), " "); ok {
		pluginMain(version, report)
		return
	}
	if report := os.Getenv(asWorker); report != "" {
		os.Exit(workerMain(report))
	}
	code := m.Run()
	if server.dev != nil {
		_ = server.dev.Stop()
	}
	os.Exit(code)
}

// discard and quiet are loggers for what the tests cause on purpose.
var (
	discard = slog.New(slog.DiscardHandler)
	quiet   = log.NewStructuredLogger(discard)
)

// program returns the path of the Temporal server.
func program(t testing.TB) string {
	t.Helper()
	peertest.Long(t, "it starts a Temporal server")
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(cache, "tea", "tools", "temporal-v1.5.1", "temporal")
	if _, err := os.Stat(program); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("run scripts/temporal install")
		}
		t.Skip("run scripts/temporal install")
	}
	return program
}

// tuned are the flags of a server that does not wait: its timers are exact, and it
// would start ten activities a second.
func tuned() (flags []string) {
	for _, v := range []string{
		`history.timerProcessorMaxTimeShift="10ms"`, "matching.numTaskqueueReadPartitions=1", "matching.numTaskqueueWritePartitions=1",
		"history.transferProcessorMaxPollRPS=1000", "system.enableActivityEagerExecution=true",
	} {
		flags = append(flags, "--dynamic-config-value", v)
	}
	return flags
}

// address returns the address of a Temporal server.
func address(t testing.TB) string {
	t.Helper()
	program := program(t)
	server.once.Do(func() {
		server.dev, server.err = testsuite.StartDevServer(context.Background(), testsuite.DevServerOptions{
			ExistingPath: program, LogLevel: "error", ClientOptions: &client.Options{Logger: quiet},
			ExtraArgs: tuned(),
		})
		if server.err == nil {
			server.address = server.dev.FrontendHostPort()
			server.err = prepare(server.address)
		}
	})
	if server.err != nil {
		t.Fatal(server.err)
	}
	return server.address
}

// prepare adds the search attributes, so that no test depends on another one for them.
func prepare(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := dial(ctx, teacmd.TemporalFlags{Temporal: address}, discard)
	if err != nil {
		return err
	}
	defer c.close()
	for err = c.addAttributes(ctx); err == nil && !c.hasAttributes(ctx); {
		err = backoff.Sleep(ctx, longWait)
	}
	return err
}

// site is a separate queue with a worker.
type site struct {
	t     testing.TB
	flags teacmd.EngineFlags
	*connection
	worker *worker
}

// newClient returns a queue without a worker. Its values above 64 KB are in a
// directory.
func newClient(t testing.TB, h *host.Host, secrets map[string]any) *site {
	t.Helper()
	return newClientWith(t, h, secrets, teacmd.TemporalFlags{})
}

func newClientWith(t testing.TB, h *host.Host, secrets map[string]any, f teacmd.TemporalFlags) *site {
	t.Helper()
	f.Temporal, f.Queue, f.Blobs = address(t), fmt.Sprintf("%s-%s", t.Name(), host.NewRunID()), cmp.Or(f.Blobs, t.TempDir())
	s := &site{t: t, flags: teacmd.EngineFlags{Engine: "temporal", TemporalFlags: f}}
	var err error
	if s.connection, err = dial(t.Context(), s.flags.TemporalFlags, discard); err != nil {
		t.Fatal(err)
	}
	s.worker = newWorker(s.connection, h, secrets)
	t.Cleanup(func() {
		s.worker.workflows.close()
		s.close()
	})
	return s
}

// newSite returns a queue with a worker.
func newSite(t testing.TB, h *host.Host, secrets map[string]any) *site {
	t.Helper()
	s := newClient(t, h, secrets)
	s.start(s.worker)
	return s
}

// start starts a worker on the queue of the site.
func (s *site) start(k *worker) (stop func()) {
	s.t.Helper()
	o := k.options()
	o.DeadlockDetectionTimeout = 5 * time.Minute // the race detector on a busy machine takes long for 64 MiB
	w := sdkworker.New(s.client, s.flags.Queue, o)
	k.register(w)
	if err := w.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(w.Stop)
	return w.Stop
}

// histories returns the histories of all executions of a run.
func (s *site) histories(run, execution string) (list []*historypb.History) {
	s.t.Helper()
	for execution != "" {
		h := &historypb.History{}
		events := s.client.GetWorkflowHistory(context.Background(), run, execution, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		execution = ""
		for events.HasNext() {
			e, err := events.Next()
			if err != nil {
				s.t.Fatal(err)
			}
			h.Events = append(h.Events, e)
			if next := e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId(); next != "" {
				execution = next
			}
		}
		list = append(list, h)
	}
	return list
}

// replays is how often each history is replayed.
const replays = 5

// replay replays a history in a worker that has not loaded its workflow.
func (s *site) replay(history *historypb.History) {
	s.t.Helper()
	fresh := newWorker(s.connection, s.worker.workflows.host, s.worker.workflows.secrets)
	fresh.generation = s.worker.generation
	defer fresh.workflows.close()
	r, err := sdkworker.NewWorkflowReplayerWithOptions(sdkworker.WorkflowReplayerOptions{
		ExternalStorage: storage(s.store), DataConverter: s.data, FailureConverter: s.failures, DisableDeadlockDetection: true,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	r.RegisterDynamicWorkflow(fresh.execute, workflow.DynamicRegisterOptions{})
	for range replays {
		if err := r.ReplayWorkflowHistory(quiet, history); err != nil {
			s.t.Errorf("replay: %v", err)
		}
	}
}

// replayAll replays the histories of all executions of a run.
func (s *site) replayAll(run string) {
	s.t.Helper()
	about, err := s.describe(s.t.Context(), run, "")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, h := range s.histories(run, about.GetWorkflowExecutionInfo().GetFirstRunId()) {
		s.replay(h)
	}
}
