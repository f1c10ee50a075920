package transfer

import (
	"encoding/json"
	"io"
	"strconv"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// cytoscape writes the JSON of Cytoscape and Cytoscape.js, for pictures.
type cytoscape struct {
	w     io.Writer
	nodes int
	edges int
	// begun is the list that is open: 0 = none, 1 = nodes, 2 = edges.
	begun int
}

func newCytoscape(w io.Writer) *cytoscape { return &cytoscape{w: w} }

func (w *cytoscape) text(text string) error {
	_, err := io.WriteString(w.w, text)
	return err
}

// begin opens a list, and those before it.
func (w *cytoscape) begin(list int) error {
	for w.begun < list {
		w.begun++
		text := `{"elements":{"nodes":[`
		if w.begun == 2 {
			text = "\n" + `],"edges":[`
		}
		if err := w.text(text); err != nil {
			return err
		}
	}
	return nil
}

func (w *cytoscape) add(n *int, data map[string]any) error {
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
	return w.add(&w.nodes, map[string]any{"id": e.ID, "label": e.ID, "type": e.Type, "properties": json.RawMessage(e.Properties)})
}

func (w *cytoscape) Relation(r *store.Relation) error {
	if err := w.begin(2); err != nil {
		return err
	}
	return w.add(&w.edges, map[string]any{
		"id": "e" + strconv.Itoa(w.edges), "source": r.From, "target": r.To, "label": r.Type, "type": r.Type, "weight": r.Weight, "properties": json.RawMessage(r.Properties),
	})
}

func (w *cytoscape) Close() error {
	if err := w.begin(2); err != nil {
		return err
	}
	return w.text("\n]}}\n")
}
