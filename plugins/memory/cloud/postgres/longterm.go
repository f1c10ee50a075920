package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// longTerm is a LongTermMemory. It is safe for concurrent use.
type longTerm struct {
	d      *database
	closed closed
}

var _ store.LongTermMemory = (*longTerm)(nil)

// Close ends the use of the memory. The connections stay open.
func (m *longTerm) Close() error {
	m.closed.Store(true)
	return nil
}

// hashOf returns the primary key of an entry.
func hashOf(namespace, key string) []byte {
	sum := sha256.Sum256([]byte(namespace + "\x00" + key))
	return sum[:]
}

const (
	// storeBatch is the number of entries that one statement writes.
	storeBatch = 1000
	// storeBytes is the size of their values.
	storeBytes = 16 << 20
)

// The results of storeSQL, one for each entry.
const (
	created   = 'c'
	unchanged = '='
	replaced  = 'r'
)

// storeSQL writes entries. Those that are not in "written" had the same content.
const storeSQL = `WITH written AS (
		INSERT INTO ltm AS l (hash, namespace, key, value, metadata, content_hash, created_at, updated_at, expires_at, fresh, words)
		SELECT i.hash, i.namespace, i.key, i.value, i.metadata, i.content_hash, $3, $3, i.expires_at, true, i.words::tsvector
		FROM unnest($4::bytea[], $5::text[], $6::bytea[], $7::text[], $8::text[], $9::text[], $10::bigint[], $11::text[])
			AS i (hash, namespace, key, value, metadata, content_hash, expires_at, words)
		ON CONFLICT (hash) DO UPDATE SET value = excluded.value, metadata = excluded.metadata, content_hash = excluded.content_hash,
			created_at = CASE WHEN l.expires_at <= $3 THEN $3 ELSE l.created_at END, updated_at = $3, expires_at = excluded.expires_at,
			fresh = coalesce(l.expires_at <= $3, false), words = excluded.words
		WHERE NOT (l.content_hash = excluded.content_hash AND l.metadata IS NOT DISTINCT FROM excluded.metadata AND l.expires_at IS NULL AND excluded.expires_at IS NULL)
		RETURNING l.hash, l.fresh)
	INSERT INTO tea_writes (id, n, result)
	SELECT $1::bytea, $2::integer, string_agg(CASE WHEN fresh THEN 'c' WHEN fresh IS NULL THEN '=' ELSE 'r' END, '' ORDER BY i.n)
	FROM unnest($4::bytea[]) WITH ORDINALITY AS i (hash, n) LEFT JOIN written USING (hash)
	RETURNING result`

// columns are the arrays of storeSQL.
type columns struct {
	hashes, keys       [][]byte
	namespaces, values []string
	metadata           []*string
	contentHashes      []string
	expires            []*int64
	words              []string
}

// args are the arguments of the n-th statement of a write.
func (c *columns) args(id []byte, n int, now int64) []any {
	return []any{id, n, now, c.hashes, c.namespaces, c.keys, c.values, c.metadata, c.contentHashes, c.expires, c.words}
}

// orNull returns a pointer to v, nil for the zero value.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// batches are the arguments of the statements that store entries, and what is
// known of their results, with their places by hash.
func (m *longTerm) batches(entries []store.Entry, contents []longterm.Canonical) (stored []store.Stored, byHash map[string]int, batches []*columns) {
	stored, byHash = make([]store.Stored, len(entries)), make(map[string]int, len(entries))
	order := make([]int, len(entries))
	hashes := make([][]byte, len(entries))
	for i, e := range entries {
		c := contents[i]
		stored[i] = store.Stored{Inlined: c.Inline, ContentHash: c.Hash, ByteSize: int64(len(c.Value))}
		order[i], hashes[i] = i, hashOf(e.Namespace, e.Key)
		byHash[string(hashes[i])] = i
	}
	// In one order, so that concurrent writers do not wait for each other.
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(hashes[a], hashes[b]) })
	last, size := &columns{}, 0
	batches = []*columns{last}
	for _, i := range order {
		e, c := entries[i], contents[i]
		if len(last.keys) == storeBatch || size > storeBytes {
			last, size = &columns{}, 0
			batches = append(batches, last)
		}
		size += len(c.Value)
		last.hashes, last.keys = append(last.hashes, hashes[i]), append(last.keys, []byte(e.Key))
		last.namespaces, last.values = append(last.namespaces, e.Namespace), append(last.values, c.Value)
		last.metadata, last.contentHashes = append(last.metadata, orNull(c.Metadata)), append(last.contentHashes, c.Hash)
		last.expires, last.words = append(last.expires, orNull(c.ExpiresAt)), append(last.words, m.d.vector(c.Fields))
	}
	return stored, byHash, batches
}

