package examples

import (
	"archive/zip"
	"encoding/json"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// The packed extension is complete, and its language client gets from `tea lsp` what it shows.
func TestVSCodeExtension(t *testing.T) {
	t.Parallel()
	peertest.Dir(t, "..", "vsix")
	dir := t.TempDir()
	file := filepath.Join(dir, "flow.yaml")
	if err := os.WriteFile(file, []byte("name: w\nnodes:\n  - {name: a, uses: file.raed}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pack := exec.CommandContext(t.Context(), "../scripts/vsix", "pack", dir)
	pack.Env = append(os.Environ(), "VERSION=1.2.3")
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("scripts/vsix: %v\n%s", err, out)
	}
	archive, err := zip.OpenReader(filepath.Join(dir, "tea-vscode-1.2.3.vsix"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if err := os.CopyFS(filepath.Join(dir, "unpacked"), archive); err != nil {
		t.Fatal(err)
	}
	text, err := archive.Open("extension.vsixmanifest")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Metadata struct {
			Identity struct {
				ID        string `xml:"Id,attr"`
				Version   string `xml:",attr"`
				Publisher string `xml:",attr"`
			}
		}
		Assets struct {
			Asset []struct {
				Path string `xml:",attr"`
			}
		}
	}
	if err := xml.NewDecoder(text).Decode(&manifest); err != nil {
		t.Fatal(err)
	}
	if id := manifest.Metadata.Identity; id.ID != "tea" || id.Version != "1.2.3" || id.Publisher != "the-edge-agent" || len(manifest.Assets.Asset) != 3 {
		t.Errorf("manifest: %+v", manifest)
	}
	for _, asset := range manifest.Assets.Asset {
		if _, err := archive.Open(asset.Path); err != nil {
			t.Errorf("an asset: %v", err)
		}
	}
	packages, err := filepath.Glob(filepath.Join(dir, "unpacked/extension/node_modules/*"))
	if err != nil || len(packages) < 5 {
		t.Fatalf("packages: %v, %v", packages, err)
	}
	for _, name := range packages {
		if licences, err := filepath.Glob(filepath.Join(name, "[Ll][Ii][Cc][Ee][Nn]*")); err != nil || len(licences) == 0 {
			t.Errorf("%s has no licence: %v", name, err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "node", "../editors/vscode/test/activate.js", filepath.Join(dir, "unpacked/extension"), filepath.Join(bin, "tea"), file)
	cmd.Env = environment(t.TempDir())
	out, err := cmd.Output()
	var shown struct {
		File, Hover string
		Findings    []struct {
			Line          int
			Code, Message string
		}
		Commands []string
	}
	if err == nil {
		err = json.Unmarshal(out, &shown)
	}
	if err != nil || shown.File != file || len(shown.Findings) != 1 || shown.Findings[0].Line != 3 || shown.Findings[0].Code != "TEA1401" || !strings.Contains(shown.Findings[0].Message, "file.read") || shown.Hover == "" || len(shown.Commands) != 1 {
		t.Errorf("shown: %v\n%s", err, out)
	}
}
