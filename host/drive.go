package host

import (
	"context"
	"fmt"
	"time"

	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/catalog"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/engine"
	"github.com/the-edge-agent/tea/host/internal/spec"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Runtime is the clock and the concurrency of a run that another engine drives;
// see [Workflow.Drive].
type Runtime = engine.Runtime

// ErrHandOver is the error that [RunOptions.Middleware] returns for an action that
// another execution of a driven run will call: the run ends with the status
// waiting, and continues from its records.
var ErrHandOver = engine.ErrHandOver

// Drive is what [Workflow.Drive] needs in addition to the options of a run.
type Drive struct {
	Runtime Runtime
	// Place is the checkpoint path that the result and templates show.
	Place string
	// StartedAt is when the run began; zero = now.
	StartedAt time.Time
	// Records are the records of the run so far, in order; empty for a new run.
	// They contain references in place of secrets.
	Records []checkpoints.Record
	// Steps is the number of steps so far, if greater than in the records.
	Steps int
	// LastSeq is the number of the run's last event.
	LastSeq int64
	// Append receives each further record.
	Append func(checkpoints.Record)
}

// Drive runs or continues a run on the runtime of another engine, without a
// checkpoint directory. The functions of the options are called from functions that
// the runtime started. It returns the errors of [Workflow.Run] and
// [Workflow.Resume].
func (wf *Workflow) Drive(ctx context.Context, o RunOptions, d Drive) (*flow.Result, error) {
	var eo engine.Options
	var err error
	if len(d.Records) > 0 {
		contents := &checkpoint.Contents{Header: checkpoint.Header{RunID: o.RunID, Digest: wf.spec.Digest}, Records: d.Records}
		eo, err = wf.replayOptionsAt(ctx, contents, o, d.Runtime.Now())
	} else if err = wf.graph.MissingSecrets(o.Secrets).Err(); err == nil {
		eo, err = wf.engineOptions(o)
	}
	if err != nil {
		return nil, err
	}
	eo.Runtime, eo.StartedAt, eo.FirstSeq, eo.Steps = d.Runtime, d.StartedAt, d.LastSeq, d.Steps
	eo.Journal = &memoryJournal{place: d.Place, last: uint64(len(d.Records)), keep: d.Append}
	return engine.Execute(ctx, eo)
}

// CheckResume rejects answers and input that the run with these records does not
// accept, with the errors of [Workflow.Resume].
func (wf *Workflow) CheckResume(records []checkpoints.Record, o RunOptions, now time.Time) error {
	eo, err := wf.engineOptions(o)
	if err != nil {
		return err
	}
	return checkResume(records, eo, now)
}

// CheckMigration returns the error that [Workflow.Resume] with these options returns
// for a run with these records, which began with another version of the workflow.
func (wf *Workflow) CheckMigration(ctx context.Context, records []checkpoints.Record, o RunOptions) error {
	_, err := wf.replayOptionsAt(ctx, &checkpoint.Contents{Header: checkpoint.Header{RunID: o.RunID}, Records: records}, o, time.Now())
	return err
}

// memoryJournal numbers records and passes them to the driving engine.
type memoryJournal struct {
	place string
	last  uint64
	keep  func(checkpoints.Record)
}

func (j *memoryJournal) Append(records ...checkpoint.Record) error {
	for _, r := range records {
		j.last++
		r.Seq = j.last
		j.keep(r)
	}
	return nil
}

// Sync does nothing: the other engine stores what the records derive from.
func (j *memoryJournal) Sync() error { return nil }

func (j *memoryJournal) Path() string { return j.place }

// Invoke calls an action outside of a run, for a driven run whose engine executes
// the action elsewhere. req.Host has the parts of the run that the action can use; without
// a run, it is nil.
func (wf *Workflow) Invoke(ctx context.Context, secrets map[string]any, req *tea.Request) (*tea.Response, error) {
	r, err := wf.resolve(secrets)
	if err != nil {
		return nil, err
	}
	if req.Host == nil {
		outside := *req
		outside.Host = &outsideHost{actions: r.actions, log: wf.log(), call: req.Call}
		req = &outside
	}
	return r.actions.Invoke(ctx, req)
}

// addElsewhere adds the bundles that the host does not have.
func addElsewhere(c *catalog.Catalog, manifests []tea.Manifest) error {
	for _, m := range manifests {
		if c.Bundle(m.Name) != nil {
			continue
		}
		err := c.Add(elsewhere, m, func(context.Context, map[string]any) (catalog.Invoker, error) {
			return nil, tea.Errorf(tea.DependencyMissing, "the plugin %s is not installed here", m.Name)
		})
		if err != nil {
			return fmt.Errorf("plugin %s: %w", m.Name, err)
		}
	}
	return nil
}

// elsewhere is the kind of an action that the host does not have.
const elsewhere = "elsewhere"

// IsElsewhere reports whether an action of the workflow is one of
// [LoadOptions.Elsewhere], which this host cannot call.
func (wf *Workflow) IsElsewhere(action string) bool {
	e := wf.catalog.Entry(action)
	return e != nil && e.Kind == elsewhere
}

// Action returns the description of an action of the workflow; nil if there is
// none.
func (wf *Workflow) Action(name string) *ActionEntry { return wf.catalog.Entry(name) }

// Queue is the task queue of actions, from the section queues.
type Queue = spec.Queue

// Queues returns the section queues of the workflow file: task queues by action,
// BUNDLE.* or *. The caller must not change it.
func (wf *Workflow) Queues() map[string]Queue { return wf.spec.Queues }

// Plugins returns the manifests of the bundles and plugins that are not part of
// tea, for [LoadOptions.Elsewhere].
func (wf *Workflow) Plugins() []tea.Manifest { return wf.host.manifests()[wf.host.own:] }

// PluginNames returns the names of this host's bundles and plugins that are not
// part of tea.
func (h *Host) PluginNames() []string {
	names := h.unread()
	for _, m := range h.manifests()[h.own:] {
		names = append(names, m.Name)
	}
	return names
}

// Seal returns v, which must be in the value model, with secrets replaced by
// references, as in checkpoints. It does not change v.
func (m Mask) Seal(v any) any { return m.set.Seal(v) }

// Unseal returns v with references replaced by secrets. The error names a missing
// secret.
func (m Mask) Unseal(v any) (any, error) { return m.set.Unseal(v) }

// LoadSource loads a workflow from the content of its files.
func (h *Host) LoadSource(s *Source, o LoadOptions) (*Workflow, error) {
	o.source = s
	return h.Load(s.File, o)
}
