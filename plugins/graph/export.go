package graph

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
	"github.com/the-edge-agent/tea/plugins/graph/internal/transfer"
)

// ExportFile names the file of an export.
type ExportFile struct {
	Path   string `json:"path,omitempty" doc:"a file below settings.file.root, as a path or as file:///path; or an address below settings.graph.storage, such as s3://bucket/name. For csv and parquet, it is a folder with the files entities and relations"`
	Format string `json:"format,omitempty" enum:"jsonl,csv,parquet,graphml,cytoscape" doc:"default: by the name's extension, .jsonl, .graphml, .cyjs or .json (cytoscape); jsonl without a path"`
}

// ExportParams are the parameters of graph.export.
type ExportParams struct {
	Namespace
	ExportFile
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
	Notes     []string `json:"notes" doc:"what the file does not have"`
	Files     []string `json:"files" doc:"absolute paths, or addresses"`
	Data      *string  `json:"data,omitempty" doc:"the text, without a path"`
}

// Export is the action graph.export.
func (g *Graph) Export(ctx context.Context, _ *tea.Request, p ExportParams) (*ExportResult, error) {
	format, err := formatOf(p.Format, p.Path, "jsonl, csv, parquet, graphml or cytoscape")
	if err != nil {
		return nil, err
	}
	if p.Path == "" && format.Files() != nil {
		return nil, tea.Errorf(tea.ValidationError, "the format %s has two files; set path to a folder for them", format)
	}
	v, err := g.read(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	defer v.done()
	// The export may replace an intact file.
	if s, ok := v.Store.(store.Verifier); ok && len(p.EntityIDs) == 0 {
		if err := s.Verify(ctx); err != nil {
			return nil, err
		}
	}
	r := &ExportResult{Success: true, Format: string(format), Notes: []string{}, Files: []string{}}
	write := func(outputs []io.Writer) error {
		w := transfer.NewWriter(format, outputs...)
		defer transfer.Discard(w)
		return v.export(ctx, &p, r, w)
	}
	if p.Path != "" {
		f, local, err := g.files(g.settings, p.Path)
		if err != nil {
			return nil, err
		}
		r.Files, err = f.write(ctx, local, format, write)
		return r, err
	}
	var text strings.Builder
	if err := write([]io.Writer{&limited{w: &text, left: maxData}}); err != nil {
		return nil, err
	}
	data := text.String()
	r.Data = &data
	return r, nil
}

// limited fails when a limit of bytes is exceeded.
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

// export writes the requested entities and relations.
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
	lost := losses{}
	err = v.EachEntity(ctx, v.ns, store.EntityScan{Types: p.EntityTypes, Embeddings: true, Facts: true}, func(e *store.Entity) error {
		if inside != nil && !inside[e.ID] {
			return nil
		}
		r.Entities++
		lost.count(e)
		if e.Facts, err = readableFacts(e.Facts); err != nil {
			return err
		}
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
	if err == nil && r.Entities+r.Relations == 0 {
		var notes []string
		if notes, err = v.notes(ctx, asked{all: true, relationTypes: p.RelationTypes, entityTypes: p.EntityTypes}); len(notes) == 0 {
			notes = []string{fmt.Sprintf("nothing in the namespace %q matches", v.ns)}
		}
		r.Notes = append(r.Notes, notes...)
	}
	if r.Format == string(transfer.GraphML) {
		r.Notes = append(r.Notes, lost.notes()...)
	}
	return errors.Join(err, w.Close())
}

// losses counts the entities with data that GraphML cannot hold.
type losses struct{ embeddings, facts int }

func (l *losses) count(e *store.Entity) {
	if e.Embedding != nil {
		l.embeddings++
	}
	if e.Facts != "" {
		l.facts++
	}
}

func (l *losses) notes() (notes []string) {
	if l.embeddings > 0 {
		notes = append(notes, fmt.Sprintf("GraphML cannot store embeddings; entities: %d", l.embeddings))
	}
	if l.facts > 0 {
		notes = append(notes, fmt.Sprintf("GraphML cannot store the former values of properties, nor their times and sources; entities: %d", l.facts))
	}
	return notes
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
	entities, err := v.selectEntities(ctx, order, p.EntityTypes, nil, at)
	for i := range entities {
		inside[entities[i].ID] = true
	}
	return inside, err
}
