package execpath

import (
	"strconv"
	"strings"
)

// Path identifies an execution. The zero value is the run itself.
type Path string

// borders are the characters that separate the parts of a path.
const borders = "/>[~!"

// The marks of [Path.Mark].
const (
	Before = "before" // an interrupt before the node
	After  = "after"  // an interrupt after the node, before its route is decided
	Ask    = "ask"    // a question that an action asks
	Resume = "resume" // the node where a resumed frame continued
)

// Node returns the path of a node, or of a step, in the sequence at p.
func (p Path) Node(name string) Path {
	if p == "" {
		return Path(name)
	}
	return p + "/" + Path(name)
}

// Visit returns the path of the n-th execution, counted from 1, of the node or
// call at p.
func (p Path) Visit(n int) Path {
	if n <= 1 {
		return p
	}
	return p + "#" + Path(strconv.Itoa(n))
}

// Index returns the path of an iteration of the loop, or of an item of the map, at p.
func (p Path) Index(i int) Path { return p + "[" + Path(strconv.Itoa(i)) + "]" }

// Branch returns the path of the branch that begins at a node, of the fan-out
// after p.
func (p Path) Branch(entry string) Path { return p + ">" + Path(entry) }

// Attempt returns the path of the n-th attempt, counted from 1, of the
// container or branch at p.
func (p Path) Attempt(n int) Path {
	if n <= 1 {
		return p
	}
	return p + "~" + Path(strconv.Itoa(n))
}

// Call returns the path of a call of an action made at p; hash is the hash of its
// parameters.
func (p Path) Call(action string, hash uint32) Path {
	digits := strconv.FormatUint(1<<32|uint64(hash), 16)[1:] // eight of them
	return p + "!" + Path(action) + ":" + Path(digits)
}

// Keyed returns the path of a call that the action at p named itself. A key has no
// colon, so the path differs from the paths of other calls.
func (p Path) Keyed(key string) Path { return p + "!" + Path(key) }

// Mark returns the name of a place at p: of an interrupt, or where input was
// merged.
func (p Path) Mark(mark string) Path { return p + ":" + Path(mark) }

// Outer returns the path that contains an execution: "loop[0]" for "loop[0]/fetch",
// then "loop", then "".
func (p Path) Outer() Path { return p[:max(0, strings.LastIndexAny(string(p), borders))] }

// IsBranch reports whether the last part of a path is a branch of a fan-out.
func (p Path) IsBranch() bool {
	i := strings.LastIndexAny(string(p), borders)
	return i >= 0 && p[i] == '>'
}

// Below reports whether a path is inside outer. Every path is inside "", the run.
func (p Path) Below(outer Path) bool {
	return outer == "" && p != "" ||
		len(p) > len(outer) && strings.HasPrefix(string(p), string(outer)) && strings.IndexByte(borders, p[len(outer)]) >= 0
}

// Within reports whether a path is outer or inside it.
func (p Path) Within(outer Path) bool { return p == outer || p.Below(outer) }

// Frame returns the path of the sequence that a node belongs to: "" for the
// workflow's own, "loop[0]" for "loop[0]/fetch". The only node of a map's
// item, "each[3]", is its own sequence.
func (p Path) Frame() Path {
	cut := strings.LastIndexByte(string(p), '/')
	if strings.ContainsAny(string(p[cut+1:]), ">[") {
		return p
	}
	return p[:max(0, cut)]
}

// WithoutAttempts returns the path with only first attempts.
func (p Path) WithoutAttempts() Path {
	if strings.IndexByte(string(p), '~') < 0 {
		return p
	}
	var b strings.Builder
	for text := string(p); ; {
		head, rest, found := strings.Cut(text, "~")
		b.WriteString(head)
		if !found {
			return Path(b.String())
		}
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		if digits == 0 || digits < len(rest) && !strings.ContainsRune("/>[#!~", rune(rest[digits])) {
			b.WriteByte('~') // part of a node's name
		} else {
			rest = rest[digits:]
		}
		text = rest
	}
}

// Label returns a readable form of a path's last part: "fetch #2" for "loop[0]/fetch#2".
func (p Path) Label() string {
	text := string(p[strings.LastIndexByte(string(p), '/')+1:])
	if key := text[strings.LastIndexByte(text, '!')+1:]; !strings.Contains(key, ":") {
		text = key
	}
	if name, visit, again := strings.Cut(text, "#"); again {
		return name + " #" + visit
	}
	return text
}
