package assemble

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// maxIndexed bounds the indexed part of a file.
const maxIndexed = 4 << 20

// text is a file in the index.
type text struct {
	*file.File
	id int64 // in the index; 0 for a file that is not text, or archived
}

// texts are the text files and their index. The index is compared with the files at the first question. Each further
// question adds the changes since the previous one. The number of a document in the index is a hash of path and
// content, so that the index can be compared without reading contents.
type texts struct {
	o Options

	mu     sync.Mutex // guards the fields below
	index  *fulltext.Index
	seq    int64 // the last change of the index
	after  seen  // the changes that it includes
	byName map[name]*text
	byID   map[int64]*text
	closed bool
}

func newTexts(o Options) *texts { return &texts{o: o} }

func (t *texts) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	return t.drop()
}

func (t *texts) drop() error {
	index := t.index
	t.index, t.byName, t.byID, t.after = nil, nil, nil, seen{}
	if index == nil {
		return nil
	}
	if err := index.Close(); err != nil {
		return fmt.Errorf("close the text index of the files: %w", err)
	}
	return nil
}

// use updates the index and runs fn. A corrupt index is rebuilt, and fn runs
// again.
func (t *texts) use(ctx context.Context, fn func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for try := 0; ; try++ {
		err := t.refresh(ctx)
		if err == nil {
			err = fn()
		}
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case t.index == nil || !errors.Is(err, fulltext.ErrCorrupt) && !errors.Is(err, fulltext.ErrClosed):
			return err
		case try > 0:
			return errors.Join(err, t.drop())
		}
		t.o.Logger.Warn("the text index of the files is rebuilt", "reason", err.Error())
		if err := t.index.Reset(); err != nil && !errors.Is(err, fulltext.ErrClosed) {
			return errors.Join(err, t.drop())
		}
		if err := t.drop(); err != nil {
			return err
		}
	}
}

// find returns a text file of the index as of the last use.
func (t *texts) find(n name) (text, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found := t.byName[n]; found != nil && found.id != 0 {
		return *found, true
	}
	return text{}, false
}

// any reports whether fn returns true for a text file of the index as of its last use.
func (t *texts) any(fn func(*text) bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.byID {
		if fn(one) {
			return true
		}
	}
	return false
}

// seen has the numbers of the last seen changes of files and shared files.
type seen struct{ own, shared int64 }

// changes returns the files that were changed since; see [file.Files.Changes].
func (t *texts) changes(ctx context.Context, since seen) (changed []file.File, now seen, total int, err error) {
	changed, now.own, total, err = t.o.Files.Changes(ctx, since.own)
	if err != nil {
		return nil, since, 0, err
	}
	shared, last, n, err := t.o.Files.SharedChanges(ctx, since.shared)
	now.shared = last
	return append(changed, shared...), now, total + n, err
}

func (t *texts) refresh(ctx context.Context) error {
	if t.closed {
		return tea.Errorf(tea.ConnectionError, "the memory is closed")
	}
	if t.index == nil {
		if err := t.open(ctx); err != nil {
			return err
		}
	}
	changed, last, total, err := t.changes(ctx, t.after)
	if err != nil {
		return err
	}
	if err := t.add(ctx, changed); err != nil {
		return err
	}
	if t.after = last; len(t.byName) == total {
		return nil
	}
	return t.removeOthers(ctx)
}

// open opens the index and compares it with the files.
func (t *texts) open(ctx context.Context) error {
	identity, err := t.o.Identity(ctx)
	if err != nil {
		return err
	}
	dir, err := t.o.IndexDir()
	if err != nil {
		return err
	}
	index, err := fulltext.Open(filepath.Join(dir, identity), fulltext.Options{Language: t.o.Language, ReadOnly: t.o.ReadOnly})
	if err != nil {
		return tea.Errorf(tea.ValidationError, "open the text index of the files: %w", err)
	}
	if lost := index.Lost(); lost != nil && !errors.Is(lost, fs.ErrNotExist) {
		t.o.Logger.Warn("the text index of the files is rebuilt", "reason", lost.Error())
	}
	if why := index.Outdated(); why != nil {
		t.o.Logger.Warn("the text index of the files is rewritten in the background", "reason", why.Error())
	}
	t.index, t.seq = index, index.Watermark()
	t.byName, t.byID, t.after = map[name]*text{}, map[int64]*text{}, seen{}
	if err := t.compare(ctx); err != nil {
		return errors.Join(err, t.drop())
	}
	return nil
}

