package recall

import (
	"context"
	"errors"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/tokens"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Options configure a Recall. LTM and Vectors are needed. The caller closes
// them.
type Options struct {
	LTM     store.LongTermMemory
	Vectors store.VectorIndex
	Files   Files // nil = none
}

// Recall keeps vectors of documents. It is safe for concurrent use.
type Recall struct{ o Options }

// New creates a Recall.
func New(o Options) *Recall { return &Recall{o: o} }

// Embed returns one vector for each text, and the model.
type Embed func(ctx context.Context, texts []string) (vectors [][]float32, model string, err error)

// Backfill selects the documents whose missing vectors are created.
type Backfill struct {
	Collection string
	// Namespace is the namespace of the entries. Files belong to the default namespace.
	Namespace string
	// Prefix is the prefix of keys and paths.
	Prefix string
	// Model is the model; vectors of other models are replaced. "" = any.
	Model string
	// BatchSize is the number of texts in one call of Embed, Limit the total
	// number; both at least 1.
	BatchSize, Limit int
	Embed            Embed
	// Failed is called for each document that could not be embedded.
	Failed func(d Document, err error)
	// Progress is called after each batch.
	Progress func(Filled)
}

// Filled is the result of a Backfill. Remaining counts documents beyond the
// limit.
type Filled struct{ Embedded, Skipped, Failed, Remaining int }

// Backfill creates the missing vectors batch by batch. If it ends early, the next
// call continues.
func (r *Recall) Backfill(ctx context.Context, b Backfill) (Filled, error) {
	f := &fill{Backfill: b, recall: r}
	var page []Document
	for d, err := range r.documents(ctx, b.Namespace, b.Prefix) {
		if err != nil {
			return f.done, err
		}
		if page = append(page, d); len(page) < pageSize {
			continue
		}
		if err := f.page(ctx, page); err != nil {
			return f.done, err
		}
		page = page[:0]
	}
	if err := f.page(ctx, page); err != nil {
		return f.done, err
	}
	return f.done, f.flush(ctx)
}

// fill is a running Backfill.
type fill struct {
	Backfill
	recall *Recall
	batch  []waiting
	done   Filled
	row    int // texts refused since the last accepted one
}

type waiting struct {
	Document
	text string
}

// page adds the documents of a page without a vector to the batch.
func (f *fill) page(ctx context.Context, page []Document) error {
	missing, err := f.missing(ctx, page)
	if err != nil {
		return err
	}
	for _, d := range missing {
		if f.done.Embedded+f.done.Failed+len(f.batch) >= f.Limit {
			f.done.Remaining++
			continue
		}
		text, err := f.recall.text(ctx, d)
		switch {
		case gone(err):
			continue // removed meanwhile
		case err != nil:
			f.fail(d, err)
			continue
		case text == "":
			f.done.Skipped++
			continue
		}
		if f.batch = append(f.batch, waiting{d, text}); len(f.batch) < f.BatchSize {
			continue
		}
		if err := f.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// missing returns the documents without a vector. If only the metadata has
// changed, it updates the vector.
func (f *fill) missing(ctx context.Context, page []Document) (missing []Document, err error) {
	ids := make([]string, len(page))
	for i, d := range page {
		ids[i] = d.ID()
	}
	items, err := f.recall.o.Vectors.Get(ctx, f.Collection, ids...)
	if err != nil {
		return nil, err
	}
	have := make(map[string]store.VectorItem, len(items))
	for _, item := range items {
		have[item.ID] = item
	}
	var changed []store.VectorItem
	for i, d := range page {
		item, there := have[ids[i]]
		if !there || !d.of(item, f.Model) {
			missing = append(missing, d)
			continue
		}
		f.done.Skipped++
		if !value.Equal(own(item.Metadata), d.Metadata) && (len(own(item.Metadata)) > 0 || len(d.Metadata) > 0) {
			model, _ := item.Metadata[modelField].(string)
			changed = append(changed, d.item(item.Text, item.Embedding, model))
		}
	}
	return missing, f.recall.o.Vectors.Store(ctx, f.Collection, changed...)
}

func (f *fill) fail(d Document, err error) {
	f.done.Failed++
	if f.Failed != nil {
		f.Failed(d, err)
	}
}

// manyRefused is the number of consecutive refusals after which the texts are not taken for the cause.
const manyRefused = 32

// flush embeds the batch. If a text is refused, the texts are tried one by one.
func (f *fill) flush(ctx context.Context) error {
	batch := f.batch
	if f.batch = nil; len(batch) == 0 {
		return nil
	}
	if err := f.embed(ctx, batch); err == nil || !refused(err) {
		return err
	}
	for i := range batch {
		err := f.embed(ctx, batch[i:i+1])
		switch {
		case err == nil:
			continue
		case !refused(err):
			return err
		}
		f.fail(batch[i].Document, err)
		if f.row++; f.row >= manyRefused {
			return err
		}
	}
	return nil
}

// refusal is an error of Embed caused by its texts.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func refused(err error) bool {
	var r refusal
	return errors.As(err, &r)
}

func (f *fill) embed(ctx context.Context, batch []waiting) error {
	texts := make([]string, len(batch))
	for i, w := range batch {
		texts[i], _ = tokens.Cut(w.Key+"\n\n"+w.text, embedTokens)
	}
	vectors, model, err := f.Embed(ctx, texts)
	if err != nil {
		if slices.Contains([]tea.ErrorType{tea.ValidationError, tea.QueryError}, tea.AsError(err).Type) {
			err = refusal{err}
		}
		return err
	}
	items := make([]store.VectorItem, len(batch))
	for i, w := range batch {
		items[i] = w.item(w.text, vectors[i], model)
	}
	if err := f.recall.o.Vectors.Store(ctx, f.Collection, items...); err != nil {
		if tea.AsError(err).Type == tea.ValidationError { // for example a vector of zeros
			err = refusal{err}
		}
		return err
	}
	f.done.Embedded += len(batch)
	f.row = 0
	if f.Progress != nil {
		f.Progress(f.done)
	}
	return nil
}

// One returns the vector of an entry of the long-term memory, and creates it if it is missing.
func (r *Recall) One(ctx context.Context, collection, namespace, key string, embed Embed) (vector []float32, model string, err error) {
	d, err := r.find(ctx, LTM, namespace, key)
	if err != nil {
		return nil, "", err
	}
	text, err := r.text(ctx, d)
	if err != nil {
		return nil, "", err
	}
	if text == "" {
		return nil, "", tea.Errorf(tea.ValidationError, "the value of key %q is empty, and an empty text has no embedding", key)
	}
	head, _ := tokens.Cut(d.Key+"\n\n"+text, embedTokens)
	vectors, model, err := embed(ctx, []string{head})
	if err != nil {
		return nil, "", err
	}
	return vectors[0], model, r.o.Vectors.Store(ctx, collection, d.item(text, vectors[0], model))
}

// Embedded is an entry that is stored with its vector.
type Embedded struct {
	store.Entry
	// Hash is the content hash of the stored entry.
	Hash   string
	Vector []float32
	Model  string
}

// Check returns an error if Put could not store the vectors. Call it before the
// entries are stored.
func (r *Recall) Check(ctx context.Context, collection string, entries ...Embedded) error {
	if len(entries) == 0 {
		return nil
	}
	items, err := itemsOf(entries)
	if err != nil {
		return err
	}
	if _, err := vectors.Check(collection, items); err != nil {
		return err
	}
	all, err := r.o.Vectors.Collections(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		if got := len(items[0].Embedding); c.Name == collection && c.Dimension != got {
			return vectors.WrongDimension(collection, got, c.Dimension)
		}
	}
	return nil
}

// Put stores the vectors of stored entries.
func (r *Recall) Put(ctx context.Context, collection string, entries ...Embedded) error {
	if len(entries) == 0 {
		return nil
	}
	items, err := itemsOf(entries)
	if err != nil {
		return err
	}
	return r.o.Vectors.Store(ctx, collection, items...)
}

func itemsOf(entries []Embedded) ([]store.VectorItem, error) {
	items := make([]store.VectorItem, len(entries))
	for i, e := range entries {
		d, err := entryDocument(store.Memory{Namespace: e.Namespace, Key: e.Key, ContentHash: e.Hash, Metadata: e.Metadata, Value: e.Value})
		if err != nil {
			return nil, tea.Errorf(tea.ValidationError, "the metadata of %q: %w", e.Key, err)
		}
		text, err := Text(e.Value)
		if err != nil {
			return nil, tea.Errorf(tea.ValidationError, "the value of %q: %w", e.Key, err)
		}
		items[i] = d.item(text, e.Vector, e.Model)
	}
	return items, nil
}

// Hit is a similar vector. Source is "" for a vector without a document, such as
// a vector of vector.store.
type Hit struct {
	store.VectorHit
	Source, Key string
}

// Search returns the nearest vectors of a namespace. It omits vectors of
// documents that were removed, have changed, or no longer match the filter. Files
// and vectors without a document belong to the default namespace, "".
func (r *Recall) Search(ctx context.Context, collection, namespace string, query store.VectorQuery) ([]Hit, error) {
	query, err := within(namespace, query)
	if err != nil {
		return nil, err
	}
	return r.search(ctx, collection, query, func(d Document) bool { return d.Namespace == namespace })
}

// within narrows a query to a namespace. Documents of the default namespace have
// no mark, so the caller must check each hit.
func within(namespace string, query store.VectorQuery) (store.VectorQuery, error) {
	if namespace == "" {
		return query, nil
	}
	in, err := filter.Parse(spaceField, map[string]any{spaceField: namespace})
	query.Filter = slices.Concat(query.Filter, in)
	return query, err
}

// search is Search restricted to the hits for which accept returns true. A vector without a document has the zero
// Document.
func (r *Recall) search(ctx context.Context, collection string, query store.VectorQuery, accept func(Document) bool) ([]Hit, error) {
	wanted := query.K
	checked := map[string]bool{} // by id, whether the hit counts
	for {
		found, err := r.o.Vectors.Search(ctx, collection, query)
		if err != nil {
			return nil, err
		}
		var hits []Hit
		for _, hit := range found {
			d, documents := Documented(hit.VectorItem)
			if !accept(d) {
				continue
			}
			ok, known := checked[hit.ID]
			if !known {
				if ok, err = r.counts(ctx, collection, hit, query.Filter); err != nil {
					return nil, err
				}
				checked[hit.ID] = ok
			}
			if !ok {
				continue
			}
			h := Hit{VectorHit: hit}
			if documents {
				h.Source, h.Key, h.Metadata = d.Source, d.Key, d.Metadata
			}
			if hits = append(hits, h); len(hits) == wanted {
				return hits, nil
			}
		}
		if len(found) < query.K {
			return hits, nil
		}
		query.K *= 4
	}
}

// counts reports whether a vector belongs to its document's current content. It
// removes the vector of a document that no longer exists.
func (r *Recall) counts(ctx context.Context, collection string, hit store.VectorHit, wanted filter.Filter) (bool, error) {
	d, ok := Documented(hit.VectorItem)
	if !ok {
		return true, nil
	}
	now, err := r.find(ctx, d.Source, d.Namespace, d.Key)
	if gone(err) {
		if _, err = r.o.Vectors.Delete(ctx, collection, hit.ID); errors.Is(err, store.ErrReadOnly) {
			err = nil
		}
		return false, err
	}
	if err != nil || !now.of(hit.VectorItem, "") {
		return false, err
	}
	if len(wanted) == 0 || value.Equal(now.Metadata, d.Metadata) {
		return true, nil
	}
	return wanted.MatchesObject(now.item("", nil, "").Metadata), nil
}
