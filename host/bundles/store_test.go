package bundles

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
)

const platform = "linux/amd64"

// packOpen returns an open bundle of a plugin that is a script with another file.
func packOpen(t *testing.T, name, version string) *Bundle {
	t.Helper()
	return packSized(t, name, version, 1)
}

func packSized(t *testing.T, name, version string, size int) *Bundle {
	t.Helper()
	dir := t.TempDir()
	text := strings.Repeat(fmt.Sprintln("# version", version), size)
	write(t, filepath.Join(dir, "lib", "impl.sh"), text, 0o644)
	var out bytes.Buffer
	_, err := Pack(&out, Contents{
		Manifest: tea.Manifest{
			Name: name, Version: version, Protocol: tea.ProtocolVersion, Files: []string{"lib/impl.sh"},
			Actions: []tea.ActionInfo{{Name: name + ".run"}},
		},
		Binaries: []string{write(t, filepath.Join(dir, "run"), "#!/bin/sh\n"+text, 0o755)},
		License:  write(t, filepath.Join(dir, "COPYING"), "MIT\n", 0o644),
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(write(t, filepath.Join(dir, "b.teab"), out.String(), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// newStore returns a store in a directory that the test can remove.
func newStore(t *testing.T) (*Store, string) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "tea")
	t.Cleanup(func() {
		_ = filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				err = os.Chmod(path, 0o700)
			}
			return err
		})
	})
	return storeAt(data), data
}

