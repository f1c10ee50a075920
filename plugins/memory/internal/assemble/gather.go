package assemble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/internal/recall"
	"github.com/the-edge-agent/tea/plugins/memory/internal/session"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// maxSessions bounds the sessions of a layer.
	maxSessions = 1000
	// maxHits bounds the entries of a place if there is a question, and maxEntries if there is none.
	maxHits    = 200
	maxEntries = 1000
)

// name identifies a candidate.
type name struct {
	kind Kind
	path string
}

// candidate is a file, an entry or a session that can be in the context.
type candidate struct {
	name
	place *place
	// file is nil for entries and sessions, which have text and hash.
	file *file.File
	text string
	hash string

	words             float64 // BM25
	cosine            float64
	hasVector         bool
	passages          *passages // see passagesOf
	similarity, score float64
	rank              int // position among the admitted candidates
	// admission is the score that the threshold applies to.
	admission float64
}

// session returns the session of a file or an entry, "" = none.
func (c *candidate) session() string {
	if c.file != nil {
		return c.file.SessionID
	}
	if c.kind != Entry {
		return ""
	}
	return SessionOf(c.path)
}

// contentHash returns the hash of the current content, "" if there is none.
func (c *candidate) contentHash() string {
	if c.file != nil {
		return c.file.Hash
	}
	return c.hash
}

// gathering collects the candidates of a request.
type gathering struct {
	a      *Assembler
	r      Request
	places []*place
	found  map[name]*candidate
	// expired reports whether the files of a session are hidden.
	expired func(sessionID string) bool
	// hidden has the sessions that were looked up; see [session.Sessions.Hidden].
	hidden map[string]bool
	// statistics are the weights of the words of the question.
	statistics fulltext.Statistics
	counter    *fulltext.Counter // of the statistics
	scanned    []scanned         // see scan
	long       int               // number of texts that were split into passages
	longBytes  int64
	method     Method
	ranked     []*candidate // the admitted candidates, best first
}

// asked reports whether there is a question.
func (g *gathering) asked() bool { return strings.TrimSpace(g.r.Query) != "" }

// all reports whether candidates without similarity are included: there is no question, or they reach the threshold.
func (g *gathering) all() bool {
	if !g.asked() {
		return true
	}
	return slices.ContainsFunc(g.places, func(p *place) bool { return g.r.PriorityWeight*p.priority >= g.r.Threshold })
}

// add adds a candidate to the place with the highest precedence.
func (g *gathering) add(c *candidate) *candidate {
	have := g.found[c.name]
	if have == nil {
		g.found[c.name] = c
		return c
	}
	if before(c.place, have.place) {
		have.place = c.place
	}
	return have
}

// before reports whether p takes precedence over other.
func before(p, other *place) bool {
	if p.elsewhere != other.elsewhere {
		return other.elsewhere
	}
	return p.priority > other.priority
}

// gather collects the candidates and compares their words.
func (g *gathering) gather(ctx context.Context) error {
	if len(g.places) == 0 {
		return nil
	}
	if err := g.a.texts.use(ctx, func() error { return g.files(ctx) }); err != nil {
		return err
	}
	for _, p := range g.places {
		if err := g.entries(ctx, p); err != nil {
			return err
		}
		for _, s := range p.sessions {
			g.session(p, s)
		}
	}
	return g.withoutHidden(ctx)
}

// files adds files. The caller holds the index; see [texts.use].
func (g *gathering) files(ctx context.Context) error {
	if g.asked() {
		if err := g.computeWeights(ctx); err != nil {
			return err
		}
		hits, err := g.a.texts.index.Search(ctx, g.r.Query, fulltext.SearchOptions{Statistics: &g.statistics})
		if err != nil {
			return err
		}
		for hit := range hits.All() {
			if t := g.a.texts.byID[hit.ID]; t != nil {
				g.file(t, hit.Score)
			}
		}
	}
	if !g.all() {
		return nil
	}
	for _, t := range g.a.texts.byID {
		g.file(t, 0)
	}
	return nil
}

func (g *gathering) file(t *text, words float64) *candidate {
	var in *place
	for _, p := range g.places {
		if p.has(t.Path) && (in == nil || before(p, in)) {
			in = p
		}
	}
	if in == nil || g.expired(t.SessionID) {
		return nil
	}
	return g.add(&candidate{name: nameOfFile(t.File), place: in, file: t.File, words: words})
}