// Store writes the entries atomically.
func (m *longTerm) Store(ctx context.Context, entries ...store.Entry) ([]store.Stored, error) {
	if err := m.closed.check(); err != nil {
		return nil, err
	}
	now := m.d.now()
	contents, err := longterm.ToCanonical(entries, m.d.inline, now)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	stored, byHash, batches := m.batches(entries, contents)
	results, err := m.d.write(ctx, func(ctx context.Context, c conn, id []byte) ([]string, error) {
		results := make([]string, len(batches))
		if len(batches) == 1 {
			err := c.QueryRow(ctx, storeSQL, batches[0].args(id, 0, now.UnixMicro())...).Scan(&results[0])
			return results, err
		}
		b := &pgx.Batch{}
		b.Queue("BEGIN")
		for n, one := range batches {
			b.Queue(storeSQL, one.args(id, n, now.UnixMicro())...).QueryRow(func(row pgx.Row) error { return row.Scan(&results[n]) })
		}
		b.Queue("COMMIT")
		return results, m.d.transaction(ctx, c, b)
	})
	if err != nil {
		return nil, err
	}
	for n, one := range batches {
		for i, hash := range one.hashes {
			s := &stored[byHash[string(hash)]]
			s.Created, s.Deduplicated = results[n][i] == created, results[n][i] == unchanged
		}
	}
	return stored, nil
}

// transaction runs a batch that begins a transaction and commits it. After an
// error the transaction is rolled back.
func (d *database) transaction(ctx context.Context, c conn, b *pgx.Batch) error {
	err := c.SendBatch(ctx, b).Close()
	if err != nil {
		_, failed := c.Exec(context.WithoutCancel(ctx), "ROLLBACK")
		if failed != nil {
			d.logger.Debug("a transaction cannot be rolled back; the server does so", "error", failed.Error())
		}
	}
	return err
}

const (
	// directBytes is the size up to which a value is read with its row.
	directBytes  = 64 << 10
	entryColumns = `id, namespace, key, CASE WHEN octet_length(value) <= 65536 THEN value END, octet_length(value), metadata, content_hash, created_at, updated_at, expires_at`
	live         = "(expires_at IS NULL OR expires_at > "
)

// entry is a row. Its value, if it is nil, is read later.
type entry struct {
	store.Memory
	size int
}

// scanEntries reads rows of entryColumns, and a score if ranked.
func scanEntries(rows pgx.Rows, ranked bool) (all []entry, scores []float64, err error) {
	var e entry
	var key []byte
	var value, metadata *string
	var created, updated int64
	var expires *int64
	var score float32
	into := []any{&e.ID, &e.Namespace, &key, &value, &e.size, &metadata, &e.ContentHash, &created, &updated, &expires}
	if ranked {
		into = append(into, &score)
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		one := e
		one.Key, one.Value, one.Metadata = string(key), raw(value), raw(metadata)
		one.CreatedAt, one.UpdatedAt, one.ExpiresAt = clock.FromMicro(created), clock.FromMicro(updated), instant(expires)
		all, scores = append(all, one), append(scores, float64(score))
		return nil
	})
	return all, scores, err
}

func raw(text *string) json.RawMessage {
	if text == nil {
		return nil
	}
	return json.RawMessage(*text)
}

func instant(us *int64) time.Time {
	if us == nil {
		return time.Time{}
	}
	return clock.FromMicro(*us)
}

