package transfer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// graphML writes GraphML with a key for each field and property, which other programs
// read as typed attributes. Values that GraphML cannot hold, such as lists, are in the
// key properties, as the JSON text of an object.
type graphML struct {
	w io.Writer
	// body has the nodes and edges, because all keys come first.
	body spool
	keys map[graphKey]string
	all  []graphKey
}

// graphKey is an attribute of nodes or edges.
type graphKey struct{ domain, name, kind string }

// The keys of the fields. Their ids are their names.
var (
	nodeKeys = []graphKey{{"node", "text", "string"}}
	edgeKeys = []graphKey{{"edge", "weight", "double"}, {"edge", "valid_from", "string"}, {"edge", "valid_to", "string"}}
	bothKeys = []graphKey{{"all", "type", "string"}, {"all", "properties", "string"}, {"all", "source", "string"}, {"all", "created_at", "string"}, {"all", "updated_at", "string"}}
)

// isField reports whether name is a field of nodes or edges.
func isField(domain, name string) bool {
	for _, keys := range [][]graphKey{nodeKeys, edgeKeys, bothKeys} {
		for _, k := range keys {
			if k.name == name && (k.domain == domain || k.domain == "all") {
				return true
			}
		}
	}
	return false
}

func newGraphML(w io.Writer) *graphML { return &graphML{w: w, keys: map[graphKey]string{}} }

// keyOf returns the id of the key for a property.
func (w *graphML) keyOf(k graphKey) string {
	id, ok := w.keys[k]
	if !ok {
		id = "p" + strconv.Itoa(len(w.keys))
		w.keys[k] = id
		w.all = append(w.all, k)
	}
	return id
}

// datum is a value of a node or an edge, by the id of its key.
type datum struct{ key, text string }

// properties returns the properties as data: typed data if GraphML has the type, and
// the others as JSON.
func (w *graphML) properties(domain string, text []byte) ([]datum, error) {
	decoded, err := value.Decode(text)
	if err != nil {
		return nil, err
	}
	all, _ := decoded.(map[string]any)
	var data []datum
	for _, name := range slices.Sorted(maps.Keys(all)) {
		kind, text := "", ""
		switch v := all[name].(type) {
		case string:
			kind, text = "string", v
		case bool:
			kind, text = "boolean", strconv.FormatBool(v)
		case int64:
			kind, text = "long", strconv.FormatInt(v, 10)
		case float64:
			kind, text = "double", strconv.FormatFloat(v, 'g', -1, 64)
		}
		if kind == "" || name == "" || isField(domain, name) || !isXML(name) || !isXML(text) {
			continue
		}
		data = append(data, datum{w.keyOf(graphKey{domain, name, kind}), text})
		delete(all, name)
	}
	if len(all) == 0 {
		return data, nil
	}
	rest, err := value.Encode(all)
	return append(data, datum{"properties", string(rest)}), err
}

// isXML reports whether XML allows all characters of a text.
func isXML(text string) bool {
	for _, r := range text {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return false
		}
	}
	return true
}

// element writes a node or an edge.
func (w *graphML) element(name string, attributes, fields, properties []datum) error {
	var b bytes.Buffer
	escape := func(key, text string) error {
		if !isXML(text) {
			return tea.Errorf(tea.ValidationError, "the %s %q has a character that XML cannot represent; export it as jsonl", key, shortened(text))
		}
		return xml.EscapeText(&b, []byte(text))
	}
	b.WriteString("<" + name)
	for _, a := range attributes {
		b.WriteString(" " + a.key + `="`)
		if err := escape(a.key, a.text); err != nil {
			return err
		}
		b.WriteByte('"')
	}
	b.WriteByte('>')
	for i, d := range slices.Concat(fields, properties) {
		if d.text == "" && i < len(fields) {
			continue
		}
		b.WriteString(`<data key="` + d.key + `">`)
		if err := escape(d.key, d.text); err != nil {
			return err
		}
		b.WriteString("</data>")
	}
	b.WriteString("</" + name + ">\n")
	_, err := w.body.Write(b.Bytes())
	return err
}

func shortened(text string) string {
	if r := []rune(text); len(r) > 40 {
		return string(r[:40]) + "..."
	}
	return text
}

