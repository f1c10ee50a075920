package tinymodel

import (
	"encoding/binary"
	"fmt"
	"math"
)

// alignment is the alignment of every tensor's data.
const alignment = 32

// entry is a piece of metadata; the value is a string, bool, uint32, float32,
// or a list of strings, float32 or int32.
type entry struct {
	key   string
	value any
}

// tensor is a table of weights, its fastest dimension first.
type tensor struct {
	name string
	dims []uint64
	data []float32
}

// The value types of GGUF version 3.
const (
	typeUint32  = 4
	typeInt32   = 5
	typeFloat32 = 6
	typeBool    = 7
	typeString  = 8
	typeArray   = 9
)

// encodeGGUF writes a file: header, metadata, the tensors' descriptions, and
// their data.
func encodeGGUF(metadata []entry, tensors []tensor) []byte {
	var w writer
	w.b = append(w.b, "GGUF"...)
	w.uint32(3)
	w.uint64(uint64(len(tensors)))
	w.uint64(uint64(len(metadata)))
	for _, e := range metadata {
		w.string(e.key)
		w.value(e.value)
	}
	offset := uint64(0)
	for _, t := range tensors {
		w.string(t.name)
		w.uint32(uint32(len(t.dims)))
		for _, d := range t.dims {
			w.uint64(d)
		}
		w.uint32(0) // float32
		w.uint64(offset)
		offset += aligned(uint64(len(t.data)) * 4)
	}
	for _, t := range tensors {
		w.align()
		for _, f := range t.data {
			w.float32(f)
		}
	}
	w.align()
	return w.b
}

func aligned(n uint64) uint64 { return (n + alignment - 1) / alignment * alignment }

// writer appends values in little-endian GGUF form.
type writer struct{ b []byte }

func (w *writer) uint32(v uint32)   { w.b = binary.LittleEndian.AppendUint32(w.b, v) }
func (w *writer) uint64(v uint64)   { w.b = binary.LittleEndian.AppendUint64(w.b, v) }
func (w *writer) float32(v float32) { w.uint32(math.Float32bits(v)) }

func (w *writer) string(s string) {
	w.uint64(uint64(len(s)))
	w.b = append(w.b, s...)
}

func (w *writer) align() {
	for len(w.b)%alignment != 0 {
		w.b = append(w.b, 0)
	}
}

func (w *writer) value(v any) {
	switch v := v.(type) {
	case string:
		w.uint32(typeString)
		w.string(v)
	case uint32:
		w.uint32(typeUint32)
		w.uint32(v)
	case float32:
		w.uint32(typeFloat32)
		w.float32(v)
	case bool:
		w.uint32(typeBool)
		b := byte(0)
		if v {
			b = 1
		}
		w.b = append(w.b, b)
	case []string:
		w.array(typeString, len(v))
		for _, s := range v {
			w.string(s)
		}
	case []float32:
		w.array(typeFloat32, len(v))
		for _, f := range v {
			w.float32(f)
		}
	case []int32:
		w.array(typeInt32, len(v))
		for _, n := range v {
			w.uint32(uint32(n))
		}
	default:
		panic(fmt.Sprintf("tinymodel: no GGUF type for %T", v))
	}
}

func (w *writer) array(kind uint32, n int) {
	w.uint32(typeArray)
	w.uint32(kind)
	w.uint64(uint64(n))
}
