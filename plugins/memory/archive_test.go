package memory_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

// TestAnArchiveHasEverything copies a memory from each engine to each engine.
func TestAnArchiveHasEverything(t *testing.T) {
	t.Parallel()
	for _, from := range engines() {
		archives := t.TempDir()
		kept := filepath.Join("testdata", newest, from)
		dir := filepath.Join(t.TempDir(), "memory")
		if err := os.CopyFS(dir, os.DirFS(kept)); err != nil {
			t.Fatal(err)
		}
		o := mustOpen(t, map[string]any{"path": dir, "engine": from, "archives": archives})
		o.must("ltm.store", map[string]any{"namespace": "team", "key": "shared", "value": "harbor"})
		r := o.must("memory.backup", map[string]any{"path": "all.teamem"})
		same(t, "checked", r["checked"], any(true))
		same(t, "rows", fmt.Sprint(r["rows"]), "map[readings:59]")
		if _, err := o.call("memory.restore", map[string]any{"path": "all.teamem"}); typeOf(err) != tea.ValidationError {
			t.Errorf("restore into a memory with data: %v", err)
		}
		o.close()
		for _, to := range engines() {
			t.Run(from+" to "+to, func(t *testing.T) {
				o := mustOpen(t, map[string]any{"path": t.TempDir(), "engine": to, "archives": archives})
				defer o.close()
				r := o.must("memory.restore", map[string]any{"path": "all.teamem"})
				same(t, "refused", r["refused"], any([]any{}))
				checkOldMemory(t, o)
				o.equal("another namespace", o.must("ltm.retrieve", map[string]any{"namespace": "team", "key": "shared"})["value"], "harbor")
				again := o.must("memory.import", map[string]any{"path": "all.teamem", "existing": "keep"})
				if n := again["written"].(int64); n > 1 { // the expired entry, if it was swept meanwhile
					t.Errorf("%d records were written again", n)
				}
				checkOldMemory(t, o)
			})
		}
	}
}

