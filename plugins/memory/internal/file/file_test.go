package file_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

type device struct {
	*devicetest.Device
	*file.Files
}

func with(d *devicetest.Device) *device {
	return &device{d, file.New(file.Options{Documents: d.Documents, Blobs: d.Faults.Blobs(d.Folder), Clock: d.Clock})}
}

func each(t *testing.T, test func(t *testing.T, d *device)) {
	t.Helper()
	devicetest.EachDevice(t, func(t *testing.T, d *devicetest.Device) {
		t.Helper()
		test(t, with(d))
	})
}

func (d *device) put(t *testing.T, path, content string) file.Stored {
	t.Helper()
	stored, err := d.Store(t.Context(), file.Draft{Path: path, Content: []byte(content)})
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// content is the content of a file, "-" for none.
func (d *device) content(t *testing.T, path string) string {
	t.Helper()
	_, data, err := d.Read(t.Context(), path)
	if errors.Is(err, store.ErrNotFound) {
		return "-"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (d *device) paths(t *testing.T, q file.Query) string {
	t.Helper()
	var paths []string
	for f, err := range d.All(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, f.Path)
	}
	return strings.Join(paths, " ")
}

// blobs counts the files on the disk below the blob root.
func (d *device) blobs(t *testing.T) (n int) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(d.Dir, "blobs"), func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func hashOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func TestStoreReadDelete(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		stored, err := d.Store(t.Context(), file.Draft{Path: "notes/ä.md", Content: []byte("one\ntwo\nthrée"), Metadata: json.RawMessage(`{"b": 1, "a": [2]}`)})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "stored", stored, file.Stored{Created: true, File: file.File{
			Path: "notes/ä.md", Hash: hashOf("one\ntwo\nthrée"), Size: 14, Type: "text/markdown", Text: true, Lines: 3, Tokens: 4,
			Metadata: json.RawMessage(`{"a":[2],"b":1}`), CreatedAt: clock.Instant{Time: storetest.Start}, UpdatedAt: clock.Instant{Time: storetest.Start},
		}})
		d.Pass(1e9)
		again, err := d.Store(t.Context(), file.Draft{Path: "notes/ä.md", Content: []byte("one\ntwo\nthrée"), Metadata: json.RawMessage(`{"a":[2],"b":1}`)})
		if err != nil || again.Created || !again.Unchanged {
			t.Errorf("the same again: %+v, %v", again, err)
		}
		changed := d.put(t, "notes/ä.md", "x")
		want(t, "created, changed", []bool{changed.Created, changed.Unchanged}, []bool{false, false})
		want(t, "times", []string{changed.CreatedAt.String(), changed.UpdatedAt.String()}, []string{storetest.Start.String(), storetest.Start.Add(1e9).String()})
		d = with(d.Reopen(t))
		want(t, "content", d.content(t, "notes/ä.md"), "x")
		deleted, err := d.Delete(t.Context(), "notes/ä.md")
		want(t, "deleted", deleted && err == nil, true)
		deleted, err = d.Delete(t.Context(), "notes/ä.md")
		want(t, "deleted again", deleted || err != nil, false)
		want(t, "content", d.content(t, "notes/ä.md"), "-")
	})
}

func TestWhatAFileIs(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		for _, test := range []struct {
			path, content, mediaType string
			text                     bool
			lines                    int
		}{
			{"empty", "", "text/plain", true, 0},
			{"a.JSON", "{}", "application/json", true, 1},
			{"plain", "hello\n", "text/plain", true, 1},
			{"noext", "\x89PNG\r\n\x1a\n\x00", "image/png", false, 0},
			{"nul.txt", "a\x00b", "text/plain", false, 0},
			{"latin.md", "caf\xe9", "text/markdown", false, 0},
			{"crlf.csv", "a\r\nb", "text/csv", true, 2},
			{"page", "<!DOCTYPE html><html>", "text/html", true, 1},
		} {
			f := d.put(t, test.path, test.content).File
			want(t, test.path, fmt.Sprint(f.Type, f.Text, f.Lines, f.Size), fmt.Sprint(test.mediaType, test.text, test.lines, len(test.content)))
			want(t, "content of "+test.path, d.content(t, test.path), test.content)
		}
	})
}

