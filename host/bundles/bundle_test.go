package bundles

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

type params struct {
	Text string `json:"text" doc:"a text"`
}

// textManifest is the manifest of a plugin that consists of a wrapper and a script.
func textManifest() tea.Manifest {
	return tea.Manifest{
		Name: "text", Version: "1.2.3", Protocol: tea.ProtocolVersion, Files: []string{"lib/text.py"},
		Actions: []tea.ActionInfo{{Name: "text.count", Params: schema.Of[params]()}},
	}
}

// contents writes the files of a bundle into a directory.
func contents(t *testing.T, dir string) Contents {
	t.Helper()
	write(t, filepath.Join(dir, "lib", "text.py"), "print('text')\n", 0o644)
	return Contents{
		Manifest: textManifest(),
		Binaries: []string{write(t, filepath.Join(dir, "wrapper"), "#!/bin/sh\nexec python3 lib/text.py\n", 0o755)},
		License:  write(t, filepath.Join(dir, "COPYING"), "MIT\n", 0o644),
		SBOM:     write(t, filepath.Join(dir, "bom.spdx.json"), `{"spdxVersion":"SPDX-2.3"}`, 0o644),
		Docs:     []string{write(t, filepath.Join(dir, "README.md"), "# text\n", 0o644)},
	}
}

// pack returns the path of a bundle.
func packText(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	if _, err := Pack(&out, contents(t, t.TempDir())); err != nil {
		t.Fatal(err)
	}
	return write(t, filepath.Join(t.TempDir(), "text.teab"), out.String(), 0o644)
}

func open(t *testing.T, path string) *Bundle {
	t.Helper()
	b, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func TestContentsAreReadBack(t *testing.T) {
	t.Parallel()
	b := open(t, packText(t))
	got := map[string]string{}
	err := b.Each(func(f File, r io.Reader) error {
		data, err := io.ReadAll(r)
		got[f.Path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"tea-plugin-text": "#!/bin/sh\nexec python3 lib/text.py\n", "lib/text.py": "print('text')\n",
		"LICENSE": "MIT\n", "sbom/bom.spdx.json": `{"spdxVersion":"SPDX-2.3"}`, "docs/README.md": "# text\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(textManifest(), b.Index.Manifest); diff != "" {
		t.Error(diff)
	}
	if platform, err := b.Index.For("plan9/mips"); platform != AnyPlatform || err != nil {
		t.Errorf("a script is for %q, %v; want any platform", platform, err)
	}
}

// The directory and the times of the inputs must not matter.
func TestSameContentsMakeSameBytes(t *testing.T) {
	t.Parallel()
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if _, err := Pack(out, contents(t, t.TempDir())); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two bundles of the same contents differ")
	}
}

// A standard tool can list a bundle.
func TestBundleIsATarArchive(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "tar", "tf", packText(t)).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(out))
	if len(lines) != 7 || lines[0] != indexName || lines[6] != "SHA256" {
		t.Errorf("tar lists %q", lines)
	}
}

