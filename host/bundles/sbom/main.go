// Command sbom prints the bill of materials of a binary in the format CycloneDX,
// with the licence of each part, for scripts/release. PARTS has lines of
// scripts/components. It fails for a Go module of the binary without a line, a
// line without a licence, and a part whose mark is not in the binary.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/bundles"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: sbom PARTS BINARY VERSION")
		os.Exit(2)
	}
	parts, err := os.ReadFile(os.Args[1])
	if err == nil {
		var bom []byte
		if bom, err = materials(string(parts), os.Args[2], os.Args[3]); err == nil {
			_, err = os.Stdout.Write(append(bom, '\n'))
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "sbom: %s: %v\n", os.Args[2], err)
		os.Exit(1)
	}
}

// own is the path prefix of this repository's modules.
const own = "github.com/the-edge-agent/tea"

type fields = map[string]any

func materials(parts, binary, version string) ([]byte, error) {
	data, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	text, err := bundles.Materials(binary, filepath.Base(binary), version)
	if err != nil {
		return nil, err
	}
	goBinary := text != nil
	if !goBinary { // or WebAssembly, whose build information Go cannot read
		text = fmt.Appendf(nil, `{"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": [],
			"metadata": {"component": {"type": "library", "name": %q, "version": %q}}}`, filepath.Base(binary), version)
	}
	var document fields
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	whole := document["metadata"].(fields)["component"].(fields)
	license(whole, "MIT")
	components := document["components"].([]any)
	for line := range strings.Lines(parts) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 6 {
			return nil, fmt.Errorf("the line %q does not have six fields", line)
		}
		kind, name, version, licence, dir, mark := f[0], f[1], f[2], f[3], f[4], f[5]
		if mark != "-" && !bytes.Contains(data, []byte(mark)) {
			return nil, fmt.Errorf("%s is listed, but the binary does not contain %q", name, mark)
		}
		if version == "" || !spdx.MatchString(licence) {
			return nil, fmt.Errorf("%s %s has no version, or the licence in %s is unknown; add it to scripts/components", name, version, dir)
		}
		if kind == "golang" && goBinary {
			i := slices.IndexFunc(components, func(c any) bool { return c.(fields)["name"] == name && c.(fields)["version"] == version })
			if i < 0 {
				return nil, fmt.Errorf("%s %s is listed, but the build information does not have it", name, version)
			}
			license(components[i].(fields), licence)
			continue
		}
		c := fields{"type": "library", "name": name, "version": version}
		if name == "go" {
			name = "stdlib"
		}
		if !strings.Contains(version, " ") {
			c["purl"] = "pkg:" + kind + "/" + name + "@" + strings.ReplaceAll(version, "+", "%2B")
		}
		license(c, licence)
		components = append(components, c)
	}
	var missing []error
	for _, c := range append(components, whole) {
		missing = append(missing, complete(c.(fields), version))
	}
	document["components"] = components
	bom, err := json.MarshalIndent(document, "", " ")
	return bom, errors.Join(append(missing, err)...)
}

var spdx = regexp.MustCompile(`^[A-Za-z0-9.+() -]+$`)

// license adds a licence to a component.
func license(c fields, licence string) {
	list := []string{licence}
	if old, ok := c["licenses"]; ok {
		list = strings.Split(old.([]any)[0].(fields)["expression"].(string), " AND ")
		for one := range strings.SplitSeq(licence, " AND ") {
			if !slices.Contains(list, one) {
				list = append(list, one)
			}
		}
	}
	c["licenses"] = []any{fields{"expression": strings.Join(list, " AND ")}}
}

// complete adds what is known about this repository's modules, and returns an
// error if a component has no licence.
func complete(c fields, version string) error {
	name := c["name"].(string)
	if path, ok := c["purl"].(string); ok && strings.HasPrefix(path, "pkg:golang/"+own) {
		path, _, _ = strings.Cut(path, "@")
		c["version"], c["purl"] = version, path+"@v"+version
		license(c, "MIT")
	}
	if c["licenses"] == nil {
		return fmt.Errorf("%s %s is linked, and its licence is unknown; add it to scripts/components", name, c["version"])
	}
	return nil
}
