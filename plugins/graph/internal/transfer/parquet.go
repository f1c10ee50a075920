package transfer

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// entityRow and relationRow are the columns of the Parquet files. Properties are JSON
// texts; an empty text is an absent value.
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

// parquetWriter writes rows as they arrive.
type parquetWriter struct {
	entities  *parquet.GenericWriter[entityRow]
	relations *parquet.GenericWriter[relationRow]
}

// groupRows is the number of rows kept in memory.
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

// parquetColumn is a column of values, or of lists of values.
type parquetColumn struct {
	name    string
	kind    parquet.Type
	list    bool
	isField bool
	isHalf  bool // 16-bit floats
	// levels are the definition levels from which a value exists, and in a list an
	// element, which can be null.
	levels struct{ value, element int }
}

// readParquet reads a file of entities or of relations. Unknown columns become
// properties, as in CSV. A damaged file may make the library panic.
func readParquet(in Input, into Sink) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the file is damaged: %v", p)
		}
	}()
	file, err := parquet.OpenFile(in.Reader.(io.ReaderAt), in.Size)
	if err != nil {
		return fmt.Errorf("it is not a Parquet file, or it is damaged: %w", err)
	}
	var names []string
	for _, field := range file.Schema().Fields() {
		names = append(names, field.Name())
	}
	t, err := tableOf(in.Name, names)
	if err != nil {
		return err
	}
	columns, err := t.parquetColumns(file.Schema())
	if err != nil {
		return err
	}
	leaf := 0
	for _, e := range file.Metadata().Schema { // the library's types do not include Float16
		if e.Type.Valid && leaf < len(columns) {
			_, columns[leaf].isHalf = e.LogicalType.Value.(*format.Float16Type)
			leaf++
		}
	}
	n, rows := 0, make([]parquet.Row, 256)
	for _, group := range file.RowGroups() {
		reader := group.Rows()
		for end := false; !end; {
			read, err := reader.ReadRows(rows)
			if end = errors.Is(err, io.EOF); err != nil && !end {
				return errors.Join(err, reader.Close())
			}
			for _, row := range rows[:read] {
				n++
				r, err := t.parquetRecord(columns, row)
				if err == nil {
					err = r.send(into)
				}
				if err != nil {
					return errors.Join(at(fmt.Sprintf("row %d", n), err), reader.Close())
				}
			}
		}
		if err := reader.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) parquetColumns(schema *parquet.Schema) ([]parquetColumn, error) {
	var columns []parquetColumn
	var names []string
	for _, path := range schema.Columns() {
		leaf, ok := schema.Lookup(path...)
		if !ok || leaf.MaxRepetitionLevel > 1 || len(path) > 1 && leaf.MaxRepetitionLevel == 0 || slices.Contains(names, path[0]) {
			return nil, fmt.Errorf("the column %q has objects or lists of lists, which are not supported", path[0])
		}
		names = append(names, path[0])
		c := parquetColumn{name: path[0], kind: leaf.Node.Type(), list: leaf.MaxRepetitionLevel == 1, isField: slices.Contains(t.fields, path[0])}
		c.levels.value = leaf.MaxDefinitionLevel
		c.levels.element = elementLevel(schema, path)
		columns = append(columns, c)
	}
	return columns, t.complete(names)
}

// elementLevel returns the definition level from which the list of a column has an
// element. One level lower means an empty list, further ones mean null.
func elementLevel(node parquet.Node, path []string) int {
	level := 0
	for _, name := range path {
		for _, field := range node.Fields() {
			if field.Name() == name {
				node = field
				break
			}
		}
		if !node.Required() {
			level++
		}
		if node.Repeated() {
			break
		}
	}
	return level
}