func (g *gathering) entries(ctx context.Context, p *place) error {
	if !p.entries {
		return nil
	}
	if g.asked() {
		found, err := g.search(ctx, p)
		if err != nil {
			return err
		}
		for _, e := range found {
			if err := g.entry(p, e); err != nil {
				return err
			}
		}
	}
	for _, key := range p.keys {
		e, err := g.a.o.LTM.Retrieve(ctx, g.r.Namespace, key)
		switch {
		case err == nil:
			err = g.entry(p, e)
		case errors.Is(err, store.ErrNotFound):
			err = nil
		}
		if err != nil {
			return err
		}
	}
	if !g.all() {
		return nil
	}
	for _, prefix := range p.prefixes {
		list, err := g.a.o.LTM.List(ctx, store.List{Namespace: g.r.Namespace, Prefix: prefix, Limit: maxEntries})
		if err != nil {
			return err
		}
		for _, e := range list.Entries {
			if err := g.entry(p, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// notes describes the layers of the request that have no files, entries or
// sessions at all.
func (g *gathering) notes(ctx context.Context) (notes []string, err error) {
	some := map[int]bool{}
	for _, c := range g.found {
		some[c.place.layer] = true
	}
	for i, l := range g.r.Layers {
		if some[i] {
			continue
		}
		var at []string
		for _, p := range g.places {
			if p.layer != i || some[i] {
				continue
			}
			if some[i], err = g.any(ctx, p); err != nil {
				return nil, err
			}
			at = append(at, p.folders...)
		}
		switch {
		case some[i]:
		case len(at) == 0:
			notes = append(notes, fmt.Sprintf("layer %d (scope %s) matches nothing: there is no active session", i+1, l.Scope))
		default:
			slices.Sort(at)
			notes = append(notes, fmt.Sprintf("layer %d (scope %s) matches nothing: there are no files below %s and no entries", i+1, l.Scope, strings.Join(slices.Compact(at), " or ")))
		}
	}
	return notes, nil
}

func (g *gathering) any(ctx context.Context, p *place) (bool, error) {
	if len(p.sessions) > 0 || g.a.texts.any(func(t *text) bool { return p.has(t.Path) && !g.expired(t.SessionID) }) {
		return true, nil
	}
	for _, prefix := range p.prefixes {
		page, err := g.a.o.LTM.List(ctx, store.List{Namespace: g.r.Namespace, Prefix: prefix, Limit: 1, KeysOnly: true})
		if err != nil || len(page.Entries) > 0 {
			return true, err
		}
	}
	for _, key := range p.keys {
		_, err := g.a.o.LTM.Retrieve(ctx, g.r.Namespace, key)
		if !errors.Is(err, store.ErrNotFound) {
			return true, err
		}
	}
	return false, nil
}

// entry adds an entry unless it is damaged.
func (g *gathering) entry(p *place, e store.Memory) error {
	if e.Damaged {
		return nil
	}
	text, err := recall.Text(e.Value)
	if err != nil {
		return err
	}
	c := g.add(&candidate{name: name{Entry, e.Key}, place: p, text: text, hash: e.ContentHash})
	if g.asked() {
		c.words = g.statistics.Score(g.count(wordsOf(nameOf(e.Key), e)...))
	}
	return nil
}

// wordsOf returns the searchable texts of an entry, as in ltm.search, with name
// in place of its key.
func wordsOf(name string, e store.Memory) (texts []string) {
	for _, field := range longterm.Fields(name, e.Value, string(e.Metadata)) {
		texts = append(texts, field.Text)
	}
	return texts
}

// count counts the words of the question in a text.
func (g *gathering) count(fields ...string) fulltext.Counts {
	if g.counter == nil {
		g.counter = g.statistics.Counter()
	}
	return g.counter.Count(fields...)
}

func (g *gathering) session(p *place, s session.Session) {
	if s.Metadata == nil {
		return
	}
	text, err := recall.Text(s.Metadata)
	if err != nil || text == "" {
		return // the session does not store other JSON
	}
	c := g.add(&candidate{name: name{Session, file.SessionPrefix + s.ID}, place: p, text: text})
	if g.asked() {
		c.words = g.statistics.Score(g.count(text))
	}
}

// SessionOf returns the session that the key of an entry names, or "".
func SessionOf(key string) string {
	rest, ok := strings.CutPrefix(key, InSession+"/")
	if !ok {
		return ""
	}
	id, _, _ := strings.Cut(rest, "/")
	return id
}

// withoutHidden removes entries of archived sessions and everything that belongs
// to sessions of other users. Files of archived sessions are not in the index.
func (g *gathering) withoutHidden(ctx context.Context) error {
	sessions := map[string]bool{}
	for _, c := range g.found {
		if id := c.session(); id != "" && (c.kind == Entry || g.r.UserID != "") {
			sessions[id] = true
		}
	}
	if err := g.lookUpSessions(ctx, slices.Sorted(maps.Keys(sessions))...); err != nil {
		return err
	}
	maps.DeleteFunc(g.found, func(_ name, c *candidate) bool { return g.hidden[c.session()] })
	return nil
}

// lookUpSessions adds sessions to hidden.
func (g *gathering) lookUpSessions(ctx context.Context, ids ...string) error {
	ids = slices.DeleteFunc(ids, func(id string) bool { _, known := g.hidden[id]; return known || id == "" })
	hidden, err := g.a.o.Sessions.Hidden(ctx, ids, g.r.UserID)
	for _, id := range ids {
		g.hidden[id] = hidden[id]
	}
	return err
}

// compare computes the scores and ranks the candidates that reach the threshold.
func (g *gathering) compare(ctx context.Context) error {
	best, err := g.liken(ctx)
	if err != nil {
		return err
	}
	for _, c := range g.found {
		relative := 0.0
		if best > 0 {
			relative = c.similarity / best
		}
		c.score = rounded(g.r.SimilarityWeight*c.similarity + g.r.PriorityWeight*c.place.priority)
		if c.admission = rounded(g.r.SimilarityWeight*relative + g.r.PriorityWeight*c.place.priority); c.admission >= g.r.Threshold {
			g.ranked = append(g.ranked, c)
		}
	}
	slices.SortFunc(g.ranked, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.place.priority, a.place.priority), cmp.Compare(a.place.layer, b.place.layer),
			cmp.Compare(a.path, b.path), cmp.Compare(a.kind, b.kind))
	})
	for i, c := range g.ranked {
		c.rank = i
	}
	return nil
}
