package transfer

import (
	"encoding/json"
	"io"
	"strconv"

	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// cytoscape writes the JSON of Cytoscape and Cytoscape.js, for drawings.
type cytoscape struct {
	w     io.Writer
	nodes int
	edges int
	// begun is the open list: 0 = none, 1 = nodes, 2 = edges.
	begun int
}

func newCytoscape(w io.Writer) *cytoscape { return &cytoscape{w: w} }

func (w *cytoscape) text(text string) error {
	_, err := io.WriteString(w.w, text)
	return err
}

// begin opens a list, after those before it.
func (w *cytoscape) begin(list int) error {
	for w.begun < list {
		w.begun++
		text := `{"format_version":"1.0","data":{"name":"graph"},"directed":true,"multigraph":true,"elements":{"nodes":[`
		if w.begun == 2 {
			text = "\n" + `],"edges":[`
		}
		if err := w.text(text); err != nil {
			return err
		}
	}
	return nil
}

// add writes an element. A property becomes a column unless its type or its name
// does not allow it; those properties are in the column properties.
func (w *cytoscape) add(n *int, data map[string]any, properties []byte) error {
	decoded, err := value.Decode(properties)
	if err != nil {
		return err
	}
	all, _ := decoded.(map[string]any)
	for name, v := range all {
		_, taken := data[name]
		switch v.(type) {
		case string, bool, int64, float64:
			if !taken && name != "properties" {
				data[name] = v
				delete(all, name)
			}
		}
	}
	if len(all) > 0 {
		data["properties"] = all
	}
	text, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return err
	}
	if *n++; *n > 1 {
		if err := w.text(","); err != nil {
			return err
		}
	}
	return w.text("\n" + string(text))
}

func (w *cytoscape) Entity(e *store.Entity) error {
	if err := w.begin(1); err != nil {
		return err
	}
	return w.add(&w.nodes, map[string]any{"id": e.ID, "name": e.ID, "value": e.ID, "label": e.ID, "type": e.Type}, e.Properties)
}

func (w *cytoscape) Relation(r *store.Relation) error {
	if err := w.begin(2); err != nil {
		return err
	}
	return w.add(&w.edges, map[string]any{
		"id": "e" + strconv.Itoa(w.edges), "key": w.edges, "source": r.From, "target": r.To, "label": r.Type, "type": r.Type, "weight": r.Weight,
	}, r.Properties)
}

func (w *cytoscape) Close() error {
	if err := w.begin(2); err != nil {
		return err
	}
	return w.text("\n]}}\n")
}
