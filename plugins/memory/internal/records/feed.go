package records

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
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// KeptDeletions is how long tombstones are kept, for devices that were offline.
const KeptDeletions = 90 * 24 * 60 * 60 // seconds

// unknownFeed returns the error for an unknown feed.
func unknownFeed(feed store.Feed) error {
	return tea.Errorf(tea.ValidationError, "%q is not a feed of a memory", feed)
}

// eachFeed calls read with the names of each feed and returns its results in the
// order of the names.
func eachFeed(names []store.RecordName, read func(feed store.Feed, some []store.RecordName) ([]store.Record, error)) ([]store.Record, error) {
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
			return nil, unknownFeed(name.Feed)
		}
	}
	return all, nil
}

// deviceKinds are the kinds of documents that are not synchronised: calls of data.*, imports of archives, and the marks
// of other devices. They can only be read by name.
var deviceKinds = []string{"tabular_call", archive.ImportKind, syncing.MarkKind}

// keptOf returns a function that reports whether a document belongs to the replica. device includes the kinds that stay
// on the device.
func keptOf(ctx context.Context, of *catalog.Catalog, device bool) (func(store.Document) bool, error) {
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

// addContent adds the content of a file to its record.
func addContent(r *store.Record) {
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

// checkHash returns an error that wraps [store.ErrNotFound] if no content has the hash.
func checkHash(hash string) error {
	if isHash(hash) {
		return nil
	}
	return fmt.Errorf("content %q: %w", hash, store.ErrNotFound)
}

func isHash(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 32
}

// saveContent stores the content of a file whose record is written, unless there is one with its hash. refused is set
// if the record can never be stored.
func saveContent(ctx context.Context, w store.RecordWrite, has func(ctx context.Context, hash string) bool, save func(ctx context.Context, hash string, data []byte) error) (refused, err error) {
	if w.Feed != store.DocumentFeed || w.Space != file.Kind || w.Deleted {
		return nil, nil
	}
	described := w.Record
	if addContent(&described); described.Damaged {
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

// checkBounds returns an error that wraps [store.ErrTooOld] if a feed, whose tombstones were removed up to the number
// forgotten, no longer has all deletions after the query's number. last is the feed's last number.
func checkBounds(query store.ChangeQuery, forgotten, last int64) error {
	switch {
	case query.After == 0:
	case query.After > last:
		return fmt.Errorf("%s after change %d, but the last one is %d: %w, and %w", query.Feed, query.After, last, store.ErrTooOld, store.ErrUnknownChange)
	case query.After < forgotten && !query.FromStart:
		return fmt.Errorf("%s after change %d, but deletions up to %d were removed: %w", query.Feed, query.After, forgotten, store.ErrTooOld)
	}
	return nil
}

// pageOf returns a page of records. all has one more than the query's limit if more records exist. kept returns false
// for a row that does not belong to the replica.
func pageOf(q store.ChangeQuery, all []store.Record, kept func(*store.Record) bool) store.ChangePage {
	page := store.ChangePage{Last: q.After}
	size := int64(0)
	for i := range all {
		r := &all[i]
		addContent(r)
		size += int64(len(r.Body))
		if page.More = i == max(q.Limit, 1) || q.MaxBytes > 0 && size > q.MaxBytes && len(page.Records) > 0; page.More {
			break
		}
		if page.Last = r.Seq; kept(r) {
			page.Records = append(page.Records, *r)
		}
	}
	return page
}
