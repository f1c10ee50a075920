package transfer

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The supported elements of GraphML.
type (
	xmlKey struct {
		ID      string  `xml:"id,attr"`
		For     string  `xml:"for,attr"`
		Name    string  `xml:"attr.name,attr"`
		Type    string  `xml:"attr.type,attr"`
		Default *string `xml:"default"`
	}
	xmlItem struct {
		ID         string    `xml:"id,attr"`
		Source     string    `xml:"source,attr"`
		Target     string    `xml:"target,attr"`
		Directed   string    `xml:"directed,attr"`
		SourcePort string    `xml:"sourceport,attr"`
		TargetPort string    `xml:"targetport,attr"`
		Desc       string    `xml:"desc"`
		Data       []xmlData `xml:"data"`
		Graph      *struct{} `xml:"graph"`
		Locator    *struct{} `xml:"locator"`
		Ports      []struct {
			Data []xmlData `xml:"data"`
		} `xml:"port"`
	}
	xmlData struct {
		Key      string       `xml:"key,attr"`
		Text     string       `xml:",chardata"`
		Elements []xmlElement `xml:",any"`

		isDefault bool
	}
	xmlElement struct {
		XMLName  xml.Name
		Text     string       `xml:",chardata"`
		Elements []xmlElement `xml:",any"`
	}
)

// graphics reports whether a value is a yEd drawing, not a text.
func (d *xmlData) graphics() bool { return len(d.Elements) > 0 }

// label returns the label of a yEd drawing.
func (d *xmlData) label() string { return labelIn(d.Elements) }

func labelIn(elements []xmlElement) string {
	for _, e := range elements {
		if e.XMLName.Local == "NodeLabel" || e.XMLName.Local == "EdgeLabel" {
			return strings.TrimSpace(e.Text)
		}
		if label := labelIn(e.Elements); label != "" {
			return label
		}
	}
	return ""
}

// graphMLReader reads GraphML of any program. Attributes that are not fields are
// properties.
type graphMLReader struct {
	decoder *xml.Decoder
	into    Sink
	keys    map[string]xmlKey
	// defaults are the keys with a default value.
	defaults []xmlKey

	graphs     int
	undirected bool // unless an edge says otherwise
	// for the notes
	undirectedEdges  int
	graphAttributes  []string
	graphics, edgeID bool
}

func readGraphML(r io.Reader, into Sink) error {
	g := &graphMLReader{decoder: xml.NewDecoder(decoded(r)), into: into, keys: map[string]xmlKey{}}
	g.decoder.CharsetReader = charset
	if err := g.document(); err != nil {
		return err
	}
	if g.undirectedEdges > 0 {
		into.Note(fmt.Sprintf("edges without a direction: %d; they are stored as relations from source to target, and direction: both follows them both ways", g.undirectedEdges))
	}
	if g.graphics {
		into.Note("graphics are left out, except labels, which become the property label")
	}
	if g.edgeID {
		into.Note("the ids of edges are left out")
	}
	if len(g.graphAttributes) > 0 {
		into.Note("attributes of the graph itself are left out: " + strings.Join(g.graphAttributes, ", "))
	}
	return nil
}

