package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/sdk/value"
)

// digest identifies what a workflow does: its document in canonical form,
// the Lua modules it imports and its subgraphs. The order of keys does not
// count, but where it means something: a mapping of nodes.
func digest(w *Workflow, root *source.Node) string {
	hash := sha256.New()
	document, err := value.Encode(canonical(root))
	if err != nil {
		// The parser refuses what has no JSON form.
		panic("encode the document: " + err.Error())
	}
	hash.Write(document)
	for _, imp := range w.Imports {
		sum := sha256.Sum256(imp.Code)
		hash.Write(sum[:])
	}
	for _, sub := range subgraphs(w.Nodes) {
		if sub.Workflow != nil {
			io.WriteString(hash, sub.Workflow.Digest)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// canonical is a workflow's document as a value; mappings of nodes become
// lists, which keep their order.
func canonical(root *source.Node) any {
	document := make(map[string]any, len(root.Members))
	for _, m := range root.Members {
		switch m.Key.Text {
		case "name", "description", "version", "settings", "budget":
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

// subgraphs lists the subgraph bodies inside nodes, in order.
func subgraphs(nodes []*Node) []*SubgraphBody {
	var found []*SubgraphBody
	var visit func(b Body)
	visit = func(b Body) {
		switch b := b.(type) {
		case *SubgraphBody:
			found = append(found, b)
		case *StepsBody:
			found = append(found, subgraphs(b.Steps)...)
		case *LoopBody:
			found = append(found, subgraphs(b.Nodes)...)
		case *MapBody:
			visit(b.Do)
		}
	}
	for _, n := range nodes {
		visit(n.Body)
	}
	return found
}
