package driver

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// infoReads counts how often a workflow reads its information.
type infoReads struct {
	interceptor.WorkerInterceptorBase
	n atomic.Int64
}

func (c *infoReads) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &countedInbound{interceptor.WorkflowInboundInterceptorBase{Next: next}, c}
}

type countedInbound struct {
	interceptor.WorkflowInboundInterceptorBase
	reads *infoReads
}

func (c *countedInbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	return c.Next.Init(&countedOutbound{interceptor.WorkflowOutboundInterceptorBase{Next: next}, c.reads})
}

type countedOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	reads *infoReads
}

func (c *countedOutbound) GetInfo(w workflow.Context) *workflow.Info {
	c.reads.n.Add(1)
	return c.Next.GetInfo(w)
}

// The SDK ends the coroutines of an evicted run while it replays the run.
func TestEndedCoroutinesDoNotReadTheRun(t *testing.T) {
	t.Parallel()

	var reads infoReads
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(sdkworker.Options{Interceptors: []interceptor.WorkerInterceptor{&reads}})
	env.RegisterActivity(recordOutcome)

	release, started, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var before int64
	env.ExecuteWorkflow(func(w workflow.Context) error {
		r := newRuntime(w)
		workflow.Go(w, func(w workflow.Context) {
			defer close(ended)
			_, _ = r.Once(withCoroutine(t.Context(), w), func(context.Context) (any, error) {
				close(started)
				<-release
				return "late", nil
			})
		})
		err := workflow.Sleep(w, time.Second)
		<-started
		before = reads.n.Load()
		return err
	})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	<-ended
	if after := reads.n.Load(); after != before {
		t.Errorf("the coroutine read the run %d times while it ended", after-before)
	}
	close(release)
}
