package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// BlobStorage runs the suite of [store.BlobStorage]. The first call of open in a
// test returns an empty storage; each later call reopens the same data.
func BlobStorage(t *testing.T, open func(t *testing.T) store.BlobStorage) {
	t.Helper()
	run(t, func(*testing.T) func(t *testing.T) store.BlobStorage { return open }, map[string]func(t *testing.T, open func(t *testing.T) store.BlobStorage){
		"round trip":      blobRoundTrip,
		"move":            blobMove,
		"list":            blobList,
		"names":           blobNames,
		"unfinished":      blobUnfinished,
		"whole or not":    blobWhole,
		"name under name": blobNested,
		"open readers":    blobReaders,
		"many":            blobMany,
		"canceled":        blobCanceled,
	})
}

func save(t *testing.T, b store.BlobStorage, name, content string) {
	t.Helper()
	info := must(b.Put(t.Context(), name, strings.NewReader(content)))(t)
	if info.Name != name || info.Size != int64(len(content)) || info.Modified.IsZero() {
		t.Errorf("Put(%q) returns %+v", name, info)
	}
}

// contentOf returns a blob's content, "-" for none.
func contentOf(t *testing.T, b store.BlobStorage, name string) string {
	t.Helper()
	r, err := b.Get(t.Context(), name)
	if errors.Is(err, store.ErrNotFound) {
		return "-"
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	content := must(io.ReadAll(r))(t)
	return string(content)
}

func listed(t *testing.T, b store.BlobStorage, prefix string) string {
	t.Helper()
	var names []string
	for info, err := range b.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, info.Name)
	}
	return strings.Join(names, " ")
}

func blobRoundTrip(t *testing.T, open func(t *testing.T) store.BlobStorage) {
	b := open(t)
	_, err := b.Stat(t.Context(), "a/b")
	want(t, "a missing blob is not found", errors.Is(err, store.ErrNotFound), true)
	want(t, "content", contentOf(t, b, "a/b"), "-")
	large := strings.Repeat("\x00\xff large", 100_000)
	save(t, b, "a/b", "old")
	save(t, b, "a/b", large)
	save(t, b, "empty", "")
	b = open(t)
	want(t, "content is kept", contentOf(t, b, "a/b") == large, true)
	want(t, "empty", contentOf(t, b, "empty"), "")
	for range 2 {
		if err := b.Delete(t.Context(), "a/b"); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "removed", contentOf(t, b, "a/b"), "-")
	save(t, b, "a/b", "new")
	want(t, "new", contentOf(t, b, "a/b"), "new")
}

func blobMove(t *testing.T, open func(t *testing.T) store.BlobStorage) {
	b := open(t)
	save(t, b, "from/a", "a")
	save(t, b, "to/there", "old")
	err := b.Move(t.Context(), "from/none", "to/new/x")
	want(t, "a missing blob is not found", errors.Is(err, store.ErrNotFound), true)
	for _, to := range []string{"deep/er/a", "to/there"} {
		from := "from/a"
		if to == "to/there" {
			from = "deep/er/a"
		}
		if err := b.Move(t.Context(), from, to); err != nil {
			t.Fatal(err)
		}
		want(t, "old name", contentOf(t, b, from), "-")
		want(t, "new name", contentOf(t, b, to), "a")
	}
	want(t, "all", listed(t, open(t), ""), "to/there")
}

