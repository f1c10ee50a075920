package memory

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/internal/recall"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	defaultLanguage = "english"
	defaultInline   = 1024
	// remoteSweepDelay is the time until the first sweep of a database that many
	// processes share; a short run sweeps nothing.
	remoteSweepDelay = 10 * time.Minute
)

// config returns the configuration of a driver or Backend, without its blobs.
func (f *folder) config() store.Config {
	return store.Config{
		Engine: f.settings.Engine, URL: f.settings.URL, Token: f.settings.Token, Options: f.settings.Options.raw(), Connections: f.settings.Connections, Timeout: f.settings.timeout(),
		Language: cmp.Or(f.settings.LTM.Language, defaultLanguage), InlineBytes: cmp.Or(f.settings.LTM.InlineBytes, defaultInline),
		Dir: f.dir, ReadOnly: f.readOnly, Now: f.clock.Now, Logger: slog.Default(),
	}
}

// use sets the stores of the memory.
func (f *folder) use(s *store.Stores) {
	f.stores, f.acknowledged = s, cmp.Or(s.Acknowledged, "remote")
	f.documents, f.blobs, f.longterm, f.vectors, f.tables = s.Metadata, s.Blobs, s.LongTerm, s.Vectors, s.Tables
}

func (f *folder) openRemote(ctx context.Context, backend store.Backend) error {
	if f.settings.ReadOnly {
		f.readOnly = "settings.memory.read_only is set; remove it to write"
	}
	config := f.config()
	var err error
	if f.settings.Blobs != "" {
		if config.Blobs, err = f.cloudBlobs(ctx); err != nil {
			return err
		}
	}
	s, err := backend.Open(ctx, config)
	if err != nil {
		return errors.Join(err, f.cloud.close())
	}
	if err := complete(f.settings.Engine, s); err != nil {
		return errors.Join(err, f.cloud.close())
	}
	f.use(s)
	if inPage {
		f.recall = recall.New(recall.Options{LTM: s.LongTerm, Vectors: s.Vectors})
	} else {
		f.catalog = catalog.New(s.Metadata, f.clock)
		f.families(func(context.Context) (string, error) { return filepath.Base(f.dir), nil }, f.scratch.Path, nil)
	}
	// A page does not sweep the memory that it synchronises with: its clock may
	// differ from other devices.
	if f.readOnly == "" && (!inPage || s.Acknowledged == "local") {
		f.sweeper = f.sweepsRemote()
	}
	return nil
}

// complete returns an error if a backend lacks a part that the actions need.
func complete(engine string, s *store.Stores) error {
	if s == nil {
		return tea.Errorf(tea.InternalError, "the backend of settings.memory.engine %s has opened no stores", engine)
	}
	for _, part := range []struct {
		name  string
		there bool
	}{{"LongTerm", s.LongTerm != nil}, {"Metadata", s.Metadata != nil}, {"Vectors", s.Vectors != nil}, {"Blobs", s.Blobs != nil}, {"Close", s.Close != nil}} {
		if !part.there {
			return tea.Errorf(tea.InternalError, "the backend of settings.memory.engine %s does not set store.Stores.%s, which is required", engine, part.name)
		}
	}
	return nil
}

// inspectRemote is memory.inspect for a Backend.
func (f *folder) inspectRemote(ctx context.Context) (*InspectResult, error) {
	r := &InspectResult{Success: true, Path: f.dir, Engine: f.settings.Engine, State: "ok", Entries: map[string]int64{}, Bytes: map[string]int64{}}
	if f.background != nil {
		r.Sync = f.background.status()
	}
	if f.stores.Inspect == nil {
		return r, nil
	}
	entries, bytes, err := f.stores.Inspect(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		r.State, r.Problem = "broken", err.Error()
		return r, nil
	}
	r.Entries, r.Bytes = entries, bytes
	for _, n := range bytes {
		r.TotalBytes += n
	}
	return r, nil
}

// resetRemote is memory.reset for a Backend.
func (f *folder) resetRemote(ctx context.Context) (*ResetResult, error) {
	if f.stores.Reset == nil {
		return nil, tea.Errorf(tea.DependencyMissing, "the memory's engine %s %w: it cannot be reset from here", f.settings.Engine, store.ErrUnsupported)
	}
	before, err := f.inspectRemote(ctx)
	if err != nil {
		return nil, err
	}
	if err := f.stores.Reset(ctx); err != nil {
		return nil, err
	}
	return &ResetResult{Success: true, Path: f.dir, Bytes: before.TotalBytes}, nil
}
