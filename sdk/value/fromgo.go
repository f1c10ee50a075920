package value

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"unicode/utf8"
)

var (
	numberType = reflect.TypeFor[json.Number]()
	jsonType   = reflect.TypeFor[json.Marshaler]()
	textType   = reflect.TypeFor[encoding.TextMarshaler]()
)

// maxDepth is the maximum depth of a Go value, as in encoding/json.
const maxDepth = 10_000

// errTooDeep is the error for values that nest deeper, most likely endlessly.
var errTooDeep = fmt.Errorf("a value that nests deeper than %d (a cycle?) has no JSON form", maxDepth)

// within adds the place inside a value to an error.
func within(place string, err error) error {
	if errors.Is(err, errTooDeep) {
		return err // a path of that length does not help
	}
	return fmt.Errorf("%s: %w", place, err)
}

// fromGo converts a Go value of any type to the value model. The result corresponds to
// the output of encoding/json, except that a whole float stays a float.
func fromGo(v reflect.Value, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	switch v.Kind() {
	case reflect.Invalid:
		return nil, nil
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil, nil
		}
	}
	if out, own, err := fromMarshaler(v); own {
		return out, err
	}
	switch v.Kind() {
	case reflect.Interface:
		return from(v.Elem().Interface(), depth)
	case reflect.Pointer:
		return fromGo(v.Elem(), depth+1)
	case reflect.Struct:
		return fromStruct(v, depth)
	case reflect.Map:
		return fromMap(v, depth)
	case reflect.Slice, reflect.Array:
		return fromList(v, depth)
	}
	return fromScalar(v)
}

// fromMarshaler uses the marshaler of a type, if it has one.
func fromMarshaler(v reflect.Value) (out any, own bool, err error) {
	for _, is := range []reflect.Type{jsonType, textType} {
		m := v
		if t := v.Type(); !t.Implements(is) {
			if !v.CanAddr() || !reflect.PointerTo(t).Implements(is) {
				continue
			}
			m = v.Addr()
		}
		data, err := json.Marshal(m.Interface())
		if err != nil {
			return nil, true, fmt.Errorf("encode a Go %s as JSON: %w", v.Type(), err)
		}
		out, err := Decode(data)
		return out, true, err
	}
	return nil, false, nil
}

func fromScalar(v reflect.Value) (any, error) {
	switch {
	case v.Kind() == reflect.Bool:
		return v.Bool(), nil
	case v.CanInt():
		return v.Int(), nil
	case v.CanUint():
		if u := v.Uint(); u > math.MaxInt64 {
			return json.Number(strconv.FormatUint(u, 10)), nil
		}
		return int64(v.Uint()), nil
	case v.Kind() == reflect.Float32:
		return fromFloat32(float32(v.Float()))
	case v.Kind() == reflect.Float64:
		return From(v.Float())
	case v.Type() == numberType:
		n := json.Number(v.String())
		if n == "" {
			return int64(0), nil // as in encoding/json
		}
		if !isNumber(string(n)) {
			return nil, fmt.Errorf("%q is not a JSON number", string(n))
		}
		return FromNumber(n)
	case v.Kind() == reflect.String:
		return validText(v.String()), nil
	}
	return nil, fmt.Errorf("a Go %s has no JSON form", v.Type())
}

// fromFloat32 returns the float64 with the same shortest digits.
func fromFloat32(f float32) (any, error) {
	if wide := float64(f); math.IsNaN(wide) || math.IsInf(wide, 0) {
		return From(wide)
	}
	return strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
}

// validText replaces each byte that is not valid UTF-8 by U+FFFD.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

func fromList(v reflect.Value, depth int) (any, error) {
	if v.Kind() == reflect.Slice {
		if v.IsNil() {
			return nil, nil
		}
		if e := v.Type().Elem(); e.Kind() == reflect.Uint8 && !reflect.PointerTo(e).Implements(jsonType) && !reflect.PointerTo(e).Implements(textType) {
			return base64.StdEncoding.EncodeToString(v.Bytes()), nil
		}
	}
	out := make([]any, v.Len())
	for i := range out {
		e, err := fromGo(v.Index(i), depth+1)
		if err != nil {
			return nil, within(fmt.Sprintf("[%d]", i), err)
		}
		out[i] = e
	}
	return out, nil
}

func fromMap(v reflect.Value, depth int) (any, error) {
	if v.IsNil() {
		return nil, nil
	}
	out := make(map[string]any, v.Len())
	for members := v.MapRange(); members.Next(); {
		key, err := mapKey(members.Key())
		if err != nil {
			return nil, err
		}
		if out[key], err = fromGo(members.Value(), depth+1); err != nil {
			return nil, within(key, err)
		}
	}
	return out, nil
}

func mapKey(k reflect.Value) (string, error) {
	if k.Kind() == reflect.String {
		return validText(k.String()), nil
	}
	if text, ok := k.Interface().(encoding.TextMarshaler); ok {
		if k.Kind() == reflect.Pointer && k.IsNil() {
			return "", nil
		}
		out, err := text.MarshalText()
		return validText(string(out)), err
	}
	switch {
	case k.CanInt():
		return strconv.FormatInt(k.Int(), 10), nil
	case k.CanUint():
		return strconv.FormatUint(k.Uint(), 10), nil
	}
	return "", fmt.Errorf("a map with keys of type %s has no JSON form", k.Type())
}
