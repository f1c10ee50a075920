package remotesqlite

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/internal/mirror"
	"github.com/the-edge-agent/tea/plugins/memory/internal/replica"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// records are the tables of a database as records.
type records struct {
	d *database
	m *Memory
}

var _ replica.Tables = (*records)(nil)

// Identity identifies the contents.
func (r *records) Identity(ctx context.Context) (string, error) {
	rows, err := r.d.query(ctx, "SELECT value FROM tea_settings WHERE name = '"+settingIdentity+"'")
	if err != nil {
		return "", err
	}
	if len(rows) == 0 { // of an older version, and only read
		return "", store.Unsupported(r.d.name, store.Records, "write to the memory once with this version of the plugin")
	}
	return text(rows[0], 0), nil
}

// Bounds returns the numbers between which all deletions are known.
func (r *records) Bounds(ctx context.Context, feed store.Feed) (forgotten, last int64, err error) {
	rows, err := r.d.query(ctx, "SELECT coalesce((SELECT seq FROM tea_forgotten WHERE feed = ?1), 0), (SELECT n FROM tea_seq WHERE name = ?1)", string(feed))
	if err != nil {
		return 0, 0, err
	}
	return number(rows[0], 0), number(rows[0], 1), nil
}

// forget removes the tombstones that are older than replica.KeptDeletions, and
// those with smaller numbers.
func (d *database) forget(ctx context.Context) error {
	var w write
	for _, feed := range store.Feeds() {
		const old = "(SELECT max(seq) FROM tea_deleted WHERE feed = ?2 AND deleted_at < " + serverNow + " - CAST(?3 AS INTEGER) * 1000000)"
		args := []string{string(feed), integer(replica.KeptDeletions)}
		w.add("INSERT INTO tea_forgotten SELECT ?2, "+old+" WHERE "+old+" IS NOT NULL AND "+pending+" ON CONFLICT (feed) DO UPDATE SET seq = excluded.seq", args...)
		w.add("DELETE FROM tea_deleted WHERE feed = ?2 AND seq <= (SELECT seq FROM tea_forgotten WHERE feed = ?2) AND "+pending, args[0])
	}
	_, err := d.do(ctx, w)
	return err
}

// selected are the columns of a feed's rows, those of its tombstones, and the size
// of a row. seq is the first column, and the second one is 1 for a tombstone.
type selected struct{ table, columns, tombstone, size, named string }

var feeds = map[store.Feed]selected{
	store.EntryFeed: {
		table:     "ltm AS l",
		columns:   "l.seq AS seq, 0 AS gone, " + entryColumns,
		tombstone: "seq, 1, 0, space, key, NULL, NULL, NULL, 0, 0, deleted_at, NULL",
		size:      "l.size + coalesce(length(l.metadata), 0)",
		named:     "l.namespace = json_extract(j.value, '$[0]') AND l.key = json_extract(j.value, '$[1]')",
	},
	store.VectorFeed: {
		table:     "vectors AS l",
		columns:   "l.seq AS seq, 0 AS gone, l.collection, l.name, l.text, l.metadata, l.embedding",
		tombstone: "seq, deleted_at, space, key, NULL, NULL, NULL",
		size:      "length(l.text) + length(l.embedding) + coalesce(length(l.metadata), 0)",
		named:     "l.collection = json_extract(j.value, '$[0]') AND l.name = json_extract(j.value, '$[1]')",
	},
	store.DocumentFeed: {
		table:     "documents AS l",
		columns:   "l.seq AS seq, 0 AS gone, l.kind, l.id, l.body",
		tombstone: "seq, deleted_at, space, key, NULL",
		size:      "length(l.body)",
		named:     "l.kind = json_extract(j.value, '$[0]') AND l.id = json_extract(j.value, '$[1]')",
	},
}

// maxPage is the size of the rows of a page.
const maxPage = 4 << 20

