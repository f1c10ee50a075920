package remotesqlite

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/internal/mirror"
	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// maxWords bounds the list of stems of an entry; further words are not found. See fulltext.Terms.
	maxWords = 256 << 10
	// maxMetadata bounds the metadata of an entry.
	maxMetadata = 512 << 10
	// maxDocument bounds a document.
	maxDocument = 1_500_000
	// removeBatch is the number of entries that one request removes.
	removeBatch = 1000
)

// Bounds returns the largest sizes that fit into a row of D1 with its other columns.
func (d *database) Bounds() (metadata, document int) { return maxMetadata, maxDocument }

// The members of a write in a JSON list, after the space and the key. j is the element of json_each, l the replaced
// row.
const (
	ifSeq       = "json_extract(j.value, '$[2]')" // -1 = any
	ifVersion   = "json_extract(j.value, '$[3]')" // 0 = any
	isDeleted   = "json_extract(j.value, '$[4]')"
	deduplicate = "json_extract(j.value, '$[5]')"
	body        = "json_extract(j.value, '$[6]')"
	metadata    = "json_extract(j.value, '$[7]')"
	hash        = "json_extract(j.value, '$[8]')"  // of an entry; the text of a vector
	size        = "json_extract(j.value, '$[9]')"  // of an entry; the dimension of a vector; the version of a document
	created     = "json_extract(j.value, '$[10]')" // this and the next two are of an entry
	updated     = "json_extract(j.value, '$[11]')"
	expires     = "json_extract(j.value, '$[12]')"
	dimension   = "(SELECT dimension FROM vector_collections WHERE name = json_extract(j.value, '$[0]'))"
	lastVector  = "(SELECT n FROM tea_seq WHERE name = 'vectors')"
	same        = "(" + deduplicate + " = 1 AND l.content_hash = " + hash + " AND l.metadata IS " + metadata + " AND l.expires_at IS NULL AND " + expires + " IS NULL)"
)

func (t table) conditionMet() string {
	return "(" + ifSeq + " IN (-1, coalesce(l.seq, 0)) AND " + ifVersion + " IN (0, " + t.version + "))"
}

func (t table) isDeletion() string { return isDeleted + " = 1 AND " + t.conditionMet() }
func (t table) isWrite() string    { return isDeleted + " = 0 AND " + t.conditionMet() }

// encode returns a write as an element of a list.
func (d *database) encode(w *store.RowWrite) []any {
	space, key := feeds[w.Feed].escape(w.RecordName)
	condition := store.AnySeq
	if w.If.Absent || w.If.Seq != 0 {
		condition = w.If.Seq
	}
	row := []any{space, key, condition, w.If.Version, flag(w.Deleted), flag(w.Deduplicate)}
	if w.Deleted {
		return row
	}
	switch w.Feed {
	case store.EntryFeed:
		var inline any
		if int(w.Size) < d.inline {
			inline = string(w.Body)
		}
		row = append(row, inline, orNull(w.Metadata), w.Hash, w.Size, orNull(w.Created), orNull(w.Updated), orNull(w.Expires))
		if d.fullText {
			words := d.terms.Document(maxWords, longterm.Fields(w.Key, w.Body, w.Metadata)...)
			row = append(row, words.Stems, words.Spelled, words.Forms+" "+stemmed)
		}
	case store.VectorFeed:
		row = append(row, base64.StdEncoding.EncodeToString(w.Body), orNull(w.Metadata), escape(w.Text), len(w.Body)/4)
	default:
		row = append(row, string(w.Body), nil, nil, orNull(w.Version))
	}
	return row
}

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

// part is a list of writes of one feed.
type part struct {
	feed   store.Feed
	writes []*store.RowWrite
	list   string
}

