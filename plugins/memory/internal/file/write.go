package file

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// Draft is a file to be stored.
type Draft struct {
	Path    string
	Content []byte
	// Type is the media type; "" = from the name or the content.
	Type string
	// Metadata is a JSON object, or nil for none.
	Metadata  json.RawMessage
	SessionID string
}

// Stored says what became of a Draft.
type Stored struct {
	File
	// Created is false where there was a file under the path.
	Created bool
	// Unchanged says that content, type and metadata were there: nothing was
	// written.
	Unchanged bool
}

// Store writes a file, replacing what is under its path. It is durable on
// return.
func (f *Files) Store(ctx context.Context, d Draft) (Stored, error) {
	file, err := f.describe(d)
	if err != nil {
		return Stored{}, err
	}
	defer f.lock(d.Path)()
	before, err := f.o.Documents.Get(ctx, Kind, d.Path)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return Stored{}, err
	}
	change := store.Change{Kind: Kind, ID: d.Path, If: store.New}
	created := err != nil
	if !created {
		have, err := decode(before)
		if err != nil {
			return Stored{}, err
		}
		if have.same(file) {
			return Stored{File: have, Unchanged: true}, nil
		}
		file.CreatedAt, change.If = have.CreatedAt, before.Version
	}
	if change.Body, err = file.encode(); err != nil {
		return Stored{}, err
	}
	defer f.content.Hold()()
	if err := f.content.Save(ctx, file.Hash, d.Content); err != nil {
		return Stored{}, err
	}
	return Stored{File: file, Created: created}, f.o.Documents.Apply(ctx, change)
}

// describe is the file that a draft makes.
func (f *Files) describe(d Draft) (File, error) {
	now := f.o.Clock.Now()
	file := File{
		Path: d.Path, Hash: content.Hash(d.Content), Size: int64(len(d.Content)), Type: d.Type, Text: isText(d.Content), SessionID: d.SessionID,
		CreatedAt: now, UpdatedAt: now,
	}
	if file.Type == "" {
		file.Type = typeOf(d.Path, d.Content)
	}
	if file.Text {
		file.Lines, file.Tokens = lines(d.Content), f.o.Tokens(string(d.Content))
	}
	if d.Metadata == nil {
		return file, nil
	}
	v, err := value.Decode(d.Metadata)
	if err != nil {
		return File{}, tea.Errorf(tea.ValidationError, "the metadata of %s: %w", d.Path, err)
	}
	if _, ok := v.(map[string]any); !ok {
		return File{}, tea.Errorf(tea.ValidationError, "the metadata of %s is no object", d.Path)
	}
	file.Metadata, err = value.Encode(v)
	return file, err
}

// same says that storing the other one would change nothing.
func (f File) same(other File) bool {
	return f.Hash == other.Hash && f.Type == other.Type && bytes.Equal(f.Metadata, other.Metadata) && f.SessionID == other.SessionID && f.Tokens == other.Tokens
}

func isText(data []byte) bool { return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 }

// lines counts them; the last one needs no end.
func lines(data []byte) int {
	n := bytes.Count(data, []byte{'\n'})
	if len(data) > 0 && data[len(data)-1] != '\n' {
		n++
	}
	return n
}

// Delete removes a file and says whether there was one.
func (f *Files) Delete(ctx context.Context, path string) (bool, error) {
	defer f.lock(path)()
	d, err := f.o.Documents.Get(ctx, Kind, path)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	err = f.o.Documents.Apply(ctx, store.Change{Kind: Kind, ID: path, If: d.Version})
	return err == nil, err
}

// Moves are the changes that give all files below one prefix another one. The
// caller applies them, with changes of its own, and lets nobody write there
// meanwhile.
func (f *Files) Moves(ctx context.Context, from, to string) (changes []store.Change, err error) {
	after := ""
	for {
		page, err := f.o.Documents.Query(ctx, below(from, after, pageSize))
		if err != nil {
			return nil, err
		}
		for _, d := range page {
			after = d.ID
			changes = append(changes,
				store.Change{Kind: Kind, ID: to + strings.TrimPrefix(d.ID, from), Body: d.Body, If: store.New},
				store.Change{Kind: Kind, ID: d.ID, If: d.Version})
		}
		if len(page) < pageSize {
			return changes, nil
		}
	}
}

// Sweep removes the contents that no file has any more.
func (f *Files) Sweep(ctx context.Context) error {
	return f.content.Sweep(ctx, func(ctx context.Context, hashes []string) (map[string]bool, error) {
		wanted := make([]any, len(hashes))
		for i, hash := range hashes {
			wanted[i] = hash
		}
		named := map[string]bool{}
		after := ""
		for {
			page, err := f.o.Documents.Query(ctx, store.DocumentQuery{
				Kind: Kind, OrderBy: "id", Limit: pageSize,
				Where: []store.Condition{{Field: "id", Op: store.Gt, Value: after}, {Field: "hash", Op: store.In, Value: wanted}},
			})
			if err != nil {
				return nil, err
			}
			for _, d := range page {
				file, err := decode(d)
				if err != nil {
					return nil, err
				}
				after, named[file.Hash] = d.ID, true
			}
			if len(page) < pageSize {
				return named, nil
			}
		}
	})
}
