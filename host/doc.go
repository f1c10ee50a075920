// Package host runs tea workflows inside a Go program.
//
//	h, err := host.New(host.Options{})
//	...
//	defer h.Close()
//	wf, err := h.Load("flow.yaml", host.LoadOptions{})
//	...
//	res, err := wf.Run(ctx, host.RunOptions{Input: map[string]any{"name": "Ada"}})
//
// Go functions become actions by [Func]; bundles of actions are linked in by
// Options.Bundles, or run in processes of their own by the option of package
// host/subproc. This package itself links no gRPC.
//
// Start with [New], [Host.Load], [Workflow.Run]. [Workflow.Stream] gives the
// events of a run as an iterator, [Workflow.Resume] goes on with one that was
// interrupted, and [OpenRuns] looks at the runs of a checkpoint directory.
package host
