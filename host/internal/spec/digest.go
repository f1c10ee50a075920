package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/sdk/value"
)

// digest identifies the behaviour of a workflow: its document in canonical
// form, its Lua modules and its subgraphs.
func digest(w *Workflow, document []byte) string {
	hash := sha256.New()
	hash.Write(document)
	for _, imp := range w.Imports {
		sum := sha256.Sum256(imp.Code)
		hash.Write(sum[:])
	}
	for _, sub := range w.Subgraphs() {
		io.WriteString(hash, sub.Digest)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// canonicalDocument encodes a workflow's document. The order of keys matters only
// in a mapping of nodes.
func canonicalDocument(root *source.Node) []byte {
	document, err := value.Encode(canonical(root))
	if err != nil {
		// The parser rejects values without a JSON form.
		panic("encode the document: " + err.Error())
	}
	return document
}

// canonical converts a workflow's document to a value; mappings of nodes become
// lists, which preserve their order.
func canonical(root *source.Node) any {
	document := make(map[string]any, len(root.Members))
	for _, m := range root.Members {
		switch m.Key.Text {
		case "name", "description", "version", "settings", "budget", "serve", "queues":
			continue
		}
		if strings.HasPrefix(m.Key.Text, "x-") {
			continue
		}
		document[m.Key.Text] = canonicalNodes(m.Key.Text, m.Value)
	}
	return document
}

func canonicalNodes(key string, n *source.Node) any {
	if key != "nodes" && key != "body" {
		return n.Value()
	}
	var list []any
	for _, item := range n.Items {
		list = append(list, canonicalNode(item))
	}
	for _, m := range n.Members {
		list = append(list, []any{m.Key.Text, canonicalNode(m.Value)})
	}
	return list
}

func canonicalNode(n *source.Node) any {
	if n.Kind != source.Map || n.Get("type") == nil {
		return n.Value()
	}
	return canonical(n)
}
