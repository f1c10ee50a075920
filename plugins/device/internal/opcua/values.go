package opcua

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"
	"time"

	"github.com/gopcua/opcua/ua"

	"github.com/the-edge-agent/tea/plugins/device/internal/part"
	"github.com/the-edge-agent/tea/sdk/value"
)

// decode returns what the library has read as a value of the model. A float that is not
// finite and a time that is not set are nil.
func decode(v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case time.Time:
		if text := toTime(v); text != nil {
			return *text, nil
		}
		return nil, nil
	case []byte:
		return base64.StdEncoding.EncodeToString(v), nil
	case ua.StatusCode:
		return statusName(v), nil
	case *ua.LocalizedText:
		return v.Text, nil
	case *ua.QualifiedName:
		return qualified(v), nil
	case *ua.GUID, *ua.NodeID, *ua.ExpandedNodeID:
		return fmt.Sprint(v), nil
	case *ua.Variant:
		return decode(v.Value())
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Float32, reflect.Float64:
		return part.Float(r.Float(), r.Type().Bits()), nil
	case reflect.Slice:
		list := make([]any, r.Len())
		for i := range list {
			var err error
			if list[i], err = decode(r.Index(i).Interface()); err != nil {
				return nil, err
			}
		}
		return list, nil
	case reflect.Pointer, reflect.Struct: // of the server's own types
		return nil, fmt.Errorf("the value is a structure, which cannot be read; read its parts")
	}
	return value.From(v)
}

func qualified(n *ua.QualifiedName) string {
	if n.NamespaceIndex == 0 {
		return n.Name
	}
	return fmt.Sprintf("%d:%s", n.NamespaceIndex, n.Name)
}

// typeName returns the name of a type as the settings have it.
func typeName(t ua.TypeID) string { return strings.ToLower(strings.TrimPrefix(t.String(), "TypeID")) }

// typeNamed returns the type with a name, or null.
func typeNamed(name string) ua.TypeID {
	for t := ua.TypeIDBoolean; t <= ua.TypeIDDiagnosticInfo; t++ {
		if typeName(t) == name {
			return t
		}
	}
	return ua.TypeIDNull
}

// builtin returns the type for the attribute DataType of a node, or null if that is
// abstract or the server's own.
func builtin(id *ua.NodeID) ua.TypeID {
	if id == nil || id.Namespace() != 0 || id.Type() == ua.NodeIDTypeString {
		return ua.TypeIDNull
	}
	switch n := id.IntID(); n {
	case 29: // Enumeration
		return ua.TypeIDInt32
	case 290: // Duration
		return ua.TypeIDDouble
	case 294: // UtcTime
		return ua.TypeIDDateTime
	case uint32(ua.TypeIDExtensionObject), uint32(ua.TypeIDVariant): // a structure, and any type
	default:
		if n <= uint32(ua.TypeIDDiagnosticInfo) {
			return ua.TypeID(n)
		}
	}
	return ua.TypeIDNull
}

// Values of the attribute ValueRank. Smaller ones allow both a single value and a list,
// larger ones are numbers of dimensions.
const (
	rankScalar int32 = iota - 1
	rankLists        // one dimension or more
	rankList
)

// types are the types that can be written, as the library has them.
var types = map[ua.TypeID]reflect.Type{
	ua.TypeIDBoolean: reflect.TypeFor[bool](), ua.TypeIDSByte: reflect.TypeFor[int8](), ua.TypeIDByte: reflect.TypeFor[byte](),
	ua.TypeIDInt16: reflect.TypeFor[int16](), ua.TypeIDUint16: reflect.TypeFor[uint16](), ua.TypeIDInt32: reflect.TypeFor[int32](),
	ua.TypeIDUint32: reflect.TypeFor[uint32](), ua.TypeIDInt64: reflect.TypeFor[int64](), ua.TypeIDUint64: reflect.TypeFor[uint64](),
	ua.TypeIDFloat: reflect.TypeFor[float32](), ua.TypeIDDouble: reflect.TypeFor[float64](), ua.TypeIDString: reflect.TypeFor[string](),
	ua.TypeIDDateTime: reflect.TypeFor[time.Time](), ua.TypeIDGUID: reflect.TypeFor[*ua.GUID](), ua.TypeIDByteString: reflect.TypeFor[[]byte](),
	ua.TypeIDLocalizedText: reflect.TypeFor[*ua.LocalizedText](),
}

