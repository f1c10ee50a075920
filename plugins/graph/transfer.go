package graph

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
	"github.com/the-edge-agent/tea/sdk/x/confine"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
	"github.com/the-edge-agent/tea/plugins/graph/internal/transfer"
)

func transferActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("graph.export", "Writes the graph, or a part of it, to a file.", (*Graph).Export, tea.Idempotent()),
		tea.NewMethod("graph.import", "Stores the entities and relations of a file.", (*Graph).Import, tea.Idempotent()),
	}
}

// maxData is the size of an export without a file.
const maxData = 32 << 20

// formats are by the ends of file names.
var formats = map[string]transfer.Format{".jsonl": transfer.JSONL, ".ndjson": transfer.JSONL, ".graphml": transfer.GraphML, ".xml": transfer.GraphML, ".json": transfer.Cytoscape, ".cyjs": transfer.Cytoscape}

// FileParams are the parameters that name a file and its format.
type FileParams struct {
	Path   string `json:"path,omitempty" doc:"file below settings.file.root; for csv and parquet a folder with the files entities and relations"`
	Format string `json:"format,omitempty" enum:"jsonl,csv,parquet,graphml,cytoscape" doc:"default that of the name's end: .jsonl, .graphml, .json (cytoscape); jsonl without a path"`
}

func (p FileParams) format() (transfer.Format, error) {
	if p.Format != "" {
		return transfer.Format(p.Format), nil
	}
	if p.Path == "" {
		return transfer.JSONL, nil
	}
	f, ok := formats[strings.ToLower(path.Ext(p.Path))]
	if !ok {
		return "", tea.Errorf(tea.ValidationError, "the name %q does not tell the format; set format to jsonl, csv, parquet, graphml or cytoscape", p.Path)
	}
	return f, nil
}

// names returns the names of the files, relative to the root.
func (p FileParams) names(f transfer.Format) ([]string, error) {
	clean, err := confine.Clean(p.Path)
	if err != nil {
		return nil, err
	}
	names := f.Files()
	for i := range names {
		names[i] = path.Join(clean, names[i])
	}
	if names == nil {
		names = []string{clean}
	}
	return names, nil
}

// ExportParams are the parameters of graph.export.
type ExportParams struct {
	Namespace
	FileParams
	When
	EntityIDs     []string `json:"entity_ids,omitempty" doc:"only these entities and those around them; default all"`
	Depth         int      `json:"depth,omitempty" minimum:"0" maximum:"20" default:"1" doc:"number of hops around entity_ids"`
	EntityTypes   []string `json:"entity_types,omitempty" doc:"types of the entities; relations of others are left out; default all"`
	RelationTypes []string `json:"relation_types,omitempty" doc:"types of the relations; default all"`
	Current       bool     `json:"current,omitempty" doc:"only relations that are valid now, or at as_of; otherwise all, with their times"`
}

// ExportResult is the result of graph.export.
type ExportResult struct {
	Success   bool     `json:"success"`
	Format    string   `json:"format"`
	Entities  int      `json:"entities"`
	Relations int      `json:"relations"`
	Files     []string `json:"files" doc:"absolute paths"`
	Data      string   `json:"data,omitempty" doc:"the text, without a path"`
}

// Export is the action graph.export.
func (g *Graph) Export(ctx context.Context, _ *tea.Request, p ExportParams) (*ExportResult, error) {
	format, err := p.format()
	if err != nil {
		return nil, err
	}
	v, err := g.read(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	defer v.done()
	r := &ExportResult{Success: true, Format: string(format), Files: []string{}}
	if p.Path == "" {
		if format.Files() != nil {
			return nil, tea.Errorf(tea.ValidationError, "the format %s has two files; set path to a folder for them", format)
		}
		var text bytes.Buffer
		if err := v.export(ctx, &p, r, transfer.NewWriter(format, &limited{w: &text, left: maxData})); err != nil {
			return nil, err
		}
		r.Data = text.String()
		return r, nil
	}
	names, err := p.names(format)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(g.settings.File.Root)
	if err != nil {
		return nil, fileError(err)
	}
	defer root.Close()
	return r, writeFiles(root, names, r, func(outputs []io.Writer) error {
		return v.export(ctx, &p, r, transfer.NewWriter(format, outputs...))
	})
}

// writeFiles replaces files atomically, each after the one before.
func writeFiles(root *os.Root, names []string, r *ExportResult, write func([]io.Writer) error) error {
	outputs := make([]io.Writer, len(names))
	var next func(i int) error
	next = func(i int) error {
		if i == len(names) {
			return write(outputs)
		}
		if dir := path.Dir(names[i]); dir != "." {
			if err := root.MkdirAll(dir, 0o755); err != nil {
				return fileError(err)
			}
		}
		return atomicfile.WriteIn(root, names[i], 0o644, func(w io.Writer) error {
			buffered := bufio.NewWriterSize(w, 1<<16)
			outputs[i] = buffered
			return errors.Join(next(i+1), buffered.Flush())
		})
	}
	if err := next(0); err != nil {
		return fileError(err)
	}
	for _, name := range names {
		r.Files = append(r.Files, filepath.Join(root.Name(), filepath.FromSlash(name)))
	}
	return nil
}

// fileError describes an error of a file below the root.
func fileError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return tea.Errorf(tea.NotFound, "%w", err)
	case tea.AsError(err).Type != tea.InternalError:
		return err
	}
	return systemError("access a file", err)
}

