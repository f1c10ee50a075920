package graph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"path"
	"slices"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
	"github.com/the-edge-agent/tea/plugins/graph/internal/transfer"
	"github.com/the-edge-agent/tea/plugins/graph/internal/words"
)

// ImportFile names the file of an import.
type ImportFile struct {
	Path   string `json:"path,omitempty" doc:"a file below settings.file.root, as a path or as file:///path; or an address below settings.graph.storage, such as s3://bucket/name or https://host/name. For csv and parquet, it is a folder with the files entities and relations, or one table. The name can contain * and ?, as in data/*.parquet"`
	Format string `json:"format,omitempty" enum:"jsonl,csv,parquet,graphml" doc:"default: by the name's extension, .jsonl, .csv, .parquet, .graphml; jsonl without a path"`
}

// ImportParams are the parameters of graph.import.
type ImportParams struct {
	Namespace
	ImportFile
	Data string `json:"data,omitempty" doc:"the text to import, instead of path"`
}

// ImportResult is the result of graph.import.
type ImportResult struct {
	Success         bool     `json:"success"`
	Entities        int      `json:"entities" doc:"number of stored entities, which replace those with the same ids"`
	Relations       int      `json:"relations"`
	CreatedEntities int      `json:"created_entities" doc:"number of entities that relations needed and that the file does not have"`
	Newer           int      `json:"newer,omitempty" doc:"number of entities and relations that were not replaced, since they changed in the graph after the file was exported"`
	Notes           []string `json:"notes" doc:"what of the file was left out or means something else in the graph"`
}

// Import is the action graph.import.
func (g *Graph) Import(ctx context.Context, _ *tea.Request, p ImportParams) (*ImportResult, error) {
	format, err := formatOf(cmp.Or(p.Format, tableFormats[strings.ToLower(path.Ext(p.Path))]), p.Path, "jsonl, csv, parquet or graphml")
	if err != nil {
		return nil, err
	}
	if err := format.Readable(); err != nil {
		return nil, err
	}
	if (p.Path == "") == (p.Data == "") || p.Data != "" && format.Files() != nil {
		return nil, tea.Errorf(tea.ValidationError, "graph.import needs a path or data, but not both; csv and parquet need a path")
	}
	name, in := "data", &inputs{}
	if p.Path == "" {
		in.add(transfer.Input{Reader: strings.NewReader(p.Data)}, func() error { return nil })
	} else if in, err = g.open(ctx, p.Path, format); err != nil {
		return nil, err
	} else {
		name = p.Path
	}
	defer in.close()
	i := newImporter(ctx, g, p.Namespace, format)
	err = transfer.Read(format, transfer.Sink{Entity: i.entity, Relation: i.relation, Note: i.note}, in.files)
	if err == nil {
		err = i.flush()
	}
	if err != nil {
		return nil, i.failure(name, err)
	}
	if i.repeated > 0 {
		i.note(fmt.Sprintf("rows with a duplicate key: %d; the last one of each key is stored", i.repeated))
	}
	i.result.Success = true
	return &i.result, nil
}

// importBatch is the number of items of a transaction. The first one is larger, so that
// a file of ordinary size is stored atomically.
const (
	importFirst = 10_000
	importBatch = 2000
	importBytes = 8 << 20
)

// importer stores the items of a file in batches.
type importer struct {
	g      *Graph
	ctx    context.Context
	ns     Namespace
	batch  store.Batch
	index  words.Index
	limit  int // of the items of the batch
	bytes  int // in the batch
	result ImportResult
	// entities and relations map keys to places in the batch.
	entities  map[string]int
	relations map[store.RelationKey]int
	// seen are the hashes of the keys in the file, for formats in which a key should
	// appear once.
	seen map[uint64]bool
	// made has the ids of entities that were created as the ends of relations; their
	// rows may follow later.
	made     map[string]bool
	seed     maphash.Seed
	unique   bool // a second item with a key is an error
	repeated int
}

