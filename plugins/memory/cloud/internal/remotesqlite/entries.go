package remotesqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Memory is a LongTermMemory in a database.
type Memory struct {
	d       *database
	closed  closed
	lengths lengths
}

var _ store.LongTermMemory = (*Memory)(nil)

// Close ends the use of the memory. The connections stay open.
func (m *Memory) Close() error { m.closed.Store(true); return nil }

const (
	// partBytes is the size of a part of a large value.
	partBytes = 512 << 10
	// requestParts is the number of parts in one request.
	requestParts = 8
	// keepParts is the number of seconds for which parts are kept without an entry:
	// the entry can be about to be written.
	keepParts = 3600
)

const entryColumns = "l.id, l.namespace, l.key, l.value, l.metadata, l.content_hash, l.size, l.created_at, l.updated_at, l.expires_at"

// entry is a row. Its value, if it is nil, is in parts.
type entry struct {
	store.Memory
	size int64
}

func toEntry(row []any) entry {
	e := entry{size: number(row, 6)}
	e.ID, e.Namespace, e.Key, e.ContentHash = number(row, 0), text(row, 1), unescape(text(row, 2)), text(row, 5)
	e.CreatedAt, e.UpdatedAt, e.ExpiresAt = clock.FromMicro(number(row, 7)), clock.FromMicro(number(row, 8)), clock.FromMicro(number(row, 9))
	if row[3] != nil {
		e.Value = json.RawMessage(text(row, 3))
	}
	if row[4] != nil {
		e.Metadata = json.RawMessage(text(row, 4))
	}
	return e
}

// check reports what is wrong with the value.
func (e *entry) check() error {
	if content.Hash(e.Value) != e.ContentHash {
		return longterm.Damaged(e.Key, "its hash is another one")
	}
	return nil
}

// Retrieve returns the live entry under key.
func (m *Memory) Retrieve(ctx context.Context, namespace, key string) (store.Memory, error) {
	if err := m.closed.check(ctx); err != nil {
		return store.Memory{}, err
	}
	if err := longterm.CheckNamespace(namespace); err != nil {
		return store.Memory{}, err
	}
	if !longterm.Storable(key) {
		return store.Memory{}, longterm.Missing(key)
	}
	const wanted = "namespace = ?1 AND key = ?2 AND (expires_at IS NULL OR expires_at > CAST(?3 AS INTEGER))"
	sql := "SELECT " + entryColumns + ", -1 FROM ltm AS l WHERE " + wanted + fmt.Sprintf(`
		UNION ALL SELECT data, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, part FROM ltm_parts
		WHERE hash = (SELECT content_hash FROM ltm WHERE value IS NULL AND %s) AND part < %d ORDER BY 11`, wanted, requestParts)
	args := []string{namespace, escape(key), integer(m.d.micro())}
	for try := 0; ; try++ {
		rows, err := m.d.query(ctx, sql, args...)
		if err != nil {
			return store.Memory{}, err
		}
		if len(rows) == 0 {
			return store.Memory{}, longterm.Missing(key)
		}
		e := toEntry(rows[0])
		if e.Value == nil {
			if err := m.join(ctx, &e, rows[1:]); err != nil {
				return store.Memory{}, err
			}
		}
		// A value of many parts can be removed while it is read.
		if err := e.check(); err == nil || try > 0 {
			return e.Memory, err
		}
	}
}

// join puts the parts of a value together and reads the further ones.
func (m *Memory) join(ctx context.Context, e *entry, parts Result) error {
	var b strings.Builder
	for n := 0; ; {
		for _, row := range parts {
			b.WriteString(text(row, 0))
		}
		n += len(parts)
		if int64(b.Len()) >= e.size || len(parts) == 0 {
			e.Value = json.RawMessage(b.String())
			return nil
		}
		var err error
		parts, err = m.d.query(ctx, fmt.Sprintf("SELECT data FROM ltm_parts WHERE hash = ?1 AND part >= %d ORDER BY part LIMIT %d", n, requestParts), e.ContentHash)
		if err != nil {
			return err
		}
	}
}

// fill reads the values that are in parts, several in a request.
func (m *Memory) fill(ctx context.Context, entries []*entry) error {
	for len(entries) > 0 {
		var hashes []string
		size := int64(0)
		n := 0
		for ; n < len(entries) && (n == 0 || size+entries[n].size <= partBytes*requestParts); n++ {
			if entries[n].Value == nil {
				hashes = append(hashes, entries[n].ContentHash)
				size += entries[n].size
			}
		}
		found := map[string]Result{}
		if len(hashes) > 0 {
			rows, err := m.d.query(ctx, fmt.Sprintf("SELECT hash, data FROM ltm_parts WHERE hash IN (SELECT value FROM json_each(?1)) AND part < %d ORDER BY hash, part", requestParts), list(hashes))
			if err != nil {
				return err
			}
			for _, row := range rows {
				found[text(row, 0)] = append(found[text(row, 0)], row[1:])
			}
		}
		for _, e := range entries[:n] {
			if e.Value == nil {
				if err := m.join(ctx, e, found[e.ContentHash]); err != nil {
					return err
				}
			}
			if err := e.check(); err != nil || e.Metadata != nil && !json.Valid(e.Metadata) {
				m.d.logger.Error("an entry is damaged", "key", e.Key)
				e.Value, e.Damaged = nil, true
			}
		}
		entries = entries[n:]
	}
	return nil
}

