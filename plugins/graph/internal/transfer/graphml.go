package transfer

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// graphML writes GraphML with a key for each field. Properties are the JSON text
// of an object.
type graphML struct {
	w     io.Writer
	begun bool
}

func newGraphML(w io.Writer) *graphML { return &graphML{w: w} }

const graphMLHead = `<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="type" for="all" attr.name="type" attr.type="string"/>
<key id="text" for="node" attr.name="text" attr.type="string"/>
<key id="properties" for="all" attr.name="properties" attr.type="string"/>
<key id="weight" for="edge" attr.name="weight" attr.type="double"/>
<key id="valid_from" for="edge" attr.name="valid_from" attr.type="string"/>
<key id="valid_to" for="edge" attr.name="valid_to" attr.type="string"/>
<key id="source" for="all" attr.name="source" attr.type="string"/>
<graph edgedefault="directed">
`

func (w *graphML) element(name string, attributes []xml.Attr, data [][2]string) error {
	var b strings.Builder
	if !w.begun {
		w.begun = true
		b.WriteString(graphMLHead)
	}
	fmt.Fprintf(&b, "<%s", name)
	for _, a := range attributes {
		fmt.Fprintf(&b, ` %s="`, a.Name.Local)
		if err := xml.EscapeText(&b, []byte(a.Value)); err != nil {
			return err
		}
		b.WriteByte('"')
	}
	b.WriteByte('>')
	for _, d := range data {
		if d[1] == "" {
			continue
		}
		fmt.Fprintf(&b, `<data key=%q>`, d[0])
		if err := xml.EscapeText(&b, []byte(d[1])); err != nil {
			return err
		}
		b.WriteString("</data>")
	}
	fmt.Fprintf(&b, "</%s>\n", name)
	_, err := io.WriteString(w.w, b.String())
	return err
}

func attribute(name, v string) xml.Attr { return xml.Attr{Name: xml.Name{Local: name}, Value: v} }

func (w *graphML) Entity(e *store.Entity) error {
	return w.element("node", []xml.Attr{attribute("id", e.ID)}, [][2]string{{"type", e.Type}, {"text", e.Text}, {"properties", string(e.Properties)}, {"source", e.Source}})
}

func (w *graphML) Relation(relation *store.Relation) error {
	r := fromRelation(relation)
	return w.element("edge", []xml.Attr{attribute("source", r.From), attribute("target", r.To)}, [][2]string{
		{"type", r.Type}, {"weight", strconv.FormatFloat(relation.Weight, 'g', -1, 64)}, {"valid_from", r.ValidFrom}, {"valid_to", r.ValidTo}, {"properties", string(r.Properties)}, {"source", r.Source},
	})
}

func (w *graphML) Close() error {
	text := "</graph>\n</graphml>\n"
	if !w.begun {
		text = graphMLHead + text
	}
	_, err := io.WriteString(w.w, text)
	return err
}

// The elements of GraphML that are read.
type (
	xmlKey struct {
		ID   string `xml:"id,attr"`
		Name string `xml:"attr.name,attr"`
		Type string `xml:"attr.type,attr"`
	}
	xmlItem struct {
		ID     string `xml:"id,attr"`
		Source string `xml:"source,attr"`
		Target string `xml:"target,attr"`
		Data   []struct {
			Key  string `xml:"key,attr"`
			Text string `xml:",chardata"`
		} `xml:"data"`
	}
)

// readGraphML reads GraphML of any program. Attributes that have another name
// than a field are properties.
func readGraphML(r io.Reader, into Sink) error {
	decoder := xml.NewDecoder(r)
	keys := map[string]xmlKey{}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = readElement(decoder, token, keys, into)
		}
		if err != nil {
			line, _ := decoder.InputPos()
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

func readElement(decoder *xml.Decoder, token xml.Token, keys map[string]xmlKey, into Sink) error {
	start, ok := token.(xml.StartElement)
	if !ok {
		return nil
	}
	switch start.Name.Local {
	case "key":
		var k xmlKey
		if err := decoder.DecodeElement(&k, &start); err != nil {
			return err
		}
		keys[k.ID] = k
	case "node", "edge":
		var item xmlItem
		if err := decoder.DecodeElement(&item, &start); err != nil {
			return err
		}
		r, err := item.record(start.Name.Local, keys)
		if err != nil {
			return err
		}
		return r.send(into)
	}
	return nil
}

func (item *xmlItem) record(name string, keys map[string]xmlKey) (*record, error) {
	r := &record{Kind: store.KindEntity, ID: item.ID}
	if name == "edge" {
		r = &record{Kind: store.KindRelation, From: item.Source, To: item.Target, Type: "related_to"}
	}
	fields := map[string]*string{"type": &r.Type, "text": &r.Text, "valid_from": &r.ValidFrom, "valid_to": &r.ValidTo, "source": &r.Source}
	all := map[string]json.RawMessage{}
	for _, d := range item.Data {
		key, ok := keys[d.Key]
		if !ok {
			key = xmlKey{Name: d.Key, Type: "string"}
		}
		text := strings.TrimSpace(d.Text)
		if key.Type == "boolean" {
			text = strings.ToLower(text) // Python writes True
		}
		switch into := fields[key.Name]; {
		case into != nil:
			*into = d.Text
		case key.Name == "weight" && name == "edge":
			weight, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, fmt.Errorf("weight: %w", err)
			}
			r.Weight = &weight
		case key.Name == "properties" && strings.HasPrefix(text, "{"):
			if err := json.Unmarshal([]byte(text), &all); err != nil {
				return nil, fmt.Errorf("properties: %w", err)
			}
		case (key.Type == "string" || key.Type == "") || !json.Valid([]byte(text)):
			quoted, err := json.Marshal(d.Text)
			if err != nil {
				return nil, err
			}
			all[key.Name] = quoted
		default:
			all[key.Name] = json.RawMessage(text)
		}
	}
	var err error
	r.Properties, err = json.Marshal(all)
	return r, err
}
