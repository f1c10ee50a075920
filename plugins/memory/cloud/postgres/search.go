package postgres

import (
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// maxWords is the size of the stems of an entry that are indexed. The server
	// takes 1 MB with positions and forms.
	maxWords = 200 << 10
	// fieldGap separates the positions of fields: more than a phrase has.
	fieldGap = 128
	// lastPosition is the last one that the server stores.
	lastPosition = 16_383
	// formMark precedes the forms of words, with which prefixes are compared.
	formMark = "="
)

// vector returns the words of fields as a tsvector: the stems with their
// positions, and the forms without.
func (d *database) vector(fields []fulltext.Field) string {
	words := d.terms.Document(maxWords, fields...)
	var b strings.Builder
	position := 0
	for token := range strings.FieldsSeq(words.Stems) {
		switch token {
		case fulltext.Break:
			position += fieldGap
			continue
		case fulltext.Gap:
			position++
			continue
		}
		position++
		quote(&b, token)
		if position <= lastPosition {
			b.WriteByte(':')
			b.WriteString(strconv.Itoa(position))
		}
		b.WriteByte(' ')
	}
	for token := range strings.FieldsSeq(words.Spelled) {
		quote(&b, token)
		b.WriteByte(' ')
	}
	for token := range strings.FieldsSeq(words.Forms) {
		quote(&b, formMark+token)
		b.WriteByte(' ')
	}
	return b.String()
}