func TestTheSameContentIsKeptOnceAndSweptAtTheEnd(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		for i := range 5 {
			d.put(t, fmt.Sprintf("f%d", i), "same")
		}
		d.put(t, "other", "other")
		d.put(t, "other", "new")
		want(t, "blobs", d.blobs(t), 3)
		for i := range 4 {
			if _, err := d.Delete(t.Context(), fmt.Sprintf("f%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		d = with(d.Reopen(t))
		if err := d.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(t, "blobs after the sweep", d.blobs(t), 2)
		want(t, "content", d.content(t, "f4")+d.content(t, "other"), "samenew")
	})
}

// Whatever step of storing fails, and with it all that comes after: the next
// process finds the old file or the new one, and a sweep leaves nothing behind.
func TestACrashWhileStoringLeavesTheOldFileOrTheNewOne(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.put(t, "f", "old")
		sawOld, sawNew := false, false
		for step := 0; ; step++ {
			before := d.content(t, "f")
			next := fmt.Sprint("new", step)
			d.Faults.After(step)
			_, err := d.Store(t.Context(), file.Draft{Path: "f", Content: []byte(next)})
			failed := d.Faults.Heal()
			want(t, "the failure is told", err != nil, failed)
			d = with(d.Reopen(t))
			got := d.content(t, "f")
			switch {
			case got == next:
				sawNew = true
			case got == before && failed:
				sawOld = true
			default:
				t.Fatalf("step %d: %q, neither %q nor %q", step, got, before, next)
			}
			if err := d.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			want(t, "blobs", d.blobs(t), 1)
			want(t, "content after the sweep", d.content(t, "f"), got)
			if !failed {
				break
			}
		}
		want(t, "both were seen", sawOld && sawNew, true)
	})
}

func TestADamagedContentIsAnError(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		hash := d.put(t, "f", "content").Hash
		blob := filepath.Join(d.Dir, "blobs", "files", hash[:2], hash)
		if err := os.WriteFile(blob, []byte("CONTENT"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := d.Read(t.Context(), "f")
		if err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("reading a damaged file gives %v", err)
		}
		if err := os.Remove(blob); err != nil {
			t.Fatal(err)
		}
		_, _, err = d.Read(t.Context(), "f")
		if err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("reading a file whose content is gone gives %v", err)
		}
		want(t, "stored again", d.put(t, "g", "content").Created && d.content(t, "f") == "content", true)
	})
}

func TestQueries(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		for _, path := range []string{"a.md", "notes/b.md", "notes/deep/c.md", "notes/deep/d.txt", "notesx", "archive/x", "archive/sessions/s/f", "archive/sessions/t/g", "sessions/u/h.md", "日本/語.md", "z"} {
			metadata := fmt.Sprintf(`{"len": %d, "tags": ["t", %q]}`, len(path), path)
			if _, err := d.Store(t.Context(), file.Draft{Path: path, Content: []byte(path), Metadata: json.RawMessage(metadata)}); err != nil {
				t.Fatal(err)
			}
		}
		for _, test := range []struct {
			pattern string
			query   file.Query
			want    string
		}{
			{"", file.Query{}, "a.md archive/x notes/b.md notes/deep/c.md notes/deep/d.txt notesx sessions/u/h.md z 日本/語.md"},
			{"", file.Query{Archived: true, Prefix: "a"}, "a.md archive/sessions/s/f archive/sessions/t/g archive/x"},
			{"", file.Query{Prefix: "archive/sessions/t"}, "archive/sessions/t/g"},
			{"", file.Query{Prefix: "archive/"}, "archive/x"},
			{"archive/sessions/*/f", file.Query{}, "archive/sessions/s/f"},
			{"", file.Query{Prefix: "notes/"}, "notes/b.md notes/deep/c.md notes/deep/d.txt"},
			{"", file.Query{Prefix: "notes/", After: "notes/deep/c.md"}, "notes/deep/d.txt"},
			{"*.md", file.Query{}, "a.md notes/b.md notes/deep/c.md sessions/u/h.md 日本/語.md"},
			{"*.md", file.Query{Prefix: "notes/"}, "notes/b.md notes/deep/c.md"},
			{"notes/*.md", file.Query{}, "notes/b.md"},
			{"notes/**/*.md", file.Query{}, "notes/b.md notes/deep/c.md"},
			{"notes/", file.Query{}, "notes/b.md notes/deep/c.md notes/deep/d.txt"},
			{"**/{c,d}.*", file.Query{}, "notes/deep/c.md notes/deep/d.txt"},
			{"?", file.Query{}, "archive/x z"},
			{"日本/?.md", file.Query{}, "日本/語.md"},
			{"[!x]", file.Query{}, "z"},
			{"/?", file.Query{}, ""},
			{"{?,*/?}", file.Query{}, "archive/x z"},
			{"", file.Query{Within: "notes/", Prefix: "deep/", After: "deep/c.md"}, "notes/deep/d.txt"},
			{"deep/*.md", file.Query{Within: "notes/"}, "notes/deep/c.md"},
			{"", file.Query{Metadata: storetest.Filter(t, map[string]any{"len": int64(1)})}, "z"},
			{"", file.Query{Metadata: storetest.Filter(t, map[string]any{"tags": "notesx"})}, "notesx"},
		} {
			if test.pattern != "" {
				var err error
				if test.query.Pattern, err = file.Compile(test.pattern); err != nil {
					t.Fatal(err)
				}
			}
			want(t, fmt.Sprintf("%q %+v", test.pattern, test.query), d.paths(t, test.query), test.want)
		}
	})
}

