package value

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// field is a member of an object that is represented by a struct.
type field struct {
	name  string
	index []int // the path to it through embedded structs
	// tagged reports whether the name is in the json tag.
	tagged bool
	// omitEmpty, omitZero and quoted are the tag's options.
	omitEmpty, omitZero, quoted bool
}

// fields caches the fields of struct types, by reflect.Type.
var fields sync.Map

func fieldsOf(t reflect.Type) []field {
	if known, ok := fields.Load(t); ok {
		return known.([]field)
	}
	all := collectFields(nil, t, nil, nil)
	kept := make([]field, 0, len(all))
	for i, f := range all {
		if dominates(all, i) {
			kept = append(kept, f)
		}
	}
	known, _ := fields.LoadOrStore(t, kept)
	return known.([]field)
}

// collectFields returns all fields, including those of embedded structs.
func collectFields(all []field, t reflect.Type, way []int, seen []reflect.Type) []field {
	for i := range t.NumField() {
		sf := t.Field(i)
		tag := sf.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if !isName(name) {
			name = ""
		}
		index := append(slices.Clone(way), i)
		inner := sf.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if sf.Anonymous && name == "" && inner.Kind() == reflect.Struct {
			if !slices.Contains(seen, inner) && inner != t {
				all = collectFields(all, inner, index, append(slices.Clone(seen), t))
			}
			continue
		}
		if !sf.IsExported() {
			continue
		}
		option := func(o string) bool { return slices.Contains(strings.Split(options, ","), o) }
		f := field{name: name, index: index, tagged: name != "", omitEmpty: option("omitempty"), omitZero: option("omitzero")}
		if f.name == "" {
			f.name = sf.Name
		}
		switch inner.Kind() {
		case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
			reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
			f.quoted = option("string")
		}
		all = append(all, f)
	}
	return all
}

// isName reports whether encoding/json accepts a name in a tag.
func isName(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// dominates reports whether a field is used for its name: the least deep field, then
// the tagged one; of two equal fields neither is used.
func dominates(all []field, i int) bool {
	f := all[i]
	for k, other := range all {
		if k == i || other.name != f.name || len(other.index) > len(f.index) {
			continue
		}
		if len(other.index) < len(f.index) || other.tagged || !f.tagged {
			return false
		}
	}
	return true
}

func fromStruct(v reflect.Value, depth int) (any, error) {
	plan := fieldsOf(v.Type())
	out := make(map[string]any, len(plan))
	for _, f := range plan {
		member, ok := f.in(v)
		if !ok || (f.omitEmpty && isEmpty(member)) || (f.omitZero && isZero(member)) {
			continue
		}
		value, err := f.value(member, depth)
		if err != nil {
			return nil, within(f.name, err)
		}
		out[f.name] = value
	}
	return out, nil
}

// in returns the field of a struct; false if it is behind an embedded nil pointer.
func (f *field) in(v reflect.Value) (reflect.Value, bool) {
	for _, i := range f.index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v, true
}

func (f *field) value(v reflect.Value, depth int) (any, error) {
	if !f.quoted || (v.Kind() == reflect.Pointer && v.IsNil()) {
		return fromGo(v, depth+1)
	}
	text, err := json.Marshal(v.Interface())
	return string(text), err
}

// isEmpty is omitempty's definition of empty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// isZero calls the type's IsZero method, if there is one.
func isZero(v reflect.Value) bool {
	type zeroer interface{ IsZero() bool }
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return true
		}
	}
	if z, ok := v.Interface().(zeroer); ok {
		return z.IsZero()
	}
	if v.CanAddr() {
		if z, ok := v.Addr().Interface().(zeroer); ok {
			return z.IsZero()
		}
	}
	return v.IsZero()
}
