// Package host runs tea workflows inside a Go program.
//
//	h, err := host.New(host.Options{})
//	...
//	defer h.Close()
//	wf, err := h.Load("flow.yaml", host.LoadOptions{})
//	...
//	defer wf.Close()
//	res, err := wf.Run(ctx, host.RunOptions{Input: map[string]any{"name": "Ada"}})
//
// [Func] turns Go functions into actions; Options.Bundles links bundles of
// actions in, and the option of package host/subproc runs them as processes.
// This package itself does not link gRPC.
//
// Start with [New], [Host.Load], [Workflow.Run]. [Workflow.Stream] yields the
// events of a run in a loop, [Workflow.Resume] continues one that was
// interrupted. Package host/checkpoints reads the runs of a checkpoint directory, and
// host/flow has the types of events, interrupts and results.
//
// The names in test/compat/api/host.txt are for programs that embed tea and follow
// semantic versioning. The others serve the programs of this repository, such as
// tea serve, and can change.
package host