// limited fails after some bytes.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(text []byte) (int, error) {
	if l.left -= len(text); l.left < 0 {
		return 0, tea.Errorf(tea.ResourceExhausted, "the export has more than %d MB; set path to write it to a file", maxData>>20)
	}
	return l.w.Write(text)
}

// export writes what was asked for.
func (v *view) export(ctx context.Context, p *ExportParams, r *ExportResult, w transfer.Writer) error {
	at, err := p.instant(v.now)
	if err != nil {
		return err
	}
	scan := store.RelationScan{Types: p.RelationTypes, At: at, Ever: !p.Current && p.AsOf == ""}
	inside, err := v.selection(ctx, p, at)
	if err != nil {
		return err
	}
	err = v.EachEntity(ctx, v.ns, store.EntityScan{Types: p.EntityTypes, Embeddings: true, Facts: true}, func(e *store.Entity) error {
		if inside != nil && !inside[e.ID] {
			return nil
		}
		r.Entities++
		return w.Entity(e)
	})
	if err != nil {
		return err
	}
	err = v.EachRelation(ctx, v.ns, scan, func(relation *store.Relation) error {
		if inside != nil && !(inside[relation.From] && inside[relation.To]) {
			return nil
		}
		r.Relations++
		return w.Relation(relation)
	})
	return errors.Join(err, w.Close())
}

// selection returns the ids of the entities to export, nil for all.
func (v *view) selection(ctx context.Context, p *ExportParams, at int64) (map[string]bool, error) {
	if len(p.EntityIDs) == 0 && len(p.EntityTypes) == 0 {
		return nil, nil
	}
	inside := map[string]bool{}
	if len(p.EntityIDs) == 0 {
		return inside, v.EachEntity(ctx, v.ns, store.EntityScan{Types: p.EntityTypes, Keys: true}, func(e *store.Entity) error { inside[e.ID] = true; return nil })
	}
	if err := v.exist(ctx, p.EntityIDs...); err != nil {
		return nil, err
	}
	_, order, err := v.walk(ctx, p.EntityIDs, p.Depth, store.Adjacency{Direction: store.Both, Types: p.RelationTypes, At: at, Lean: true}, nil)
	if err != nil {
		return nil, err
	}
	entities, err := v.selectEntities(ctx, order, p.EntityTypes, nil)
	for i := range entities {
		inside[entities[i].ID] = true
	}
	return inside, err
}

// ImportParams are the parameters of graph.import.
type ImportParams struct {
	Namespace
	FileParams
	Data string `json:"data,omitempty" doc:"the text to import, instead of path"`
}

// ImportResult is the result of graph.import.
type ImportResult struct {
	Success         bool `json:"success"`
	Entities        int  `json:"entities" doc:"number of stored entities, which replace those with the same ids"`
	Relations       int  `json:"relations"`
	CreatedEntities int  `json:"created_entities" doc:"number of entities that relations needed and that the file does not have"`
}

// Import is the action graph.import.
func (g *Graph) Import(ctx context.Context, _ *tea.Request, p ImportParams) (*ImportResult, error) {
	format, err := p.format()
	if err != nil {
		return nil, err
	}
	if (p.Path == "") == (p.Data == "") || p.Data != "" && format.Files() != nil {
		return nil, tea.Errorf(tea.ValidationError, "graph.import needs a path or data, and not both; csv and parquet need a path")
	}
	inputs, sizes := []transfer.Input{strings.NewReader(p.Data)}, []int64{int64(len(p.Data))}
	if p.Path != "" {
		files, closeAll, err := g.inputs(p.FileParams, format)
		if err != nil {
			return nil, err
		}
		defer closeAll()
		inputs, sizes = nil, nil
		for _, f := range files {
			info, err := f.Stat()
			if err != nil {
				return nil, fileError(err)
			}
			inputs, sizes = append(inputs, f), append(sizes, info.Size())
		}
	}
	i := &importer{g: g, ctx: ctx, ns: p.Namespace, relations: map[store.RelationKey]int{}, entities: map[string]int{}}
	err = transfer.Read(format, transfer.Sink{Entity: i.entity, Relation: i.relation}, inputs, sizes)
	if err == nil {
		err = i.flush()
	}
	if err != nil && ctx.Err() == nil {
		var typed *tea.Error
		if errors.As(err, &typed) && typed.Type != tea.ValidationError {
			return nil, tea.Errorf(typed.Type, "after %d entities and %d relations: %w", i.result.Entities, i.result.Relations, err)
		}
		return nil, tea.Errorf(tea.ValidationError, "import %s: %w (%d entities and %d relations before it were stored; importing again replaces them)", p.Path, err, i.result.Entities, i.result.Relations)
	}
	i.result.Success = true
	return &i.result, err
}