func (t *table) parquetRecord(columns []parquetColumn, row parquet.Row) (*record, error) {
	r := &record{Kind: t.kind}
	others := map[string]json.RawMessage{}
	var err error
	row.Range(func(i int, values []parquet.Value) bool {
		c := &columns[i]
		var list []any
		for _, v := range values {
			var decoded any
			switch level := v.DefinitionLevel(); {
			case level == c.levels.value:
				decoded, err = c.decode(v)
			case c.list && level == c.levels.element-1:
				list = []any{}
				continue
			case !c.list || level < c.levels.element:
				continue
			}
			if err != nil {
				break
			}
			list = append(list, decoded)
		}
		switch {
		case err != nil || list == nil:
		case c.isField && len(list) > 0:
			err = r.set(c.name, list)
		case c.isField:
		case c.list:
			others[c.name], err = value.Encode(list)
		default:
			others[c.name], err = value.Encode(list[0])
		}
		if err != nil {
			err = at(c.name, err)
		}
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	return r, r.add(others)
}

// decode returns a value in its JSON form. Times are strings.
func (c *parquetColumn) decode(v parquet.Value) (any, error) {
	switch v.Kind() {
	case parquet.Boolean:
		return v.Boolean(), nil
	case parquet.Int32:
		n := int64(v.Int32())
		if c.unsigned() {
			n = int64(v.Uint32())
		}
		return c.integer(n)
	case parquet.Int64:
		return c.integer(v.Int64())
	case parquet.Float:
		return float64(v.Float()), nil
	case parquet.Double:
		return v.Double(), nil
	case parquet.FixedLenByteArray:
		return c.bytes(v.ByteArray())
	case parquet.ByteArray:
		if logical := c.kind.LogicalType(); logical != nil {
			if _, ok := logical.Value.(*format.DecimalType); ok {
				return nil, c.unsupported()
			}
		}
		if text := string(v.ByteArray()); utf8.ValidString(text) {
			return text, nil
		}
		return nil, errNotUTF8
	}
	return nil, c.unsupported()
}

func (c *parquetColumn) unsupported() error {
	return fmt.Errorf("values of the type %s are not supported", c.kind)
}

// bytes returns the value of a fixed number of bytes.
func (c *parquetColumn) bytes(b []byte) (any, error) {
	if c.isHalf && len(b) == 2 {
		return float16(binary.LittleEndian.Uint16(b)), nil
	}
	if logical := c.kind.LogicalType(); logical != nil && len(b) == 16 {
		if _, ok := logical.Value.(*format.UUIDType); ok {
			return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
		}
	}
	return nil, c.unsupported()
}

// float16 returns the value of a number of IEEE 754, binary16.
func float16(bits uint16) float64 {
	sign, exponent, fraction := 1-2*float64(bits>>15), int(bits>>10&0x1f), float64(bits&0x3ff)
	switch {
	case exponent == 0:
		return sign * math.Ldexp(fraction, -24)
	case exponent < 0x1f:
		return sign * math.Ldexp(fraction+0x400, exponent-25)
	case fraction != 0:
		return math.NaN()
	}
	return math.Inf(int(sign))
}

// unsigned reports whether the column has unsigned integers.
func (c *parquetColumn) unsigned() bool {
	logical := c.kind.LogicalType()
	if logical == nil {
		return false
	}
	meaning, ok := logical.Value.(*format.IntType)
	return ok && !meaning.IsSigned
}

// integer returns the value of an integer of the column's logical type.
func (c *parquetColumn) integer(n int64) (any, error) {
	logical := c.kind.LogicalType()
	if logical == nil {
		return n, nil
	}
	switch meaning := logical.Value.(type) {
	case *format.TimestampType:
		unit := meaning.Unit.Value.Duration()
		second := int64(time.Second / unit)
		return time.Unix(n/second, n%second*int64(unit)).UTC().Format(time.RFC3339Nano), nil
	case *format.TimeType:
		return time.Unix(0, n*int64(meaning.Unit.Value.Duration())).UTC().Format("15:04:05.999999999"), nil
	case *format.DateType:
		return time.Unix(n*24*60*60, 0).UTC().Format(time.DateOnly), nil
	case *format.IntType:
		if n < 0 && c.unsigned() {
			return json.Number(strconv.FormatUint(uint64(n), 10)), nil
		}
		return n, nil
	}
	return nil, c.unsupported()
}

// set sets a field.
func (r *record) set(name string, list []any) error {
	text, isText := list[0].(string)
	switch name {
	case "weight":
		switch n := list[0].(type) {
		case float64:
			r.Weight = &n
		case int64:
			weight := float64(n)
			r.Weight = &weight
		case json.Number:
			r.Weight, _ = parseWeight(n.String()) // an integer
		default:
			return fmt.Errorf("%.50q is not a number", fmt.Sprint(n))
		}
	case "embedding":
		for _, v := range list {
			n, ok := v.(float64)
			if !ok {
				return errors.New("an embedding is a list of floating-point numbers")
			}
			r.Embedding = append(r.Embedding, float32(n))
		}
	default:
		if !isText {
			text = fmt.Sprint(list[0])
		}
		switch name {
		case "properties":
			r.Properties = json.RawMessage(text)
		case "facts":
			r.Facts = json.RawMessage(text)
		default:
			*r.texts()[name] = text
		}
	}
	return nil
}
