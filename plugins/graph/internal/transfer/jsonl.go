package transfer

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// record is a line: an entity or a relation.
type record struct {
	Kind       string          `json:"kind"`
	ID         string          `json:"id,omitempty"`
	From       string          `json:"from,omitempty"`
	To         string          `json:"to,omitempty"`
	Type       string          `json:"type"`
	Properties json.RawMessage `json:"properties,omitempty"`
	Text       string          `json:"text,omitempty"`
	Embedding  []float32       `json:"embedding,omitempty"`
	Facts      json.RawMessage `json:"facts,omitempty"`
	Weight     *float64        `json:"weight,omitempty"`
	ValidFrom  string          `json:"valid_from,omitempty"`
	ValidTo    string          `json:"valid_to,omitempty"`
	Source     string          `json:"source,omitempty"`
	CreatedAt  string          `json:"created_at,omitempty"`
	UpdatedAt  string          `json:"updated_at,omitempty"`
}

func fromEntity(e *store.Entity) *record {
	return &record{
		Kind: store.KindEntity, ID: e.ID, Type: e.Type, Properties: e.Properties, Text: e.Text, Embedding: e.Embedding,
		Facts: json.RawMessage(e.Facts), Source: e.Source, CreatedAt: store.FormatInstant(e.CreatedAt), UpdatedAt: store.FormatInstant(e.UpdatedAt),
	}
}

func fromRelation(r *store.Relation) *record {
	return &record{
		Kind: store.KindRelation, From: r.From, To: r.To, Type: r.Type, Properties: r.Properties, Weight: &r.Weight, Source: r.Source,
		ValidFrom: store.FormatInstant(r.ValidFrom), ValidTo: store.FormatInstant(r.ValidTo), CreatedAt: store.FormatInstant(r.CreatedAt), UpdatedAt: store.FormatInstant(r.UpdatedAt),
	}
}

// send passes a record on.
func (r *record) send(into Sink) error {
	created, err := store.ParseInstant(r.CreatedAt, 0)
	if err != nil {
		return fmt.Errorf("created_at: %w", err)
	}
	updated, err := store.ParseInstant(r.UpdatedAt, 0)
	if err != nil {
		return fmt.Errorf("updated_at: %w", err)
	}
	switch {
	case r.Kind == store.KindEntity || r.Kind == "" && r.ID != "":
		return into.Entity(&store.Entity{
			ID: r.ID, Type: r.Type, Properties: r.Properties, Text: r.Text, Embedding: r.Embedding, Facts: string(r.Facts), Source: r.Source, CreatedAt: created, UpdatedAt: updated,
		})
	case r.Kind != store.KindRelation && (r.Kind != "" || r.From == ""):
		return fmt.Errorf("the kind %q is neither entity nor relation", r.Kind)
	}
	relation := &store.Relation{RelationKey: store.RelationKey{From: r.From, Type: r.Type, To: r.To}, Properties: r.Properties, Weight: 1, Source: r.Source, CreatedAt: created, UpdatedAt: updated}
	if r.Weight != nil {
		relation.Weight = *r.Weight
	}
	if relation.ValidFrom, err = store.ParseInstant(r.ValidFrom, store.Always); err != nil {
		return fmt.Errorf("valid_from: %w", err)
	}
	if relation.ValidTo, err = store.ParseInstant(r.ValidTo, store.Forever); err != nil {
		return fmt.Errorf("valid_to: %w", err)
	}
	return into.Relation(relation)
}

// jsonl writes a line for each entity and relation. It loses nothing.
type jsonl struct{ encoder *json.Encoder }

func newJSONL(w io.Writer) *jsonl {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return &jsonl{encoder: encoder}
}

func (w *jsonl) Entity(e *store.Entity) error     { return w.encoder.Encode(fromEntity(e)) }
func (w *jsonl) Relation(r *store.Relation) error { return w.encoder.Encode(fromRelation(r)) }
func (w *jsonl) Close() error                     { return nil }

// maxLine is the size of a line.
const maxLine = 64 << 20

func readJSONL(r io.Reader, into Sink) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 1<<16), maxLine)
	n := 0
	for lines.Scan() {
		n++
		if len(lines.Bytes()) == 0 {
			continue
		}
		var line record
		err := json.Unmarshal(lines.Bytes(), &line)
		if err == nil {
			err = line.send(into)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", n+1, err)
	}
	return nil
}
