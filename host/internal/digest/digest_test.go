package digest

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A change is noticed although size and modification time are the same.
func TestCacheNoticesEveryChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, cache := filepath.Join(dir, "file"), Cache{Dir: filepath.Join(dir, "cache")}
	old := time.Unix(1e9, 0)
	for _, content := range []string{"one", "two", "one", "six"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, err := cache.Of(path)
			if err != nil || got != Of([]byte(content)) {
				t.Fatalf("the digest of %q is %s, %v", content, got, err)
			}
		}
	}
	if entries, err := os.ReadDir(cache.Dir); err == nil && len(entries) > 0 {
		t.Errorf("%d entries; want none of a file that has changed just now", len(entries))
	}
}

// A file that has not changed for a while is not read again.
func TestCacheRemembers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cache := Cache{Dir: filepath.Join(dir, "cache")}
	path, err := filepath.EvalSymlinks("/bin/sh") // has not changed just now
	if err != nil {
		path = self
	}
	want, err := File(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, err := cache.Of(path); err != nil || got != want {
			t.Fatalf("the digest is %s, %v; want %s", got, err, want)
		}
	}
	entries, err := os.ReadDir(cache.Dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("entries %v, %v; want one", entries, err)
	}
	entry := filepath.Join(cache.Dir, entries[0].Name())
	forged, err := json.Marshal(remembered{Path: path, State: State(path), SHA256: "forged"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(entry, forged, 0o600), os.Chmod(cache.Dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	if got, err := cache.Of(path); err != nil || got != want {
		t.Errorf("with a cache that everybody can write to: %s, %v; want %s", got, err, want)
	}
	if err := errors.Join(os.Chmod(cache.Dir, 0o700), os.WriteFile(entry, []byte("damaged"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if got, err := cache.Of(path); err != nil || got != want {
		t.Errorf("with a damaged entry: %s, %v; want %s", got, err, want)
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	type doc struct {
		A int `json:"a"`
	}
	data, err := Canonical(doc{1})
	if err != nil {
		t.Fatal(err)
	}
	var d doc
	if err := ParseCanonical(data, &d); err != nil || d.A != 1 {
		t.Errorf("%v, %v", d, err)
	}
	for _, other := range []string{"", "{}", `{"a":1}`, string(data) + "\n", string(data[:len(data)-1]), "{\n  \"a\": 1,\n  \"b\": 2\n}\n", "{\n  \"A\": 1\n}\n"} {
		if err := ParseCanonical([]byte(other), &d); err == nil {
			t.Errorf("%q was accepted", other)
		}
	}
}