var quoted = strings.NewReplacer(`'`, `''`, `\`, `\\`)

// quote writes a lexeme in quotation marks.
func quote(b *strings.Builder, lexeme string) {
	b.WriteByte('\'')
	b.WriteString(quoted.Replace(lexeme))
	b.WriteByte('\'')
}

// query returns the tsquery of a text: any of its words and prefixes, and all of
// its phrases and of the required words; "" if it asks for nothing.
func (d *database) query(text string, required []string) (query string, cut bool) {
	parsed := d.terms.Query(text)
	anyOf := alternatives(parsed)
	if len(anyOf) == 0 {
		return "", parsed.Cut
	}
	all := []string{"(" + strings.Join(anyOf, " | ") + ")"}
	for _, phrase := range parsed.Phrases {
		all = append(all, phraseOf(phrase))
	}
	return strings.Join(append(all, d.required(required)...), " & "), parsed.Cut
}

// alternatives returns the words and prefixes of a query.
func alternatives(q fulltext.Query) (anyOf []string) {
	for _, stems := range q.Words {
		anyOf = append(anyOf, lexemes(stems))
	}
	for _, prefix := range q.Prefixes {
		anyOf = append(anyOf, lexemes([]string{formMark + prefix})+":*")
	}
	return anyOf
}

// required returns the lexemes of the words of texts.
func (d *database) required(texts []string) (all []string) {
	for _, text := range texts {
		for _, stems := range d.terms.Query(text).Words {
			all = append(all, lexemes(stems))
		}
	}
	return all
}

// lexemes returns the alternatives of a term.
func lexemes(stems []string) string {
	var b strings.Builder
	for i, stem := range stems {
		if i > 0 {
			b.WriteString(" | ")
		}
		quote(&b, stem)
	}
	if len(stems) > 1 {
		return "(" + b.String() + ")"
	}
	return b.String()
}

func phraseOf(phrase []string) string {
	var b strings.Builder
	b.WriteByte('(')
	distance := 0
	for i, stem := range phrase {
		distance++
		if stem == fulltext.Gap {
			continue
		}
		if i > 0 {
			b.WriteString(" <" + strconv.Itoa(distance) + "> ")
		}
		quote(&b, stem)
		distance = 0
	}
	b.WriteByte(')')
	return b.String()
}

// args are the arguments of a statement.
type args struct{ list []any }

// add returns the placeholder of an argument.
func (a *args) add(v any) string {
	a.list = append(a.list, v)
	return "$" + strconv.Itoa(len(a.list))
}

// prefixBytes is the length of the beginnings of keys that are indexed.
const prefixBytes = 1024

const beginning = "substring(key FROM 1 FOR 1024)"

// below returns the condition of the entries of a namespace below a prefix. It
// begins with the columns of the index.
func (a *args) below(namespace, prefix string) string {
	sql := "namespace = " + a.add(namespace)
	if prefix == "" {
		return sql
	}
	sql += " AND key >= " + a.add([]byte(prefix)) + " AND " + beginning + " >= " + a.add([]byte(prefix[:min(len(prefix), prefixBytes)]))
	if end := documents.Behind(prefix); end != "" {
		sql += " AND key < " + a.add([]byte(end)) + " AND " + beginning + " <= " + a.add([]byte(end[:min(len(end), prefixBytes)]))
	}
	return sql
}

// List returns live entries in the order of their keys.
func (m *longTerm) List(ctx context.Context, l store.List) (store.Page, error) {
	found, err := m.Search(ctx, store.Search{Namespace: l.Namespace, Prefix: l.Prefix, After: l.After, Limit: l.Limit, KeysOnly: l.KeysOnly, MaxBytes: l.MaxBytes})
	page := store.Page{More: found.More, Entries: make([]store.Memory, len(found.Found))}
	for i, f := range found.Found {
		page.Entries[i] = f.Memory
	}
	return page, err
}

// Search returns the live entries that match the query.
func (m *longTerm) Search(ctx context.Context, q store.Search) (store.Results, error) {
	if err := m.closed.check(); err != nil {
		return store.Results{}, err
	}
	if err := longterm.CheckPrefix(q.Namespace, q.Prefix); err != nil {
		return store.Results{}, err
	}
	if !utf8.ValidString(q.After) {
		return store.Results{}, tea.Errorf(tea.ValidationError, "the cursor %q is not valid UTF-8", q.After)
	}
	s := &search{m: m, q: q, ranked: strings.TrimSpace(q.Text) != ""}
	required := longterm.Required(q.Metadata)
	if s.ranked {
		if s.query, s.results.Cut = m.d.query(q.Text, required); s.query == "" {
			return s.results, ctx.Err()
		}
	} else {
		s.query, s.q.Skip = strings.Join(m.d.required(required), " & "), 0
	}
	if q.Limit < 1 {
		return s.results, ctx.Err()
	}
	err := m.d.do(ctx, reading, func(ctx context.Context, c conn) error { return s.run(ctx, c) })
	return s.results, err
}

// search is a running search.
type search struct {
	m      *longTerm
	q      store.Search
	ranked bool
	// query is a tsquery; "" = none.
	query string

	results store.Results
	large   []int // the results whose values are missing
	bytes   int64
	skipped int
}

const (
	smallestBatch = 64
	largestBatch  = 4096
)

// run reads rows until the page is complete. If a filter leaves few of them,
// more are read each time.
func (s *search) run(ctx context.Context, c conn) error {
	s.results.Found, s.results.More, s.large, s.bytes, s.skipped = nil, false, nil, 0, 0
	after, offset := s.q.After, 0
	var last *float32 // the score of the last row
	if len(s.q.Metadata) == 0 {
		offset, s.skipped = s.q.Skip, s.q.Skip
	}
	size := s.q.Limit + 1
	if len(s.q.Metadata) > 0 {
		size = max(size+s.q.Skip, smallestBatch)
	}
	for {
		rows, scores, err := s.read(ctx, c, after, last, offset, size)
		if err != nil {
			return err
		}
		for i := range rows {
			score := float32(scores[i])
			after, last = rows[i].Key, &score
			if !filter.Matches(rows[i].Metadata, s.q.Metadata) {
				continue
			}
			if s.add(&rows[i], scores[i]) {
				return s.fill(ctx, c)
			}
		}
		if len(rows) < size {
			return s.fill(ctx, c)
		}
		offset, size = 0, min(4*size, max(size, largestBatch))
	}
}

func (s *search) read(ctx context.Context, c conn, after string, last *float32, offset, size int) ([]entry, []float64, error) {
	a := &args{}
	columns := entryColumns
	if s.q.KeysOnly {
		columns = strings.Replace(columns, "CASE WHEN octet_length(value) <= 65536 THEN value END, octet_length(value)", "NULL, 0", 1)
	}
	where := a.below(s.q.Namespace, s.q.Prefix) + " AND " + live + a.add(s.m.d.micro()) + ")"
	if s.query != "" {
		query := a.add(s.query) + "::tsquery"
		where += " AND words @@ " + query
		if score := "ts_rank(words, " + query + ", 1)"; s.ranked {
			columns += ", " + score + " AS score"
			if last != nil {
				than := a.add(*last) + "::real"
				where += " AND (" + score + " < " + than + " OR " + score + " = " + than + " AND key > " + a.add([]byte(after)) + ")"
			}
		}
	}
	order := " ORDER BY " + beginning + ", key"
	switch {
	case s.ranked:
		order = " ORDER BY score DESC, key OFFSET " + a.add(offset)
	case after != "":
		where += " AND key > " + a.add([]byte(after)) + " AND " + beginning + " >= " + a.add([]byte(after[:min(len(after), prefixBytes)]))
	}
	rows, err := c.Query(ctx, "SELECT "+columns+" FROM ltm WHERE "+where+order+" LIMIT "+a.add(size), a.list...)
	if err != nil {
		return nil, nil, err
	}
	return scanEntries(rows, s.ranked)
}

// add adds an entry to the page and reports whether the page is complete: then
// the entry is not on it.
func (s *search) add(e *entry, score float64) (complete bool) {
	if s.skipped < s.q.Skip {
		s.skipped++
		return false
	}
	if len(s.results.Found) == s.q.Limit {
		s.results.More = true
		return true
	}
	missing := 0
	switch {
	case s.q.KeysOnly:
		e.Value, e.Metadata = nil, nil
	case e.Value == nil:
		missing = e.size
	}
	s.bytes += e.JSONBytes() + int64(missing)
	if s.q.MaxBytes > 0 && s.bytes > s.q.MaxBytes && len(s.results.Found) > 0 {
		s.results.More = true
		return true
	}
	if missing > 0 {
		s.large = append(s.large, len(s.results.Found))
	}
	s.results.Found = append(s.results.Found, store.Found{Memory: e.Memory, Score: score})
	return false
}

// fill reads the large values of the page. An entry that was changed meanwhile has
// its new value, and one that was removed is left out.
func (s *search) fill(ctx context.Context, c conn) error {
	if len(s.large) == 0 {
		return nil
	}
	ids := make([]int64, len(s.large))
	for i, n := range s.large {
		ids[i] = s.results.Found[n].ID
	}
	rows, err := c.Query(ctx, "SELECT id, value, content_hash FROM ltm WHERE id = ANY($1)", ids)
	if err != nil {
		return err
	}
	type content struct{ value, hash string }
	found := map[int64]content{}
	var id int64
	var one content
	if _, err := pgx.ForEachRow(rows, []any{&id, &one.value, &one.hash}, func() error { found[id] = one; return nil }); err != nil {
		return err
	}
	kept := s.results.Found[:0]
	for _, f := range s.results.Found {
		if f.Value == nil {
			one, ok := found[f.ID]
			if !ok {
				continue
			}
			f.Value, f.ContentHash = []byte(one.value), one.hash
		}
		kept = append(kept, f)
	}
	s.results.Found = kept
	return nil
}
