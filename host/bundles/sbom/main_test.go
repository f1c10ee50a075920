package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// self builds this program, and returns it with lines that have a licence for each of
// its modules.
func self(t *testing.T) (binary, parts string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "sbom")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, err := materials("", binary, "1.2.3")
	if err == nil || !strings.Contains(err.Error(), "aead.dev/minisign v") {
		t.Fatalf("got %v; want the modules without a licence", err)
	}
	for line := range strings.Lines(err.Error()) {
		f := strings.Fields(line)
		parts += "golang\t" + f[0] + "\t" + f[1] + "\tMIT\t/src\t-\n"
	}
	return binary, parts
}

func TestMaterialsNameLicencesOfModulesAndParts(t *testing.T) {
	t.Parallel()
	binary, parts := self(t)
	_, rest, _ := strings.Cut(parts, "aead.dev/minisign\t")
	version, _, _ := strings.Cut(rest, "\t")
	parts += "golang\taead.dev/minisign\t" + version + "\tBSD-3-Clause AND MIT\t/src/inner\t-\n"
	parts += "generic\tfmt\tin duckdb 1.5.6\tMIT\t/src\tgolang\n" + "cargo\tzstd-sys\t2.1.3+zstd\tMIT OR Zlib\t/src\t-\n"
	bom, err := materials(parts, binary, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Components []struct {
			Name, Version, PURL string
			Licenses            []struct{ Expression string }
		}
	}
	if err := json.Unmarshal(bom, &document); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range document.Components {
		got[c.Name] = c.Version + " " + c.PURL + " " + c.Licenses[0].Expression
	}
	for name, want := range map[string]string{
		"aead.dev/minisign": version + " pkg:golang/aead.dev/minisign@" + version + " MIT AND BSD-3-Clause",
		"fmt":               "in duckdb 1.5.6  MIT",
		"zstd-sys":          "2.1.3+zstd pkg:cargo/zstd-sys@2.1.3%2Bzstd MIT OR Zlib",
		own + "/sdk":        "1.2.3 pkg:golang/" + own + "/sdk@v1.2.3 MIT",
	} {
		if diff := cmp.Diff(want, got[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestMaterialsRefusePartsWithoutLicence(t *testing.T) {
	t.Parallel()
	binary, parts := self(t)
	first, rest, _ := strings.Cut(parts, "\n")
	name := strings.Split(first, "\t")[1]
	library := filepath.Join(t.TempDir(), "library.so")
	if err := os.WriteFile(library, []byte("no sign"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, parts := range map[string]string{
		name + " ": rest,
		"re2 3 has no version, or the licence in /src is unknown": parts + "generic\tre2\t3\t\t/src\t-\n",
		"the binary does not contain":                             parts + "generic\tre2\t3\tMIT\t/src\t" + strings.Repeat("re2", 9) + "\n",
		"the build information does not":                          parts + "golang\texample.com/m\tv1.0.0\tMIT\t/src\t-\n",
	} {
		if _, err := materials(parts, binary, "1.2.3"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %q", err, want)
		}
	}
	if _, err := materials("generic\tre2\t3\tMIT\t/src\tsome text\n", library, "1"); err == nil || !strings.Contains(err.Error(), `does not contain "some text"`) {
		t.Errorf("a library without its part: %v", err)
	}
}
