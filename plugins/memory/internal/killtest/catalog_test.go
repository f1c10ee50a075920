package killtest

import (
	"context"
	"fmt"
	"math/rand/v2"
)

const catalogFiles = 4 // of each worker

// catalogArea tracks files of an external table and creates snapshots.
type catalogArea struct {
	gens    generations
	made    cell
	cells   [workers][catalogFiles]cell
	batches [workers]batch
}

type tracked struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

func trackedPath(worker, key int) string { return fmt.Sprintf("part-%d/%d.csv", worker, key) }

func (a *catalogArea) write(ctx context.Context, p *plugin, worker int, r *rand.Rand) error {
	if a.made.acked == 0 {
		return nil // check makes it
	}
	b, key := &a.batches[worker], r.IntN(catalogFiles)
	var err error
	switch r.IntN(6) {
	case 0:
		err = p.change(ctx, "catalog.create_snapshot", map[string]any{"table": "elsewhere"}, nil)
	case 1:
		b.send(&a.cells[worker][key], 0)
		err = p.change(ctx, "catalog.untrack_file", map[string]any{"table": "elsewhere", "path": trackedPath(worker, key)}, nil)
	default:
		var files []tracked
		for _, key := range r.Perm(catalogFiles)[:2] {
			gen := a.gens.next(worker)
			b.send(&a.cells[worker][key], gen)
			files = append(files, tracked{Path: trackedPath(worker, key), Size: gen})
		}
		err = p.change(ctx, "catalog.track_file", map[string]any{"table": "elsewhere", "files": files}, nil)
	}
	if err == nil {
		b.ack()
	}
	return err
}

func (a *catalogArea) check(ctx context.Context, p *plugin) error {
	if a.made.acked == 0 {
		a.made.acked = madeTable
		return p.change(ctx, "catalog.register_table", map[string]any{"name": "elsewhere", "format": "csv"}, nil)
	}
	var listed struct {
		Files []tracked `json:"files"`
	}
	if err := p.call(ctx, "catalog.list_files", map[string]any{"table": "elsewhere", "limit": 1000}, &listed); err != nil {
		return err
	}
	there := map[string]int64{}
	for _, f := range listed.Files {
		there[f.Path] = f.Size
	}
	for worker := range workers {
		for key := range catalogFiles {
			if _, err := a.cells[worker][key].see(there[trackedPath(worker, key)]); err != nil {
				return fmt.Errorf("tracked file %s: %w", trackedPath(worker, key), err)
			}
		}
		if err := a.batches[worker].see(); err != nil {
			return fmt.Errorf("catalog.track_file of worker %d: %w", worker, err)
		}
	}
	return nil
}

func (*catalogArea) blobs(context.Context, *plugin) ([]string, error) { return nil, nil }
