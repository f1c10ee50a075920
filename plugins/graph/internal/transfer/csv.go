package transfer

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

var (
	entityColumns   = []string{"id", "type", "text", "properties", "embedding", "facts", "source", "created_at", "updated_at"}
	relationColumns = []string{"from", "type", "to", "weight", "valid_from", "valid_to", "properties", "source", "created_at", "updated_at"}
)

// csvWriter writes properties, embeddings and facts as JSON.
type csvWriter struct{ entities, relations *csv.Writer }

func newCSV(entities, relations io.Writer) *csvWriter {
	w := &csvWriter{entities: csv.NewWriter(entities), relations: csv.NewWriter(relations)}
	_ = w.entities.Write(entityColumns) // Close returns the error
	_ = w.relations.Write(relationColumns)
	return w
}

func (w *csvWriter) Entity(e *store.Entity) error {
	r, embedding := fromEntity(e), ""
	if e.Embedding != nil {
		text, err := json.Marshal(e.Embedding)
		if err != nil {
			return err
		}
		embedding = string(text)
	}
	return w.entities.Write([]string{r.ID, r.Type, r.Text, string(r.Properties), embedding, e.Facts, r.Source, r.CreatedAt, r.UpdatedAt})
}

func (w *csvWriter) Relation(relation *store.Relation) error {
	r := fromRelation(relation)
	return w.relations.Write([]string{r.From, r.Type, r.To, strconv.FormatFloat(relation.Weight, 'g', -1, 64), r.ValidFrom, r.ValidTo, string(r.Properties), r.Source, r.CreatedAt, r.UpdatedAt})
}

func (w *csvWriter) Close() error {
	w.entities.Flush()
	w.relations.Flush()
	return errors.Join(w.entities.Error(), w.relations.Error())
}

// table is the kind of a file that is read: entities or relations.
type table struct {
	file    string
	kind    string
	fields  []string
	needed  []string
	columns []column
}

// tableOf returns the table in a file, by its name or its columns.
func tableOf(file string, columns []string) (*table, error) {
	tables := newTables()
	base := path.Base(file)
	for i, name := range []string{"entities", "relations"} {
		if strings.TrimSuffix(base, path.Ext(base)) == name {
			tables[i].file = base
			return tables[i], nil
		}
	}
	for _, t := range slices.Backward(tables) { // a relation may have an id
		if t.file = base; t.complete(columns) == nil {
			return t, nil
		}
	}
	return nil, fmt.Errorf("a table of entities has the column id, and one of relations the columns from, type and to; the columns are %q", columns)
}

func newTables() []*table {
	return []*table{
		{kind: store.KindEntity, fields: entityColumns, needed: []string{"id"}},
		{kind: store.KindRelation, fields: relationColumns, needed: []string{"from", "type", "to"}},
	}
}

// complete returns an error if a column is missing.
func (t *table) complete(names []string) error {
	for _, name := range t.needed {
		if !slices.Contains(names, name) {
			return fmt.Errorf("the column %q is missing; the columns are %q", name, names)
		}
	}
	return nil
}

// column is the meaning of a column. If its name ends in :string, :int, :float, :bool or
// :json, it is a property with values of this type; other properties are strings.
type column struct {
	name  string
	field bool
	kind  string
}

// columnKinds are the types that may end the name of a column.
var columnKinds = []string{"string", "int", "float", "bool", "json"}

// cutLast splits a text at the last separator that is not its first character.
func cutLast(text string, separator byte) (before, after string, found bool) {
	i := strings.LastIndexByte(text, separator)
	if i <= 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

// readCSV reads a file of entities or of relations. Unknown columns become properties;
// see column.
func readCSV(in Input, into Sink) error {
	reader := csv.NewReader(withLineFeeds(decoded(in.Reader)))
	reader.ReuseRecord = true
	header, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return errors.New("the file is empty; its first line has the names of the columns")
	}
	if err != nil {
		return err
	}
	t, err := tableOf(in.Name, header)
	if err != nil {
		return at("line 1", err)
	}
	if err := t.setColumns(header, into); err != nil {
		return err
	}
	for {
		row, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line, _ := reader.FieldPos(0)
		record, err := t.record(row)
		if err == nil {
			err = record.send(into)
		}
		if err != nil {
			return at(fmt.Sprintf("line %d", line), err)
		}
	}
}