// compare removes documents without a file from the index, and adds missing
// files.
func (t *texts) compare(ctx context.Context) error {
	ids, err := t.index.IDs()
	if err != nil {
		return err
	}
	had := make(map[int64]bool, len(ids))
	for _, id := range ids {
		had[id] = true
	}
	all, last, _, err := t.changes(ctx, seen{})
	if err != nil {
		return err
	}
	var missing []file.File
	for _, f := range all {
		if id := idOf(f); had[id] || id == 0 {
			delete(had, id)
			t.know(&text{File: &f, id: id})
			continue
		}
		missing = append(missing, f)
	}
	for _, id := range ids {
		if !had[id] {
			continue
		}
		if err := t.delete(id); err != nil {
			return err
		}
	}
	t.after = last
	return t.add(ctx, missing)
}

// idOf returns the number of a file with its content in the index, 0 if the file
// is not indexed.
func idOf(f file.File) int64 {
	if !f.Text || f.Archived() {
		return 0
	}
	named := f.Path + "\x00" + f.Hash
	if f.Shared {
		named = f.Source() + "\x00" + named
	}
	sum := sha256.Sum256([]byte(named))
	return int64(binary.LittleEndian.Uint64(sum[:])>>1) | 1
}

func nameOfFile(f *file.File) name { return name{Kind(f.Source()), f.Path} }

func (t *texts) know(one *text) {
	t.byName[nameOfFile(one.File)] = one
	if one.id != 0 {
		t.byID[one.id] = one
	}
}

// add indexes files, replacing earlier ones with the same paths.
func (t *texts) add(ctx context.Context, files []file.File) error {
	// A fixed order makes the index deterministic.
	sort.Slice(files, func(i, j int) bool {
		a, b := files[i], files[j]
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(b.Source(), a.Source())) < 0
	})
	for _, f := range files {
		id := idOf(f)
		if err := t.forget(nameOfFile(&f), id); err != nil {
			return err
		}
		if id != 0 && t.byID[id] == nil {
			content, err := t.content(ctx, f)
			if err != nil {
				return err
			}
			err = t.index.Put(fulltext.Document{ID: id, Seq: t.next(), Fields: []fulltext.Field{{Name: "name", Text: nameOf(f.Path)}, {Name: "content", Text: content}}})
			if err := t.taken(err); err != nil {
				return err
			}
		}
		t.know(&text{File: &f, id: id})
	}
	return nil
}

// taken ignores the error of a change that the index holds in memory but could
// not write yet.
func (t *texts) taken(err error) error {
	if err == nil || errors.Is(err, fulltext.ErrSeq) || errors.Is(err, fulltext.ErrClosed) || errors.Is(err, fulltext.ErrCorrupt) {
		return err
	}
	t.o.Logger.Warn("the text index of the files cannot be written yet", "error", err.Error())
	return nil
}

// content returns the text of a file for the index, "" if the file is damaged.
func (t *texts) content(ctx context.Context, f file.File) (string, error) {
	content, err := readText(ctx, t.o.Files, f, maxIndexed)
	if err == nil || ctx.Err() != nil {
		return content, err
	}
	if !errors.Is(err, store.ErrNotFound) { // otherwise it has just changed, and the next question adds it
		t.o.Logger.Error("a file cannot be read and is not found by its content", "path", f.Path, "error", err.Error())
	}
	return "", nil
}

// readText reads at most limit bytes of a text file, in whole characters.
func readText(ctx context.Context, files *file.Files, f file.File, limit int64) (string, error) {
	r, err := files.Content(ctx, f)
	if err != nil {
		return "", err
	}
	defer r.Close()
	var b strings.Builder
	b.Grow(int(min(limit, f.Size)))
	if limit < f.Size {
		_, err = io.Copy(&b, io.LimitReader(r, limit))
	} else {
		_, err = io.Copy(&b, r) // to the end, where the hash is checked
	}
	return strings.ToValidUTF8(b.String(), ""), err // the last character may be cut
}

// nameOf returns the last part of a path or key, without its extension.
func nameOf(key string) string {
	base := path.Base(key)
	if ending := path.Ext(base); len(ending) < len(base) {
		base = strings.TrimSuffix(base, ending)
	}
	return base
}

// forget removes the file with a name, unless its number is except.
func (t *texts) forget(n name, except int64) error {
	old := t.byName[n]
	if old == nil || old.id == except {
		return nil
	}
	delete(t.byName, n)
	if old.id == 0 {
		return nil
	}
	delete(t.byID, old.id)
	return t.delete(old.id)
}

// removeOthers removes files that no longer exist.
func (t *texts) removeOthers(ctx context.Context) error {
	all, last, _, err := t.changes(ctx, seen{})
	if err != nil {
		return err
	}
	there := make(map[name]bool, len(all))
	for _, f := range all {
		there[nameOfFile(&f)] = true
	}
	for n := range t.byName {
		if there[n] {
			continue
		}
		if err := t.forget(n, -1); err != nil {
			return err
		}
	}
	t.after = last
	return t.add(ctx, all)
}

func (t *texts) delete(id int64) error { return t.taken(t.index.Delete(id, t.next())) }

func (t *texts) next() int64 {
	t.seq++
	return t.seq
}