func newImporter(ctx context.Context, g *Graph, ns Namespace, format transfer.Format) *importer {
	i := &importer{g: g, ctx: ctx, ns: ns, limit: importFirst, relations: map[store.RelationKey]int{}, entities: map[string]int{}, made: map[string]bool{}, result: ImportResult{Notes: []string{}}}
	if i.unique = format == transfer.GraphML; i.unique || format == transfer.CSV {
		i.seen, i.seed = map[uint64]bool{}, maphash.MakeSeed()
	}
	return i
}

func (i *importer) note(text string) { i.result.Notes = append(i.result.Notes, text) }

// failure adds to an error what was stored before it.
func (i *importer) failure(name string, err error) error {
	if i.ctx.Err() != nil {
		return i.ctx.Err()
	}
	stored := "nothing was stored"
	if n := i.result.Entities + i.result.Relations + i.result.CreatedEntities; n > 0 {
		stored = fmt.Sprintf("%d entities and %d relations before it were stored; importing again replaces them", i.result.Entities, i.result.Relations)
	}
	var typed *tea.Error
	if !errors.As(err, &typed) {
		return tea.Errorf(tea.ValidationError, "import %s: %w (%s)", name, err, stored)
	}
	e := *typed
	e.Message = fmt.Sprintf("import %s: %s (%s)", name, typed.Message, stored)
	return &e
}

// once checks that a key appears once in the file.
func (i *importer) once(kind, describe string, key any) error {
	if i.seen == nil {
		return nil
	}
	hash := maphash.Comparable(i.seed, key)
	if !i.seen[hash] {
		i.seen[hash] = true
		return nil
	}
	if i.unique {
		return tea.Errorf(tea.ValidationError, "the file has the %s %s twice, and a graph has it once; give the %[1]s another type or time, or merge them", kind, describe)
	}
	i.repeated++
	return nil
}

func (i *importer) entity(e *store.Entity) error {
	if len(e.Embedding) == 0 {
		e.Embedding = nil // a Parquet file does not distinguish them
	}
	fields := EntityFields{EntityID: e.ID, EntityType: e.Type, Embedding: e.Embedding, Source: e.Source}
	if err := fields.check(); err != nil {
		return err
	}
	properties, err := i.properties(&e.Properties)
	if err != nil {
		return err
	}
	facts, err := storedFacts(e.Facts)
	if err != nil {
		return tea.Errorf(tea.ValidationError, "the facts of %q are not valid: %w", e.ID, err)
	}
	h, err := readHistory(facts)
	if err != nil {
		return tea.Errorf(tea.ValidationError, "the facts of %q are not valid", e.ID)
	}
	h.mark(time.Now().UnixMicro())
	if e.Facts, err = h.text(); err != nil {
		return tea.Errorf(tea.ValidationError, "the facts of %q: %w", e.ID, err)
	}
	if err := i.once("node", fmt.Sprintf("%q", e.ID), e.ID); err != nil {
		return err
	}
	if e.Type == "" {
		e.Type = defaultType
	}
	e.Words = keysOf(&i.index, e, properties, h)
	if at, ok := i.entities[e.ID]; ok {
		i.batch.Entities[at] = *e
		return nil
	}
	i.entities[e.ID] = len(i.batch.Entities)
	i.batch.Entities = append(i.batch.Entities, *e)
	return i.added(len(e.ID) + len(e.Text) + len(e.Properties) + len(e.Facts) + 4*len(e.Embedding))
}

// added stores the batch if it is full.
func (i *importer) added(bytes int) error {
	if i.bytes += bytes; i.bytes < importBytes && len(i.batch.Entities)+len(i.batch.Relations) < i.limit {
		return nil
	}
	return i.flush()
}

// properties checks JSON properties and rewrites them in the stored form.
func (i *importer) properties(text *[]byte) (map[string]any, error) {
	if len(*text) == 0 {
		*text = []byte("{}")
	}
	properties, err := readProperties(*text)
	if err != nil || properties == nil {
		return nil, tea.Errorf(tea.ValidationError, "properties are not a JSON object: %.50s", *text)
	}
	if err := checkProperties("an item", properties); err != nil {
		return nil, err
	}
	*text, err = encodeProperties("an imported item", properties)
	return withoutNull(properties), err
}

