package script

import (
	"encoding/json"
	"fmt"
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// maxValueDepth bounds the nesting of converted values.
const maxValueDepth = 200

// checkEvery is the number of conversions between checks of the deadline.
const checkEvery = 1024

// importer converts a value of the model to Lua. Its methods panic on failure.
type importer struct {
	r     *run
	depth int
	count int
}

// mustImport converts v or raises an error with its path.
func (r *run) mustImport(L *lua.LState, v any, place string) lua.LValue {
	lv, err := r.imported(v)
	if err != nil {
		L.RaiseError("%s: %v", place, err)
	}
	return lv
}

func (r *run) imported(v any) (lv lua.LValue, err error) {
	defer catch(&err)
	in := importer{r: r}
	return in.value(v), nil
}

func (in *importer) value(v any) lua.LValue {
	if in.count++; in.count%checkEvery == 0 && in.r.stopped() {
		panic(failed{in.r.stopError()})
	}
	switch v := v.(type) {
	case nil:
		return lua.LNil
	case bool:
		return lua.LBool(v)
	case string:
		return lua.LString(v)
	case int64:
		return in.r.importInt(v)
	case int:
		return in.r.importInt(int64(v))
	case float64:
		return lua.LNumber(v)
	case json.Number:
		return in.r.importNumber(v)
	case Objects:
		return in.objects(v)
	case []any:
		return in.list(v)
	case map[string]any:
		return in.object(v)
	}
	panic(failed{fmt.Errorf("cannot convert a Go %T to Lua", v)})
}

func (in *importer) enter() {
	if in.depth++; in.depth > maxValueDepth {
		panic(failed{fmt.Errorf("nests more than %d levels deep", maxValueDepth)})
	}
}

func (in *importer) list(list []any) lua.LValue {
	in.enter()
	defer func() { in.depth-- }()
	checkLength(len(list))
	t := in.r.m.root.CreateTable(len(list), 0)
	t.Metatable = in.r.m.listMeta
	for i, e := range list {
		if e == nil {
			t.RawSetInt(i+1, in.r.m.null)
			continue
		}
		t.RawSetInt(i+1, in.value(e))
	}
	return t
}

// objects returns a list of lazy tables.
func (in *importer) objects(list Objects) lua.LValue {
	checkLength(list.Len)
	t := in.r.m.root.CreateTable(list.Len, 0)
	t.Metatable = in.r.m.listMeta
	entries := make([]lazyObject, list.Len)
	for i := range entries {
		if i%checkEvery == 0 && in.r.stopped() {
			panic(failed{in.r.stopError()})
		}
		entries[i] = lazyObject{list: &list, index: i, place: "an entry", nested: true}
		t.RawSetInt(i+1, in.r.lazyTable(&entries[i]))
	}
	return t
}

func checkLength(n int) {
	if n >= maxArray {
		panic(failed{fmt.Errorf("a list of %d elements is too long for Lua; at most %d are allowed", n, maxArray-1)})
	}
}

// object converts in key order, so that pairs() has the same order each time.
func (in *importer) object(object map[string]any) lua.LValue {
	in.enter()
	defer func() { in.depth-- }()
	t := in.r.m.root.CreateTable(0, len(object))
	t.Metatable = in.r.m.objectMeta
	var buf [16]string
	keys := buf[:0]
	for k := range object {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		e := object[k]
		if e == nil {
			in.r.noteNulls(t, object)
			continue
		}
		t.RawSetString(k, in.value(e))
	}
	return t
}

// noteNulls records the object of a table with null fields, which are nil in Lua
// and must be restored.
func (r *run) noteNulls(t *lua.LTable, object map[string]any) {
	if r.nulls == nil {
		r.nulls = map[*lua.LTable]map[string]any{}
	}
	r.nulls[t] = object
}