// parts returns the writes of a batch as lists.
func (d *database) parts(b *store.Batch) (all []part, err error) {
	for _, feed := range store.Feeds() {
		var writes []*store.RowWrite
		var rows [][]any
		for _, w := range b.Writes {
			if w.Feed == feed {
				writes, rows = append(writes, w), append(rows, d.encode(w))
			}
		}
		lists, err := chunks(rows)
		if err != nil {
			return nil, err
		}
		for _, list := range lists {
			var members []json.RawMessage
			if err := json.Unmarshal([]byte(list), &members); err != nil {
				return nil, err
			}
			all = append(all, part{feed, writes[:len(members)], list})
			writes = writes[len(members):]
		}
	}
	return all, nil
}

// Write executes a batch in one request, after requests with the parts of large values if there are many.
func (d *database) Write(ctx context.Context, b *store.Batch) error {
	if err := d.writable(ctx); err != nil || len(b.Writes) == 0 {
		return err
	}
	parts, err := d.parts(b)
	if err != nil {
		return err
	}
	for {
		err := d.try(ctx, b, parts)
		if refused := (*refusedError)(nil); !errors.As(err, &refused) {
			return err
		}
		// A sweep of another device has removed the parts that were sent before.
	}
}

func (d *database) try(ctx context.Context, b *store.Batch, parts []part) error {
	var w write
	now := w.arg(integer(b.Now))
	if err := d.addParts(ctx, &w, b); err != nil {
		return err
	}
	var befores, refused []string
	for _, p := range parts {
		t := feeds[p.feed]
		list := w.arg(p.list)
		from := " FROM json_each(" + list + ") AS j LEFT JOIN " + t.from + " ON " + t.named()
		live, equal, wrong, have := "l.seq IS NOT NULL", "0", "0", "0"
		switch p.feed {
		case store.EntryFeed:
			live = "l.id IS NOT NULL AND coalesce(l.expires_at > CAST(" + now + " AS INTEGER), 1)"
			equal = "coalesce(" + same + ", 0)"
		case store.VectorFeed:
			have = "coalesce(" + dimension + ", 0)"
			wrong = "(" + isDeleted + " = 0 AND coalesce(" + dimension + " <> " + size + ", 0))"
		}
		befores = append(befores, "(SELECT json_group_array(json_array(coalesce(l.seq, 0), "+t.version+", "+live+", "+equal+", NOT "+t.conditionMet()+", "+wrong+", "+have+"))"+from+")")
		if b.Atomic {
			refused = append(refused, "EXISTS (SELECT 1"+from+" WHERE NOT "+t.conditionMet()+" OR "+wrong+")")
		}
	}
	w.before = "json_array(json(" + strings.Join(befores, "), json(") + "))"
	if w.refused != "" {
		refused = append(refused, w.refused)
	}
	w.refused = strings.Join(refused, " OR ")
	for i, p := range parts {
		d.addRows(&w, p, integer(b.Now))
		t := feeds[p.feed]
		w.addResult(i, "(SELECT json_group_array(coalesce(l.seq, 0)) FROM json_each(?2) AS j LEFT JOIN "+t.from+" ON "+t.named()+")", p.list)
	}
	results, err := d.do(ctx, w)
	rejected := (*refusedError)(nil)
	if errors.As(err, &rejected) {
		results = []string{rejected.before}
	} else if err != nil {
		return err
	}
	return readResults(parts, results, rejected)
}

// readResults sets the results of the writes. The first result has for each write: the number and version of the row,
// and whether it is live, unchanged, refused because of its condition, or refused because of its dimension, with the
// dimension of the collection. The other results have the numbers after the batch. If no write was refused, the batch
// was refused because of missing parts, and rejected is returned.
func readResults(parts []part, results []string, rejected *refusedError) error {
	var before [][][7]int64
	if err := json.Unmarshal([]byte(results[0]), &before); err != nil {
		return fmt.Errorf("read the result of a write: %w", err)
	}
	refused := false
	for i, p := range parts {
		after := make([]int64, len(p.writes))
		if rejected == nil {
			if err := json.Unmarshal([]byte(results[i+1]), &after); err != nil {
				return fmt.Errorf("read the result of a write: %w", err)
			}
		}
		created := map[string]int{} // dimensions of collections
		for n, w := range p.writes {
			s := before[i][n]
			w.Result = store.RowResult{Seq: after[n], Version: s[1], Live: s[2] == 1, Same: s[3] == 1, Unmet: s[4] == 1}
			if rejected != nil {
				w.Result.Seq = s[0]
			}
			if p.feed == store.VectorFeed && !w.Deleted && !w.Result.Unmet {
				got, have := len(w.Body)/4, int(s[6])
				if have == 0 {
					if created[w.Space] == 0 {
						created[w.Space] = got
					}
					have = created[w.Space]
				}
				if have != got {
					w.Result.Dimension = have
				}
			}
			refused = refused || w.Result.Unmet || w.Result.Dimension != 0
		}
	}
	if rejected != nil && !refused {
		return rejected
	}
	return nil
}

