package replica

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/archive"
	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/deletion"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/internal/session"
	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// KeptDeletions is how long tombstones are kept, for devices that were offline.
const KeptDeletions = 90 * 24 * 60 * 60 // seconds

// Options are the parts of a memory. All are required, and the caller closes them.
type Options struct {
	Engine    store.QueryEngine
	LongTerm  *longterm.Memory
	Vectors   *vectors.Index
	Documents *documents.Documents
	Catalog   *catalog.Catalog
	Files     *file.Files
	Sessions  *session.Sessions
}

// Replica is the replica of a memory. It is safe for concurrent use.
type Replica struct{ o Options }

var _ syncing.Device = (*Replica)(nil)

// New returns the replica of a memory.
func New(o Options) *Replica { return &Replica{o} }

// Identity identifies the database.
func (r *Replica) Identity(ctx context.Context) (string, error) { return r.o.Engine.Identity(ctx) }

// Changes returns the records of a feed that changed after a number.
func (r *Replica) Changes(ctx context.Context, query store.ChangeQuery) (store.ChangePage, error) {
	switch query.Feed {
	case store.EntryFeed:
		return r.o.LongTerm.Changes(ctx, query)
	case store.VectorFeed:
		return r.o.Vectors.Changes(ctx, query)
	case store.DocumentFeed:
		kept, err := KeptOf(ctx, r.o.Catalog, false)
		if err != nil {
			return store.ChangePage{}, err
		}
		page, err := r.o.Documents.Changes(ctx, query, kept)
		for i := range page.Records {
			AddContent(&page.Records[i])
		}
		return page, err
	}
	return store.ChangePage{}, UnknownFeed(query.Feed)
}

// UnknownFeed returns the error for an unknown feed.
func UnknownFeed(feed store.Feed) error {
	return tea.Errorf(tea.ValidationError, "%q is not a feed of a memory", feed)
}

// Records returns the current records with these names.
func (r *Replica) Records(ctx context.Context, names ...store.RecordName) ([]store.Record, error) {
	all, err := EachFeed(names, func(feed store.Feed, some []store.RecordName) ([]store.Record, error) {
		return r.recordsOf(ctx, feed, some)
	})
	if err != nil {
		return nil, err
	}
	return all, deletion.Complete(ctx, r.o.Engine, all)
}

// EachFeed calls read with the names of each feed and returns its results in the
// order of the names.
func EachFeed(names []store.RecordName, read func(feed store.Feed, some []store.RecordName) ([]store.Record, error)) ([]store.Record, error) {
	all := make([]store.Record, len(names))
	for _, feed := range store.Feeds() {
		var at []int
		var some []store.RecordName
		for i, name := range names {
			if name.Feed == feed {
				at, some = append(at, i), append(some, name)
			}
		}
		if len(some) == 0 {
			continue
		}
		found, err := read(feed, some)
		if err != nil {
			return nil, err
		}
		for n, i := range at {
			all[i] = found[n]
		}
	}
	for i, name := range names {
		if all[i].RecordName != name {
			return nil, UnknownFeed(name.Feed)
		}
	}
	return all, nil
}

func (r *Replica) recordsOf(ctx context.Context, feed store.Feed, names []store.RecordName) ([]store.Record, error) {
	switch feed {
	case store.EntryFeed:
		return r.o.LongTerm.Records(ctx, names)
	case store.VectorFeed:
		return r.o.Vectors.Records(ctx, names)
	}
	kept, err := KeptOf(ctx, r.o.Catalog, true)
	if err != nil {
		return nil, err
	}
	found, err := r.o.Documents.Records(ctx, names, kept)
	for i := range found {
		AddContent(&found[i])
	}
	return found, err
}

// deviceKinds are the kinds of documents that are not synchronised: calls of data.*, imports of archives, and the marks
// of other devices. They can only be read by name.
var deviceKinds = []string{"tabular_call", archive.ImportKind, syncing.MarkKind}

// KeptOf returns a function that reports whether a document belongs to the replica. device includes the kinds that stay
// on the device.
func KeptOf(ctx context.Context, of *catalog.Catalog, device bool) (documents.Kept, error) {
	managed, err := of.ManagedTables(ctx)
	if err != nil {
		return nil, err
	}
	return func(d store.Document) bool {
		if slices.Contains(deviceKinds, d.Kind) {
			return device
		}
		table, of := catalog.TableOf(d)
		return !of || !managed[table]
	}, nil
}

// AddContent adds the content of a file to its record.
func AddContent(r *store.Record) {
	if r.Feed != store.DocumentFeed || r.Space != file.Kind || r.Deleted || r.Damaged {
		return
	}
	var described file.File
	if json.Unmarshal(r.Body, &described) != nil || !isHash(described.Hash) {
		r.Damaged, r.Body, r.Hash = true, nil, ""
		return
	}
	r.Content = described.Hash
}

// CheckHash returns an error that wraps [store.ErrNotFound] if no content has the hash.
func CheckHash(hash string) error {
	if isHash(hash) {
		return nil
	}
	return fmt.Errorf("content %q: %w", hash, store.ErrNotFound)
}

func isHash(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 32
}

// Content opens the content of a file.
func (r *Replica) Content(ctx context.Context, hash string) (io.ReadCloser, error) {
	if err := CheckHash(hash); err != nil {
		return nil, err
	}
	return r.o.Files.OpenContent(ctx, hash)
}

