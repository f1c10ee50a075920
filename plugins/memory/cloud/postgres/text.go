package postgres

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// maxWords bounds the indexed stems of an entry. The server stores 1 MB including positions and forms.
	maxWords = 200 << 10
	// fieldGap separates the positions of fields. It is larger than any phrase.
	fieldGap = 128
	// lastPosition is the last position that the server stores.
	lastPosition = 16_383
	// formMark precedes the forms of words, with which prefixes are compared.
	formMark = "="
	// stemmed is the lexeme that marks rows with the current stems. Older versions of tea do not write it.
	stemmed = "'+" + fulltext.StemsVersion + "'"
)

// vector returns the words of fields as a tsvector: stems with their positions, and forms without.
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
	return b.String() + stemmed
}

var quoted = strings.NewReplacer(`'`, `''`, `\`, `\\`)

// quote writes a lexeme in quotation marks.
func quote(b *strings.Builder, lexeme string) {
	b.WriteByte('\'')
	b.WriteString(quoted.Replace(lexeme))
	b.WriteByte('\'')
}

// query returns the tsquery of a text: any of its words and prefixes, and all of its phrases and of the required words;
// "" if it is empty. Rows with older stems need a form that begins like one of the words.
func (d *database) query(text string, require []string) (query string, cut bool) {
	parsed := d.terms.Query(text)
	anyOf := alternatives(parsed)
	if len(anyOf) == 0 {
		return "", parsed.Cut
	}
	all := []string{"(" + strings.Join(anyOf, " | ") + ")"}
	for _, phrase := range parsed.Phrases {
		all = append(all, phraseOf(phrase))
	}
	query = strings.Join(all, " & ")
	if older := beginnings(d.terms.Beginnings(text)); older != "" {
		query += " | !" + stemmed + " & (" + older + ")"
	}
	if words := d.required(require); words != "" {
		query = "(" + query + ") & " + words
	}
	return query, parsed.Cut
}

// required returns the tsquery of the words of all texts, "" if there are none. It can match other rows, too.
func (d *database) required(texts []string) string {
	var all []string
	for _, text := range texts {
		for _, stems := range d.terms.Query(text).Words {
			all = append(all, lexemes(stems))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "(!" + stemmed + " | " + strings.Join(all, " & ") + ")"
}

func beginnings(all []string) string {
	var anyOf []string
	for _, prefix := range all {
		anyOf = append(anyOf, lexemes([]string{formMark + prefix})+":*")
	}
	return strings.Join(anyOf, " | ")
}

// alternatives returns the words and prefixes of a query.
func alternatives(q fulltext.Query) (anyOf []string) {
	for _, stems := range q.Words {
		anyOf = append(anyOf, lexemes(stems))
	}
	if prefixes := beginnings(q.Prefixes); prefixes != "" {
		anyOf = append(anyOf, prefixes)
	}
	return anyOf
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

type args struct{ list []any }

// add returns the placeholder of an argument.
func (a *args) add(v any) string {
	a.list = append(a.list, v)
	return "$" + strconv.Itoa(len(a.list))
}

// SearchText returns the live entries that match a text, best first.
func (d *database) SearchText(ctx context.Context, q store.TextQuery) (found store.TextPage, err error) {
	query, cut := d.query(q.Text, q.Require)
	if found.Cut = cut; query == "" {
		return found, nil
	}
	t, a := feeds[store.EntryFeed], &args{}
	where := a.below(t, q.Space, q.Prefix, "") + " AND " + notExpired + a.add(q.Live) + ")"
	words := a.add(query) + "::tsquery"
	sql := "SELECT " + t.listed(q.NoBody, ", ts_rank(words, "+words+", 1)::float8 AS score") + " FROM ltm WHERE " + where + " AND words @@ " + words +
		" ORDER BY score DESC, key OFFSET " + a.add(q.Offset) + " LIMIT " + a.add(q.Limit)
	p, err := d.page(ctx, store.EntryFeed, sql, a, bounds{q.Limit, q.MaxBytes, q.NoBody})
	found.Rows, found.Scores, found.More = p.rows, p.scores, p.more
	return found, err
}

// measured is the number of entries whose words are counted. If there are more, the entries with the smallest key
// hashes are the sample.
const measured = 1000

// Statistics returns the statistics of the live entries for a query. With them, other texts can be ranked together with
// the entries, and scores are the same as on other engines.
func (d *database) Statistics(ctx context.Context, text string) (fulltext.Statistics, error) {
	a := &args{}
	live := notExpired + a.add(d.micro()) + ")"
	each := d.terms.Each(text)
	queries := make([]string, len(each))
	for i, q := range each {
		queries[i] = strings.Join(alternatives(q), " | ")
	}
	sql := "SELECT (SELECT count(*) FROM ltm WHERE " + live + "), count(*), coalesce(sum(n), 0)::bigint, ARRAY(SELECT (SELECT count(*) FROM ltm WHERE words @@ q::tsquery AND " + live + ")" +
		" FROM unnest(" + a.add(queries) + "::text[]) WITH ORDINALITY AS one(q, i) ORDER BY i)" +
		" FROM (SELECT (SELECT sum(cardinality(positions)) FROM unnest(words)) AS n FROM ltm WHERE " + live + " ORDER BY hash LIMIT " + strconv.Itoa(measured) + ") AS sample"
	var docs, sample, words int64
	var found []int
	err := d.do(ctx, reading, func(ctx context.Context, c conn) error {
		found = nil
		return c.QueryRow(ctx, sql, a.list...).Scan(&docs, &sample, &words, &found)
	})
	if err != nil {
		return fulltext.Statistics{}, err
	}
	if sample > 0 {
		words = int64(math.Round(float64(words) / float64(sample) * float64(docs)))
	}
	return d.terms.Statistics(text, int(docs), words, found).Tagged(), nil
}