const (
	// maxWords is the size of the list of stems of an entry; further words are not
	// found. See fulltext.Terms.
	maxWords = 256 << 10
	// maxMetadata is the size of the metadata of an entry.
	maxMetadata = 512 << 10
)

// Store writes the entries atomically.
func (m *Memory) Store(ctx context.Context, entries ...store.Entry) ([]store.Stored, error) {
	if err := m.closed.check(ctx); err != nil {
		return nil, err
	}
	now := m.d.now()
	contents, err := longterm.ToCanonical(entries, m.d.inline, now)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	if err := m.d.writable(ctx); err != nil {
		return nil, err
	}
	rows, err := m.rows(entries, contents)
	if err != nil {
		return nil, err
	}
	parts := partsOf(contents)
	for {
		stored, err := m.store(ctx, rows, parts, now, contents)
		if refused := (*refusedError)(nil); !errors.As(err, &refused) {
			return stored, err
		}
		// A sweep of another device has removed the parts that were sent first.
	}
}

// rows are the rows of the entries as JSON lists.
func (m *Memory) rows(entries []store.Entry, contents []longterm.Canonical) ([]string, error) {
	rows := make([][]any, len(entries))
	for i, c := range contents {
		if len(c.Metadata) > maxMetadata {
			return nil, tea.Errorf(tea.ValidationError, "the metadata of key %q has %d bytes, more than %d; store them as a part of the value", entries[i].Key, len(c.Metadata), maxMetadata)
		}
		var text any
		if c.Inline {
			text = c.Value
		}
		rows[i] = []any{entries[i].Namespace, escape(entries[i].Key), text, orNull(c.Metadata), c.Hash, len(c.Value), orNull(c.ExpiresAt)}
		if m.d.fullText {
			words := m.d.terms.Document(maxWords, c.Fields...)
			rows[i] = append(rows[i], words.Stems, words.Spelled, words.Forms)
		}
	}
	return chunks(rows)
}

// partAgain is the end of a statement that stores a part: the part can be there.
const partAgain = " ON CONFLICT (hash, part) DO UPDATE SET at = unixepoch()"

// partsOf are the statements for the values that are too large for their rows.
func partsOf(contents []longterm.Canonical) (parts []Statement) {
	for _, c := range contents {
		if c.Inline {
			continue
		}
		for n, rest := 0, c.Value; rest != ""; n++ {
			end := len(rest)
			if end > partBytes {
				end = value.WholeRunes(rest[:partBytes])
			}
			parts = append(parts, Statement{
				"INSERT INTO ltm_parts VALUES (?1, CAST(?2 AS INTEGER), ?3, unixepoch())" + partAgain,
				[]string{c.Hash, integer(int64(n)), rest[:end]},
			})
			rest = rest[end:]
		}
	}
	return parts
}

func (m *Memory) store(ctx context.Context, chunks []string, parts []Statement, now time.Time, contents []longterm.Canonical) ([]store.Stored, error) {
	var w write
	if err := m.addParts(ctx, &w, parts); err != nil {
		return nil, err
	}
	for i, chunk := range chunks {
		m.addRows(&w, i, chunk, integer(now.UnixMicro()))
	}
	results, err := m.d.do(ctx, w)
	if err != nil {
		return nil, err
	}
	stored := make([]store.Stored, len(contents))
	for i, c := range contents {
		stored[i] = store.Stored{Created: true, Inlined: c.Inline, ContentHash: c.Hash, ByteSize: int64(len(c.Value))}
	}
	first := 0
	for i, chunk := range chunks {
		var rows []json.RawMessage
		var before [][3]int // the number of the row, whether its entry is live, and the same
		if err := errors.Join(json.Unmarshal([]byte(chunk), &rows), json.Unmarshal([]byte(results[i+1]), &before)); err != nil {
			return nil, fmt.Errorf("read the result of a write: %w", err)
		}
		for _, b := range before {
			one := &stored[first+b[0]]
			one.Created, one.Deduplicated = b[1] == 0, b[2] == 1
		}
		first += len(rows)
	}
	return stored, nil
}