// Put writes records.
func (r *Replica) Put(ctx context.Context, writes ...store.RecordWrite) ([]store.PutResult, error) {
	return r.PutWith(ctx, writes, nil)
}

// PutWith is Put, and calls also, if not nil, in the same transaction, which can run
// more than once.
func (r *Replica) PutWith(ctx context.Context, writes []store.RecordWrite, also func(results []store.PutResult) []syncing.SyncedRecord) ([]store.PutResult, error) {
	p := &putCall{r: r, results: make([]store.PutResult, len(writes)), at: map[store.Feed][]int{}, writes: map[store.Feed][]store.RecordWrite{}}
	for i, w := range writes {
		if !slices.Contains(store.Feeds(), w.Feed) {
			return nil, UnknownFeed(w.Feed)
		}
		p.at[w.Feed], p.writes[w.Feed] = append(p.at[w.Feed], i), append(p.writes[w.Feed], w)
	}
	entries, err := r.o.LongTerm.PrepareWrites(ctx, p.writes[store.EntryFeed])
	if err != nil {
		return nil, err
	}
	defer entries.Release()
	release, err := p.saveContents(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	err = r.o.Engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := p.write(ctx, tx, entries); err != nil {
			return err
		}
		if also == nil {
			return nil
		}
		return SetSyncedIn(ctx, tx, also(p.results))
	})
	if err != nil {
		p.failed(entries, err)
		return nil, err
	}
	if slices.ContainsFunc(p.writes[store.DocumentFeed], func(w store.RecordWrite) bool { return w.Space == session.Kind }) {
		r.o.Sessions.Replaced()
	}
	return p.results, nil
}

// putCall is a call of Put.
type putCall struct {
	r       *Replica
	results []store.PutResult
	writes  map[store.Feed][]store.RecordWrite
	at      map[store.Feed][]int // positions in results
	refused []error              // errors of documents whose contents cannot be read
}

func (p *putCall) saveContents(ctx context.Context) (release func(), err error) {
	files := p.r.o.Files
	writes := p.writes[store.DocumentFeed]
	p.refused = make([]error, len(writes))
	var paths []string
	for _, w := range writes {
		if w.Space == file.Kind {
			paths = append(paths, w.Key)
		}
	}
	release = files.Hold(paths)
	for i, w := range writes {
		if p.refused[i], err = SaveContent(ctx, w, files.Has, files.Save); err != nil {
			release()
			return nil, err
		}
	}
	return release, nil
}

// SaveContent stores the content of a file whose record is written, unless there is one with its hash. refused is set
// if the record can never be stored.
func SaveContent(ctx context.Context, w store.RecordWrite, has func(ctx context.Context, hash string) bool, save func(ctx context.Context, hash string, data []byte) error) (refused, err error) {
	if w.Feed != store.DocumentFeed || w.Space != file.Kind || w.Deleted {
		return nil, nil
	}
	described := w.Record
	if AddContent(&described); described.Damaged {
		return tea.Errorf(tea.ValidationError, "the record of the file %q is damaged", w.Key), nil
	}
	if has(ctx, described.Content) {
		return nil, nil
	}
	data, err := contentOf(ctx, w)
	if err == nil {
		err = save(ctx, described.Content, data)
	}
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, content.ErrDamaged) { // the other store has lost it
		return tea.Errorf(tea.InternalError, "%w", err), nil
	}
	return nil, err
}

func contentOf(ctx context.Context, w store.RecordWrite) ([]byte, error) {
	if w.Open == nil {
		return nil, tea.Errorf(tea.ValidationError, "the content of the file %q is missing", w.Key)
	}
	from, err := w.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the content of the file %q: %w", w.Key, err)
	}
	defer from.Close()
	data, err := io.ReadAll(from)
	if err != nil {
		return nil, fmt.Errorf("read the content of the file %q: %w", w.Key, err)
	}
	if content.Hash(data) != w.Content {
		return nil, fmt.Errorf("the content of the file %q: %w", w.Key, content.ErrDamaged)
	}
	return data, nil
}

func (p *putCall) write(ctx context.Context, tx store.Tx, entries *longterm.Writes) error {
	for _, feed := range store.Feeds() {
		writes := p.writes[feed]
		if len(writes) == 0 {
			continue
		}
		results, err := p.writeFeed(ctx, tx, feed, entries)
		if err != nil {
			return err
		}
		for n, i := range p.at[feed] {
			p.results[i] = results[n]
		}
	}
	return nil
}

func (p *putCall) writeFeed(ctx context.Context, tx store.Tx, feed store.Feed, entries *longterm.Writes) ([]store.PutResult, error) {
	switch feed {
	case store.EntryFeed:
		return entries.Write(ctx, tx)
	case store.VectorFeed:
		return p.r.o.Vectors.PutIn(ctx, tx, p.writes[feed])
	}
	return p.r.o.Documents.PutIn(ctx, tx, p.writes[feed], p.refused)
}

// failed reports the failed transaction to the indexes.
func (p *putCall) failed(entries *longterm.Writes, err error) {
	_ = entries.Failed(err) // it returns err
	var collections []string
	for _, w := range p.writes[store.VectorFeed] {
		collections = append(collections, w.Space)
	}
	slices.Sort(collections)
	p.r.o.Vectors.Failed(slices.Compact(collections), err)
}