// TestADamagedArchiveChangesNothing truncates and changes an archive in many places.
func TestADamagedArchiveChangesNothing(t *testing.T) {
	t.Parallel()
	archives := t.TempDir()
	settings := func() map[string]any {
		return map[string]any{"path": t.TempDir(), "engine": "sqlite", "archives": archives}
	}
	o := mustOpen(t, settings())
	for i := range 20 {
		o.must("ltm.store", map[string]any{"key": fmt.Sprint(i), "value": strings.Repeat(fmt.Sprint(i), 200)})
	}
	o.must("memory.file_store", map[string]any{"path": "f", "content": "text"})
	o.must("memory.export", map[string]any{"path": "good"})
	o.close()
	good, err := os.ReadFile(filepath.Join(archives, "good"))
	if err != nil {
		t.Fatal(err)
	}
	o = mustOpen(t, settings())
	defer o.close()
	try := func(what string, data []byte, want tea.ErrorType) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(archives, "bad"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := o.call("memory.import", map[string]any{"path": "bad"}); typeOf(err) != want {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	for at := 0; at < len(good); at += max(1, len(good)/40) {
		try(fmt.Sprintf("cut at %d", at), good[:at], tea.ValidationError)
		if zeros := slices.Concat(good[:at], make([]byte, len(good)-at)); !bytes.Equal(zeros, good) { // the last bytes can be zeros
			try(fmt.Sprintf("zeros from %d", at), zeros, tea.ValidationError)
		}
		flipped := bytes.Clone(good)
		flipped[at] ^= 0x10
		if bytes.Equal(unpacked(flipped), unpacked(good)) { // another packed form of the same content
			continue
		}
		try(fmt.Sprintf("changed at %d", at), flipped, tea.ValidationError)
	}
	try("more at the end", append(bytes.Clone(good), 'x'), tea.ValidationError)
	for from, to := range map[string]string{
		`"version":1`:  `"version":2`,
		"records/0000": "../../../../",
		"contents/":    "/content/",
	} {
		want := tea.ValidationError
		if from == `"version":1` {
			want = tea.DependencyMissing
		}
		try(from+" as "+to, repacked(t, good, from, to), want)
	}
	if r := o.must("ltm.list", nil); len(r["entries"].([]any)) != 0 {
		t.Errorf("imported: %v", r["entries"])
	}
}

// unpacked returns what an archive has packed, nil if it cannot be unpacked.
func unpacked(data []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	content, err := io.ReadAll(r)
	if err != nil {
		return nil
	}
	return content
}

// repacked replaces a text in an archive.
func repacked(t *testing.T, data []byte, from, to string) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(bytes.ReplaceAll(plain, []byte(from), []byte(to))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestArchivesStayInTheirFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := mustOpen(t, map[string]any{"path": filepath.Join(dir, "memory"), "engine": "sqlite", "archives": filepath.Join(dir, "archives")})
	defer o.close()
	for _, path := range []string{"../out", "/etc/out", "a/../../out", "%2e%2e/out", "s3://bucket/out"} {
		if _, err := o.call("memory.export", map[string]any{"path": path}); typeOf(err) != tea.PermissionDenied && typeOf(err) != tea.ValidationError {
			t.Errorf("export to %s: %v", path, err)
		}
	}
	if _, err := o.call("memory.import", map[string]any{"path": "none"}); typeOf(err) != tea.NotFound {
		t.Errorf("an archive that does not exist: %v", err)
	}
	bare := mustOpen(t, map[string]any{"path": filepath.Join(dir, "bare"), "engine": "sqlite"})
	defer bare.close()
	if _, err := bare.call("memory.export", map[string]any{"path": "a"}); typeOf(err) != tea.ValidationError || !contains(err, "settings.memory.archives") {
		t.Errorf("without a folder: %v", err)
	}
}

// TestARestoreAfterAnInterruptedOneSaysWhatContinuesIt interrupts a restore by a context
// that ends after its first page.
func TestARestoreAfterAnInterruptedOneSaysWhatContinuesIt(t *testing.T) {
	t.Parallel()
	archives := t.TempDir()
	from := mustOpen(t, map[string]any{"path": t.TempDir(), "engine": "sqlite", "archives": archives})
	defer from.close()
	from.must("ltm.store", map[string]any{"key": "k", "value": 1})
	from.must("memory.backup", map[string]any{"path": "other.teamem"})
	for part := range 3 {
		var items []map[string]any
		for n := range 1000 {
			items = append(items, map[string]any{"key": fmt.Sprint(part, " ", n), "value": strings.Repeat("x", 1000)})
		}
		from.must("ltm.store", map[string]any{"items": items})
	}
	from.must("memory.backup", map[string]any{"path": "all.teamem"})
	to := mustOpen(t, map[string]any{"path": t.TempDir(), "engine": "sqlite", "archives": archives})
	defer to.close()
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		defer cancel()
		for ctx.Err() == nil {
			if n, _ := to.must("memory.inspect", nil)["entries"].(map[string]any)["tea_import"].(int64); n > 0 {
				return
			}
		}
	}()
	_, err := to.instance.Invoke(ctx, &tea.Request{Action: "memory.restore", Params: tea.ValuePayload(map[string]any{"path": "all.teamem"}), Call: tea.Call{Attempt: 1}})
	cancel()
	<-seen
	if err == nil {
		t.Skip("the restore was faster")
	}
	if !contains(err, "import it again with memory.import to continue") {
		t.Errorf("the interrupted restore: %v", err)
	}
	if _, err := to.call("memory.restore", map[string]any{"path": "other.teamem"}); typeOf(err) != tea.ValidationError || !contains(err, "tea memory import FILE") {
		t.Errorf("the restore of another archive: %v", err)
	}
	to.equal("continued", to.must("memory.import", map[string]any{"path": "all.teamem"})["resumed"], true)
	to.must("ltm.retrieve", map[string]any{"key": "2 999"})
}