// addRows adds the statements that write a list, numbered after the last number of the feed.
func (d *database) addRows(w *write, p part, now string) {
	t := feeds[p.feed]
	from := " FROM json_each(?2) AS j LEFT JOIN " + t.from + " ON " + t.named()
	last := "(SELECT n FROM tea_seq WHERE name = '" + string(p.feed) + "')"
	switch p.feed {
	case store.EntryFeed:
		gone := "(SELECT l.id" + from + " WHERE l.id IS NOT NULL AND " + t.isDeletion() + ") AND " + pending
		if d.fullText {
			w.add("DELETE FROM ltm_text WHERE rowid IN "+gone, p.list)
		}
		w.add("DELETE FROM ltm WHERE id IN "+gone, p.list)
		w.add(`INSERT INTO ltm (namespace, key, seq, value, metadata, content_hash, size, created_at, updated_at, expires_at)
			SELECT json_extract(j.value, '$[0]'), json_extract(j.value, '$[1]'), `+last+` + j.key + 1, `+body+", "+metadata+", "+hash+", "+size+`,
				coalesce(`+created+`, CASE WHEN l.expires_at <= CAST(?3 AS INTEGER) THEN NULL ELSE l.created_at END, CAST(?3 AS INTEGER)), coalesce(`+updated+`, CAST(?3 AS INTEGER)), `+expires+
			from+" WHERE "+t.isWrite()+" AND NOT coalesce("+same+", 0) AND "+pending+`
			ON CONFLICT (namespace, key) DO UPDATE SET seq = excluded.seq, value = excluded.value, metadata = excluded.metadata, content_hash = excluded.content_hash, size = excluded.size,
				created_at = excluded.created_at, updated_at = excluded.updated_at, expires_at = excluded.expires_at`, p.list, now)
		if d.fullText {
			w.add("DELETE FROM ltm_text WHERE rowid IN (SELECT id FROM ltm WHERE seq > " + last + ") AND " + pending)
			w.add("INSERT INTO ltm_text (rowid, stems, spelled, forms) SELECT l.id, json_extract(j.value, '$[13]'), json_extract(j.value, '$[14]'), json_extract(j.value, '$[15]') FROM json_each(?2) AS j JOIN ltm AS l ON "+
				t.named()+" WHERE l.seq > "+last+" AND "+pending, p.list)
		}
	case store.VectorFeed:
		gone := from + " WHERE l.id IS NOT NULL AND " + t.isDeletion()
		w.add("INSERT INTO vectors_gone SELECT "+last+" + j.key + 1, l.collection, l.id"+gone+" AND "+pending, p.list)
		w.count(p) // the writes have other numbers
		w.add("DELETE FROM vectors WHERE id IN (SELECT l.id"+gone+") AND "+pending, p.list)
		w.add("INSERT INTO vector_collections SELECT json_extract(j.value, '$[0]'), "+size+", "+last+" + 1"+from+" WHERE "+t.isWrite()+" AND "+pending+" ORDER BY j.key ON CONFLICT DO NOTHING", p.list)
		w.add(`INSERT INTO vectors (collection, name, seq, text, embedding, metadata)
			SELECT json_extract(j.value, '$[0]'), json_extract(j.value, '$[1]'), `+last+` + j.key + 1, `+hash+", "+body+", "+metadata+from+" WHERE "+t.isWrite()+" AND "+size+" = "+dimension+" AND "+pending+`
			ON CONFLICT (collection, name) DO UPDATE SET seq = excluded.seq, text = excluded.text, embedding = excluded.embedding, metadata = excluded.metadata`, p.list)
	default:
		w.add("DELETE FROM documents WHERE (kind, id) IN (SELECT l.kind, l.id"+from+" WHERE l.id IS NOT NULL AND "+t.isDeletion()+") AND "+pending, p.list)
		w.add(`INSERT INTO documents (kind, id, body, version, seq)
			SELECT json_extract(j.value, '$[0]'), json_extract(j.value, '$[1]'), `+body+", coalesce("+size+", l.version + 1, 1), "+last+" + j.key + 1"+from+" WHERE "+t.isWrite()+" AND "+pending+`
			ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body, version = excluded.version, seq = excluded.seq`, p.list)
	}
	w.count(p)
	if p.feed == store.VectorFeed {
		w.add(fmt.Sprintf("DELETE FROM vectors_gone WHERE seq <= %s - %d AND %s", last, mirror.KeepGone, pending))
	}
}