// encode returns a value for a variable of a type and rank. Some servers accept any value
// for any variable, so nothing is left to them.
func encode(t ua.TypeID, rank int32, v any) (*ua.Variant, error) {
	kind := types[t]
	list, isList := v.([]any)
	switch {
	case kind == nil:
		return nil, fmt.Errorf("values of the type %s cannot be written", typeName(t))
	case rank > rankList:
		return nil, fmt.Errorf("it has %d dimensions, which cannot be written", rank)
	case isList && rank == rankScalar:
		return nil, fmt.Errorf("it has a single value, not a list")
	case !isList && (rank == rankList || rank == rankLists):
		return nil, fmt.Errorf("it has a list of values")
	case isList && t == ua.TypeIDByteString:
		return nil, fmt.Errorf("lists of bytestring cannot be written") // the library sends none of their bytes
	case !isList:
		one, err := encodeOne(t, kind, v)
		if err != nil {
			return nil, err
		}
		return ua.NewVariant(one.Interface())
	}
	slice := reflect.MakeSlice(reflect.SliceOf(kind), 0, len(list))
	if t == ua.TypeIDByte {
		slice = reflect.ValueOf(ua.ByteArray{}) // a []byte is a bytestring
	}
	for i, v := range list {
		one, err := encodeOne(t, kind, v)
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i+1, err)
		}
		slice = reflect.Append(slice, one)
	}
	return ua.NewVariant(slice.Interface())
}

// encodeOne returns a single value of a type.
func encodeOne(t ua.TypeID, kind reflect.Type, v any) (reflect.Value, error) {
	out := reflect.New(kind).Elem()
	text, isText := v.(string)
	ok := false
	switch kind.Kind() {
	case reflect.Bool:
		var b bool
		b, ok = v.(bool)
		out.SetBool(b)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if whole, is := integer(v); is && whole.IsInt64() && !out.OverflowInt(whole.Int64()) {
			out.SetInt(whole.Int64())
			ok = true
		}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if whole, is := integer(v); is && whole.IsUint64() && !out.OverflowUint(whole.Uint64()) {
			out.SetUint(whole.Uint64())
			ok = true
		}
	case reflect.Float32, reflect.Float64:
		var f float64
		f, ok = value.Float(v)
		out.SetFloat(f)
		ok = ok && !math.IsInf(out.Float(), 0)
	default:
		var parsed any
		if parsed, ok = fromText(t, text); ok && isText {
			out.Set(reflect.ValueOf(parsed))
		}
		ok = ok && isText
	}
	if !ok {
		return out, fmt.Errorf("%s is not a value of the type %s", value.Brief(v), typeName(t))
	}
	return out, nil
}

// integer returns a whole number.
func integer(v any) (*big.Int, bool) {
	whole, ok := value.Integer(v)
	if !ok {
		return nil, false
	}
	return value.Big(whole)
}

// fromText returns a value of one of the types that are texts in a workflow.
func fromText(t ua.TypeID, text string) (any, bool) {
	switch t {
	case ua.TypeIDDateTime:
		at, err := time.Parse(time.RFC3339Nano, text)
		// The library counts nanoseconds in 64 bits.
		return at, err == nil && at.Year() >= 1700 && at.Year() <= 2200
	case ua.TypeIDGUID:
		id := ua.NewGUID(text)
		return id, id != nil
	case ua.TypeIDByteString:
		data, err := base64.StdEncoding.DecodeString(text)
		return data, err == nil
	case ua.TypeIDLocalizedText:
		return ua.NewLocalizedText(text), true
	}
	return text, true
}
