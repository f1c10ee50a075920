package script

import (
	"math"
	"math/rand/v2"

	lua "github.com/yuin/gopher-lua"
)

// mathLibrary is gopher-lua's, except for text that is a number, and for random
// numbers: each run has its own source, with a seed from the host.
func (m *machine) mathLibrary() *lua.LTable {
	m.root.Push(m.root.NewFunction(lua.OpenMath))
	m.root.Call(0, 1)
	functions := map[string]lua.LGFunction{}
	m.root.Get(-1).(*lua.LTable).ForEach(func(name, v lua.LValue) {
		if fn, ok := v.(*lua.LFunction); ok {
			functions[name.String()] = withNumbers(fn.GFunction)
		}
	})
	m.root.Pop(1)
	functions["random"], functions["randomseed"] = mathRandom, mathRandomSeed
	t := m.library(functions)
	t.RawSetString("pi", lua.LNumber(math.Pi))
	t.RawSetString("huge", lua.LNumber(math.Inf(1)))
	return t
}

// withNumbers returns fn with arguments that are text converted first, since gopher-lua
// converts them differently.
func withNumbers(fn lua.LGFunction) lua.LGFunction {
	return func(L *lua.LState) int {
		for i := 1; i <= L.GetTop(); i++ {
			if _, ok := L.Get(i).(lua.LString); ok {
				L.Replace(i, checkNumber(L, i))
			}
		}
		return fn(L)
	}
}

func (r *run) source() *rand.Rand {
	if r.random == nil {
		r.seed(r.env.Seed)
	}
	return r.random
}

func (r *run) seed(seed uint64) { r.random = rand.New(rand.NewPCG(seed, 0)) }

func mathRandomSeed(L *lua.LState) int {
	runOf(L).seed(uint64(checkInt(L, 1)))
	return 0
}

func mathRandom(L *lua.LState) int {
	source := runOf(L).source()
	low := 1
	var high int
	switch L.GetTop() {
	case 0:
		return push(L, lua.LNumber(source.Float64()))
	case 1:
		high = checkInt(L, 1)
	default:
		low, high = checkInt(L, 1), checkInt(L, 2)
	}
	if low > high {
		L.ArgError(L.GetTop(), "interval is empty")
	}
	return push(L, lua.LNumber(int64(low)+source.Int64N(int64(high)-int64(low)+1)))
}
