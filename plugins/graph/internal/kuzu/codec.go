package kuzu

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
)

// The tags of the encoding, in which a value is a tag and its data; kuzu/codec.h is its
// other end.
const (
	tagNull = iota
	tagFalse
	tagTrue
	tagInteger
	tagFloat
	tagString
	tagList
	tagMap
	tagNode
	tagRelation
	tagPath
	tagNumber
	tagBytes
	tagFloats
)

// params are the parameters of a statement by name: values of package sdk/value, and
// []string, []int64, []float32, []byte and []params for statements of the store.
type params map[string]any

// encode returns the parameters in the encoding of the library.
func (p params) encode() ([]byte, error) {
	if len(p) == 0 {
		return nil, nil
	}
	return appendFields(nil, p)
}

func appendFields(to []byte, fields map[string]any) ([]byte, error) {
	to = appendSize(to, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var err error
		if to, err = appendValue(appendText(to, name), fields[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return to, nil
}

func appendSize(to []byte, n int) []byte { return binary.LittleEndian.AppendUint32(to, uint32(n)) }

func appendText(to []byte, s string) []byte { return append(appendSize(to, len(s)), s...) }

func appendInteger(to []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(append(to, tagInteger), uint64(n))
}

func appendValue(to []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(to, tagNull), nil
	case bool:
		if v {
			return append(to, tagTrue), nil
		}
		return append(to, tagFalse), nil
	case int64:
		return appendInteger(to, v), nil
	case float64:
		return binary.LittleEndian.AppendUint64(append(to, tagFloat), math.Float64bits(v)), nil
	case json.Number:
		return nil, fmt.Errorf("the integer %s has more than 64 bits", v)
	case string:
		return appendText(append(to, tagString), v), nil
	case []byte:
		if v == nil {
			return append(to, tagNull), nil
		}
		return append(appendSize(append(to, tagBytes), len(v)), v...), nil
	case []float32:
		to = appendSize(append(to, tagFloats), len(v))
		for _, f := range v {
			to = binary.LittleEndian.AppendUint32(to, math.Float32bits(f))
		}
		return to, nil
	case []string:
		return appendList(to, v)
	case []int64:
		return appendList(to, v)
	case []any:
		return appendList(to, v)
	case []params:
		return appendList(to, v)
	case params:
		return appendFields(append(to, tagMap), v)
	case map[string]any:
		return appendFields(append(to, tagMap), v)
	}
	return nil, fmt.Errorf("a value of type %T cannot be passed", v)
}

func appendList[T any](to []byte, list []T) ([]byte, error) {
	to = appendSize(append(to, tagList), len(list))
	for i, v := range list {
		var err error
		if to, err = appendValue(to, v); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return to, nil
}

// The flags of a result.
const (
	cutByRows  = 1
	cutByBytes = 2
)

// result is the result of a statement. Its rows are decoded one by one: call next,
// then one method for each column.
type result struct {
	flags   byte
	columns []string
	rows    int
	data    []byte
}

// decode reads the header of a result. It trusts the data, which comes from the
// library that is compiled from this source; invalid data panics.
func decode(data []byte) *result {
	r := &result{data: data}
	r.flags = r.byte()
	r.byte() // tagList
	r.columns = make([]string, r.size())
	for i := range r.columns {
		r.columns[i] = r.text()
	}
	r.rows = r.size()
	return r
}

// next advances to the next row and reports whether there is one. The caller reads it.
func (r *result) next() bool {
	r.rows--
	return r.rows >= 0
}

func (r *result) byte() byte {
	b := r.data[0]
	r.data = r.data[1:]
	return b
}

func (r *result) size() int {
	n := binary.LittleEndian.Uint32(r.data)
	r.data = r.data[4:]
	return int(n)
}

func (r *result) bytes() []byte {
	n := r.size()
	b := r.data[:n:n]
	r.data = r.data[n:]
	return b
}

func (r *result) eight() uint64 {
	n := binary.LittleEndian.Uint64(r.data)
	r.data = r.data[8:]
	return n
}

// rawText reads the data of a string.
func (r *result) rawText() string { return string(r.bytes()) }

// text reads a string or a blob; "" for null.
func (r *result) text() string { return string(r.blob()) }

// blob reads a string or a blob; nil for null. It shares the result's memory.
func (r *result) blob() []byte {
	if r.byte() == tagNull {
		return nil
	}
	return r.bytes()
}

// integer reads an integer; 0 for null.
func (r *result) integer() int64 {
	if r.byte() == tagNull {
		return 0
	}
	return int64(r.eight())
}

// count reads a sum of integers; 0 for null.
func (r *result) count() int64 {
	switch tag := r.byte(); tag {
	case tagInteger:
		return int64(r.eight())
	case tagNumber:
		n, _ := json.Number(r.rawText()).Int64()
		return n
	}
	return 0
}

// float reads a float; 0 for null.
func (r *result) float() float64 {
	if r.byte() == tagNull {
		return 0
	}
	return math.Float64frombits(r.eight())
}

// object is a node or a relationship of the engine.
type object struct {
	relation bool
	// id is the engine's id; from and to are the ids of a relationship's ends.
	id, from, to string
	label        string
	properties   map[string]any
}

// path is a path of the engine: nodes and relationships alternate.
type path struct{ nodes, relations []any }

// value reads a column of any type. It returns a value of package sdk/value that may
// contain *object and *path.
func (r *result) value() any {
	switch tag := r.byte(); tag {
	case tagNull:
		return nil
	case tagFalse, tagTrue:
		return tag == tagTrue
	case tagInteger:
		return int64(r.eight())
	case tagFloat:
		return math.Float64frombits(r.eight())
	case tagString:
		return r.rawText()
	case tagNumber:
		return json.Number(r.rawText())
	case tagBytes:
		return slices.Clone(r.bytes())
	case tagList:
		return r.list()
	case tagMap:
		return r.fields()
	case tagNode:
		o := &object{id: r.text(), label: r.text()}
		o.properties = r.fields()
		return o
	case tagRelation:
		o := &object{relation: true, id: r.text(), from: r.text(), to: r.text(), label: r.text()}
		o.properties = r.fields()
		return o
	case tagPath:
		nodes, _ := r.value().([]any)
		relations, _ := r.value().([]any)
		return &path{nodes: nodes, relations: relations}
	default:
		panic(fmt.Sprintf("kuzu: unknown tag %d", tag))
	}
}

func (r *result) list() []any {
	list := make([]any, r.size())
	for i := range list {
		list[i] = r.value()
	}
	return list
}

func (r *result) fields() map[string]any {
	n := r.size()
	fields := make(map[string]any, n)
	for range n {
		name := r.rawText()
		fields[name] = r.value()
	}
	return fields
}
