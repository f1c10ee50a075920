package transfer

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// entityRow and relationRow are the columns of the Parquet files. Properties are
// JSON texts; an empty text is a value that does not exist.
type entityRow struct {
	ID         string    `parquet:"id"`
	Type       string    `parquet:"type,dict"`
	Text       string    `parquet:"text"`
	Properties string    `parquet:"properties"`
	Embedding  []float32 `parquet:"embedding"`
	Facts      string    `parquet:"facts"`
	Source     string    `parquet:"source,dict"`
	CreatedAt  string    `parquet:"created_at"`
	UpdatedAt  string    `parquet:"updated_at"`
}

type relationRow struct {
	From       string  `parquet:"from"`
	Type       string  `parquet:"type,dict"`
	To         string  `parquet:"to"`
	Weight     float64 `parquet:"weight"`
	ValidFrom  string  `parquet:"valid_from"`
	ValidTo    string  `parquet:"valid_to"`
	Properties string  `parquet:"properties"`
	Source     string  `parquet:"source,dict"`
	CreatedAt  string  `parquet:"created_at"`
	UpdatedAt  string  `parquet:"updated_at"`
}

// parquetWriter writes rows as they come.
type parquetWriter struct {
	entities  *parquet.GenericWriter[entityRow]
	relations *parquet.GenericWriter[relationRow]
}

// groupRows is the number of rows that are kept in memory.
const groupRows = 50_000

func newParquet(entities, relations io.Writer) *parquetWriter {
	return &parquetWriter{
		entities:  parquet.NewGenericWriter[entityRow](entities, parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(groupRows)),
		relations: parquet.NewGenericWriter[relationRow](relations, parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(groupRows)),
	}
}

func (w *parquetWriter) Entity(e *store.Entity) error {
	r := fromEntity(e)
	_, err := w.entities.Write([]entityRow{{
		ID: r.ID, Type: r.Type, Text: r.Text, Properties: string(r.Properties), Embedding: r.Embedding, Facts: e.Facts, Source: r.Source, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}})
	return err
}

func (w *parquetWriter) Relation(relation *store.Relation) error {
	r := fromRelation(relation)
	_, err := w.relations.Write([]relationRow{{
		From: r.From, Type: r.Type, To: r.To, Weight: relation.Weight, ValidFrom: r.ValidFrom, ValidTo: r.ValidTo, Properties: string(r.Properties),
		Source: r.Source, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}})
	return err
}

func (w *parquetWriter) Close() error {
	return errors.Join(w.entities.Close(), w.relations.Close())
}

func readParquet(inputs []Input, sizes []int64, into Sink) error {
	err := eachRow(inputs[0], sizes[0], func(row *entityRow) error {
		return (&record{
			Kind: store.KindEntity, ID: row.ID, Type: row.Type, Text: row.Text, Properties: []byte(row.Properties), Embedding: row.Embedding, Facts: []byte(row.Facts),
			Source: row.Source, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt,
		}).send(into)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", Parquet.Files()[0], err)
	}
	err = eachRow(inputs[1], sizes[1], func(row *relationRow) error {
		return (&record{
			Kind: store.KindRelation, From: row.From, Type: row.Type, To: row.To, Weight: &row.Weight, ValidFrom: row.ValidFrom, ValidTo: row.ValidTo,
			Properties: []byte(row.Properties), Source: row.Source, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt,
		}).send(into)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", Parquet.Files()[1], err)
	}
	return nil
}

// eachRow calls f with each row of a file. A damaged file can make the library
// panic.
func eachRow[R any](input Input, size int64, f func(*R) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the file is damaged: %v", p)
		}
	}()
	file, err := parquet.OpenFile(input, size)
	if err != nil {
		return err
	}
	reader := parquet.NewGenericReader[R](file)
	defer func() { _ = reader.Close() }()
	rows := make([]R, 256)
	for n := 0; ; {
		clear(rows)
		read, err := reader.Read(rows)
		for i := range rows[:read] {
			n++
			if err := f(&rows[i]); err != nil {
				return fmt.Errorf("row %d: %w", n, err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