// Retrieve returns the live entry under key.
func (m *longTerm) Retrieve(ctx context.Context, namespace, key string) (found store.Memory, err error) {
	if err := m.closed.check(); err != nil {
		return found, err
	}
	if err := longterm.CheckNamespace(namespace); err != nil {
		return found, err
	}
	if !longterm.Storable(key) {
		return found, longterm.Missing(key)
	}
	err = m.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		var value string
		var metadata *string
		var created, updated int64
		var expires *int64
		found = store.Memory{Namespace: namespace, Key: key}
		err := c.QueryRow(ctx, "SELECT id, value, metadata, content_hash, created_at, updated_at, expires_at FROM ltm WHERE hash = $1 AND "+live+"$2)", hashOf(namespace, key), m.d.micro()).
			Scan(&found.ID, &value, &metadata, &found.ContentHash, &created, &updated, &expires)
		if errors.Is(err, pgx.ErrNoRows) {
			return longterm.Missing(key)
		}
		found.Value, found.Metadata = json.RawMessage(value), raw(metadata)
		found.CreatedAt, found.UpdatedAt, found.ExpiresAt = clock.FromMicro(created), clock.FromMicro(updated), instant(expires)
		return err
	})
	if err != nil {
		return store.Memory{}, err
	}
	return found, nil
}

// Delete removes the entry under key and reports whether it was live.
func (m *longTerm) Delete(ctx context.Context, namespace, key string) (deleted bool, err error) {
	if err := m.closed.check(); err != nil {
		return false, err
	}
	if err := longterm.CheckNamespace(namespace); err != nil || !longterm.Storable(key) {
		return false, err
	}
	_, n, err := m.d.remove(ctx, "$2", "$3", hashOf(namespace, key), m.d.micro())
	return n > 0, err
}

// deleteBatch is the number of entries that one statement removes.
const deleteBatch = 10_000

// DeletePrefix removes the entries whose keys begin with prefix.
func (m *longTerm) DeletePrefix(ctx context.Context, namespace, prefix string) (deleted int, err error) {
	if err := m.closed.check(); err != nil {
		return 0, err
	}
	if err := longterm.CheckPrefix(namespace, prefix); err != nil {
		return 0, err
	}
	a := &args{list: []any{nil}} // the first one is the id of the write
	where := a.below(namespace, prefix)
	now, limit := a.add(m.d.micro()), a.add(deleteBatch)
	_, n, err := m.removeAll(ctx, "SELECT hash FROM ltm WHERE "+where+" LIMIT "+limit, now, a.list[1:])
	return n, err
}

// Sweep removes the entries that expired before an instant.
func (m *longTerm) Sweep(ctx context.Context, before time.Time) (int, error) {
	if err := m.closed.check(); err != nil {
		return 0, err
	}
	// The transaction leaves no tombstones.
	n, _, err := m.removeAll(ctx, "SELECT hash FROM ltm WHERE expires_at < $3 AND set_config('tea.untracked', 'on', true) = 'on' LIMIT $4", "$2", []any{m.d.micro(), before.UnixMicro(), deleteBatch})
	if err != nil {
		return n, err
	}
	err = m.d.forget(ctx)
	if e := tea.AsError(err); m.d.rowSecurity && e != nil && e.Type == tea.PermissionDenied {
		err = nil // the devices of the owner do so
	}
	return n, err
}

// removeAll removes the entries that a query selects, until there are none.
func (m *longTerm) removeAll(ctx context.Context, chosen, now string, args []any) (all, alive int, err error) {
	for {
		n, living, err := m.d.remove(ctx, chosen, now, args...)
		if err != nil {
			return all, alive, err
		}
		all, alive = all+n, alive+living
		if n < deleteBatch {
			return all, alive, nil
		}
	}
}

// remove removes the entries with the chosen hashes, and returns the numbers of
// all and of the live ones. The parameters begin at $2.
func (d *database) remove(ctx context.Context, chosen, now string, args ...any) (all, alive int, err error) {
	results, err := d.statement(ctx, "WITH gone AS (DELETE FROM ltm WHERE hash IN ("+chosen+") RETURNING expires_at) "+
		"INSERT INTO tea_writes (id, result) SELECT $1::bytea, concat(count(*), ' ', count(*) FILTER (WHERE "+live+now+"))) FROM gone RETURNING result", args...)
	if err == nil {
		_, err = fmt.Sscan(results[0], &all, &alive)
	}
	return all, alive, err
}
