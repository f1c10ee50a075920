package script

import (
	"errors"

	lua "github.com/yuin/gopher-lua"

	"github.com/the-edge-agent/tea/sdk/value"
)

func jsonEncode(L *lua.LState) int {
	r := runOf(L)
	out := r.exporter("value")
	v, err := out.export(L.CheckAny(1))
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	text, err := detached(r, L, out.bytes+out.count, func() ([]byte, error) { return value.Encode(v) })
	if err != nil {
		L.RaiseError("encode JSON: %v", err)
	}
	r.checkSize(L, len(text))
	return push(L, lua.LString(text))
}

var errTooManyValues = errors.New("the text has more values than fit in memory")

func jsonDecode(L *lua.LState) int {
	r := runOf(L)
	text := checkText(L, 1)
	r.checkSize(L, len(text))
	v, err := detached(r, L, len(text), func() (any, error) {
		if jsonWeight(text) > r.watch.limit {
			return nil, errTooManyValues
		}
		return value.Decode([]byte(text))
	})
	if errors.Is(err, errTooManyValues) {
		r.raiseLimit(L, "decode JSON: %v", err)
	}
	if err != nil {
		L.RaiseError("decode JSON: %v", err)
	}
	if v == nil {
		return push(L, r.m.null)
	}
	return push(L, r.mustImport(L, v, "the JSON value"))
}

// jsonObject marks a table as an object, which matters if it is empty.
func jsonObject(L *lua.LState) int {
	r := runOf(L)
	t := r.writable(L, L.OptTable(1, nil))
	if t == nil {
		t = r.m.root.CreateTable(0, 0)
	}
	if mt, ok := t.Metatable.(*lua.LTable); !ok || r.m.isMark(mt) {
		t.Metatable = r.m.objectMeta
	}
	return push(L, t)
}

// jsonWeight estimates the memory of the values of a JSON text in addition to the
// text: a few characters can be a map of hundreds of bytes.
func jsonWeight(text string) uint64 {
	const object, list, element = 336, 40, 24
	weight := uint64(0)
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			weight += object
		case '[':
			weight += list
		case ',':
			weight += element
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		}
	}
	return weight
}
