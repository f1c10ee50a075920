package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func syncActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("memory.sync", "Synchronises the memory with the one of settings.memory.sync, in both directions. An interrupted call is continued by the next one.", writes((*Memory).Sync), tea.Idempotent()),
	}
}

// SyncParams are the parameters of memory.sync.
type SyncParams struct {
	Conflicts         string `json:"conflicts,omitempty" enum:"last_write,remote,local,merge" doc:"what happens to a record that changed on both sides; default settings.memory.sync.conflicts"`
	Merge             string `json:"merge,omitempty" doc:"the action that merges two records, for conflicts: merge. It gets feed, space, key, local and remote (null for a deleted one), and returns body, or delete: true"`
	MaxBytesPerSecond int64  `json:"max_bytes_per_second,omitempty" minimum:"1" doc:"limit of the bandwidth; default settings.memory.sync.max_bytes_per_second"`
}

// SyncResult is the result of memory.sync.
type SyncResult struct {
	Success         bool               `json:"success"`
	Pulled          int64              `json:"pulled" doc:"number of records that were written to this memory"`
	Pushed          int64              `json:"pushed" doc:"number of records that were written to the other memory"`
	DeletedLocally  int64              `json:"deleted_locally" doc:"number of records that were deleted in this memory"`
	DeletedRemotely int64              `json:"deleted_remotely" doc:"number of records that were deleted in the other memory"`
	Conflicts       int64              `json:"conflicts" doc:"number of records that changed on both sides"`
	Resolved        []syncing.Conflict `json:"resolved" doc:"the conflicts, with the side that won; at most 100"`
	Refused         []string           `json:"refused" doc:"records that one side cannot store, with the reasons; at most 100"`
	Damaged         int64              `json:"damaged" doc:"number of records that cannot be read"`
	Full            bool               `json:"full" doc:"all records were compared, since one side no longer had all deletions or is an older copy of itself, or after an update of the plugin"`
	Restored        string             `json:"restored" enum:",this,other" doc:"the side that is an older copy of itself: this memory, or the other one; nothing was deleted for being missing there"`
	Bytes           int64              `json:"bytes" doc:"size of the records that were transferred"`
	SkippedTables   []string           `json:"skipped_tables" doc:"the tables of data.* in either memory whose rows are not synchronised: those without a primary key, and all if the other memory has no tables; an archive carries them"`
}

// Sync is memory.sync.
func (m *Memory) Sync(ctx context.Context, req *tea.Request, p SyncParams) (*SyncResult, error) {
	with := m.folder.settings.Sync
	if m.folder.device() == nil {
		return nil, tea.Errorf(tea.ValidationError, "memory.sync needs an embedded memory, with settings.memory.engine duckdb or sqlite; %s is already shared", m.folder.settings.Engine)
	}
	if with.Path == "" && with.URL == "" {
		return nil, tea.Errorf(tea.ValidationError, "settings.memory.sync is not set; set its path or its engine and url to the memory to synchronise with")
	}
	policy := syncing.Policy(cmp.Or(p.Conflicts, with.Conflicts, string(syncing.LastWrite)))
	action := cmp.Or(p.Merge, with.Merge)
	if policy == syncing.Merge && action == "" {
		return nil, tea.Errorf(tea.ValidationError, "conflicts: merge needs merge, the name of an action")
	}
	r, err := m.folders.synchronise(ctx, m.folder, with, func(o *syncing.Options) {
		o.Policy, o.Wait = policy, limiter(cmp.Or(p.MaxBytesPerSecond, with.MaxBytesPerSecond))
		o.Merge = func(ctx context.Context, local, remote store.Record) (store.Record, error) {
			return merged(ctx, req, action, local, remote)
		}
	})
	if err != nil {
		return nil, err
	}
	result := &SyncResult{
		Success: true, Pulled: r.Pulled, Pushed: r.Pushed, DeletedLocally: r.DeletedLocally, DeletedRemotely: r.DeletedThere, Conflicts: r.Conflicts,
		Resolved: r.Resolved, Refused: r.Refused, Damaged: r.Damaged, Full: r.Full, Restored: r.Restored, Bytes: r.Bytes, SkippedTables: r.SkippedTables,
	}
	if result.SkippedTables == nil {
		result.SkippedTables = []string{}
	}
	if result.Resolved == nil {
		result.Resolved = []syncing.Conflict{}
	}
	if result.Refused == nil {
		result.Refused = []string{}
	}
	return result, nil
}

