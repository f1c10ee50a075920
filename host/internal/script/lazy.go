package script

import (
	"maps"
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// Objects is a list of objects that are created when a script reads them, as a
// value of [Globals]. At must return the same object for the same index.
type Objects struct {
	Len int
	At  func(i int) map[string]any
}

// lazyObject is an object whose keys are converted when a script first reads them.
type lazyObject struct {
	object map[string]any
	// list and index create the object if it is nil.
	list  *Objects
	index int
	// missing returns the values of keys that the object does not have; nil =
	// none.
	missing func(key string) (any, bool)
	// place is the path of the object in errors.
	place string
	// loaded has the keys that the table has or had.
	loaded map[string]struct{}
	// nested makes the inner objects lazy too.
	nested bool
}

// values returns the object itself.
func (z *lazyObject) values() map[string]any {
	if z.object == nil && z.list != nil {
		z.object = z.list.At(z.index)
	}
	return z.object
}

// lazyOf returns the object of a table with the metatable lazyMeta.
func (r *run) lazyOf(t *lua.LTable) *lazyObject {
	if t == r.state {
		return &r.stateKeys
	}
	return r.lazies[t]
}

// lazyTable returns a table for an object whose keys are converted on demand.
func (r *run) lazyTable(z *lazyObject) *lua.LTable {
	if r.lazies == nil {
		r.lazies = map[*lua.LTable]*lazyObject{}
	}
	t := r.m.root.CreateTable(0, 0)
	t.Metatable = r.m.lazyMeta
	r.lazies[t] = z
	return t
}

// lazyIndex converts a key on the first access.
func lazyIndex(L *lua.LState) int {
	r := runOf(L)
	t, isTable := L.Get(1).(*lua.LTable)
	key, ok := L.Get(2).(lua.LString)
	if !ok || !isTable || t.Metatable != lua.LValue(r.m.lazyMeta) {
		return push(L, lua.LNil)
	}
	return push(L, r.load(L, t, string(key)))
}

// load converts a key of a lazy table.
func (r *run) load(L *lua.LState, t *lua.LTable, key string) lua.LValue {
	z := r.lazyOf(t)
	v, ok := z.values()[key]
	if !ok && z.missing != nil {
		v, ok = z.missing(key)
		if ok {
			return r.mustImport(L, v, z.place+"."+key)
		}
	}
	if !ok && z.list != nil && key == "get" {
		return r.m.get
	}
	if !ok || v == nil {
		return lua.LNil
	}
	if _, ok := z.loaded[key]; ok {
		return lua.LNil
	}
	if isPlain(v) {
		return r.mustImport(L, v, key) // cannot fail
	}
	place := z.place + "." + key
	if object, ok := v.(map[string]any); ok && z.nested {
		return z.store(t, key, r.lazyTable(&lazyObject{object: object, place: place}))
	}
	return z.store(t, key, r.mustImport(L, v, place))
}

// objectGet implements object:get(key, default) for an object of [Objects].
func objectGet(L *lua.LState) int {
	if v := L.GetField(L.CheckTable(1), L.CheckString(2)); v != lua.LNil {
		return push(L, v)
	}
	return push(L, L.Get(3))
}

// isPlain reports whether converting v again costs less than storing it.
func isPlain(v any) bool {
	switch v := v.(type) {
	case bool, string, float64:
		return true
	case int64:
		return v > -maxExact && v < maxExact
	}
	return false
}

// store stores the value of a key in the table, which is authoritative from now
// on.
func (z *lazyObject) store(t *lua.LTable, key string, v lua.LValue) lua.LValue {
	z.markLoaded(key)
	t.RawSetString(key, v)
	return v
}

func (z *lazyObject) markLoaded(key string) {
	if z.loaded == nil {
		z.loaded = map[string]struct{}{}
	}
	z.loaded[key] = struct{}{}
}

// lazyNewIndex assigns a key that has not been converted, and prevents its
// conversion later.
func lazyNewIndex(L *lua.LState) int {
	r := runOf(L)
	t, key, value := L.CheckTable(1), L.Get(2), L.Get(3)
	if t.Metatable == lua.LValue(r.m.lazyMeta) {
		z := r.lazyOf(t)
		if name, ok := key.(lua.LString); ok && z.values()[string(name)] != nil {
			z.markLoaded(string(name))
		}
	}
	L.RawSet(t, key, value)
	return 0
}

// whole returns a table for iteration: the target of a library's proxy, or a lazy
// table with all its keys.
func (r *run) whole(L *lua.LState, t *lua.LTable) *lua.LTable {
	if t.Metatable == lua.LValue(r.m.lazyMeta) {
		z := r.lazyOf(t)
		for _, key := range slices.Sorted(maps.Keys(z.values())) {
			if v := r.load(L, t, key); v != lua.LNil {
				z.store(t, key, v)
			}
		}
		t.Metatable = r.m.objectMeta
		r.noteNulls(t, z.values())
		return t
	}
	if shown, ok := r.m.proxies[t]; ok {
		return shown
	}
	return t
}