// addParts adds the statements that store parts. Many are sent now; the write is
// then refused if they were removed meanwhile.
func (m *Memory) addParts(ctx context.Context, w *write, parts []Statement) error {
	if len(parts) > requestParts {
		var large []string
		sent := 0
		seen := map[string]bool{}
		for _, p := range parts {
			if name := p.Args[0] + "/" + p.Args[1]; !seen[name] {
				seen[name] = true
				sent++
			}
			large = append(large, p.Args[0])
		}
		for len(parts) > 0 {
			n := min(len(parts), requestParts)
			if err := m.d.server.Each(ctx, parts[:n]...); err != nil {
				return err
			}
			parts = parts[n:]
		}
		w.refused = "(SELECT count(*) FROM ltm_parts WHERE hash IN (SELECT value FROM json_each(?2))) < CAST(?3 AS INTEGER)"
		w.args = []string{list(large), integer(int64(sent))}
	}
	for _, p := range parts {
		w.add("INSERT INTO ltm_parts SELECT ?2, CAST(?3 AS INTEGER), ?4, unixepoch() WHERE "+pending+partAgain, p.Args...)
	}
	return nil
}

// addRows adds the statements that write a list of rows.
func (m *Memory) addRows(w *write, n int, rows, now string) {
	const (
		each    = "json_each(?2) AS j"
		there   = "l.namespace = json_extract(j.value, '$[0]') AND l.key = json_extract(j.value, '$[1]')"
		last    = "(SELECT n FROM tea_seq WHERE name = 'ltm')"
		changed = "seq > " + last
	)
	w.addResult(n, `(SELECT json_group_array(json_array(j.key, CASE WHEN l.expires_at <= CAST(?3 AS INTEGER) THEN 0 ELSE 1 END,
		CASE WHEN l.content_hash = json_extract(j.value, '$[4]') AND l.metadata IS json_extract(j.value, '$[3]') AND l.expires_at IS NULL AND json_extract(j.value, '$[6]') IS NULL THEN 1 ELSE 0 END))
		FROM `+each+" JOIN ltm AS l ON "+there+")", rows, now)
	w.add(`INSERT INTO ltm (namespace, key, seq, value, metadata, content_hash, size, created_at, updated_at, expires_at)
		SELECT json_extract(j.value, '$[0]'), json_extract(j.value, '$[1]'), `+last+` + j.key + 1, json_extract(j.value, '$[2]'), json_extract(j.value, '$[3]'),
			json_extract(j.value, '$[4]'), json_extract(j.value, '$[5]'), CAST(?3 AS INTEGER), CAST(?3 AS INTEGER), json_extract(j.value, '$[6]')
		FROM `+each+" WHERE "+pending+`
		ON CONFLICT (namespace, key) DO UPDATE SET seq = excluded.seq, value = excluded.value, metadata = excluded.metadata, content_hash = excluded.content_hash, size = excluded.size,
			created_at = CASE WHEN ltm.expires_at <= excluded.created_at THEN excluded.created_at ELSE ltm.created_at END, updated_at = excluded.updated_at, expires_at = excluded.expires_at
		WHERE NOT (ltm.content_hash = excluded.content_hash AND ltm.metadata IS excluded.metadata AND ltm.expires_at IS NULL AND excluded.expires_at IS NULL)`, rows, now)
	if m.d.fullText {
		w.add("DELETE FROM ltm_text WHERE rowid IN (SELECT id FROM ltm WHERE " + changed + ") AND " + pending)
		w.add("INSERT INTO ltm_text (rowid, stems, spelled, forms) SELECT l.id, json_extract(j.value, '$[7]'), json_extract(j.value, '$[8]'), json_extract(j.value, '$[9]') FROM "+
			each+" JOIN ltm AS l ON "+there+" WHERE l."+changed+" AND "+pending, rows)
	}
	w.add("UPDATE tea_seq SET n = n + json_array_length(?2) WHERE name = 'ltm' AND "+pending, rows)
}

// removed are the ids and states of the entries that a write removes.
type removed struct{ ids, live int }

// remove removes the entries that a condition selects, at most limit. sweep leaves
// no tombstones.
func (m *Memory) remove(ctx context.Context, sweep bool, limit int, condition string, args ...string) (removed, error) {
	if err := m.d.prepare(ctx); err != nil {
		return removed{}, err
	}
	args = append([]string{integer(m.d.micro())}, args...)
	w := write{
		before: fmt.Sprintf("(SELECT json_group_array(json_array(id, live)) FROM (SELECT id, expires_at IS NULL OR expires_at > CAST(?2 AS INTEGER) AS live FROM ltm WHERE %s LIMIT %d))", condition, limit),
		args:   args,
	}
	const them = " IN (SELECT json_extract(value, '$[0]') FROM json_each(" + before + ")) AND " + pending
	if m.d.fullText {
		w.add("DELETE FROM ltm_text WHERE rowid" + them)
	}
	deletion := func() { w.add("DELETE FROM ltm WHERE id" + them) }
	if sweep {
		w.untracked(deletion)
	} else {
		deletion()
	}
	results, err := m.d.do(ctx, w)
	if err != nil {
		return removed{}, err
	}
	var rows [][2]int64
	if err := json.Unmarshal([]byte(results[0]), &rows); err != nil {
		return removed{}, fmt.Errorf("read the result of a write: %w", err)
	}
	r := removed{ids: len(rows)}
	for _, row := range rows {
		r.live += int(row[1])
	}
	return r, nil
}