// device returns the memory as a device that synchronises, nil for a memory that
// devices share.
func (f *folder) device() syncing.Device {
	if d, ok := f.stores.Replica.(syncing.Device); ok && f.acknowledged == "local" {
		return d
	}
	return nil
}

// synchronise synchronises a memory with the other one. change sets options.
func (f *folders) synchronise(ctx context.Context, local *folder, with Sync, change func(*syncing.Options)) (syncing.Result, error) {
	if err := local.synced.lock(ctx); err != nil {
		return syncing.Result{}, err
	}
	defer local.synced.unlock()
	other, err := f.takeSynced(ctx, local, with)
	if err != nil {
		return syncing.Result{}, err
	}
	remote, err := other.replica()
	if err != nil {
		return syncing.Result{}, errors.Join(err, f.release(other))
	}
	o := syncing.Options{Local: local.device(), Remote: remote, Policy: syncing.LastWrite, Now: local.clock.Now}
	change(&o)
	if !inPage {
		o.LocalTables, o.RemoteTables = local.deviceTables(), other.syncedTables()
	}
	r, err := syncing.Run(ctx, o)
	if local.sessions != nil { // a page has none
		local.sessions.Replaced()
	}
	switch r.Restored {
	case syncing.Other:
		slog.Default().Warn("the other memory is an older copy of itself: all records are compared, and no record is deleted because it is missing there")
	case syncing.This:
		slog.Default().Warn("this memory is an older copy, or another copy of it synchronises too; it receives the changes since then")
	}
	return r, store.SystemError(errors.Join(err, f.release(other)))
}

// takeSynced opens the memory to synchronise with. The caller releases it.
func (f *folders) takeSynced(ctx context.Context, local *folder, with Sync) (*folder, error) {
	s := local.settings
	s.Engine, s.Path, s.URL, s.Token, s.Options, s.Sync = engineName(with.Engine), with.Path, with.URL, with.Token, with.Options, Sync{}
	s.Blobs, s.BlobOptions, s.Archives, s.ReadOnly = with.Blobs, with.BlobOptions, "", false
	if with.Path == "" {
		s.Path = local.settings.Path // a backend keeps its files there
	}
	at, err := f.locate(s)
	if err != nil {
		return nil, err
	}
	if at.name == local.name {
		return nil, tea.Errorf(tea.ValidationError, "settings.memory.sync is this memory itself; set another path or url")
	}
	return f.take(ctx, s)
}

// limiter returns a function that blocks for as long as the bytes take; nil if
// there is no limit.
func limiter(bytesPerSecond int64) func(context.Context, int64) error {
	if bytesPerSecond == 0 {
		return nil
	}
	return func(ctx context.Context, bytes int64) error {
		wait := time.NewTimer(time.Duration(float64(bytes) / float64(bytesPerSecond) * float64(time.Second)))
		defer wait.Stop()
		select {
		case <-wait.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// merged calls the action that merges two records.
func merged(ctx context.Context, req *tea.Request, action string, local, remote store.Record) (store.Record, error) {
	resp, err := req.Invoke(ctx, tea.Invocation{Action: action, Params: map[string]any{
		"feed": string(local.Feed), "space": local.Space, "key": local.Key, "local": side(local), "remote": side(remote),
	}})
	if err != nil {
		return store.Record{}, err
	}
	raw, err := resp.Result.JSON()
	if err != nil {
		return store.Record{}, err
	}
	var answer struct {
		Body   json.RawMessage `json:"body"`
		Delete bool            `json:"delete"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil || (len(answer.Body) == 0 || string(answer.Body) == "null") && !answer.Delete {
		return store.Record{}, tea.Errorf(tea.ValidationError, "the action %s must return body, or delete: true", action)
	}
	r := local
	if local.Deleted {
		r = remote
	}
	if r.Body, r.Deleted = answer.Body, answer.Delete; answer.Delete {
		r.Body = nil
	}
	var described file.File
	if r.Feed == store.DocumentFeed && r.Space == file.Kind && json.Unmarshal(r.Body, &described) == nil {
		r.Content = described.Hash // the action chose the content of one side
	}
	r.Updated = time.Time{} // now
	return r, nil
}

// side returns a record as a parameter of the merge action.
func side(r store.Record) any {
	if r.Deleted {
		return nil
	}
	return map[string]any{"body": r.Body, "updated": r.Updated}
}