func (w *graphML) Entity(e *store.Entity) error {
	r := fromEntity(e)
	properties, err := w.properties("node", e.Properties)
	if err != nil {
		return err
	}
	fields := []datum{{"type", r.Type}, {"text", r.Text}, {"source", r.Source}, {"created_at", r.CreatedAt}, {"updated_at", r.UpdatedAt}}
	return w.element("node", []datum{{"id", r.ID}}, fields, properties)
}

func (w *graphML) Relation(relation *store.Relation) error {
	r := fromRelation(relation)
	properties, err := w.properties("edge", relation.Properties)
	if err != nil {
		return err
	}
	fields := []datum{
		{"type", r.Type},
		{"weight", strconv.FormatFloat(relation.Weight, 'g', -1, 64)},
		{"valid_from", r.ValidFrom},
		{"valid_to", r.ValidTo},
		{"source", r.Source},
		{"created_at", r.CreatedAt},
		{"updated_at", r.UpdatedAt},
	}
	return w.element("edge", []datum{{"source", r.From}, {"target", r.To}}, fields, properties)
}

func (w *graphML) Close() error {
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
`)
	for _, k := range slices.Concat(bothKeys, nodeKeys, edgeKeys, w.all) {
		id, ok := w.keys[k]
		if !ok {
			id = k.name
		}
		fmt.Fprintf(&b, `<key id="%s" for="%s" attr.name="`, id, k.domain)
		if err := xml.EscapeText(&b, []byte(k.name)); err != nil {
			return err
		}
		fmt.Fprintf(&b, `" attr.type="%s"/>`+"\n", k.kind)
	}
	b.WriteString(`<graph id="G" edgedefault="directed">` + "\n")
	if _, err := b.WriteTo(w.w); err != nil {
		return err
	}
	if err := w.body.copyTo(w.w); err != nil {
		return err
	}
	_, err := io.WriteString(w.w, "</graph>\n</graphml>\n")
	return err
}

func (w *graphML) Discard() { w.body.discard() }

// record is the entity of a node or the relation of an edge.
func (item *xmlItem) record(domain string, g *graphMLReader) (*record, error) {
	r := &record{Kind: store.KindEntity, ID: item.ID}
	if domain == "edge" {
		r = &record{Kind: store.KindRelation, From: item.Source, To: item.Target, Type: "related_to"}
	}
	fields := map[string]*string{
		"type": &r.Type, "text": &r.Text, "valid_from": &r.ValidFrom, "valid_to": &r.ValidTo, "source": &r.Source, "created_at": &r.CreatedAt, "updated_at": &r.UpdatedAt,
	}
	others, label, keys := map[string]json.RawMessage{}, "", map[string]string{}
	for _, d := range g.complete(domain, item.Data) {
		if d.graphics() {
			g.graphics, label = true, cmp.Or(label, d.label())
			continue
		}
		key := g.key(d.Key)
		name, text := key.Name, d.Text
		// A program may write several keys with one name, one for each type of its
		// values.
		switch former, ok := keys[name]; {
		case ok && d.isDefault:
			continue
		case ok && former == d.Key:
			return nil, fmt.Errorf("the attribute %q appears twice", name)
		case ok:
			return nil, fmt.Errorf("the attribute %q appears twice, under the keys %q and %q; rename one of them", name, former, d.Key)
		}
		keys[name] = d.Key
		var err error
		switch into := fields[name]; {
		case into != nil && isField(domain, name):
			*into = text
		case name == "weight" && domain == "edge":
			r.Weight, err = parseWeight(strings.TrimSpace(text))
		case name == "properties" && strings.HasPrefix(strings.TrimSpace(text), "{"):
			r.Properties = json.RawMessage(text)
		default:
			others[name], err = jsonOf(key.Type, text)
		}
		if err != nil {
			return nil, at(name, err)
		}
	}
	for name, text := range map[string]string{"label": label, "desc": item.Desc, "source_port": item.SourcePort, "target_port": item.TargetPort} {
		if _, ok := others[name]; !ok && text != "" {
			others[name], _ = json.Marshal(text) // a text
		}
	}
	if r.Properties == nil {
		r.Properties = json.RawMessage("{}")
	}
	return r, r.add(others)
}
