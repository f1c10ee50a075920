package killtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
)

const fileKeys = 4 // of each worker

// fileArea stores and removes files.
type fileArea struct {
	gens  generations
	cells [workers][fileKeys]cell
}

func filePath(worker, key int) string { return fmt.Sprintf("notes/%d/%d.md", worker, key) }

// fileContent is what a generation of a file has in it.
func fileContent(gen int64) string {
	return fmt.Sprintf("generation %d\n%s", gen, filler(gen, int(gen*977%9000)))
}

func genOf(content string) (gen int64, err error) {
	if _, err := fmt.Sscanf(content, "generation %d\n", &gen); err != nil {
		return 0, fmt.Errorf("unknown content: %.100q", content)
	}
	if content != fileContent(gen) {
		return 0, fmt.Errorf("the content of %d is mixed up: %.100q", gen, content)
	}
	return gen, nil
}

type fileView struct {
	Path      string  `json:"path"`
	Hash      string  `json:"hash"`
	Content   string  `json:"content"`
	Archived  bool    `json:"archived"`
	SessionID string  `json:"session_id"`
	Metadata  *object `json:"metadata"`
}

type object struct {
	Gen int64 `json:"gen"`
}

func (a *fileArea) write(ctx context.Context, p *plugin, worker int, r *rand.Rand) error {
	key := r.IntN(fileKeys)
	c := &a.cells[worker][key]
	action, params := "memory.file_store", map[string]any{"path": filePath(worker, key)}
	if r.IntN(4) == 0 {
		action = "memory.file_delete"
		c.send(0)
	} else {
		gen := a.gens.next(worker)
		c.send(gen)
		params["content"], params["metadata"] = fileContent(gen), object{Gen: gen}
	}
	if err := p.change(ctx, action, params, nil); err != nil {
		return err
	}
	c.ack()
	return nil
}

func (a *fileArea) check(ctx context.Context, p *plugin) error {
	there, err := filesIn(ctx, p, map[string]any{"prefix": "notes/", "limit": 1000})
	if err != nil {
		return err
	}
	for worker := range workers {
		for key := range fileKeys {
			path := filePath(worker, key)
			if _, err := a.cells[worker][key].see(there[path]); err != nil {
				return fmt.Errorf("file %s: %w", path, err)
			}
			delete(there, path)
		}
	}
	if len(there) > 0 {
		return fmt.Errorf("the files %v were never stored", there)
	}
	return nil
}

// filesIn returns the generations of the files in a list, by path.
func filesIn(ctx context.Context, p *plugin, list map[string]any) (map[string]int64, error) {
	var listed struct {
		Files []fileView `json:"files"`
	}
	if err := p.call(ctx, "memory.file_list", list, &listed); err != nil {
		return nil, err
	}
	there := map[string]int64{}
	for _, f := range listed.Files {
		var got fileView
		if err := p.call(ctx, "memory.file_retrieve", map[string]any{"path": f.Path}, &got); err != nil {
			return nil, err
		}
		gen, err := genOf(got.Content)
		if err == nil && (f.Metadata == nil || f.Metadata.Gen != gen || got.Hash != f.Hash) {
			err = errors.New("its row is that of another content")
		}
		if err != nil {
			return nil, fmt.Errorf("file %s: %w", f.Path, err)
		}
		there[f.Path] = gen
	}
	return there, nil
}

func (a *fileArea) blobs(ctx context.Context, p *plugin) ([]string, error) {
	var listed struct {
		Files []fileView `json:"files"`
	}
	err := p.call(ctx, "memory.file_list", map[string]any{"include_archived": true, "limit": 1000}, &listed)
	var names []string
	for _, f := range listed.Files {
		names = append(names, "files/"+f.Hash[:2]+"/"+f.Hash)
	}
	return names, err
}