func install(t *testing.T, s *Store, b *Bundle) *Entry {
	t.Helper()
	e, _, err := s.Install(b, platform, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// versions describes what is installed: "text: 1.0.0 [2.0.0]".
func versions(t *testing.T, s *Store) []string {
	t.Helper()
	all, err := s.List()
	if err != nil {
		t.Error(err)
	}
	var out []string
	for _, in := range all {
		words := []string{in.Name + ":"}
		for i, e := range in.Versions {
			if i == in.Active {
				words = append(words, "["+e.Version+"]")
			} else {
				words = append(words, e.Version)
			}
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}

func wantVersions(t *testing.T, s *Store, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, versions(t, s)); diff != "" {
		t.Errorf("installed (-want +got):\n%s", diff)
	}
}

// files lists all files below a directory.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return all
}

func TestInstalledFiles(t *testing.T) {
	t.Parallel()
	s, data := newStore(t)
	e := install(t, s, packOpen(t, "text", "1.0.0"))
	want := map[string]fs.FileMode{
		"bundle.json": 0o444, "documents/LICENSE": 0o444, "lib/impl.sh": 0o444, "record.json": 0o444,
		"tea-plugin-text": 0o555, "tea-plugin-text.json": 0o444,
	}
	got := map[string]fs.FileMode{}
	entry := filepath.Join(data, "store", e.ID)
	for _, file := range files(t, entry) {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(entry, file)
		if err != nil {
			t.Fatal(err)
		}
		got[rel] = info.Mode()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	target, err := os.Readlink(filepath.Join(data, "plugins", "tea-plugin-text"))
	if err != nil || target != filepath.Join("..", "store", e.ID, "tea-plugin-text") {
		t.Errorf("the link leads to %s, %v", target, err)
	}
	if info, err := os.Stat(entry); err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("the entry has the mode %v, %v", info.Mode(), err)
	}
}

func TestRollbackReturnsToTheVersionBefore(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	one, two, three := packOpen(t, "text", "1.0.0"), packOpen(t, "text", "2.0.0"), packOpen(t, "text", "3.0.0")
	install(t, s, one)
	install(t, s, two)
	wantVersions(t, s, "text: 1.0.0 [2.0.0]")
	from, to, err := s.Rollback("text")
	if err != nil || from.Version != "2.0.0" || to.Version != "1.0.0" {
		t.Fatalf("from %v to %v, %v", from, to, err)
	}
	wantVersions(t, s, "text: [1.0.0] 2.0.0")
	if _, _, err := s.Rollback("text"); err == nil {
		t.Error("rolled back before the first version")
	}
	install(t, s, three) // the version before is the one that was active
	wantVersions(t, s, "text: 1.0.0 [3.0.0]")
	install(t, s, three)
	wantVersions(t, s, "text: 1.0.0 [3.0.0]")
	install(t, s, one)
	wantVersions(t, s, "text: 3.0.0 [1.0.0]")
	var missing *NotInstalledError
	if _, _, err := s.Rollback("other"); !errors.As(err, &missing) {
		t.Errorf("got %v, want a NotInstalledError", err)
	}
}

func TestGC(t *testing.T) {
	t.Parallel()
	s, data := newStore(t)
	for _, v := range []string{"1.0.0", "2.0.0", "3.0.0"} {
		install(t, s, packOpen(t, "text", v))
	}
	install(t, s, packOpen(t, "mail", "1.0.0"))
	swept, err := s.GC(1)
	if err != nil || len(swept.Entries) != 1 || swept.Entries[0].Version != "1.0.0" || swept.Bytes == 0 {
		t.Errorf("swept %v, %v; want version 1.0.0", swept, err)
	}
	wantVersions(t, s, "mail: [1.0.0]", "text: 2.0.0 [3.0.0]")
	if _, _, err := s.Rollback("text"); err != nil {
		t.Error(err)
	}
	if _, err := s.GC(0); err != nil { // the version that a rollback has left goes
		t.Error(err)
	}
	wantVersions(t, s, "mail: [1.0.0]", "text: [2.0.0]")
	if err := s.Remove("text"); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove("mail"); err != nil {
		t.Fatal(err)
	}
	if left := files(t, data); len(left) != 1 || filepath.Base(left[0]) != ".lock" {
		t.Errorf("files are left: %q", left)
	}
}

// Every bit of the store matters: records, history, files and links.
func TestEveryFlippedByteOfAnInstalledPluginIsNoticed(t *testing.T) {
	t.Parallel()
	s, data := newStore(t)
	install(t, s, packOpen(t, "text", "1.0.0"))
	install(t, s, packOpen(t, "text", "2.0.0"))
	if faults := s.Verify(); len(faults) > 0 {
		t.Fatalf("a new store has faults: %v", faults)
	}
	flips := 0
	for _, file := range files(t, data) {
		if filepath.Base(file) == ".lock" {
			continue
		}
		info, err := os.Lstat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			flipLink(t, s, file)
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, 0o644); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(content); i += 1 + len(content)/200 {
			flipped := bytes.Clone(content)
			flipped[i] ^= 1 << (i % 8)
			if err := os.WriteFile(file, flipped, 0o644); err != nil {
				t.Fatal(err)
			}
			if faults := s.Verify(); len(faults) == 0 {
				t.Errorf("byte %d of %s is not covered", i, file)
			}
			flips++
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if flips < 500 {
		t.Errorf("only %d flips", flips)
	}
	if faults := s.Verify(); len(faults) > 0 {
		t.Errorf("the restored store has faults: %v", faults)
	}
}

func flipLink(t *testing.T, s *Store, link string) {
	t.Helper()
	target, err := os.Readlink(link)
	if err != nil {
		t.Fatal(err)
	}
	set := func(target string) {
		t.Helper()
		if err := errors.Join(os.Remove(link), os.Symlink(target, link)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range target {
		flipped := []byte(target)
		if flipped[i] ^= 1; flipped[i] == '/' || flipped[i] == 0 {
			continue
		}
		set(string(flipped))
		if faults := s.Verify(); len(faults) == 0 {
			t.Errorf("byte %d of the link %s is not covered: %s", i, target, flipped)
		}
	}
	set(target)
}

// A damaged version is replaced by installing it again, and does not prevent
// the installation of another one.
func TestDamagedEntriesAreReplaced(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{"tea-plugin-text", "record.json", "history"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			s, data := newStore(t)
			b := packOpen(t, "text", "1.0.0")
			e := install(t, s, b)
			path := e.Path(victim)
			if victim == "history" {
				path = filepath.Join(data, "store", "history", "text.json")
			}
			if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
				t.Fatal(err)
			}
			if faults := s.Verify(); len(faults) == 0 {
				t.Fatal("the damage is not noticed")
			}
			install(t, s, b)
			if faults := s.Verify(); len(faults) > 0 {
				t.Errorf("damaged after the same version was installed: %v", faults)
			}
			install(t, s, packOpen(t, "text", "2.0.0"))
			if faults := s.Verify(); len(faults) > 0 {
				t.Errorf("still damaged: %v", faults)
			}
			wantVersions(t, s, "text: 1.0.0 [2.0.0]")
		})
	}
}

func TestConcurrentChanges(t *testing.T) {
	t.Parallel()
	_, data := newStore(t)
	var working sync.WaitGroup
	for i := range 6 {
		b := packOpen(t, "text", fmt.Sprintf("%d.0.0", i%3+1))
		working.Go(func() {
			s := storeAt(data) // as in another process: the lock is a file
			for range 3 {
				if _, _, err := s.Install(b, platform, nil, nil); err != nil {
					t.Error(err)
				}
				if _, err := s.GC(3); err != nil {
					t.Error(err)
				}
			}
		})
	}
	working.Wait()
	s := storeAt(data)
	if faults := s.Verify(); len(faults) > 0 {
		t.Errorf("faults: %v", faults)
	}
	if all := versions(t, s); len(all) != 1 || !strings.Contains(all[0], "[") {
		t.Errorf("installed: %q; want one active version", all)
	}
}

func TestForeignFilesAreKept(t *testing.T) {
	t.Parallel()
	s, data := newStore(t)
	path := write(t, filepath.Join(data, "plugins", "tea-plugin-text"), "#!/bin/sh\n", 0o755)
	if _, _, err := s.Install(packOpen(t, "text", "1.0.0"), platform, nil, nil); err == nil || !strings.Contains(err.Error(), "was not installed from a bundle; remove it first") {
		t.Errorf("got %v, want a refusal", err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "#!/bin/sh\n" {
		t.Errorf("the user's plugin is %q, %v", content, err)
	}
	wantVersions(t, s)
}

func TestHostileBundleLeavesNothing(t *testing.T) {
	t.Parallel()
	s, data := newStore(t)
	install(t, s, packOpen(t, "text", "1.0.0"))
	before := files(t, data)
	b := packOpen(t, "text", "2.0.0")
	for platform, files := range b.Index.Platforms { // the parser refuses a wrong digest, see package bundle
		files[len(files)-1].SHA256 = strings.Repeat("0", 64)
		b.Index.Platforms[platform] = files
	}
	var damaged *DamagedError
	if _, _, err := s.Install(b, platform, nil, nil); !errors.As(err, &damaged) {
		t.Errorf("got %v, want a DamagedError", err)
	}
	if diff := cmp.Diff(before, files(t, data)); diff != "" {
		t.Errorf("files (-before +after):\n%s", diff)
	}
	wantVersions(t, s, "text: [1.0.0]")
}

func TestOtherPlatform(t *testing.T) {
	t.Parallel()
	s, data := newStore(t)
	b := packOpen(t, "text", "1.0.0")
	b.Index.Platforms = map[string][]File{"linux/riscv64": b.Index.Platforms[AnyPlatform]}
	var other *PlatformError
	if _, _, err := s.Install(b, platform, nil, nil); !errors.As(err, &other) || !slices.Contains(other.Have, "linux/riscv64") {
		t.Errorf("got %v, want a PlatformError", err)
	}
	if left := files(t, data); len(left) > 0 {
		t.Errorf("files are left: %q", left)
	}
}

// signOpen returns the signature of a bundle with its key.
func signOpen(t *testing.T, b *Bundle, comment bool) *Signed {
	t.Helper()
	secret, err := GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	text := b.Sign(secret)
	if !comment { // as the tool minisign writes it: the comment names no index
		text = b.SignWithComment(secret, "timestamp:1 file:b.teab")
	}
	s, err := parseSignature(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return &Signed{Signature: s, Key: secret.Public()}
}

// The signature is verified by what is on the disk, not by a note of the
// installation: a forged entry does not pass.
func TestSignatureOfAnEntry(t *testing.T) {
	t.Parallel()
	for _, comment := range []bool{true, false} {
		t.Run(fmt.Sprint("comment ", comment), func(t *testing.T) {
			t.Parallel()
			s, _ := newStore(t)
			b := packOpen(t, "text", "1.0.0")
			signed := signOpen(t, b, comment)
			e, _, err := s.Install(b, platform, signed, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.VerifySignature(signed.Key); err != nil {
				t.Errorf("the signature: %v", err)
			}
			if _, kept := e.Files["bundle.teab"]; kept == comment {
				t.Errorf("the bundle is kept: %t, want %t", kept, !comment)
			}
			other := signOpen(t, b, true)
			if err := e.VerifySignature(other.Key); !errors.Is(err, ErrOtherKey) {
				t.Errorf("another key: %v, want ErrOtherKey", err)
			}
			forged := *e
			forged.Files = map[string]string{}
			for name, sum := range e.Files {
				forged.Files[name] = sum
			}
			forged.Files["tea-plugin-text"] = strings.Repeat("0", 64)
			if err := forged.VerifySignature(signed.Key); err == nil {
				t.Error("a record with another binary has a valid signature")
			}
			if faults := s.Verify(); len(faults) > 0 {
				t.Error(faults)
			}
		})
	}
}

// A signature does not make another version of the same bundle.
func TestSameBundleInstalledTwiceIsOneVersion(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	first, second := packOpen(t, "text", "1.0.0"), packOpen(t, "text", "2.0.0")
	signed := signOpen(t, first, true)
	installFirst := func(signed *Signed, want string) {
		t.Helper()
		e, _, err := s.Install(first, platform, signed, nil)
		if err != nil {
			t.Fatal(err)
		}
		if e.Key != want {
			t.Errorf("signed by %q, want %q", e.Key, want)
		}
		wantVersions(t, s, "text: [1.0.0]")
	}
	installFirst(nil, "")
	installFirst(signed, signed.Key.String())
	installFirst(nil, signed.Key.String())
	install(t, s, second)
	wantVersions(t, s, "text: 1.0.0 [2.0.0]")
	if from, to, err := s.Rollback("text"); err != nil || from.Version != "2.0.0" || to.Version != "1.0.0" {
		t.Errorf("rollback: %v, %v, %v", from, to, err)
	}
	if _, _, err := s.Rollback("text"); err == nil {
		t.Error("a rollback to the same version")
	}
	install(t, s, second)
	wantVersions(t, s, "text: 1.0.0 [2.0.0]")
	if swept, err := s.GC(1); err != nil || len(swept.Entries) != 1 || swept.Entries[0].Key != "" {
		t.Errorf("removed: %v, %v; want the entry without a signature", swept.Entries, err)
	}
}

// A damaged version that is not active concerns only a rollback to it.
func TestDamagedEarlierVersions(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"tea-plugin-text", recordName} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			s, _ := newStore(t)
			var entries []*Entry
			for _, version := range []string{"1.0.0", "2.0.0", "3.0.0", "4.0.0"} {
				entries = append(entries, install(t, s, packOpen(t, "text", version)))
			}
			path := entries[1].Path(file)
			if err := errors.Join(os.Chmod(filepath.Dir(path), 0o700), os.Remove(path)); err != nil {
				t.Fatal(err)
			}
			if faults := s.Verify(); len(faults) != 1 || !strings.Contains(faults[0].Error(), "`tea plugin gc` removes this version, which is not active") {
				t.Errorf("faults %v, want one", faults)
			}
			if _, to, err := s.Rollback("text"); err != nil || to.Version != "3.0.0" {
				t.Errorf("rollback: %v, %v; want 3.0.0", to, err)
			}
			if _, _, err := s.Rollback("text"); err == nil || !strings.Contains(err.Error(), path+" is missing or was changed") {
				t.Errorf("rollback to the damaged version: %v", err)
			}
			if _, err := s.GC(1); err != nil {
				t.Fatal(err)
			}
			wantVersions(t, s, "text: 1.0.0 [3.0.0]")
			if faults := s.Verify(); len(faults) > 0 {
				t.Error(faults)
			}
		})
	}
}
