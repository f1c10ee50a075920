package value

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

var (
	jsonInType = reflect.TypeFor[json.Unmarshaler]()
	textInType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// Into stores a value of the model in the variable that into points to: the reverse of
// [From], in one pass. It behaves like encoding/json with the JSON text of v, except that
// a whole float such as 2.0 is also an integer, and that an empty interface gets a value
// of the model. Members that a struct does not have are ignored. The result shares no
// container with v. The error names the place.
func Into(v, into any) error {
	p := reflect.ValueOf(into)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return fmt.Errorf("cannot store a value in a Go %T", into)
	}
	return store(v, p.Elem())
}

func store(v any, to reflect.Value) error {
	if to.Kind() == reflect.Pointer {
		if v == nil {
			to.SetZero()
			return nil
		}
		if to.IsNil() {
			to.Set(reflect.New(to.Type().Elem()))
		}
		return store(v, to.Elem())
	}
	if to.CanAddr() {
		if t := to.Addr().Type(); t.Implements(jsonInType) || t.Implements(textInType) {
			return storeText(v, to)
		}
	}
	if v == nil {
		switch to.Kind() {
		case reflect.Interface, reflect.Map, reflect.Slice:
			to.SetZero()
		}
		return nil // as in encoding/json
	}
	switch to.Kind() {
	case reflect.Interface:
		if to.NumMethod() > 0 {
			return mismatch(v, to)
		}
		to.Set(reflect.ValueOf(Clone(v)))
		return nil
	case reflect.Struct:
		return storeStruct(v, to)
	case reflect.Map:
		return storeMap(v, to)
	case reflect.Slice, reflect.Array:
		return storeList(v, to)
	}
	return storeScalar(v, to)
}

func mismatch(v any, to reflect.Value) error {
	return fmt.Errorf("cannot store %s in a Go %s", TypeName(v), to.Type())
}

// storeText calls the unmarshaler of a type.
func storeText(v any, to reflect.Value) error {
	raw, err := Encode(v)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, to.Addr().Interface())
}

func storeScalar(v any, to reflect.Value) error {
	switch {
	case to.Kind() == reflect.Bool:
		if b, ok := v.(bool); ok {
			to.SetBool(b)
			return nil
		}
	case to.Type() == numberType:
		if IsNumber(v) {
			raw, err := Encode(v)
			to.SetString(string(raw))
			return err
		}
	case to.Kind() == reflect.String:
		if s, ok := v.(string); ok {
			to.SetString(s)
			return nil
		}
	case to.CanFloat():
		if f, ok := Float(v); ok {
			if to.OverflowFloat(f) {
				return fmt.Errorf("%s does not fit a Go %s", FormatNumber(v), to.Type())
			}
			to.SetFloat(f)
			return nil
		}
	case to.CanInt(), to.CanUint():
		return storeInteger(v, to)
	}
	return mismatch(v, to)
}

func storeInteger(v any, to reflect.Value) error {
	whole, ok := Integer(v)
	if !ok {
		return mismatch(v, to)
	}
	if to.CanInt() {
		if i, err := strconv.ParseInt(FormatNumber(whole), 10, 64); err == nil && !to.OverflowInt(i) {
			to.SetInt(i)
			return nil
		}
	} else if u, err := strconv.ParseUint(FormatNumber(whole), 10, 64); err == nil && !to.OverflowUint(u) {
		to.SetUint(u)
		return nil
	}
	return fmt.Errorf("%s does not fit a Go %s", FormatNumber(whole), to.Type())
}

func storeStruct(v any, to reflect.Value) error {
	object, ok := v.(map[string]any)
	if !ok {
		return mismatch(v, to)
	}
	matched, fields := 0, fieldsOf(to.Type())
	for _, f := range fields {
		if _, given := object[f.name]; given {
			matched++
		}
	}
	for _, f := range fields {
		member, given := object[f.name]
		if !given && matched < len(object) {
			member, given = f.folded(object)
		}
		if !given {
			continue
		}
		if text, isText := member.(string); f.quoted && isText {
			var err error
			if member, err = Decode([]byte(text)); err != nil {
				return within(f.name, err)
			}
		}
		if err := store(member, f.made(to)); err != nil {
			return within(f.name, err)
		}
	}
	return nil
}

// folded finds a member whose name differs from the field's only in case, as
// encoding/json does.
func (f *field) folded(object map[string]any) (member any, given bool) {
	for name, member := range object {
		if strings.EqualFold(name, f.name) {
			return member, true
		}
	}
	return nil, false
}

// made returns the field of a struct and allocates the embedded structs on the
// path to it.
func (f *field) made(v reflect.Value) reflect.Value {
	for _, i := range f.index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v
}

func storeMap(v any, to reflect.Value) error {
	object, ok := v.(map[string]any)
	if !ok {
		return mismatch(v, to)
	}
	t := to.Type()
	out := reflect.MakeMapWithSize(t, len(object))
	for name, member := range object {
		key := reflect.New(t.Key()).Elem()
		if err := storeKey(name, key); err != nil {
			return within(name, err)
		}
		element := reflect.New(t.Elem()).Elem()
		if err := store(member, element); err != nil {
			return within(name, err)
		}
		out.SetMapIndex(key, element)
	}
	to.Set(out)
	return nil
}

func storeKey(name string, to reflect.Value) error {
	if text, ok := to.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return text.UnmarshalText([]byte(name))
	}
	if to.Kind() == reflect.String {
		to.SetString(name)
		return nil
	}
	if !isNumber(name) || !to.CanInt() && !to.CanUint() {
		return mismatch(name, to)
	}
	return storeInteger(json.Number(name), to)
}

func storeList(v any, to reflect.Value) error {
	if text, ok := v.(string); ok && to.Kind() == reflect.Slice && to.Type().Elem().Kind() == reflect.Uint8 {
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return err
		}
		to.SetBytes(data)
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		return mismatch(v, to)
	}
	if to.Kind() == reflect.Slice {
		to.Set(reflect.MakeSlice(to.Type(), len(list), len(list)))
	} else {
		to.SetZero()
	}
	for i := range min(len(list), to.Len()) {
		if err := store(list[i], to.Index(i)); err != nil {
			return within("["+strconv.Itoa(i)+"]", err)
		}
	}
	return nil
}
