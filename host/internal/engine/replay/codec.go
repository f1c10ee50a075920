package replay

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/secret"
	"github.com/the-edge-agent/tea/internal/execpath"
	"github.com/the-edge-agent/tea/sdk/value"
)

// A record's body is an object with a member for each field, named by its JSON tag
// and sorted. Values of the value model are encoded without encoding/json, which
// would confuse their integers and floats.

// field is a field of a record's struct.
type field struct {
	name string
	// omit reports whether the zero value is left out.
	omit  bool
	index []int
}

var fieldsByType sync.Map // reflect.Type -> []field

// fieldsOf returns the fields of a struct by name, including those of embedded
// structs.
func fieldsOf(t reflect.Type) []field {
	if known, ok := fieldsByType.Load(t); ok {
		return known.([]field)
	}
	var fields []field
	for _, f := range reflect.VisibleFields(t) {
		if name, option, tagged := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields = append(fields, field{name, tagged && option == "omitzero", f.Index})
		}
	}
	sort.Slice(fields, func(i, j int) bool { return fields[i].name < fields[j].name })
	fieldsByType.Store(t, fields)
	return fields
}

// isValue reports whether a field holds a value of the value model.
func isValue(v reflect.Value) bool {
	return v.Kind() == reflect.Interface || v.Type() == reflect.TypeFor[map[string]any]()
}

// Encode returns the record with a body in which references replace secrets.
func Encode(path execpath.Path, rec Record, secrets *secret.Set) (checkpoint.Record, error) {
	out := checkpoint.Record{Kind: rec.kind(), Path: string(path)}
	v := reflect.ValueOf(rec).Elem()
	body := append(make([]byte, 0, 128), '{')
	for _, f := range fieldsOf(v.Type()) {
		member := v.FieldByIndex(f.index)
		if f.omit && member.IsZero() {
			continue
		}
		var content any
		var err error
		switch {
		case member.Kind() == reflect.String:
			content = member.String()
		case isValue(member):
			content = member.Interface()
		default:
			content, err = value.From(member.Interface())
		}
		if err == nil {
			if len(body) > 1 {
				body = append(body, ',')
			}
			body = append(value.AppendString(body, f.name), ':')
			body, err = value.Append(body, secrets.Seal(content))
		}
		if err != nil {
			return out, fmt.Errorf("encode the %s record of %s: %w", out.Kind, path, err)
		}
	}
	body = append(body, '}')
	out.Body = body
	return out, nil
}

// decode decodes a record's body. Members that the struct does not have are
// ignored. Without unseal, references to secrets remain.
func decode(rec checkpoint.Record, into Record, unseal func(any) (any, error)) error {
	if len(rec.Body) == 0 {
		return nil
	}
	v, err := value.Decode(rec.Body)
	if err == nil && unseal != nil && bytes.Contains(rec.Body, []byte(`\u0000`)) {
		v, err = unseal(v)
	}
	if err != nil {
		return err
	}
	object, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("the body is %s, not an object", value.TypeName(v))
	}
	to := reflect.ValueOf(into).Elem()
	for _, f := range fieldsOf(to.Type()) {
		content := object[f.name]
		if content == nil {
			continue
		}
		member := to.FieldByIndex(f.index)
		switch {
		case !isValue(member):
			err = value.Into(content, member.Addr().Interface())
		case !reflect.TypeOf(content).AssignableTo(member.Type()):
			err = errors.New("not an object")
		default:
			member.Set(reflect.ValueOf(content))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// OriginOf returns how a run's workflow was loaded; rec is the run's first record.
func OriginOf(rec checkpoint.Record) (Origin, error) {
	var start Start
	err := decode(rec, &start, nil)
	return start.Origin, err
}

// Masked returns copies of records with *** in place of secrets.
func Masked(records []checkpoint.Record) []checkpoint.Record {
	out := slices.Clone(records)
	for i := range out {
		out[i].Body = secret.MaskJSON(out[i].Body)
	}
	return out
}
