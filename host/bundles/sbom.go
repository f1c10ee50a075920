package bundles

import (
	"bytes"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"runtime/debug"
	"strings"

	"github.com/the-edge-agent/tea/sdk/x/confine"
)

// Materials returns the bill of materials of a Go binary in the format CycloneDX
// 1.6, or nil for any other binary. It omits the time and the serial number, so
// that the same binary always has the same bill.
func Materials(binary, name, version string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, nil // not built by Go
	}
	main := component{Type: "application", Name: name, Version: version, PURL: purl(&info.Main)}
	doc := billOfMaterials{Format: "CycloneDX", Spec: "1.6", Version: 1}
	doc.Metadata.Component = main
	doc.Components = []component{{Type: "framework", Name: "go", Version: strings.TrimPrefix(info.GoVersion, "go"), PURL: "pkg:golang/stdlib@" + strings.TrimPrefix(info.GoVersion, "go")}}
	for _, dep := range info.Deps {
		if r := dep.Replace; r != nil && r.Version != "" { // otherwise a local directory
			dep = r
		}
		c := component{Type: "library", Name: dep.Path, Version: dep.Version, PURL: purl(dep)}
		if sum, err := moduleSum(dep.Sum); err == nil {
			c.Hashes = []componentHash{{"SHA-256", sum}}
		}
		doc.Components = append(doc.Components, c)
	}
	return json.MarshalIndent(doc, "", "  ")
}

// checkMaterials refuses a file that does not look like a bill of materials in
// any of the usual formats.
func checkMaterials(path string) error {
	text, err := confine.ReadRegular(path, maxFileSize)
	if err != nil {
		return err
	}
	for _, sign := range []string{`"bomFormat"`, "cyclonedx.org/schema/bom", `"spdxVersion"`, "SPDXVersion:", "spdx.org/rdf"} {
		if bytes.Contains(text, []byte(sign)) {
			return nil
		}
	}
	return &fs.PathError{Op: "read", Path: path, Err: errors.New("it is not a bill of materials in CycloneDX or SPDX")}
}

// billOfMaterials is the part of CycloneDX that Go's build information provides.
type billOfMaterials struct {
	Format   string `json:"bomFormat"`
	Spec     string `json:"specVersion"`
	Version  int    `json:"version"`
	Metadata struct {
		Component component `json:"component"`
	} `json:"metadata"`
	Components []component `json:"components"`
}

type component struct {
	Type    string          `json:"type"`
	Name    string          `json:"name"`
	Version string          `json:"version,omitempty"`
	PURL    string          `json:"purl,omitempty"`
	Hashes  []componentHash `json:"hashes,omitempty"`
}

type componentHash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

func purl(m *debug.Module) string {
	if m.Path == "" || strings.HasPrefix(m.Path, ".") || strings.HasPrefix(m.Path, "/") {
		return ""
	}
	if m.Version == "" || m.Version == "(devel)" {
		return "pkg:golang/" + m.Path
	}
	return "pkg:golang/" + m.Path + "@" + m.Version
}

// moduleSum returns the SHA-256 in a sum of go.sum ("h1:...") in hexadecimal.
func moduleSum(sum string) (string, error) {
	text, ok := strings.CutPrefix(sum, "h1:")
	if !ok {
		return "", errors.New("not a sum of go.sum")
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	return hex.EncodeToString(raw), err
}
