//go:build cozo && cgo

package cozo

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// The tags of the encoding; plugins/graph/cozo/src/codec.rs is its other end.
const (
	tagNull byte = iota
	tagFalse
	tagTrue
	tagInt
	tagFloat
	tagString
	tagList
	tagJSON
	tagBytes
	tagVector
)

// writer encodes parameters and batches.
type writer struct{ b []byte }

func (w *writer) count(n int) { w.b = binary.LittleEndian.AppendUint32(w.b, uint32(n)) }

func (w *writer) text(s string) {
	w.count(len(s))
	w.b = append(w.b, s...)
}

func (w *writer) word(u uint64) { w.b = binary.LittleEndian.AppendUint64(w.b, u) }

func (w *writer) null() { w.b = append(w.b, tagNull) }

func (w *writer) string(s string) {
	w.b = append(w.b, tagString)
	w.text(s)
}

func (w *writer) strings(list []string) {
	w.list(len(list))
	for _, s := range list {
		w.string(s)
	}
}

func (w *writer) integer(i int64) {
	w.b = binary.LittleEndian.AppendUint64(append(w.b, tagInt), uint64(i))
}

func (w *writer) float(f float64) {
	w.b = binary.LittleEndian.AppendUint64(append(w.b, tagFloat), math.Float64bits(f))
}

// list begins a list of n values.
func (w *writer) list(n int) {
	w.b = append(w.b, tagList)
	w.count(n)
}

// json writes JSON text.
func (w *writer) json(text []byte) {
	w.b = append(w.b, tagJSON)
	w.count(len(text))
	w.b = append(w.b, text...)
}

func (w *writer) vector(v []float32) {
	w.b = append(w.b, tagVector)
	w.count(len(v))
	for _, f := range v {
		w.b = binary.LittleEndian.AppendUint32(w.b, math.Float32bits(f))
	}
}

// any writes a value of package sdk/value.
func (w *writer) any(v any) error {
	switch v := v.(type) {
	case nil:
		w.null()
	case bool:
		if v {
			w.b = append(w.b, tagTrue)
		} else {
			w.b = append(w.b, tagFalse)
		}
	case int64:
		w.integer(v)
	case float64:
		w.float(v)
	case string:
		w.string(v)
	case json.Number:
		return tea.Errorf(tea.ValidationError, "the integer %s has more than 64 bits, which the query language does not support; pass it as a text, or as a number with a fraction", v)
	case []any:
		w.list(len(v))
		for _, item := range v {
			if err := w.any(item); err != nil {
				return err
			}
		}
	default:
		text, err := value.Encode(v)
		if err != nil {
			return tea.Errorf(tea.ValidationError, "encode a parameter of the query: %w", err)
		}
		w.json(text)
	}
	return nil
}

// reader decodes the result of a script. It trusts its input, which the crate
// wrote.
type reader struct{ b []byte }

// table is the header of a result.
type table struct {
	columns []string
	rows    int
}

// open reads the header of the first table.
func (r *reader) open() table {
	if r.count() == 0 {
		return table{}
	}
	t := table{columns: make([]string, r.count())}
	for i := range t.columns {
		t.columns[i] = r.text()
	}
	t.rows = r.count()
	return t
}

func (r *reader) count() int {
	n := binary.LittleEndian.Uint32(r.b)
	r.b = r.b[4:]
	return int(n)
}

func (r *reader) word() uint64 {
	w := binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	return w
}

func (r *reader) tag() byte {
	t := r.b[0]
	r.b = r.b[1:]
	return t
}

func (r *reader) bytes() []byte {
	n := r.count()
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) text() string { return string(r.bytes()) }

// string reads a string; "" for null.
func (r *reader) string() string {
	if r.tag() == tagNull {
		return ""
	}
	return r.text()
}

// strings reads a list of strings.
func (r *reader) strings() []string {
	r.tag()
	list := make([]string, r.count())
	for i := range list {
		list[i] = r.string()
	}
	return list
}

// json reads JSON text; nil for null.
func (r *reader) json() []byte {
	if r.tag() == tagNull {
		return nil
	}
	return append([]byte(nil), r.bytes()...)
}

func (r *reader) integer() int64 {
	r.tag()
	return int64(r.word())
}

func (r *reader) float() float64 {
	if r.tag() == tagInt {
		return float64(int64(r.word()))
	}
	return math.Float64frombits(r.word())
}

// vector reads a vector; nil for null.
func (r *reader) vector() []float32 {
	switch r.tag() {
	case tagVector:
		v := make([]float32, r.count())
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(r.b))
			r.b = r.b[4:]
		}
		return v
	case tagList:
		v := make([]float32, r.count())
		for i := range v {
			v[i] = float32(r.float())
		}
		return v
	}
	return nil
}

// any reads a value of package sdk/value.
func (r *reader) any() (any, error) {
	switch r.tag() {
	case tagFalse:
		return false, nil
	case tagTrue:
		return true, nil
	case tagInt:
		return int64(r.word()), nil
	case tagFloat:
		return store.Number(math.Float64frombits(r.word()))
	case tagString:
		return r.text(), nil
	case tagBytes:
		return base64.StdEncoding.EncodeToString(r.bytes()), nil
	case tagJSON:
		return value.Decode(r.bytes())
	case tagList:
		list := make([]any, r.count())
		for i := range list {
			var err error
			if list[i], err = r.any(); err != nil {
				return nil, err
			}
		}
		return list, nil
	case tagVector:
		list := make([]any, r.count())
		for i := range list {
			var err error
			if list[i], err = store.Number(float64(math.Float32frombits(binary.LittleEndian.Uint32(r.b)))); err != nil {
				return nil, err
			}
			r.b = r.b[4:]
		}
		return list, nil
	}
	return nil, nil
}
