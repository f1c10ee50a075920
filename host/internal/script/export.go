package script

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

// maxResult bounds the bytes of text in one exported value. As tables can share
// strings, a value that is small in memory can be huge when written.
const maxResult = 64 << 20

// maxValues bounds the values in one exported value, for the same reason.
const maxValues = 8 << 20

// exporter converts a Lua value to the value model.
type exporter struct {
	r     *run
	root  string
	path  []segment
	seen  []*lua.LTable // the tables around the value
	count int
	bytes int
}

func (r *run) exporter(root string) exporter {
	return exporter{r: r, root: root, path: r.m.path[:0], seen: r.m.seen[:0]}
}

// segment is the name of a field, or an index if name is empty.
type segment struct {
	name  string
	index int
}

// export converts v; root is its name in errors. It panics with a [*RunError].
func (r *run) export(v lua.LValue, root string) any {
	out := r.exporter(root)
	value, err := out.export(v)
	switch {
	case err == nil:
		return value
	case r.stopped():
		panic(failed{r.stopError()})
	}
	panic(failed{&RunError{Kind: ScriptError, File: r.name, Message: err.Error()}})
}

// export converts v. The other methods panic if that fails.
func (x *exporter) export(v lua.LValue) (value any, err error) {
	defer catch(&err)
	return x.value(v), nil
}

// mustExport converts v for a library function, or raises an error.
func (r *run) mustExport(L *lua.LState, v lua.LValue, root string) any {
	out := r.exporter(root)
	value, err := out.export(v)
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	return value
}

func (x *exporter) fail(format string, args ...any) failed {
	var b strings.Builder
	b.WriteString(x.root)
	for _, s := range x.path {
		switch {
		case s.index > 0:
			fmt.Fprintf(&b, "[%d]", s.index)
		case isName(s.name):
			b.WriteString("." + s.name)
		default:
			b.WriteString("[" + strconv.Quote(clip(s.name, 40)) + "]")
		}
		if b.Len() > 400 {
			b.WriteString("...")
			break
		}
	}
	return failed{fmt.Errorf("%s %s", b.String(), fmt.Sprintf(format, args...))}
}

func isName(s string) bool {
	for i, c := range s {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

func (x *exporter) value(v lua.LValue) any {
	x.account(0)
	switch typed := v.(type) {
	case *lua.LNilType:
		return nil
	case lua.LBool:
		return bool(typed)
	case lua.LString:
		x.account(len(typed))
		return validText(string(typed))
	case lua.LNumber:
		n, ok := x.r.exportNumber(v) // a conversion would copy it
		if !ok {
			panic(x.fail("is %s, which has no JSON form", x.r.numberText(v)))
		}
		return n
	case *lua.LTable:
		return x.table(typed)
	case *lua.LUserData:
		if typed == x.r.m.null {
			return nil
		}
	}
	panic(x.fail("is a %s, which has no JSON form", v.Type()))
}

// validText replaces each byte that is not UTF-8 by U+FFFD, as JSON would do
// later: a state must not change when it is read back.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

func (x *exporter) account(bytes int) {
	x.bytes += bytes
	if x.bytes > maxResult {
		panic(failed{fmt.Errorf("%s has more than %d bytes of text", x.root, maxResult)})
	}
	if x.count++; x.count > maxValues {
		panic(failed{fmt.Errorf("%s has more than %d values", x.root, maxValues)})
	}
	if x.count%checkEvery == 0 && x.r.stopped() {
		panic(failed{x.r.stopError()})
	}
}

func (x *exporter) table(t *lua.LTable) any {
	if len(x.seen) >= maxValueDepth {
		for _, outer := range x.seen {
			if outer == t {
				panic(failed{fmt.Errorf("%s contains itself", x.root)})
			}
		}
		panic(failed{fmt.Errorf("%s nests more than %d levels deep", x.root, maxValueDepth)})
	}
	if _, ok := x.r.m.proxies[t]; ok {
		panic(x.fail("is a library, which has no JSON form"))
	}
	x.seen = append(x.seen, t)
	defer func() { x.seen = x.seen[:len(x.seen)-1] }()
	if n := t.MaxN(); n > 0 {
		return x.list(t, n)
	}
	return x.object(t)
}

func (x *exporter) list(t *lua.LTable, n int) []any {
	if key, _ := t.Next(lua.LNumber(n)); key != lua.LNil {
		panic(x.fail("has list elements and the key %s; a table is a list or an object", keyText(key)))
	}
	out := make([]any, n)
	x.path = append(x.path, segment{})
	for i := range n {
		x.path[len(x.path)-1] = segment{index: i + 1}
		e := t.RawGetInt(i + 1)
		if e == lua.LNil {
			panic(x.fail("is nil: a list has no holes; use tea.null"))
		}
		out[i] = x.value(e)
	}
	x.path = x.path[:len(x.path)-1]
	return out
}

func (x *exporter) object(t *lua.LTable) any {
	out := map[string]any{}
	isLazy := t.Metatable == lua.LValue(x.r.m.lazyMeta)
	if isLazy {
		// Keys that the script did not read are copied unchanged.
		z := x.r.lazyOf(t)
		for k, v := range z.values() {
			if _, ok := z.loaded[k]; !ok {
				out[k] = v
			}
		}
	}
	for k, v := range x.r.nulls[t] {
		if v == nil {
			out[k] = nil
		}
	}
	x.path = append(x.path, segment{})
	for key, e := t.Next(lua.LNil); key != lua.LNil; key, e = t.Next(key) {
		name, ok := key.(lua.LString)
		if !ok {
			x.path = x.path[:len(x.path)-1]
			panic(x.fail("has the key %s: an object has string keys, a list the keys 1..n", keyText(key)))
		}
		text := validText(string(name))
		x.path[len(x.path)-1] = segment{name: text}
		x.account(len(name))
		out[text] = x.value(e)
	}
	x.path = x.path[:len(x.path)-1]
	if len(out) == 0 && t.Metatable != lua.LValue(x.r.m.objectMeta) && !isLazy {
		return []any{}
	}
	return out
}

func keyText(key lua.LValue) string {
	switch key.Type() {
	case lua.LTString:
		return strconv.Quote(clip(key.String(), 40))
	case lua.LTNumber, lua.LTBool:
		return key.String()
	}
	return "of type " + key.Type().String()
}
