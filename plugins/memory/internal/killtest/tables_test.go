package killtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
)

const (
	tableRows = 6 // of each worker
	tableName = "readings"
	madeTable = 1
)

// tableArea inserts, replaces and deletes rows, some in files and some not,
// and puts them together.
type tableArea struct {
	gens    generations
	made    cell
	cells   [workers][tableRows]cell
	batches [workers]batch
}

func rowID(worker, key int) string { return fmt.Sprintf("%d-%d", worker, key) }

// note is the text of a generation; every third makes its batch a file.
func note(gen int64) string {
	size := 20
	if gen/workers%3 == 0 {
		size = 1200
	}
	return word(gen) + " " + filler(gen, size)
}

func (a *tableArea) write(ctx context.Context, p *plugin, worker int, r *rand.Rand) error {
	if a.made.acked == 0 {
		return nil // check makes it
	}
	b := &a.batches[worker]
	keys := r.Perm(tableRows)[:1+r.IntN(3)]
	var action string
	params := map[string]any{"table": tableName}
	switch n := r.IntN(12); {
	case n == 0:
		action = "data.consolidate"
	case n < 4:
		action = "data.delete"
		var ids []string
		for _, key := range keys {
			b.send(&a.cells[worker][key], 0)
			ids = append(ids, rowID(worker, key))
		}
		params["keys"] = ids
	default:
		action = "data.insert"
		var rows []map[string]any
		for _, key := range keys {
			gen := a.gens.next(worker)
			b.send(&a.cells[worker][key], gen)
			rows = append(rows, map[string]any{"id": rowID(worker, key), "gen": gen, "note": note(gen)})
		}
		params["rows"], params["on_conflict"] = rows, "replace"
	}
	if err := p.change(ctx, action, params, nil); err != nil {
		return err
	}
	b.ack()
	return nil
}

func (a *tableArea) check(ctx context.Context, p *plugin) error {
	if a.made.acked == 0 {
		err := p.change(ctx, "data.create_table", map[string]any{
			"name": tableName, "schema": map[string]any{"id": "string", "gen": "int", "note": "string"}, "primary_key": "id",
		}, nil)
		a.made.acked = madeTable
		return err
	}
	var answer struct {
		Rows []struct {
			ID   string `json:"id"`
			Gen  int64  `json:"gen"`
			Note string `json:"note"`
		} `json:"rows"`
	}
	if err := p.call(ctx, "data.query", map[string]any{"sql": "SELECT id, gen, note FROM " + tableName}, &answer); err != nil {
		return err
	}
	there := map[string]int64{}
	for _, row := range answer.Rows {
		if row.Note != note(row.Gen) {
			return fmt.Errorf("row %s of %d is mixed up: %.100q", row.ID, row.Gen, row.Note)
		}
		if _, twice := there[row.ID]; twice {
			return fmt.Errorf("row %s is there twice", row.ID)
		}
		there[row.ID] = row.Gen
	}
	for worker := range workers {
		before := slices.Clone(a.batches[worker].cells)
		for key := range tableRows {
			if _, err := a.cells[worker][key].see(there[rowID(worker, key)]); err != nil {
				return fmt.Errorf("row %s: %w", rowID(worker, key), err)
			}
			delete(there, rowID(worker, key))
		}
		if err := a.batches[worker].see(); err != nil {
			return fmt.Errorf("a change of worker %d in %d rows: %w", worker, len(before), err)
		}
	}
	if len(there) > 0 {
		return fmt.Errorf("%v was never inserted", there)
	}
	return nil
}

func (*tableArea) blobs(context.Context, *plugin) ([]string, error) { return nil, nil }

// tableFiles are the files that the catalog has of the table.
func tableFiles(ctx context.Context, p *plugin) ([]string, error) {
	var listed struct {
		Files []struct {
			Path string `json:"path"`
		} `json:"files"`
	}
	err := p.call(ctx, "catalog.list_files", map[string]any{"table": tableName, "limit": 1000}, &listed)
	var paths []string
	for _, f := range listed.Files {
		paths = append(paths, f.Path)
	}
	slices.Sort(paths)
	return paths, err
}