// Delete removes the entry under key and reports whether it was live.
func (m *Memory) Delete(ctx context.Context, namespace, key string) (bool, error) {
	if err := m.closed.check(ctx); err != nil {
		return false, err
	}
	if err := longterm.CheckNamespace(namespace); err != nil || !longterm.Storable(key) {
		return false, err
	}
	gone, err := m.remove(ctx, false, 1, "namespace = ?3 AND key = ?4", namespace, escape(key))
	return gone.live > 0, err
}

// removeBatch is the number of entries that one request removes.
const removeBatch = 1000

// DeletePrefix removes the entries whose keys begin with prefix.
func (m *Memory) DeletePrefix(ctx context.Context, namespace, prefix string) (deleted int, err error) {
	if err := m.closed.check(ctx); err != nil {
		return 0, err
	}
	if err := longterm.CheckPrefix(namespace, prefix); err != nil {
		return 0, err
	}
	begins, args := prefixed("key", escape(prefix), []string{"", "", namespace})
	for {
		gone, err := m.remove(ctx, false, removeBatch, "namespace = ?3"+begins, args[2:]...)
		if deleted += gone.live; err != nil || gone.ids < removeBatch {
			return deleted, err
		}
	}
}

// Sweep removes expired entries and the parts of values without an entry.
func (m *Memory) Sweep(ctx context.Context, before time.Time) (swept int, err error) {
	if err := m.closed.check(ctx); err != nil {
		return 0, err
	}
	for {
		gone, err := m.remove(ctx, true, removeBatch, "expires_at < CAST(?3 AS INTEGER)", integer(before.UnixMicro()))
		if swept += gone.ids; err != nil {
			return swept, err
		}
		if gone.ids < removeBatch {
			break
		}
	}
	if err := m.d.forget(ctx); err != nil {
		return swept, err
	}
	err = m.d.server.Each(ctx, Statement{SQL: fmt.Sprintf("DELETE FROM ltm_parts WHERE at < unixepoch() - %d AND hash NOT IN (SELECT content_hash FROM ltm WHERE value IS NULL)", keepParts)})
	return swept, err
}

// List returns live entries in the order of their keys.
func (m *Memory) List(ctx context.Context, l store.List) (store.Page, error) {
	results, err := m.walk(ctx, store.Search{Namespace: l.Namespace, Prefix: l.Prefix, After: l.After, Limit: l.Limit, KeysOnly: l.KeysOnly, MaxBytes: l.MaxBytes})
	page := store.Page{More: results.More, Entries: make([]store.Memory, len(results.Found))}
	for i, f := range results.Found {
		page.Entries[i] = f.Memory
	}
	return page, err
}

// walk is a search without a text.
func (m *Memory) walk(ctx context.Context, q store.Search) (store.Results, error) {
	if err := m.closed.check(ctx); err != nil {
		return store.Results{}, err
	}
	if err := longterm.CheckPrefix(q.Namespace, q.Prefix); err != nil {
		return store.Results{}, err
	}
	if !utf8.ValidString(q.After) {
		return store.Results{}, tea.Errorf(tea.ValidationError, "the cursor %q is not valid UTF-8", q.After)
	}
	if q.Limit < 1 {
		return store.Results{}, m.d.prepare(ctx)
	}
	begins, args := prefixed("l.key", escape(q.Prefix), []string{q.Namespace, escape(q.After), integer(m.d.micro())})
	q.Skip = 0
	return m.page(ctx, q, func(last *entry, limit int) ([]entry, []float64, error) {
		if last != nil {
			args[1] = escape(last.Key)
		}
		rows, err := m.d.query(ctx, fmt.Sprintf("SELECT %s FROM ltm AS l WHERE l.namespace = ?1 AND l.key > ?2 AND (l.expires_at IS NULL OR l.expires_at > CAST(?3 AS INTEGER))%s ORDER BY l.key LIMIT %d", entryColumns, begins, limit), args...)
		entries := make([]entry, len(rows))
		for i, row := range rows {
			entries[i] = toEntry(row)
		}
		return entries, make([]float64, len(rows)), err
	})
}
