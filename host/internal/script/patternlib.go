package script

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

const (
	// maxPatterns bounds the compiled patterns that a machine caches.
	maxPatterns = 64
	// maxKept bounds the length of a cached pattern.
	maxKept = 1 << 10
)

// patternKey is a pattern's text, and whether a leading ^ is an anchor.
type patternKey struct {
	text    string
	anchors bool
}

func (m *machine) pattern(text string, anchors bool) (*pattern, error) {
	key := patternKey{text, anchors}
	if p := m.patterns[key]; p != nil {
		return p, nil
	}
	p, err := compilePattern(text, anchors)
	if err != nil {
		return nil, err
	}
	if len(text) > maxKept {
		return p, nil
	}
	if len(m.patterns) >= maxPatterns {
		clear(m.patterns)
	}
	key.text = strings.Clone(text) // text may be a part of a large string
	m.patterns[key] = p
	return p, nil
}

// newMatcher compiles text, or raises an error.
func (r *run) newMatcher(L *lua.LState, subject, text string, anchors bool) *matcher {
	p, err := r.m.pattern(text, anchors)
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	return &matcher{pattern: p, subject: subject, stopped: r.stopped}
}

// findIn is m.find, with a Lua error if the run was stopped.
func (r *run) findIn(L *lua.LState, m *matcher, init int) (start, end int, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			if _, gaveUp := p.(matchStopped); !gaveUp {
				panic(p)
			}
			r.check(L)
		}
	}()
	return m.find(init)
}

// captured returns capture i of a match; a pattern without groups captures the
// whole match.
func (m *matcher) captured(i, start, end int) lua.LValue {
	if m.groups == 0 {
		return lua.LString(m.subject[start:end])
	}
	c := m.captures[i]
	if c.end == positionCapture {
		return lua.LNumber(c.start + 1)
	}
	return lua.LString(m.subject[c.start:c.end])
}

func (m *matcher) pushCaptures(L *lua.LState, start, end int) int {
	n := max(m.groups, 1)
	for i := range n {
		L.Push(m.captured(i, start, end))
	}
	return n
}

// startIndex returns argument n as an offset into a string of the given length.
func startIndex(L *lua.LState, n, length int) int {
	i := optInt(L, n, 1)
	if i < 0 {
		i += length + 1
	}
	return min(max(i-1, 0), length)
}

func stringFind(L *lua.LState) int {
	r := runOf(L)
	s, text := checkText(L, 1), checkText(L, 2)
	init := startIndex(L, 3, len(s))
	if lua.LVAsBool(L.Get(4)) || !strings.ContainsAny(text, "^$*+?.([%-") {
		at := strings.Index(s[init:], text)
		if at < 0 {
			return push(L, lua.LNil)
		}
		return push(L, lua.LNumber(init+at+1), lua.LNumber(init+at+len(text)))
	}
	m := r.newMatcher(L, s, text, true)
	start, end, ok := r.findIn(L, m, init)
	if !ok {
		return push(L, lua.LNil)
	}
	L.Push(lua.LNumber(start + 1))
	L.Push(lua.LNumber(end))
	if m.groups == 0 {
		return 2
	}
	return 2 + m.pushCaptures(L, start, end)
}

func stringMatch(L *lua.LState) int {
	r := runOf(L)
	s := checkText(L, 1)
	m := r.newMatcher(L, s, checkText(L, 2), true)
	start, end, ok := r.findIn(L, m, startIndex(L, 3, len(s)))
	if !ok {
		return push(L, lua.LNil)
	}
	return m.pushCaptures(L, start, end)
}

func stringGmatch(L *lua.LState) int {
	m := runOf(L).newMatcher(L, checkText(L, 1), checkText(L, 2), false)
	at := 0
	L.Push(L.NewFunction(func(L *lua.LState) int {
		if at > len(m.subject) {
			return push(L, lua.LNil)
		}
		start, end, ok := runOf(L).findIn(L, m, at)
		if !ok {
			at = len(m.subject) + 1
			return push(L, lua.LNil)
		}
		at = max(end, start+1)
		return m.pushCaptures(L, start, end)
	}))
	return 1
}

func stringGsub(L *lua.LState) int {
	r := runOf(L)
	s := checkText(L, 1)
	m := r.newMatcher(L, s, checkText(L, 2), true)
	replace := r.replacer(L, m)
	limit := optInt(L, 4, len(s)+1)
	var out strings.Builder
	at, count := 0, 0
	for count < limit {
		start, end, ok := r.findIn(L, m, at)
		if !ok {
			break
		}
		count++
		text := replace(start, end)
		r.checkSize(L, out.Len()+(start-at)+len(text)+1)
		out.WriteString(s[at:start])
		out.WriteString(text)
		at = end
		if end == start {
			if at >= len(s) {
				break
			}
			out.WriteByte(s[at])
			at++
		}
		if m.anchored {
			break
		}
		if count%checkEvery == 0 {
			r.check(L)
		}
	}
	r.checkSize(L, out.Len()+len(s)-at)
	out.WriteString(s[at:])
	return push(L, lua.LString(out.String()), lua.LNumber(count))
}

// replacer returns the replacement function for gsub's third argument.
func (r *run) replacer(L *lua.LState, m *matcher) func(start, end int) string {
	with := L.Get(3)
	if text, ok := r.text(with); ok {
		return func(start, end int) string { return r.expand(L, m, text, start, end) }
	}
	var lookup func(start, end int) lua.LValue
	switch with := with.(type) {
	case *lua.LTable:
		lookup = func(start, end int) lua.LValue {
			r.callbacks++ // __index can be Lua
			v := L.GetTable(with, m.captured(0, start, end))
			r.callbacks--
			return v
		}
	case *lua.LFunction:
		lookup = func(start, end int) lua.LValue {
			args := make([]lua.LValue, max(m.groups, 1))
			for i := range args {
				args[i] = m.captured(i, start, end)
			}
			return r.callback(L, with, args...)
		}
	default:
		L.ArgError(3, "string, table or function expected, got "+with.Type().String())
	}
	return func(start, end int) string {
		v := lookup(start, end)
		if !lua.LVAsBool(v) {
			return m.subject[start:end]
		}
		text, ok := r.text(v)
		if !ok {
			L.RaiseError("invalid replacement value (a %s)", v.Type())
		}
		return text
	}
}

// expand replaces %0 to %9 in a replacement text.
func (r *run) expand(L *lua.LState, m *matcher, text string, start, end int) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		r.step(L)
		part := text[i : i+1]
		if text[i] == '%' && i+1 < len(text) {
			i++
			switch c := text[i]; {
			case c == '0':
				part = m.subject[start:end]
			case c >= '1' && c <= '9':
				if int(c-'1') >= max(m.groups, 1) {
					L.RaiseError("invalid capture index %%%c in replacement string", c)
				}
				part = r.numberOrString(m.captured(int(c-'1'), start, end))
			default:
				part = text[i : i+1]
			}
		}
		r.checkSize(L, out.Len()+len(part))
		out.WriteString(part)
	}
	return out.String()
}

func (r *run) numberOrString(v lua.LValue) string {
	s, _ := r.text(v)
	return s
}
