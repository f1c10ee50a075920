package firestore

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	jsonvalue "github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// value is a value of a field. One of its members is set.
type value struct {
	Null      *struct{} // {"nullValue": null}
	Boolean   *bool
	Integer   *int64
	Double    *float64
	Timestamp string
	String    *string
	Bytes     []byte // not nil
	Reference *string
	Array     *[]value
	Map       map[string]value // not nil
}

// wire is the JSON form of a value.
type wire struct {
	Boolean   *bool       `json:"booleanValue,omitempty"`
	Integer   *string     `json:"integerValue,omitempty"`
	Double    any         `json:"doubleValue,omitempty"`
	Timestamp string      `json:"timestampValue,omitempty"`
	String    *string     `json:"stringValue,omitempty"`
	Bytes     *[]byte     `json:"bytesValue,omitempty"`
	Reference *string     `json:"referenceValue,omitempty"`
	Array     *wireValues `json:"arrayValue,omitempty"`
	Map       *wireFields `json:"mapValue,omitempty"`
}

type (
	wireValues struct {
		Values []value `json:"values"`
	}
	wireFields struct {
		Fields map[string]value `json:"fields"`
	}
)

func (v value) MarshalJSON() ([]byte, error) {
	if v.Null != nil {
		return []byte(`{"nullValue":null}`), nil
	}
	w := wire{Boolean: v.Boolean, Timestamp: v.Timestamp, String: v.String, Reference: v.Reference}
	if v.Integer != nil {
		text := strconv.FormatInt(*v.Integer, 10)
		w.Integer = &text
	}
	if v.Double != nil {
		w.Double = *v.Double
	}
	if v.Bytes != nil {
		w.Bytes = &v.Bytes
	}
	if v.Array != nil {
		w.Array = &wireValues{*v.Array}
	}
	if v.Map != nil {
		w.Map = &wireFields{v.Map}
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads a value of a response. A kind that tea does not write, such as a geographical point, becomes
// null.
func (v *value) UnmarshalJSON(raw []byte) error {
	var w wire
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	*v = value{Boolean: w.Boolean, Timestamp: w.Timestamp, String: w.String, Reference: w.Reference}
	switch {
	case w.Integer != nil:
		n, err := strconv.ParseInt(*w.Integer, 10, 64)
		if err != nil {
			return tea.Errorf(tea.ConnectionError, "the server's answer has the integer %q", *w.Integer)
		}
		v.Integer = &n
	case w.Double != nil:
		f, _ := w.Double.(float64) // a text such as "NaN" has no JSON form and becomes 0
		v.Double = &f
	case w.Bytes != nil:
		v.Bytes = append([]byte{}, *w.Bytes...)
	case w.Array != nil:
		v.Array = &w.Array.Values
	case w.Map != nil:
		if v.Map = w.Map.Fields; v.Map == nil {
			v.Map = map[string]value{}
		}
	case v.Boolean == nil && v.Timestamp == "" && v.String == nil && v.Reference == nil:
		v.Null = &struct{}{}
	}
	return nil
}

func text(s string) value    { return value{String: &s} }
func integer(n int64) value  { return value{Integer: &n} }
func boolean(b bool) value   { return value{Boolean: &b} }
func double(f float64) value { return value{Double: &f} }
func timestamp(t int64) value {
	return value{Timestamp: time.UnixMicro(t).UTC().Format(time.RFC3339Nano)}
}

// text returns a string, "" for a value of another kind.
func (v value) text() string {
	if v.String == nil {
		return ""
	}
	return *v.String
}

// int returns an integer, 0 for a value of another kind.
func (v value) int() int64 {
	if v.Integer == nil {
		return 0
	}
	return *v.Integer
}

// micro returns a time in microseconds since 1970, 0 for a value of another kind.
func (v value) micro() int64 { return micros(v.Timestamp) }

func micros(rfc3339 string) int64 {
	t, err := time.Parse(time.RFC3339Nano, rfc3339)
	if err != nil {
		return 0
	}
	return t.UnixMicro()
}

const (
	// maxDepth is the nesting depth that Firestore stores, less the levels around a field.
	maxDepth = 18
	// maxElements bounds a list: each element has index entries, of which a document can have 40,000.
	maxElements = 8000
	// ownFields begins the names of fields that are not members of a body.
	ownFields = "_tea_"
)

// toFields returns the members of a JSON object as fields. What Firestore cannot store (a list in a list, a name such
// as __a__, a number beyond its range) becomes text with the JSON.
func toFields(body []byte) (map[string]value, error) {
	decoded, err := jsonvalue.Decode(body)
	object, isObject := decoded.(map[string]any)
	if err != nil || !isObject {
		return nil, tea.Errorf(tea.ValidationError, "the body of a document is not a JSON object")
	}
	all := map[string]value{}
	for name, member := range object {
		if storableName(name) && !strings.HasPrefix(name, ownFields) {
			all[name] = toValue(member, 1)
		}
	}
	return all, nil
}

func storableName(name string) bool {
	return name != "" && len(name) <= 1500 && !(len(name) >= 4 && strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__"))
}

func toValue(v any, depth int) value {
	switch v := v.(type) {
	case nil:
		return value{Null: &struct{}{}}
	case bool:
		return boolean(v)
	case int64:
		return integer(v)
	case float64:
		return double(v)
	case string:
		return text(v)
	case []any:
		if depth > maxDepth || len(v) > maxElements {
			break
		}
		all := make([]value, len(v))
		for i, element := range v {
			if _, nested := element.([]any); nested {
				all[i] = asText(element)
				continue
			}
			all[i] = toValue(element, depth+1)
		}
		return value{Array: &all}
	case map[string]any:
		if depth > maxDepth {
			break
		}
		all := map[string]value{}
		for name, member := range v {
			if !storableName(name) {
				return asText(v)
			}
			all[name] = toValue(member, depth+1)
		}
		return value{Map: all}
	}
	return asText(v)
}

// asText returns a value as JSON.
func asText(v any) value {
	raw, _ := jsonvalue.Encode(v) // it was decoded from JSON
	return text(string(raw))
}

// toBody returns fields that another program has written as a JSON object.
func toBody(fields map[string]value) []byte {
	object := map[string]any{}
	for name, v := range fields {
		if !strings.HasPrefix(name, ownFields) {
			object[name] = v.decode()
		}
	}
	raw, _ := jsonvalue.Encode(object)
	return bytes.TrimSpace(raw)
}

func (v value) decode() any {
	switch {
	case v.Boolean != nil:
		return *v.Boolean
	case v.Integer != nil:
		return *v.Integer
	case v.Double != nil:
		return *v.Double
	case v.Timestamp != "":
		return time.UnixMicro(v.micro()).UTC().Format("2006-01-02T15:04:05.000000Z07:00")
	case v.String != nil:
		return *v.String
	case v.Bytes != nil:
		return asText(string(v.Bytes)).text()
	case v.Reference != nil:
		return *v.Reference
	case v.Array != nil:
		all := make([]any, len(*v.Array))
		for i, element := range *v.Array {
			all[i] = element.decode()
		}
		return all
	case v.Map != nil:
		all := map[string]any{}
		for name, member := range v.Map {
			all[name] = member.decode()
		}
		return all
	}
	return nil
}

// maxDocument is the maximum size of a document in Firestore, less the size of its name.
const maxDocument = 1<<20 - 8<<10

// checkSize returns an error for a document that is too large for Firestore.
func checkSize(what string, fields map[string]value) error {
	size := sizeOf(fields)
	if size <= maxDocument {
		return nil
	}
	return tea.Errorf(tea.ResourceExhausted, "%s takes %d bytes, %w (Firestore: %d); store large contents as a file", what, size, store.ErrTooLarge, maxDocument)
}

// sizeOf returns the size of fields as Firestore counts it.
func sizeOf(fields map[string]value) int {
	size := 0
	for name, v := range fields {
		size += len(name) + 1 + v.size()
	}
	return size
}

func (v value) size() int {
	switch {
	case v.Integer != nil, v.Double != nil, v.Timestamp != "":
		return 8
	case v.String != nil:
		return len(*v.String) + 1
	case v.Bytes != nil:
		return len(v.Bytes)
	case v.Array != nil:
		size := 0
		for _, element := range *v.Array {
			size += element.size()
		}
		return size
	case v.Map != nil:
		return sizeOf(v.Map)
	}
	return 1
}
