package transfer

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

var (
	entityColumns   = []string{"id", "type", "text", "properties", "embedding", "source", "created_at", "updated_at"}
	relationColumns = []string{"from", "type", "to", "weight", "valid_from", "valid_to", "properties", "source", "created_at", "updated_at"}
)

// csvWriter writes properties and embeddings as JSON. Former values of properties
// are left out.
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
	return w.entities.Write([]string{r.ID, r.Type, r.Text, string(r.Properties), embedding, r.Source, r.CreatedAt, r.UpdatedAt})
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

// readCSV reads a file of entities and one of relations. A column with another
// name is a property with a text.
func readCSV(inputs []Input, into Sink) error {
	for i, kind := range []string{store.KindEntity, store.KindRelation} {
		if err := readTable(inputs[i], kind, into); err != nil {
			return fmt.Errorf("%s: %w", CSV.Files()[i], err)
		}
	}
	return nil
}

func readTable(r io.Reader, kind string, into Sink) error {
	table := csv.NewReader(r)
	table.ReuseRecord = true
	first, err := table.Read()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	header := append([]string(nil), first...)
	for {
		row, err := table.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line, _ := table.FieldPos(0)
		record, err := fromRow(kind, header, row)
		if err == nil {
			err = record.send(into)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

func fromRow(kind string, header, row []string) (*record, error) {
	r := &record{Kind: kind}
	texts := map[string]*string{
		"id": &r.ID, "from": &r.From, "to": &r.To, "type": &r.Type, "text": &r.Text, "valid_from": &r.ValidFrom, "valid_to": &r.ValidTo,
		"source": &r.Source, "created_at": &r.CreatedAt, "updated_at": &r.UpdatedAt,
	}
	others := map[string]string{}
	for i, cell := range row {
		name := header[i]
		switch into := texts[name]; {
		case into != nil:
			*into = cell
		case name == "properties" && cell != "":
			r.Properties = json.RawMessage(cell)
		case name == "embedding" && cell != "":
			if err := json.Unmarshal([]byte(cell), &r.Embedding); err != nil {
				return nil, fmt.Errorf("embedding: %w", err)
			}
		case name == "weight" && cell != "":
			weight, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				return nil, fmt.Errorf("weight: %w", err)
			}
			r.Weight = &weight
		case cell != "" && name != "properties" && name != "embedding" && name != "weight":
			others[name] = cell
		}
	}
	if len(others) == 0 {
		return r, nil
	}
	all := map[string]json.RawMessage{}
	if r.Properties != nil {
		if err := json.Unmarshal(r.Properties, &all); err != nil {
			return nil, fmt.Errorf("properties: %w", err)
		}
	}
	for name, text := range others {
		quoted, err := json.Marshal(text)
		if err != nil {
			return nil, err
		}
		all[name] = quoted
	}
	var err error
	r.Properties, err = json.Marshal(all)
	return r, err
}