func (t *table) setColumns(header []string, into Sink) error {
	seen := map[string]bool{}
	for _, name := range header {
		if !utf8.ValidString(name) {
			return at("line 1", errNotUTF8)
		}
		c := column{name: name, field: slices.Contains(t.fields, name), kind: "string"}
		before, kind, typed := cutLast(name, ':')
		switch {
		case name == "":
			return errors.New("line 1: a column has no name; name or remove it (pandas writes its index without one: use index=False)")
		case typed && slices.Contains(columnKinds, kind):
			c.name, c.kind = before, kind
		case typed:
			into.Note(fmt.Sprintf("%s: the column %q is a property with this name; the types of columns are %s", t.file, name, strings.Join(columnKinds, ", ")))
		}
		if strings.TrimSpace(c.name) != c.name {
			into.Note(fmt.Sprintf("%s: the name of the column %q begins or ends with a space", t.file, c.name))
		}
		if seen[c.name] {
			return fmt.Errorf("line 1: two columns have the name %q", c.name)
		}
		seen[c.name] = true
		t.columns = append(t.columns, c)
	}
	if err := t.complete(header); err != nil {
		if strings.ContainsAny(header[0], ";\t") {
			err = fmt.Errorf("%w. Columns are separated by commas", err)
		}
		return at("line 1", err)
	}
	return nil
}

func (t *table) record(row []string) (*record, error) {
	r := &record{Kind: t.kind}
	fields := r.texts()
	others := map[string]json.RawMessage{}
	for i, cell := range row {
		c, err := t.columns[i], error(nil)
		switch {
		case !utf8.ValidString(cell):
			err = errNotUTF8
		case cell == "":
		case !c.field:
			others[c.name], err = jsonOf(c.kind, cell)
		case fields[c.name] != nil:
			*fields[c.name] = cell
		case c.name == "facts":
			r.Facts, err = json.RawMessage(cell), checkJSON([]byte(cell))
		case c.name == "properties":
			r.Properties, err = json.RawMessage(cell), checkJSON([]byte(cell))
		case c.name == "embedding":
			if json.Unmarshal([]byte(cell), &r.Embedding) != nil {
				err = fmt.Errorf("%.50q is not a JSON list of numbers", cell)
			}
		case c.name == "weight":
			r.Weight, err = parseWeight(cell)
		}
		if err != nil {
			return nil, at(c.name, err)
		}
	}
	return r, r.add(others)
}

// texts returns the string fields by name.
func (r *record) texts() map[string]*string {
	return map[string]*string{
		"id": &r.ID, "from": &r.From, "to": &r.To, "type": &r.Type, "text": &r.Text, "valid_from": &r.ValidFrom, "valid_to": &r.ValidTo,
		"source": &r.Source, "created_at": &r.CreatedAt, "updated_at": &r.UpdatedAt,
	}
}

// add adds properties to a record.
func (r *record) add(others map[string]json.RawMessage) error {
	if len(others) == 0 {
		return nil
	}
	all := map[string]json.RawMessage{}
	if r.Properties != nil {
		if err := json.Unmarshal(r.Properties, &all); err != nil {
			return errors.New("properties: the text is not a JSON object")
		}
	}
	for name, text := range others {
		if _, ok := all[name]; ok {
			return fmt.Errorf("%s appears twice: in properties, and alone", name)
		}
		all[name] = text
	}
	var err error
	r.Properties, err = json.Marshal(all)
	return err
}

func parseWeight(text string) (*float64, error) {
	weight, err := parseFloat(text)
	return &weight, err
}

// parseFloat reads a decimal number.
func parseFloat(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.ContainsAny(text, "xX_") {
		return 0, fmt.Errorf("%.50q is not a number", text)
	}
	return n, nil
}

// jsonOf returns a value of a type of CSV or GraphML as JSON.
func jsonOf(kind, text string) (json.RawMessage, error) {
	trimmed := strings.TrimSpace(text)
	switch kind {
	case "int", "long":
		n, ok := new(big.Int).SetString(trimmed, 10)
		if !ok || strings.ContainsRune(trimmed, '_') {
			return nil, fmt.Errorf("%.50q is not an integer", text)
		}
		return json.RawMessage(n.String()), nil
	case "float", "double":
		n, err := parseFloat(trimmed)
		if err != nil {
			return nil, err
		}
		if math.IsInf(n, 0) || math.IsNaN(n) {
			return nil, fmt.Errorf("%.50q is not a finite number", text)
		}
		number := strconv.FormatFloat(n, 'g', -1, 64)
		if !strings.ContainsAny(number, ".e") {
			number += ".0"
		}
		return json.RawMessage(number), nil
	case "bool", "boolean":
		switch strings.ToLower(trimmed) { // Python writes True
		case "true", "1":
			return json.RawMessage("true"), nil
		case "false", "0":
			return json.RawMessage("false"), nil
		}
		return nil, fmt.Errorf("%.50q is not true or false", text)
	case "json":
		if !json.Valid([]byte(text)) {
			return nil, fmt.Errorf("%.50q is not valid JSON", text)
		}
		return json.RawMessage(text), checkJSON([]byte(text))
	}
	return json.Marshal(text)
}