func TestPagesStayWhenFilesComeAndGo(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		for i := range 20 {
			d.put(t, fmt.Sprintf("f%02d", i), "x")
		}
		var seen []string
		after := ""
		for page := 0; ; page++ {
			files, next, err := d.List(t.Context(), file.Query{Prefix: "f", After: after}, 6)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				seen = append(seen, f.Path)
			}
			if next == "" {
				break
			}
			d.put(t, fmt.Sprintf("f00-%d", page), "new, before the page")
			if _, err := d.Delete(t.Context(), seen[0]); err != nil {
				t.Fatal(err)
			}
			after = next
		}
		want(t, "seen", strings.Join(seen, " "), "f00 f01 f02 f03 f04 f05 f06 f07 f08 f09 f10 f11 f12 f13 f14 f15 f16 f17 f18 f19")
	})
}

// Readers, writers and a sweep together: a file that is there can be read, and
// its content is the one that its document names.
func TestManyTogether(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		const goroutines, rounds = 32, 4
		d.put(t, "shared", "start")
		var group sync.WaitGroup
		for g := range goroutines {
			group.Go(func() {
				own := fmt.Sprintf("own/%02d", g)
				for i := range rounds {
					content := fmt.Sprintf("%d %d", g%4, i) // of several at the same time
					if _, err := d.Store(t.Context(), file.Draft{Path: own, Content: []byte(content)}); err != nil {
						t.Error(err)
					}
					if _, err := d.Store(t.Context(), file.Draft{Path: "shared", Content: []byte(content)}); err != nil {
						t.Error(err)
					}
					f, data, err := d.Read(t.Context(), "shared")
					if err != nil || f.Size != int64(len(data)) {
						t.Errorf("shared: %+v, %q, %v", f, data, err)
					}
					if _, data, err := d.Read(t.Context(), own); err != nil || string(data) != content {
						t.Errorf("%s: %q, %v", own, data, err)
					}
					if g == 0 {
						if err := d.Sweep(t.Context()); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		group.Wait()
		want(t, "files", len(strings.Fields(d.paths(t, file.Query{}))), goroutines+1)
		if err := d.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		d = with(d.Reopen(t))
		for f, err := range d.All(t.Context(), file.Query{}) {
			if _, _, readErr := d.Read(t.Context(), f.Path); err != nil || readErr != nil {
				t.Errorf("%s: %v, %v", f.Path, err, readErr)
			}
		}
	})
}

// swept are blobs of which another device removes one before it is read.
type swept struct {
	store.BlobStorage
	before func()
}

func (s *swept) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if s.before != nil {
		before := s.before
		s.before = nil
		before()
	}
	return s.BlobStorage.Get(ctx, name)
}

// Another device replaces a file and removes the old content while this one reads
// it.
func TestTheContentIsReplacedWhileItIsRead(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.put(t, "a", "old")
		blobs := &swept{BlobStorage: d.Folder}
		reader := &device{d.Device, file.New(file.Options{Documents: d.Documents, Blobs: blobs, Clock: d.Clock})}
		blobs.before = func() {
			d.put(t, "a", "new")
			if err := d.Sweep(t.Context()); err != nil {
				t.Error(err)
			}
		}
		want(t, "content", reader.content(t, "a"), "new")
	})
}
