package firestore

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/rowmirror"
	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// db is shared by the stores of a database.
type db struct {
	*client
	now      func() time.Time
	readOnly string
	logger   *slog.Logger
}

func newClient(endpoint, root, prefix string, c store.Config, h *http.Client) *client {
	s := httpapi.Server{HTTP: h, Base: endpoint + "/v1/" + strings.TrimSuffix(root, "/documents"), MaxRetries: 4, MaxRetryAfter: 30 * time.Second}
	if c.Token != "" {
		s.Secrets = []string{c.Token}
	}
	return &client{server: s, timeout: c.Timeout, root: root, prefix: prefix}
}

// stores returns the stores of the database, which they close.
func (d *db) stores(c store.Config) *store.Stores {
	c.Engine = Name
	stores := records.Open(d, c)
	mirror := rowmirror.New(rowStore{d: d}, d.logger)
	stores.Tables = tabular.NewShared(stores.Metadata, rowStore{d, mirror}, mirror)
	stores.Close = func() error { return errors.Join(mirror.Close(), d.Close()) }
	return stores
}

func (d *db) writable() error {
	if d.readOnly != "" {
		return tea.Errorf(tea.PermissionDenied, "the memory is %w: %s", store.ErrReadOnly, d.readOnly)
	}
	return nil
}

// between is the wait after a commit that lost against a concurrent one.
var between = backoff.Policy{Base: 5 * time.Millisecond, Max: time.Second, Multiplier: 2, Jitter: 1}

// attempt is one attempt of a call to change documents, after reading them.
type attempt[T any] struct {
	// writes are the changes, with the preconditions that the documents have not changed since; none = nothing to
	// change.
	writes []write
	// dropped is the collection of vectors that the writes remove.
	dropped string
	// numbered reports whether the writes also assign the numbers of the records; see number.
	numbered bool
	// result is the result of the call if the writes succeed.
	result T
}

// change reads documents and changes them atomically. It calls plan with the documents that exist, and again after a
// conflict.
//
// Each commit creates the document tea-ops/ID, where ID identifies the call. If the response is lost after the commit
// succeeded, all later commits of the call fail, and the document shows which attempt succeeded. It is read in the same
// request as the others.
func change[T any](ctx context.Context, d *db, fieldPaths, names []string, plan func(found map[string]document) (attempt[T], error)) (result T, err error) {
	if err := d.writable(); err != nil {
		return result, err
	}
	op := d.name(opsName, rand.Text())
	var tries []attempt[T]
	for {
		paths, all := fieldPaths, names
		if len(tries) > 0 {
			paths, all = append([]string{tryField}, fieldPaths...), append([]string{op}, names...)
		}
		found := map[string]document{}
		if len(all) > 0 {
			if found, err = d.get(ctx, paths, all...); err != nil {
				return result, err
			}
		}
		if done, ok := found[op]; ok {
			return tries[done.Fields[tryField].int()].result, nil
		}
		a, err := plan(found)
		if err != nil || len(a.writes) == 0 {
			return a.result, err
		}
		recorded := a.writes
		if a.numbered {
			recorded = nil
		}
		marks := d.marks(op, len(tries), recorded, a.dropped)
		tries = append(tries, a)
		if err = d.commit(ctx, append(marks, a.writes...)); err == nil {
			return a.result, nil
		}
		if !conflicts(err) {
			return result, err
		}
		if len(tries) == maxTries {
			e := tea.Errorf(tea.ConnectionError, "other writers have changed the same documents during each of %d tries: %w", maxTries, err)
			e.Retryable = true
			return result, e
		}
		if err := backoff.Sleep(ctx, between.Wait(min(len(tries), 8))); err != nil {
			return result, err
		}
	}
}

const (
	// maxTries bounds the commits of a call that conflict with others.
	maxTries = 60
	// opExpiry is the time from which a document of tea-ops can be removed, for a TTL policy of Firestore.
	opExpiry = "expires_at"
	// tryField is the number of the attempt in a document of tea-ops.
	tryField = "try"
	// keep is how long these documents, and parts without an entry, are kept: longer than any retry.
	keep = 24 * time.Hour
)

// sweepOlder removes documents whose time in a field is before a limit.
func (d *db) sweepOlder(ctx context.Context, collection, name string, before time.Time) error {
	old := structured{
		From: []from{{d.prefix + collection}}, Limit: batch, Select: selected([]string{nameField}),
		Where: &filterOf{FieldFilter: &fieldFilter{field{name}, "LESS_THAN", timestamp(before.UnixMicro())}},
	}
	for {
		p, err := d.query(ctx, "", old, "")
		if err != nil || len(p.documents) == 0 {
			return err
		}
		if err := d.remove(ctx, p.documents); err != nil {
			return err
		}
	}
}

// remove removes documents that have not changed. It is not atomic.
func (d *db) remove(ctx context.Context, all []document) error {
	writes := make([]write, len(all))
	for i, one := range all {
		writes[i] = write{Delete: one.Name, CurrentDocument: unchanged(one.UpdateTime)}
	}
	_, err := d.eachWrite(ctx, writes)
	return err
}

// collections returns the names of the memory's collections, without the prefix.
func (d *db) collections(ctx context.Context) (names []string, err error) {
	var answer struct {
		IDs  []string `json:"collectionIds"`
		Next string   `json:"nextPageToken"`
	}
	own := []string{entriesName, vectorsName, opsName, inlinedName, callsName, changesName}
	for {
		body := map[string]any{"pageSize": 300, "pageToken": answer.Next}
		answer.IDs, answer.Next = nil, ""
		err := d.post(ctx, "", "listCollectionIds", body, func(r httpapi.Reply) error { return r.Decode(&answer, "the names of collections") })
		if err != nil {
			return nil, err
		}
		for _, id := range answer.IDs {
			if name, ok := strings.CutPrefix(id, d.prefix); ok && (kindOf(name) != "" || slices.Contains(own, name)) {
				names = append(names, name)
			}
		}
		if answer.Next == "" {
			return names, nil
		}
	}
}

func (d *db) empty(ctx context.Context, parent, collection string) error {
	q := structured{From: []from{{collection}}, Limit: batch, Select: selected([]string{nameField})}
	for {
		p, err := d.query(ctx, parent, q, "")
		if err != nil || len(p.documents) == 0 {
			return err
		}
		if err := d.remove(ctx, p.documents); err != nil {
			return err
		}
	}
}