// Page returns the first records of a feed after a number.
func (r *records) Page(ctx context.Context, query store.ChangeQuery) ([]store.Record, bool, error) {
	of := feeds[query.Feed]
	size := int64(maxPage)
	if query.MaxBytes > 0 {
		size = min(size, query.MaxBytes)
	}
	// A row is there if those before it are not larger than the page.
	rows, err := r.d.query(ctx, fmt.Sprintf(`SELECT * FROM (SELECT *, sum(bytes) OVER (ORDER BY seq) - bytes AS before, count(*) OVER () AS all_rows FROM (
			SELECT %s, %s AS bytes FROM %s WHERE l.seq > CAST(?1 AS INTEGER)
			UNION ALL SELECT %s, 0 FROM tea_deleted WHERE feed = ?2 AND seq > CAST(?1 AS INTEGER)
			ORDER BY seq LIMIT %d)) WHERE before <= CAST(?3 AS INTEGER) ORDER BY seq`, of.columns, of.size, of.table, of.tombstone, max(query.Limit, 1)+1),
		integer(query.After), string(query.Feed), integer(size))
	if err != nil || len(rows) == 0 {
		return nil, false, err
	}
	more := number(rows[0], len(rows[0])-1) > int64(len(rows))
	found, err := r.toRecords(ctx, query.Feed, rows)
	return found, more, err
}

// nameBatch is the number of records that one request reads by their names.
const nameBatch = 500

// Named returns the records with these names.
func (r *records) Named(ctx context.Context, feed store.Feed, names []store.RecordName) (found []store.Record, err error) {
	of := feeds[feed]
	for part := range slices.Chunk(names, nameBatch) {
		list := make([][]any, len(part))
		for i, name := range part {
			list[i] = []any{escape(name.Space), escape(name.Key)}
			if feed != store.VectorFeed {
				list[i][0] = name.Space
			}
			if feed == store.DocumentFeed {
				list[i][1] = name.Key
			}
		}
		lists, err := chunks(list)
		if err != nil {
			return nil, err
		}
		for _, list := range lists {
			rows, err := r.d.query(ctx, fmt.Sprintf(`SELECT %s FROM json_each(?1) AS j JOIN %s ON %s
				UNION ALL SELECT %s FROM (SELECT max(t.seq) AS seq, t.deleted_at, t.space, t.key FROM json_each(?1) AS j
					JOIN tea_deleted AS t ON t.feed = ?2 AND t.space = json_extract(j.value, '$[0]') AND t.key = json_extract(j.value, '$[1]') GROUP BY t.space, t.key)`,
				of.columns, of.table, of.named, of.tombstone), list, string(feed))
			if err != nil {
				return nil, err
			}
			some, err := r.toRecords(ctx, feed, rows)
			if err != nil {
				return nil, err
			}
			found = append(found, some...)
		}
	}
	return found, nil
}

func (r *records) toRecords(ctx context.Context, feed store.Feed, rows Result) ([]store.Record, error) {
	if feed == store.EntryFeed {
		return r.toEntries(ctx, rows)
	}
	all := make([]store.Record, len(rows))
	for i, row := range rows {
		seq, gone := number(row, 0), number(row, 1)
		switch {
		case gone > 0:
			all[i] = tombstone(feed, text(row, 2), text(row, 3), seq, gone)
			if feed == store.VectorFeed {
				all[i].Space, all[i].Key = unescape(all[i].Space), unescape(all[i].Key)
			}
		case feed == store.VectorFeed:
			body := store.VectorBody{Text: unescape(text(row, 4))}
			if row[5] != nil {
				body.Metadata = json.RawMessage(text(row, 5))
			}
			raw, err := base64.StdEncoding.DecodeString(text(row, 6))
			body.Embedding = vectors.Decode(raw)
			all[i] = vectors.ToRecord(unescape(text(row, 2)), unescape(text(row, 3)), seq, body)
			if err != nil || len(raw)%4 != 0 {
				all[i].Damaged = true
			}
		default:
			all[i] = documents.ToRecord(store.Document{Kind: text(row, 2), ID: text(row, 3), Body: json.RawMessage(text(row, 4)), Seq: seq})
		}
	}
	return all, nil
}

func tombstone(feed store.Feed, space, key string, seq, at int64) store.Record {
	return store.Record{RecordName: store.RecordName{Feed: feed, Space: space, Key: key}, Seq: seq, Deleted: true, Updated: clock.FromMicro(at)}
}