func (i *importer) relation(r *store.Relation) error {
	fields := RelationFields{FromEntity: r.From, ToEntity: r.To, RelationType: r.Type, Weight: &r.Weight, Source: r.Source}
	if err := fields.check(); err != nil {
		return err
	}
	if r.ValidTo <= r.ValidFrom {
		return tea.Errorf(tea.ValidationError, "the relation %s ends before it begins", &fields)
	}
	if _, err := i.properties(&r.Properties); err != nil {
		return err
	}
	if err := i.once("edge", fields.String(), r.RelationKey); err != nil {
		return err
	}
	if at, ok := i.relations[r.RelationKey]; ok {
		i.batch.Relations[at] = *r
		return nil
	}
	i.relations[r.RelationKey] = len(i.batch.Relations)
	i.batch.Relations = append(i.batch.Relations, *r)
	return i.added(len(r.From) + len(r.Type) + len(r.To) + len(r.Properties))
}

// flush stores the batch.
func (i *importer) flush() error {
	if len(i.batch.Entities)+len(i.batch.Relations) == 0 {
		return nil
	}
	v, err := i.g.write(i.ctx, i.ns)
	if err != nil {
		return err
	}
	defer v.done()
	for j := range i.batch.Entities {
		e := &i.batch.Entities[j]
		setTimes(&e.CreatedAt, &e.UpdatedAt, v.now)
	}
	ends := make([]RelationFields, 0, len(i.batch.Relations))
	for j := range i.batch.Relations {
		r := &i.batch.Relations[j]
		setTimes(&r.CreatedAt, &r.UpdatedAt, v.now)
		if _, ok := i.entities[r.From]; !ok {
			ends = append(ends, RelationFields{FromEntity: r.From, ToEntity: r.From})
		}
		if _, ok := i.entities[r.To]; !ok {
			ends = append(ends, RelationFields{FromEntity: r.To, ToEntity: r.To})
		}
	}
	if err := i.keepNewer(v); err != nil {
		return err
	}
	entities := len(i.batch.Entities)
	created, err := v.ends(i.ctx, ends, true)
	if err != nil {
		return err
	}
	for j := range created {
		i.made[created[j].ID] = true
	}
	i.batch.Entities = slices.Concat(i.batch.Entities, created)
	if err := v.Apply(i.ctx, v.ns, i.batch); err != nil {
		return err
	}
	i.result.Entities += entities
	i.result.Relations += len(i.batch.Relations)
	i.result.CreatedEntities += len(created)
	i.batch, i.bytes, i.limit = store.Batch{}, 0, importBatch
	clear(i.entities)
	clear(i.relations)
	return nil
}

// keepNewer removes items from the batch that changed in the graph after the export.
func (i *importer) keepNewer(v *view) error {
	ids := make([]string, len(i.batch.Entities))
	for j := range i.batch.Entities {
		ids[j] = i.batch.Entities[j].ID
	}
	entities, err := v.Entities(i.ctx, v.ns, ids, store.Fields{})
	if err != nil {
		return err
	}
	keys := make([]store.RelationKey, len(i.batch.Relations))
	for j := range i.batch.Relations {
		keys[j] = i.batch.Relations[j].RelationKey
		keys[j].ValidFrom = 0
	}
	relations, err := v.Between(i.ctx, v.ns, keys)
	if err != nil {
		return err
	}
	updated := map[any]int64{}
	for j := range entities {
		updated[entities[j].ID] = entities[j].UpdatedAt
	}
	for j := range relations {
		updated[relations[j].RelationKey] = relations[j].UpdatedAt
	}
	before := len(ids) + len(keys)
	i.batch.Entities = slices.DeleteFunc(i.batch.Entities, func(e store.Entity) bool { return updated[e.ID] > e.UpdatedAt && !i.made[e.ID] })
	i.batch.Relations = slices.DeleteFunc(i.batch.Relations, func(r store.Relation) bool { return updated[r.RelationKey] > r.UpdatedAt })
	i.result.Newer += before - len(i.batch.Entities) - len(i.batch.Relations)
	return nil
}

func setTimes(created, updated *int64, now int64) {
	if *created == 0 {
		*created = now
	}
	if *updated == 0 {
		*updated = *created
	}
}
