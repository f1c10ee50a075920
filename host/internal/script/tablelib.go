package script

import (
	"sort"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

func tableFunctions() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"concat": tableConcat,
		"getn":   tableGetN,
		"insert": tableInsert,
		"maxn":   tableMaxN,
		"remove": tableRemove,
		"sort":   tableSort,
		"unpack": baseUnpack,
	}
}

func tableConcat(L *lua.LState) int {
	r := runOf(L)
	t := L.CheckTable(1)
	sep := ""
	if L.Get(2) != lua.LNil {
		sep = checkText(L, 2)
	}
	first, last := optInt(L, 3, 1), optInt(L, 4, t.Len())
	var b strings.Builder
	for i := first; i <= last; i++ {
		if (i-first)%checkEvery == 0 {
			r.check(L)
		}
		v := t.RawGet(lua.LNumber(i))
		s, ok := r.text(v)
		if !ok {
			L.RaiseError("invalid value (%s) at index %d in table for 'concat'", v.Type(), i)
		}
		if i < last {
			r.checkSize(L, b.Len()+len(s)+len(sep))
			b.WriteString(s)
			b.WriteString(sep)
			continue
		}
		r.checkSize(L, b.Len()+len(s))
		b.WriteString(s)
	}
	return push(L, lua.LString(b.String()))
}

func tableGetN(L *lua.LState) int { return push(L, lua.LNumber(L.CheckTable(1).Len())) }

func tableMaxN(L *lua.LState) int { return push(L, lua.LNumber(L.CheckTable(1).MaxN())) }

func tableInsert(L *lua.LState) int {
	r := runOf(L)
	t := r.writable(L, L.CheckTable(1))
	n := t.Len()
	if n >= maxArray-1 {
		r.raiseLimit(L, "table too long: at most %d elements are allowed", maxArray-1)
	}
	switch L.GetTop() {
	case 2:
		t.RawSetInt(n+1, L.Get(2))
	case 3:
		at := checkInt(L, 2)
		if at < 1 || at > n+1 {
			L.ArgError(2, "position out of bounds")
		}
		if at == n+1 {
			t.RawSetInt(at, L.Get(3))
		} else {
			t.Insert(at, L.Get(3))
		}
	default:
		L.RaiseError("wrong number of arguments to 'insert'")
	}
	return 0
}

func tableRemove(L *lua.LState) int {
	t := runOf(L).writable(L, L.CheckTable(1))
	n := t.Len()
	at := optInt(L, 2, n)
	if at < 1 || at > n {
		return push(L, lua.LNil)
	}
	return push(L, t.Remove(at))
}

// sorter sorts a copy, because a comparator can read the table, or fail.
type sorter struct {
	r      *run
	L      *lua.LState
	less   *lua.LFunction
	values []lua.LValue
	count  int
}

func (s *sorter) Len() int      { return len(s.values) }
func (s *sorter) Swap(i, j int) { s.values[i], s.values[j] = s.values[j], s.values[i] }

func (s *sorter) Less(i, j int) bool {
	if s.less != nil {
		return lua.LVAsBool(s.r.callback(s.L, s.less, s.values[i], s.values[j]))
	}
	if s.count++; s.count%checkEvery == 0 {
		s.r.check(s.L)
	}
	s.r.callbacks++ // __lt can be Lua
	less := s.L.LessThan(s.values[i], s.values[j])
	s.r.callbacks--
	return less
}

func tableSort(L *lua.LState) int {
	r := runOf(L)
	t := r.writable(L, L.CheckTable(1))
	s := &sorter{r: r, L: L, values: make([]lua.LValue, t.Len())}
	if L.Get(2) != lua.LNil {
		s.less = L.CheckFunction(2)
	}
	for i := range s.values {
		s.values[i] = t.RawGetInt(i + 1)
	}
	sort.Sort(s)
	for i, v := range s.values {
		t.RawSetInt(i+1, v)
	}
	return 0
}
