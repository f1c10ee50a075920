package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/the-edge-agent/tea/sdk/x/confine"
)

const (
	// maxFile bounds a file.
	maxFile = 4 << 20
	// maxDepth and maxNodes bound a document; an alias counts as what it names.
	maxDepth = 100
	maxNodes = 200_000
)

// document is a YAML file.
type document struct {
	file string
	root *yaml.Node
}

var syntaxLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// read reads a file. An error names the position and what to do.
func read(file string) (*document, error) {
	data, err := confine.ReadRegular(file, maxFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: it is larger than %d MiB", file, maxFile>>20)
	}
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%s: it is not UTF-8 text", file)
	}
	var top yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&top); err != nil {
		if m := syntaxLine.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
			return nil, fmt.Errorf("%s:%s: this is not YAML: %s\n  hint: the mistake is in this line or shortly before it: indentation, an unclosed quote, or a value with `: ` that needs quotes", file, m[1], m[2])
		}
		return nil, fmt.Errorf("%s: this is not a YAML document: %w", file, err)
	}
	root := top.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: expected a mapping at the top", file, root.Line)
	}
	left := maxNodes
	if err := bounded(file, root, 0, &left); err != nil {
		return nil, err
	}
	if err := decoder.Decode(&yaml.Node{}); err == nil {
		return nil, fmt.Errorf("%s: it has several documents; split it at the lines `---`", file)
	}
	return &document{file: file, root: root}, nil
}

// bounded replaces aliases by what they name, and checks the size.
func bounded(file string, n *yaml.Node, depth int, left *int) error {
	if *left--; *left < 0 || depth > maxDepth {
		return fmt.Errorf("%s:%d: the document is nested too deeply, or its aliases make it too large", file, n.Line)
	}
	for i, c := range n.Content {
		if c.Kind == yaml.AliasNode {
			n.Content[i] = clone(c.Alias, left)
			c = n.Content[i]
		}
		c.Anchor = ""
		if n.Kind == yaml.MappingNode && i%2 == 0 && c.Kind != yaml.ScalarNode {
			return fmt.Errorf("%s:%d: expected text as a key", file, c.Line)
		}
		if err := bounded(file, c, depth+1, left); err != nil {
			return err
		}
	}
	for merged := take(n, "<<"); merged != nil; merged = take(n, "<<") {
		for _, source := range append(items(merged), merged) {
			for _, key := range keys(source) {
				if index(n, key) < 0 {
					set(n, key, get(source, key))
				}
			}
		}
	}
	return nil
}

// clone copies a node, as far as the bound allows.
func clone(n *yaml.Node, left *int) *yaml.Node {
	c := *n
	c.Anchor, c.Content = "", nil
	for _, child := range n.Content {
		if *left--; *left < 0 {
			break
		}
		c.Content = append(c.Content, clone(child, left))
	}
	return &c
}

// The systems whose files are translated.
const (
	legacySystem = iota + 1
	daguSystem
)

// system returns the system that a file is written for; 0 if it is none.
func (d *document) system() int {
	switch {
	case get(d.root, "nodes") != nil:
		return legacySystem
	case get(d.root, "steps") != nil:
		return daguSystem
	}
	return 0
}

// text returns the document as YAML.
func (d *document) text() ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(d.root); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return out.Bytes(), encoder.Close()
}

// writeNew writes a file that does not exist. It appears complete or not at all.
func writeNew(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".tea-migrate-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Chmod(0o644), temp.Sync(), temp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Link(temp.Name(), path)
}