func (r *records) toEntries(ctx context.Context, rows Result) ([]store.Record, error) {
	entries := make([]entry, len(rows))
	var live []*entry
	for i, row := range rows {
		if entries[i] = toEntry(row[2:]); number(row, 1) == 0 {
			live = append(live, &entries[i])
		}
	}
	if err := r.m.fill(ctx, live); err != nil {
		return nil, err
	}
	all := make([]store.Record, len(rows))
	for i, row := range rows {
		e := &entries[i]
		if number(row, 1) == 1 {
			all[i] = tombstone(store.EntryFeed, e.Namespace, e.Key, number(row, 0), e.UpdatedAt.UnixMicro())
			continue
		}
		var err error
		if all[i], err = longterm.ToRecord(e.Memory, number(row, 0)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// putting are the statements of a Put.
type putting struct {
	write
	now string
	// read are called with the further results of the write.
	read []func(result string) error
}

// Put does the writes in one transaction.
func (r *records) Put(ctx context.Context, w *replica.Writes) error {
	if err := r.d.writable(ctx); err != nil {
		return err
	}
	w = &replica.Writes{Entries: storable(w.Entries), Vectors: w.Vectors, Documents: storable(w.Documents)}
	for {
		p := &putting{now: integer(r.d.micro())}
		contents := make([]longterm.Canonical, 0, len(w.Entries))
		for _, one := range w.Entries {
			if !one.Deleted {
				contents = append(contents, one.Entry)
			}
		}
		if err := r.m.addParts(ctx, &p.write, partsOf(contents)); err != nil {
			return err
		}
		for _, add := range []func() error{func() error { return r.entries(p, w.Entries) }, func() error { return r.vectors(p, w.Vectors) }, func() error { return r.documents(p, w.Documents) }} {
			if err := add(); err != nil {
				return err
			}
		}
		results, err := r.d.do(ctx, p.write)
		if refused := (*refusedError)(nil); errors.As(err, &refused) {
			continue // a sweep of another device has removed the parts that were sent first
		}
		if err != nil {
			return err
		}
		for i, read := range p.read {
			if err := read(results[i+1]); err != nil {
				return fmt.Errorf("read the result of a write: %w", err)
			}
		}
		return nil
	}
}

// storable leaves out the writes that are larger than a row, and refuses them.
func storable(writes []*replica.Write) []*replica.Write {
	kept := make([]*replica.Write, 0, len(writes))
	for _, w := range writes {
		if w.Feed == store.DocumentFeed && len(w.Body) > maxBody {
			w.Result.Err = tea.Errorf(tea.ValidationError, "the body of %s %s has %d bytes, more than %d", w.Space, w.Key, len(w.Body), maxBody)
		} else if len(w.Entry.Metadata) > maxMetadata {
			w.Result.Err = tea.Errorf(tea.ValidationError, "the metadata of key %q has %d bytes, more than %d", w.Key, len(w.Entry.Metadata), maxMetadata)
		} else {
			kept = append(kept, w)
		}
	}
	return kept
}

// The condition of a row of a Put, whose first members are space, key, condition
// and whether it is deleted; l is the row that it replaces.
const (
	putMet     = "(json_extract(j.value, '$[2]') IN (-1, coalesce(l.seq, 0)))"
	putGone    = "json_extract(j.value, '$[3]') = 1 AND " + putMet
	putWritten = "json_extract(j.value, '$[3]') = 0 AND " + putMet
)

// each adds, for each list of rows, the statements of add between two results: the
// numbers before and after.
func (p *putting) each(writes []*replica.Write, rows [][]any, of selected, add func(rows string)) error {
	lists, err := chunks(rows)
	if err != nil {
		return err
	}
	for _, list := range lists {
		var parsed []json.RawMessage
		if err := json.Unmarshal([]byte(list), &parsed); err != nil {
			return err
		}
		part := writes[:len(parsed)]
		writes = writes[len(parsed):]
		numbers := fmt.Sprintf("(SELECT json_group_array(json_array(j.key, l.seq)) FROM json_each(?2) AS j JOIN %s ON %s)", of.table, of.named)
		p.result(numbers, list, func(i int, seq int64) { part[i].Result.Seq = seq }, func() {
			for _, w := range part {
				w.Result.Conflict = w.If != store.AnySeq && w.If != w.Result.Seq
			}
		})
		add(list)
		p.result(numbers, list, func(i int, seq int64) { part[i].Result.Seq = seq }, func() {})
	}
	return nil
}

// result adds a result with pairs of numbers. Rows that it does not name have 0.
func (p *putting) result(expression, arg string, pair func(i int, n int64), done func()) {
	p.addResult(len(p.read), expression, arg)
	var rows []json.RawMessage
	_ = json.Unmarshal([]byte(arg), &rows) // it was written by list
	p.read = append(p.read, func(result string) error {
		var pairs [][2]int64
		if err := json.Unmarshal([]byte(result), &pairs); err != nil {
			return err
		}
		for i := range rows {
			pair(i, 0)
		}
		for _, one := range pairs {
			pair(int(one[0]), one[1])
		}
		done()
		return nil
	})
}

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

func microOrNil(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

func (r *records) entries(p *putting, writes []*replica.Write) error {
	rows := make([][]any, len(writes))
	for i, w := range writes {
		rows[i] = []any{w.Space, escape(w.Key), w.If, flag(w.Deleted)}
		if w.Deleted {
			continue
		}
		c := w.Entry
		var value any
		if c.Inline {
			value = c.Value
		}
		rows[i] = append(rows[i], value, orNull(c.Metadata), c.Hash, len(c.Value), microOrNil(w.Created), microOrNil(w.Updated), orNull(c.ExpiresAt))
		if r.d.fullText {
			words := r.d.terms.Document(maxWords, c.Fields...)
			rows[i] = append(rows[i], words.Stems, words.Spelled, words.Forms)
		}
	}
	const (
		last = "(SELECT n FROM tea_seq WHERE name = 'ltm')"
		gone = "(SELECT l.id FROM json_each(?2) AS j JOIN ltm AS l ON l.namespace = json_extract(j.value, '$[0]') AND l.key = json_extract(j.value, '$[1]') WHERE " + putGone + ") AND " + pending
	)
	of := feeds[store.EntryFeed]
	return p.each(writes, rows, of, func(rows string) {
		if r.d.fullText {
			p.add("DELETE FROM ltm_text WHERE rowid IN "+gone, rows)
		}
		p.add("DELETE FROM ltm WHERE id IN "+gone, rows)
		p.add(`INSERT INTO ltm (namespace, key, seq, value, metadata, content_hash, size, created_at, updated_at, expires_at)
			SELECT json_extract(j.value, '$[0]'), json_extract(j.value, '$[1]'), `+last+` + j.key + 1, json_extract(j.value, '$[4]'), json_extract(j.value, '$[5]'),
				json_extract(j.value, '$[6]'), json_extract(j.value, '$[7]'), coalesce(json_extract(j.value, '$[8]'), CAST(?3 AS INTEGER)), coalesce(json_extract(j.value, '$[9]'), CAST(?3 AS INTEGER)), json_extract(j.value, '$[10]')
			FROM json_each(?2) AS j LEFT JOIN ltm AS l ON `+of.named+" WHERE "+putWritten+" AND "+pending+`
			ON CONFLICT (namespace, key) DO UPDATE SET seq = excluded.seq, value = excluded.value, metadata = excluded.metadata, content_hash = excluded.content_hash, size = excluded.size,
				created_at = excluded.created_at, updated_at = excluded.updated_at, expires_at = excluded.expires_at`, rows, p.now)
		if r.d.fullText {
			p.add("DELETE FROM ltm_text WHERE rowid IN (SELECT id FROM ltm WHERE seq > " + last + ") AND " + pending)
			p.add("INSERT INTO ltm_text (rowid, stems, spelled, forms) SELECT l.id, json_extract(j.value, '$[11]'), json_extract(j.value, '$[12]'), json_extract(j.value, '$[13]') FROM json_each(?2) AS j JOIN ltm AS l ON "+
				of.named+" WHERE l.seq > "+last+" AND "+pending, rows)
		}
		p.count("ltm", rows)
	})
}

// count adds the numbers of rows.
func (p *putting) count(feed, rows string) {
	p.add("UPDATE tea_seq SET n = n + json_array_length(?2) WHERE name = '"+feed+"' AND "+pending, rows)
}

func (r *records) vectors(p *putting, writes []*replica.Write) error {
	rows := make([][]any, len(writes))
	for i, w := range writes {
		rows[i] = []any{escape(w.Space), escape(w.Key), w.If, flag(w.Deleted)}
		if !w.Deleted {
			rows[i] = append(rows[i], escape(w.Item.Text), base64.StdEncoding.EncodeToString(vectors.Encode(w.Item.Embedding)), orNull(w.Metadata), len(w.Item.Embedding))
		}
	}
	of := feeds[store.VectorFeed]
	const dimension = "(SELECT dimension FROM vector_collections WHERE name = json_extract(j.value, '$[0]'))"
	done := 0
	return p.each(writes, rows, of, func(rows string) {
		p.add("INSERT INTO vectors_gone SELECT "+lastVector+" + j.key + 1, l.collection, l.id FROM json_each(?2) AS j JOIN vectors AS l ON "+of.named+" WHERE "+putGone+" AND "+pending, rows)
		p.count("vectors", rows) // the writes have other numbers
		p.add("DELETE FROM vectors WHERE id IN (SELECT l.id FROM json_each(?2) AS j JOIN vectors AS l ON "+of.named+" WHERE "+putGone+") AND "+pending, rows)
		p.add(`INSERT INTO vector_collections SELECT json_extract(j.value, '$[0]'), json_extract(j.value, '$[7]'), `+lastVector+` + 1
			FROM json_each(?2) AS j LEFT JOIN vectors AS l ON `+of.named+" WHERE "+putWritten+" AND "+pending+" ORDER BY j.key ON CONFLICT DO NOTHING", rows)
		p.add(`INSERT INTO vectors (collection, name, seq, text, embedding, metadata)
			SELECT json_extract(j.value, '$[0]'), json_extract(j.value, '$[1]'), `+lastVector+` + j.key + 1, json_extract(j.value, '$[4]'), json_extract(j.value, '$[5]'), json_extract(j.value, '$[6]')
			FROM json_each(?2) AS j LEFT JOIN vectors AS l ON `+of.named+" WHERE "+putWritten+" AND json_extract(j.value, '$[7]') = "+dimension+" AND "+pending+`
			ON CONFLICT (collection, name) DO UPDATE SET seq = excluded.seq, text = excluded.text, embedding = excluded.embedding, metadata = excluded.metadata`, rows)
		p.count("vectors", rows)
		p.add(fmt.Sprintf("DELETE FROM vectors_gone WHERE seq <= %s - %d AND %s", lastVector, mirror.KeepGone, pending))
		part := writes[done:]
		p.result("(SELECT json_group_array(json_array(j.key, "+dimension+")) FROM json_each(?2) AS j WHERE json_extract(j.value, '$[3]') = 0)", rows, func(i int, want int64) {
			w := part[i]
			if w.Deleted || w.Result.Conflict || want == 0 {
				return
			}
			if got := len(w.Item.Embedding); int64(got) != want {
				w.Result.Err = vectors.WrongDimension(w.Space, got, int(want))
			}
		}, func() {})
		var list []json.RawMessage
		_ = json.Unmarshal([]byte(rows), &list) // it was written by list
		done += len(list)
	})
}

func (r *records) documents(p *putting, writes []*replica.Write) error {
	rows := make([][]any, len(writes))
	for i, w := range writes {
		rows[i] = []any{w.Space, w.Key, w.If, flag(w.Deleted), string(w.Body)}
	}
	of := feeds[store.DocumentFeed]
	return p.each(writes, rows, of, func(rows string) {
		p.add("DELETE FROM documents WHERE (kind, id) IN (SELECT l.kind, l.id FROM json_each(?2) AS j JOIN documents AS l ON "+of.named+" WHERE "+putGone+") AND "+pending, rows)
		p.add(`INSERT INTO documents (kind, id, body, version, seq)
			SELECT json_extract(j.value, '$[0]'), json_extract(j.value, '$[1]'), json_extract(j.value, '$[4]'), coalesce(l.version + 1, 1), (SELECT n FROM tea_seq WHERE name = 'documents') + j.key + 1
			FROM json_each(?2) AS j LEFT JOIN documents AS l ON `+of.named+" WHERE "+putWritten+" AND "+pending+`
			ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body, version = excluded.version, seq = excluded.seq`, rows)
		p.count("documents", rows)
	})
}