func TestEveryFlippedByteOfABundleIsNoticed(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(packText(t))
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, filepath.Join(t.TempDir(), "flipped.teab"), string(data), 0o600)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	set := func(i int, b byte) {
		t.Helper()
		if _, err := f.WriteAt([]byte{b}, int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	for i, b := range data {
		set(i, b^1<<(i%8))
		var damaged *DamagedError
		if b, err := Open(path); !errors.As(err, &damaged) {
			t.Fatalf("byte %d of %d: %v, %v; want a DamagedError", i, len(data), b, err)
		}
		set(i, b)
	}
	for n := 0; n < len(data); n += 37 {
		if err := os.WriteFile(path, data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil {
			t.Fatalf("a bundle of %d of %d bytes was opened", n, len(data))
		}
	}
	if err := os.WriteFile(path, append(data, 0), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil {
		t.Error("a bundle with a further byte was opened")
	}
}

// seal ends an archive as a bundle ends, as an attacker can do.
func seal(t *testing.T, archive []byte) string {
	t.Helper()
	sum := sha256.Sum256(archive)
	end, err := trailer(sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return write(t, filepath.Join(t.TempDir(), "hostile.teab"), string(archive)+string(end), 0o600)
}

// forge returns the bundle of an attacker: entries can be added, and the index
// changed.
func forge(t *testing.T, index func(string) string, entry func(*tar.Header, []byte) (*tar.Header, []byte)) string {
	t.Helper()
	data, err := os.ReadFile(packText(t))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	from, to := tar.NewReader(bytes.NewReader(data[:len(data)-trailerSize])), tar.NewWriter(&out)
	for {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == indexName {
			content = []byte(index(string(content)))
		} else {
			h, content = entry(h, content)
		}
		h.Size = int64(len(content))
		if err := to.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := to.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Flush(); err != nil {
		t.Fatal(err)
	}
	return seal(t, out.Bytes())
}

func TestHostileBundlesAreRefused(t *testing.T) {
	t.Parallel()
	same := func(h *tar.Header, data []byte) (*tar.Header, []byte) { return h, data }
	replace := func(old, text string) func(string) string {
		return func(index string) string { return strings.ReplaceAll(index, old, text) }
	}
	keep := replace("", "")
	bomb, err := compress(make([]byte, 64<<20))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		index func(string) string
		entry func(*tar.Header, []byte) (*tar.Header, []byte)
		want  string
	}{
		"parent":    {replace("lib/text.py", "../text.py"), same, "not a valid path"},
		"absolute":  {replace(`"path":"LICENSE"`, `"path":"/etc/passwd"`), same, "not a valid path"},
		"dots":      {replace("docs/README.md", "docs/../../x"), same, "not a valid path"},
		"backslash": {replace("docs/README.md", `docs\\..\\x`), same, "not a valid path"},
		"reserved":  {replace("lib/text.py", "record.json"), same, "reserved"},
		"manifest":  {replace("lib/text.py", "tea-plugin-text.json"), same, "appears twice"},
		"directory": {replace("lib/text.py", "tea-plugin-text/x"), same, "is a file and a directory"},
		"twice":     {replace("docs/README.md", "license"), same, "appears twice"},
		"format":    {replace(`"format":1`, `"format":2`), same, "format 2"},
		"name":      {replace(`"name":"text"`, `"name":"../text"`), same, "bundle name"},
		"version":   {replace(`"version":"1.2.3"`, `"version":"1.2"`), same, "expected a semantic version"},
		"negative":  {replace(`"size":4`, `"size":-4`), same, "size -4"},
		"symlink": {keep, func(h *tar.Header, _ []byte) (*tar.Header, []byte) {
			return &tar.Header{Typeflag: tar.TypeSymlink, Name: h.Name, Linkname: "/etc/passwd"}, nil
		}, "expected the file"},
		"other name": {keep, func(h *tar.Header, data []byte) (*tar.Header, []byte) {
			h.Name = "../../" + h.Name
			return h, data
		}, "expected the file"},
		"bomb":        {replace(`"size":35,`, `"size":67108864,`), func(h *tar.Header, _ []byte) (*tar.Header, []byte) { return h, bomb }, "expands"},
		"hidden bomb": {keep, func(h *tar.Header, _ []byte) (*tar.Header, []byte) { return h, bomb }, "larger than"},
		"wrong content": {keep, func(h *tar.Header, _ []byte) (*tar.Header, []byte) {
			data, _ := compress([]byte("evil"))
			return h, data
		}, "does not match"},
		"no gzip": {keep, func(h *tar.Header, _ []byte) (*tar.Header, []byte) { return h, []byte("plain text here") }, "invalid header"},
		"trailing data": {keep, func(h *tar.Header, data []byte) (*tar.Header, []byte) {
			return h, append(data, "more than a header"...)
		}, "invalid header"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := Open(forge(t, tt.index, tt.entry))
			if err == nil {
				err = b.Check()
				b.Close()
			}
			var damaged *DamagedError
			if !errors.As(err, &damaged) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v; want a DamagedError with %q", err, tt.want)
			}
		})
	}
}

func TestFilesThatAreNotBundles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, path := range map[string]string{
		"empty": write(t, filepath.Join(dir, "empty"), "", 0o600), "zeros": write(t, filepath.Join(dir, "zeros"), strings.Repeat("\x00", 1<<16), 0o600),
		"directory": dir,
	} {
		var damaged *DamagedError
		if _, err := Open(path); !errors.As(err, &damaged) {
			t.Errorf("%s: %v, want a DamagedError", name, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	path := filepath.Join(dir, "fuzz.teab")
	f.Add([]byte(indexName))
	f.Fuzz(func(t *testing.T, archive []byte) {
		sum := sha256.Sum256(archive)
		end, err := trailer(sum[:])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(archive, end...), 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := Open(path); err == nil {
			_ = b.Check()
			b.Close()
		}
	})
}

func TestPlatformOf(t *testing.T) {
	t.Parallel()
	elf := func(class, machine byte) string {
		head := make([]byte, 64)
		copy(head, "\x7fELF")
		head[4], head[5], head[6], head[16], head[18], head[20] = class, 1, 1, 2, machine, 1
		size := map[byte]int{1: 40, 2: 52}[class]
		head[size], head[size+2] = 52, 32
		return string(head)
	}
	windows := make([]byte, 1024)
	copy(windows, "MZ")
	windows[0x3c] = 0x80
	copy(windows[0x80:], "PE\x00\x00\x64\xaa")
	for want, head := range map[string]string{
		"linux/amd64": elf(2, 62), "linux/arm64": elf(2, 183), "linux/riscv64": elf(2, 243), "linux/arm": elf(1, 40),
		"darwin/arm64": "\xcf\xfa\xed\xfe\x0c\x00\x00\x01" + strings.Repeat("\x00", 24), "windows/arm64": string(windows),
		AnyPlatform: "#!/usr/bin/env python3\n",
	} {
		path := write(t, filepath.Join(t.TempDir(), "binary"), head, 0o600)
		if got, err := PlatformOf(path); got != want || err != nil {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
	if _, err := PlatformOf(write(t, filepath.Join(t.TempDir(), "x"), "hello", 0o600)); err == nil {
		t.Error("a text file has a platform")
	}
}

func TestMaterials(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bom, err := Materials(self, binaryPrefix+textManifest().Name, textManifest().Version)
	if err != nil || !bytes.Contains(bom, []byte("pkg:golang/stdlib@")) {
		t.Errorf("bill of materials: %s, %v; want Go's library", bom, err)
	}
}

func TestPackRefuses(t *testing.T) {
	t.Parallel()
	c := contents(t, t.TempDir())
	c.Binaries = append(c.Binaries, c.Binaries[0])
	if _, err := Pack(io.Discard, c); err == nil || !strings.Contains(err.Error(), "another binary is for any") {
		t.Errorf("two binaries for one platform: %v", err)
	}
	c = contents(t, t.TempDir())
	c.Manifest.Files = []string{"../outside.py"}
	if _, err := Pack(io.Discard, c); err == nil || !strings.Contains(err.Error(), "not a valid path") {
		t.Errorf("a file outside: %v", err)
	}
	for _, version := range []string{"1", "1.2", "1.2.3.4", "01.2.3", "1.2.3-", "1.2-rc.1"} {
		c = contents(t, t.TempDir())
		c.Manifest.Version = version
		if _, err := Pack(io.Discard, c); err == nil || !strings.Contains(err.Error(), "expected a semantic version") {
			t.Errorf("version %s: %v", version, err)
		}
	}
	for _, version := range []string{"1.2.3", "0.0.1", "1.2.3-rc.1", "1.2.3+build.5", "1.2.3-rc.1+build.5"} {
		c = contents(t, t.TempDir())
		c.Manifest.Version = version
		if _, err := Pack(io.Discard, c); err != nil {
			t.Errorf("version %s: %v", version, err)
		}
	}
	c = contents(t, t.TempDir())
	c.SBOM = c.License
	if _, err := Pack(io.Discard, c); err == nil || !strings.Contains(err.Error(), "COPYING: it is not a bill of materials in CycloneDX or SPDX") {
		t.Errorf("a bill of materials that is another text: %v", err)
	}
	c = contents(t, t.TempDir())
	c.Binaries = nil
	if _, err := Pack(io.Discard, c); err == nil {
		t.Error("a bundle without binaries was packed")
	}
}

func key(t *testing.T) SecretKey {
	t.Helper()
	k, err := GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSignature(t *testing.T) {
	t.Parallel()
	path, secret, other := packText(t), key(t), key(t)
	b := open(t, path)
	text := b.Sign(secret)
	s, err := parseSignature(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if k, ok := b.Find(s, []Key{other.Public(), secret.Public()}); !ok || k.ID() != secret.Public().ID() {
		t.Errorf("found %v, %t; want the key that signed", k, ok)
	}
	if !s.VerifyIndex(b.IndexSHA256(), secret.Public()) {
		t.Error("the index does not verify the signature")
	}
	if s.VerifyIndex(b.IndexSHA256(), other.Public()) || b.Verify(s, other.Public()) {
		t.Error("another key verifies the signature")
	}
	if s.VerifyIndex(strings.Repeat("0", 64), secret.Public()) {
		t.Error("another index verifies the signature")
	}
	if again := b.Sign(secret); !bytes.Equal(again, text) {
		t.Error("two signatures by one key differ")
	}
	comment := bytes.IndexByte(text, '\n') // anybody can change the untrusted comment
	for i := comment + 1; i < len(text)-1; i++ {
		flipped := bytes.Clone(text)
		flipped[i] ^= 1 << (i % 7)
		if s, err := parseSignature(string(flipped)); err == nil && b.Verify(s, secret.Public()) {
			t.Fatalf("byte %d of the signature is not covered: %q", i, flipped)
		}
	}
}

func TestSecretKeyFiles(t *testing.T) {
	t.Parallel()
	secret := key(t)
	plain, public, err := secret.Marshal("")
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseSecretKey(plain, func() (string, error) { return "", errors.New("asked for a password") })
	if err != nil || again.Public().String() != secret.Public().String() {
		t.Errorf("the key is %v, %v", again.Public(), err)
	}
	fromFile, err := ParseKey(write(t, filepath.Join(t.TempDir(), "key.pub"), string(public), 0o600))
	if err != nil || fromFile.String() != secret.Public().String() {
		t.Errorf("the public key is %v, %v", fromFile, err)
	}
	if fromText, err := ParseKey(secret.Public().String()); err != nil || fromText.ID() != secret.Public().ID() {
		t.Errorf("the public key is %v, %v", fromText, err)
	}
	for _, wrong := range []string{"", "RWQ", "/does/not/exist", "RW" + strings.Repeat("A", 54) + "!"} {
		if k, err := ParseKey(wrong); err == nil {
			t.Errorf("%q is the key %v", wrong, k)
		}
	}
}

// A file that one tool has signed is verified by the other.
func TestMinisignTool(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("minisign"); err != nil {
		t.Skip("minisign is not installed")
	}
	tool := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "minisign", args...).CombinedOutput(); err != nil {
			t.Fatalf("minisign %s: %v\n%s", args, err, out)
		}
	}
	dir := t.TempDir()
	path, secret := packText(t), key(t)
	private, public, err := secret.Marshal("")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "tea.key"), string(private), 0o600)
	write(t, filepath.Join(dir, "tea.pub"), string(public), 0o600)
	b := open(t, path)
	write(t, path+SignatureSuffix, string(b.Sign(secret)), 0o600)
	tool("-V", "-p", filepath.Join(dir, "tea.pub"), "-m", path)

	check := func(k Key, wantIndex bool) {
		t.Helper()
		s, err := ReadSignature(path + SignatureSuffix)
		if err != nil {
			t.Fatal(err)
		}
		if !b.Verify(s, k) || s.HasIndex() != wantIndex {
			t.Errorf("verified: %t, has an index: %t; want %t", b.Verify(s, k), s.HasIndex(), wantIndex)
		}
	}
	tool("-S", "-s", filepath.Join(dir, "tea.key"), "-m", path, "-x", path+SignatureSuffix)
	check(secret.Public(), false)
	tool("-G", "-W", "-p", filepath.Join(dir, "m.pub"), "-s", filepath.Join(dir, "m.key"))
	tool("-S", "-s", filepath.Join(dir, "m.key"), "-m", path, "-x", path+SignatureSuffix)
	theirs, err := ParseKey(filepath.Join(dir, "m.pub"))
	if err != nil {
		t.Fatal(err)
	}
	check(theirs, false)
	tool("-S", "-s", filepath.Join(dir, "m.key"), "-m", path, "-x", path+SignatureSuffix, "-t", fmt.Sprint(indexMark, b.IndexSHA256()))
	check(theirs, true)
	tool("-S", "-l", "-s", filepath.Join(dir, "m.key"), "-m", path, "-x", path+SignatureSuffix)
	if _, err := ReadSignature(path + SignatureSuffix); err == nil || !strings.Contains(err.Error(), "old kind") {
		t.Errorf("a signature without a hash: %v", err)
	}
}