func blobList(t *testing.T, open func(t *testing.T) store.BlobStorage) {
	b := open(t)
	for _, name := range []string{"a/b/2", "a/b/10", "a/bc", "a-b", "a/.hidden", "b", "a.b/c"} {
		save(t, b, name, name)
	}
	for prefix, names := range map[string]string{
		"": "a-b a.b/c a/.hidden a/b/10 a/b/2 a/bc b", "a/b": "a/b/10 a/b/2 a/bc", "a/b/": "a/b/10 a/b/2", "a/b/2": "a/b/2", "a/b/2/": "", "none/": "", "../": "", "/": "", "a/../b": "", "a.": "a.b/c",
	} {
		want(t, "below "+prefix, listed(t, b, prefix), names)
	}
	for info, err := range b.List(t.Context(), "") {
		if err != nil || info.Size != int64(len(info.Name)) {
			t.Errorf("%+v, %v", info, err)
		}
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range b.List(ctx, "") {
		want(t, "a canceled list ends with the context's error", errors.Is(err, context.Canceled), true)
	}
}

func blobNames(t *testing.T, open func(t *testing.T) store.BlobStorage) {
	b := open(t)
	for _, name := range []string{
		"", ".", "..", "/a", "a/", "a//b", "../a", "a/../b", "a/./b", "a\\b", "a\x00b", "a b", "ä", "a\nb", "C:a", "file:a", "a%2fb", "~/a", "a*", strings.Repeat("a", 256), strings.Repeat("a/", 600) + "a",
	} {
		_, err := b.Put(t.Context(), name, strings.NewReader("x"))
		refused(t, fmt.Sprintf("Put(%q)", name), err)
		_, err = b.Get(t.Context(), name)
		refused(t, fmt.Sprintf("Get(%q)", name), err)
		_, err = b.Stat(t.Context(), name)
		refused(t, fmt.Sprintf("Stat(%q)", name), err)
		refused(t, fmt.Sprintf("Delete(%q)", name), b.Delete(t.Context(), name))
		refused(t, fmt.Sprintf("Move to %q", name), b.Move(t.Context(), "a", name))
		refused(t, fmt.Sprintf("Move from %q", name), b.Move(t.Context(), name, "a"))
	}
	want(t, "nothing was written", listed(t, b, ""), "")
	for _, name := range []string{"a", "A-Z_0.9=x", "a..b", "...", ".a", strings.Repeat("a", 255)} {
		save(t, b, name, "x")
	}
}

func blobUnfinished(t *testing.T, open func(t *testing.T) store.BlobStorage) {
	b := open(t)
	save(t, b, "a", "old")
	broken := errors.New("broken")
	_, err := b.Put(t.Context(), "a", io.MultiReader(strings.NewReader("new"), iotest.ErrReader(broken)))
	want(t, "the reader's error comes out", errors.Is(err, broken), true)
	_, err = b.Put(t.Context(), "a", io.MultiReader(strings.NewReader("new"), iotest.ErrReader(io.ErrUnexpectedEOF)))
	want(t, "a content that ends early is refused", errors.Is(err, io.ErrUnexpectedEOF), true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.Put(ctx, "b", strings.NewReader("b"))
	want(t, "canceled", errors.Is(err, context.Canceled), true)
	want(t, "old content", contentOf(t, b, "a"), "old")
	want(t, "all", listed(t, b, ""), "a")
}

// blobWhole checks that readers of a blob that is being replaced get one of the complete contents.
func blobWhole(t *testing.T, open func(t *testing.T) store.BlobStorage) {
	b := open(t)
	content := func(i int) string { return strings.Repeat(fmt.Sprintf("%02d", i), 5000) }
	save(t, b, "x/shared", content(0))
	var group sync.WaitGroup
	for g := range 32 {
		group.Go(func() {
			own := fmt.Sprintf("own/%d/a", g)
			save(t, b, own, own)
			if g%2 == 0 {
				save(t, b, "x/shared", content(g))
			}
			got := contentOf(t, b, "x/shared")
			if len(got) != 10_000 || got != strings.Repeat(got[:2], 5000) {
				t.Errorf("a reader got %d bytes of several contents", len(got))
			}
			if err := b.Move(t.Context(), own, fmt.Sprintf("moved/%d", g)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	want(t, "moved", len(strings.Fields(listed(t, b, "moved/"))), 32)
	want(t, "own", listed(t, b, "own/"), "")
}

func blobNested(t *testing.T, open func(t *testing.T) store.BlobStorage) {
	b := open(t)
	save(t, b, "a/b/c", "c")
	want(t, "a part of a blob's name is not a blob", contentOf(t, b, "a/b"), "-")
	if err := b.Delete(t.Context(), "a/b"); err != nil {
		t.Error(err)
	}
	want(t, "below a blob", contentOf(t, b, "a/b/c/d"), "-")
	if err := b.Delete(t.Context(), "a/b/c/d"); err != nil {
		t.Error(err)
	}
	want(t, "content", contentOf(t, b, "a/b/c"), "c")
}

// blobReaders reads blobs that are replaced, moved or removed after Get.
func blobReaders(t *testing.T, open func(t *testing.T) store.BlobStorage) {
	b := open(t)
	old := strings.Repeat("old ", 100_000)
	for name, change := range map[string]func(name string) error{
		"removed":  func(name string) error { return b.Delete(t.Context(), name) },
		"moved":    func(name string) error { return b.Move(t.Context(), name, name+"-2") },
		"replaced": func(name string) error { save(t, b, name, "new"); return nil },
	} {
		save(t, b, name, old)
		r := must(b.Get(t.Context(), name))(t)
		if err := change(name); err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil || string(content) != old {
			t.Errorf("a blob that was %s while it was read has %d bytes, %v", name, len(content), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// blobMany lists more blobs than a service returns in one page.
func blobMany(t *testing.T, open func(t *testing.T) store.BlobStorage) {
	b := open(t)
	const goroutines, each = 16, 70
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			for i := range each {
				save(t, b, fmt.Sprintf("many/%04d", i*goroutines+g), "x")
			}
		})
	}
	group.Wait()
	save(t, b, "other", "x")
	names := strings.Fields(listed(t, b, "many/"))
	want(t, "count", len(names), goroutines*each)
	want(t, "sorted", slices.IsSorted(names), true)
	want(t, "last", names[len(names)-1], fmt.Sprintf("many/%04d", goroutines*each-1))
	for info, err := range b.List(t.Context(), "") { // deleting does not disturb a listing
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Delete(t.Context(), info.Name); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "all", listed(t, b, ""), "")
}

func blobCanceled(t *testing.T, open func(t *testing.T) store.BlobStorage) {
	b := open(t)
	save(t, b, "a", "a")
	var r io.ReadCloser
	canceled(t, map[string]func(ctx context.Context) error{
		"Get":    func(ctx context.Context) (err error) { r, err = b.Get(ctx, "a"); return err },
		"Stat":   func(ctx context.Context) error { _, err := b.Stat(ctx, "a"); return err },
		"Move":   func(ctx context.Context) error { return b.Move(ctx, "a", "b") },
		"Delete": func(ctx context.Context) error { return b.Delete(ctx, "none") },
	}, store.ErrNotFound)
	if r != nil {
		want(t, "closing", r.Close(), nil)
	}
	want(t, "the blob is in one place", contentOf(t, b, "a")+contentOf(t, b, "b") != "--", true)
	want(t, "all", len(strings.Fields(listed(t, b, ""))), 1)
}