// document reads the element graphml.
func (g *graphMLReader) document() error {
	for {
		token, err := g.decoder.Token()
		if errors.Is(err, io.EOF) {
			return errors.New("the file is not GraphML: it does not have an element graphml")
		}
		if err != nil {
			return g.syntax(err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local != "graphml" {
			return fmt.Errorf("the file is not GraphML: its first element is %s", start.Name.Local)
		}
		if err := g.each(g.topLevel); err != nil {
			return err
		}
		if g.graphs == 0 {
			return errors.New("the file does not have an element graph")
		}
		return nil
	}
}

// each calls read for each element in the current one. An error names its line.
func (g *graphMLReader) each(read func(start xml.StartElement) error) error {
	for {
		token, err := g.decoder.Token()
		if err != nil {
			return g.syntax(err)
		}
		switch token := token.(type) {
		case xml.EndElement:
			return nil
		case xml.StartElement:
			line, _ := g.decoder.InputPos()
			if err := read(token); err != nil {
				return g.at(line, err)
			}
		}
	}
}

// placed is an error with its line.
type placed struct{ error }

func (p placed) Unwrap() error { return p.error }

func (g *graphMLReader) at(line int, err error) error {
	var syntax *xml.SyntaxError
	switch {
	case errors.As(err, new(placed)):
		return err
	case errors.As(err, &syntax):
		return placed{fmt.Errorf("line %d: not valid XML: %s", syntax.Line, syntax.Msg)}
	}
	return placed{at(fmt.Sprintf("line %d", line), err)}
}

func (g *graphMLReader) syntax(err error) error {
	line, _ := g.decoder.InputPos()
	return g.at(line, err)
}

func (g *graphMLReader) topLevel(start xml.StartElement) error {
	switch start.Name.Local {
	case "key":
		var k xmlKey
		if err := g.decoder.DecodeElement(&k, &start); err != nil {
			return err
		}
		if g.graphs > 0 {
			return fmt.Errorf("the key %q comes after the graph", k.ID)
		}
		if k.Name == "" {
			k.Name = k.ID
		}
		g.keys[k.ID] = k
		if k.Default != nil {
			g.defaults = append(g.defaults, k)
		}
		return nil
	case "graph":
		if g.graphs++; g.graphs > 1 {
			return errors.New("the file has two graphs; import a file for each, with a namespace")
		}
		for _, a := range start.Attr {
			g.undirected = g.undirected || a.Name.Local == "edgedefault" && a.Value == "undirected"
		}
		return g.each(g.item)
	case "data":
		return g.attribute(start)
	case "desc":
		return g.decoder.Skip()
	}
	return fmt.Errorf("the element %s is not supported", start.Name.Local)
}

// attribute reads an attribute of the graph itself.
func (g *graphMLReader) attribute(start xml.StartElement) error {
	var d xmlData
	if err := g.decoder.DecodeElement(&d, &start); err != nil {
		return err
	}
	if d.graphics() {
		g.graphics = true
	} else if name := g.key(d.Key).Name; !slices.Contains(g.graphAttributes, name) {
		g.graphAttributes = append(g.graphAttributes, name)
	}
	return nil
}

// key returns the key of a value. The file may lack it.
func (g *graphMLReader) key(id string) xmlKey {
	if key, ok := g.keys[id]; ok {
		return key
	}
	return xmlKey{Name: id, Type: "string"}
}

// complete adds default values for keys that the data lacks.
func (g *graphMLReader) complete(domain string, data []xmlData) []xmlData {
	for _, key := range g.defaults {
		if key.For != domain && key.For != "all" && key.For != "" || slices.ContainsFunc(data, func(d xmlData) bool { return d.Key == key.ID }) {
			continue
		}
		data = append(data, xmlData{Key: key.ID, Text: *key.Default, isDefault: true})
	}
	return data
}

// directed reports whether an edge has a direction, an xs:boolean attribute.
func (item *xmlItem) directed(absent bool) (bool, error) {
	switch text := strings.TrimSpace(item.Directed); text {
	case "":
		return absent, nil
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	default:
		return false, fmt.Errorf("directed is %q, which is neither true nor false", text)
	}
}

// item reads a node or an edge.
func (g *graphMLReader) item(start xml.StartElement) error {
	domain := start.Name.Local
	switch domain {
	case "data":
		return g.attribute(start)
	case "desc":
		return g.decoder.Skip()
	case "hyperedge":
		return errors.New("hyperedges are not supported; replace each by a node with edges")
	case "node", "edge":
	default:
		return fmt.Errorf("the element %s is not supported", domain)
	}
	var item xmlItem
	if err := g.decoder.DecodeElement(&item, &start); err != nil {
		return err
	}
	switch {
	case item.Graph != nil:
		return fmt.Errorf("the %s %q has a graph in it, which is not supported; ungroup it, or import the inner graph from a separate file", domain, item.ID)
	case item.Locator != nil:
		return fmt.Errorf("the %s %q is in another file, which is not supported", domain, item.ID)
	}
	for _, port := range item.Ports {
		if len(port.Data) > 0 {
			return fmt.Errorf("the node %q has a port with data, which is not supported", item.ID)
		}
	}
	if domain == "edge" {
		g.edgeID = g.edgeID || item.ID != ""
		directed, err := item.directed(!g.undirected)
		if err != nil {
			return err
		}
		if !directed {
			g.undirectedEdges++
		}
	}
	r, err := item.record(domain, g)
	if err != nil {
		return err
	}
	return r.send(g.into)
}