// inputs opens the files of an import.
func (g *Graph) inputs(p FileParams, format transfer.Format) (files []*os.File, closeAll func(), err error) {
	names, err := p.names(format)
	if err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(g.settings.File.Root)
	if err != nil {
		return nil, nil, fileError(err)
	}
	defer root.Close()
	closeAll = func() {
		for _, f := range files {
			f.Close()
		}
	}
	for _, name := range names {
		info, err := root.Stat(name)
		if err == nil && !info.Mode().IsRegular() {
			err = tea.Errorf(tea.ValidationError, "%s is not a file", name)
		}
		var f *os.File
		if err == nil {
			f, err = root.Open(name)
		}
		if err != nil {
			closeAll()
			return nil, nil, fileError(err)
		}
		files = append(files, f)
	}
	return files, closeAll, nil
}

// importBatch is the number of entities, or relations, of a transaction.
const importBatch = 2000

// importer stores what was read in batches.
type importer struct {
	g      *Graph
	ctx    context.Context
	ns     Namespace
	batch  store.Batch
	result ImportResult
	// entities and relations have the places in the batch.
	entities  map[string]int
	relations map[store.RelationKey]int
}

func (i *importer) entity(e *store.Entity) error {
	if len(e.Embedding) == 0 {
		e.Embedding = nil // a Parquet file does not distinguish them
	}
	fields := EntityFields{EntityID: e.ID, EntityType: e.Type, Embedding: e.Embedding}
	if err := fields.check(); err != nil {
		return err
	}
	properties, err := i.properties(&e.Properties)
	if err != nil {
		return err
	}
	if e.Facts != "" {
		if _, err := readHistory(e.Facts); err != nil {
			return tea.Errorf(tea.ValidationError, "the facts of %q are not valid", e.ID)
		}
	}
	if e.Type == "" {
		e.Type = defaultType
	}
	e.Words = wordsOf(e, properties)
	if at, ok := i.entities[e.ID]; ok {
		i.batch.Entities[at] = *e
		return nil
	}
	i.entities[e.ID] = len(i.batch.Entities)
	if i.batch.Entities = append(i.batch.Entities, *e); len(i.batch.Entities) == importBatch {
		return i.flush()
	}
	return nil
}

// properties checks the text of properties and writes it in the stored form.
func (i *importer) properties(text *[]byte) (map[string]any, error) {
	if len(*text) == 0 {
		*text = []byte("{}")
	}
	properties, err := readProperties(*text)
	if err != nil || properties == nil {
		return nil, tea.Errorf(tea.ValidationError, "properties are not a JSON object: %.50s", *text)
	}
	*text, err = encodeProperties("an imported item", properties)
	return withoutNull(properties), err
}

func (i *importer) relation(r *store.Relation) error {
	if len(i.batch.Relations) == 0 && len(i.batch.Entities) > 0 {
		if err := i.flush(); err != nil {
			return err
		}
	}
	fields := RelationFields{FromEntity: r.From, ToEntity: r.To, RelationType: r.Type}
	if err := fields.check(); err != nil {
		return err
	}
	if r.ValidTo < r.ValidFrom {
		return tea.Errorf(tea.ValidationError, "the relation %s ends before it begins", &fields)
	}
	if _, err := i.properties(&r.Properties); err != nil {
		return err
	}
	if at, ok := i.relations[r.RelationKey]; ok {
		i.batch.Relations[at] = *r
		return nil
	}
	i.relations[r.RelationKey] = len(i.batch.Relations)
	if i.batch.Relations = append(i.batch.Relations, *r); len(i.batch.Relations) == importBatch {
		return i.flush()
	}
	return nil
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
	entities := len(i.batch.Entities)
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
	created, err := v.ends(i.ctx, ends, true)
	if err != nil {
		return err
	}
	i.batch.Entities = slices.Concat(i.batch.Entities, created)
	if err := v.Apply(i.ctx, v.ns, i.batch); err != nil {
		return err
	}
	i.result.Entities += entities
	i.result.Relations += len(i.batch.Relations)
	i.result.CreatedEntities += len(created)
	i.batch = store.Batch{}
	clear(i.entities)
	clear(i.relations)
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