// count adds the numbers of a list to its feed.
func (w *write) count(p part) {
	w.add("UPDATE tea_seq SET n = n + json_array_length(?2) WHERE name = '"+string(p.feed)+"' AND "+pending, p.list)
}

// onPartConflict ends a statement that stores a part, which may already exist.
const onPartConflict = " ON CONFLICT (hash, part) DO UPDATE SET at = unixepoch()"

// addParts adds the statements that store large values. Many are sent immediately; the write is then refused if they
// were removed meanwhile.
func (d *database) addParts(ctx context.Context, w *write, b *store.Batch) error {
	var parts []Statement
	var large []string
	names := map[string]bool{}
	for _, one := range b.Writes {
		if one.Feed != store.EntryFeed || one.Deleted || int(one.Size) < d.inline {
			continue
		}
		large = append(large, one.Hash)
		for n, rest := 0, string(one.Body); rest != ""; n++ {
			end := len(rest)
			if end > partBytes {
				end = value.WholeRunes(rest[:partBytes])
			}
			names[one.Hash+"/"+integer(int64(n))] = true
			parts = append(parts, Statement{"INSERT INTO ltm_parts VALUES (?1, CAST(?2 AS INTEGER), ?3, unixepoch())" + onPartConflict, []string{one.Hash, integer(int64(n)), rest[:end]}})
			rest = rest[end:]
		}
	}
	if len(parts) <= requestParts {
		for _, p := range parts {
			w.add("INSERT INTO ltm_parts SELECT ?2, CAST(?3 AS INTEGER), ?4, unixepoch() WHERE "+pending+onPartConflict, p.Args...)
		}
		return nil
	}
	for len(parts) > 0 {
		n := min(len(parts), requestParts)
		if err := d.server.Each(ctx, parts[:n]...); err != nil {
			return err
		}
		parts = parts[n:]
	}
	w.refused = "(SELECT count(*) FROM ltm_parts WHERE hash IN (SELECT value FROM json_each(" + w.arg(list(large)) + "))) < CAST(" + w.arg(integer(int64(len(names)))) + " AS INTEGER)"
	return nil
}

// remove removes at most removeBatch entries that a condition selects, and returns their number and how many were live.
// Its parameters begin at ?3. swept leaves no tombstones.
func (d *database) remove(ctx context.Context, swept bool, now int64, condition string, args ...string) (all, live int, err error) {
	w := write{
		before: fmt.Sprintf("(SELECT json_group_array(json_array(id, live)) FROM (SELECT id, expires_at IS NULL OR expires_at > CAST(?2 AS INTEGER) AS live FROM ltm WHERE %s LIMIT %d))", condition, removeBatch),
		args:   append([]string{integer(now)}, args...),
	}
	const removed = " IN (SELECT json_extract(value, '$[0]') FROM json_each(" + before + ")) AND " + pending
	if err := d.writable(ctx); err != nil {
		return 0, 0, err
	}
	if d.fullText {
		w.add("DELETE FROM ltm_text WHERE rowid" + removed)
	}
	deletion := func() { w.add("DELETE FROM ltm WHERE id" + removed) }
	if swept {
		w.untracked(deletion)
	} else {
		deletion()
	}
	results, err := d.do(ctx, w)
	if err != nil {
		return 0, 0, err
	}
	var rows [][2]int64
	if err := json.Unmarshal([]byte(results[0]), &rows); err != nil {
		return 0, 0, fmt.Errorf("read the result of a write: %w", err)
	}
	for _, row := range rows {
		live += int(row[1])
	}
	return len(rows), live, nil
}

func (d *database) DeletePrefix(ctx context.Context, space, prefix string, now int64) (live int, err error) {
	begins, args := prefixed("key", escape(prefix), []string{"", "", space})
	for {
		all, n, err := d.remove(ctx, false, now, "namespace = ?3"+begins, args[2:]...)
		if live += n; err != nil || all < removeBatch {
			return live, err
		}
	}
}

func (d *database) Sweep(ctx context.Context, expired, _ int64) (swept int, err error) {
	for {
		n, _, err := d.remove(ctx, true, d.micro(), "expires_at < CAST(?3 AS INTEGER)", integer(expired))
		if swept += n; err != nil {
			return swept, err
		}
		if n < removeBatch {
			break
		}
	}
	if err := d.forget(ctx); err != nil {
		return swept, err
	}
	return swept, d.server.Each(ctx, Statement{SQL: fmt.Sprintf("DELETE FROM ltm_parts WHERE at < unixepoch() - %d AND hash NOT IN (SELECT content_hash FROM ltm WHERE value IS NULL)", keepParts)})
}

// forget removes the tombstones older than records.KeptDeletions by the server's clock, and all tombstones with smaller
// numbers.
func (d *database) forget(ctx context.Context) error {
	var w write
	for _, feed := range store.Feeds() {
		const old = "(SELECT max(seq) FROM tea_deleted WHERE feed = ?2 AND deleted_at < " + serverNow + " - CAST(?3 AS INTEGER) * 1000000)"
		args := []string{string(feed), integer(records.KeptDeletions)}
		w.add("INSERT INTO tea_forgotten SELECT ?2, "+old+" WHERE "+old+" IS NOT NULL AND "+pending+" ON CONFLICT (feed) DO UPDATE SET seq = excluded.seq", args...)
		w.add("DELETE FROM tea_deleted WHERE feed = ?2 AND seq <= (SELECT seq FROM tea_forgotten WHERE feed = ?2) AND "+pending, args[0])
	}
	_, err := d.do(ctx, w)
	return err
}

func (d *database) Drop(ctx context.Context, space string) (rows int, existed bool, err error) {
	name := escape(space)
	w := write{
		before: "(SELECT json_array((SELECT count(*) FROM vector_collections WHERE name = ?2), (SELECT count(*) FROM vectors WHERE collection = ?2)))",
		args:   []string{name},
	}
	w.add("DELETE FROM vectors WHERE collection = ?2 AND "+pending, name)
	w.add("DELETE FROM vectors_gone WHERE collection = ?2 AND "+pending, name)
	w.add("DELETE FROM vector_collections WHERE name = ?2 AND "+pending, name)
	// A collection that is created again gets a new birth number.
	w.add("UPDATE tea_seq SET n = n + 1 WHERE name = 'vectors' AND " + pending)
	results, err := d.do(ctx, w)
	if err != nil {
		return 0, false, err
	}
	var counts [2]int
	if err := json.Unmarshal([]byte(results[0]), &counts); err != nil {
		return 0, false, fmt.Errorf("read the result of a write: %w", err)
	}
	return counts[1], counts[0] > 0, nil
}
