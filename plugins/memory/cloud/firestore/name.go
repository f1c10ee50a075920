package firestore

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	jsonvalue "github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
)

// The ids of documents are the keys, so that listings are in the order of the keys' bytes. Characters that an id cannot
// contain are escaped in a way that keeps this order.
const (
	// maxID bounds an id without the hash of a long key. Firestore allows 1,500 bytes.
	maxID = 1380
	// afterAll follows the beginning of a long key in its id, and sorts after all other keys with this beginning.
	afterAll = "\U0010FFFF"
	// partMark begins the suffix of the id of a part. Escaped keys do not contain it.
	partMark = "\x01\x01"
	// afterParts sorts after the suffixes of all parts.
	afterParts = "\x01\x02"
	// reservedMark ends an id that Firestore would refuse, such as __a__.
	reservedMark = "\x01"
)

var (
	escaper   = strings.NewReplacer("\x00", "\x01\x02", "\x01", "\x01\x03", ".", ".d", "/", ".s")
	unescaper = strings.NewReplacer("\x01\x02", "\x00", "\x01\x03", "\x01", ".d", ".", ".s", "/")
)

// escape replaces the characters that an id cannot contain. A prefix of a key is escaped to a prefix.
func escape(key string) string { return escaper.Replace(key) }

func unescape(id string) string { return unescaper.Replace(id) }

// space is the part of a collection whose ids begin with this text.
type space string

// spaceOf returns the space of a namespace.
func spaceOf(namespace string) space {
	return space(strings.ReplaceAll(escape(namespace), ":", ".c") + ":")
}

// whole is the whole collection.
const whole space = ""

// cut returns the beginning of a key that is in its id, and whether the key is longer. Keys with the same beginning
// form a group with adjacent ids.
func (s space) cut(key string) (part string, long bool) {
	part = escape(key)
	if limit := maxID - len(s); len(part) >= limit {
		return part[:jsonvalue.WholeRunes(part[:limit])], true
	}
	return part, false
}

func (s space) id(key string) string {
	part, long := s.cut(key)
	if long {
		return string(s) + part + afterAll + hexOf(key)
	}
	if s == whole && !storableName(part) {
		part += reservedMark
	}
	return string(s) + part
}

// bounds returns the bounds of the ids of the keys that begin with prefix and come after a key: from is included if
// inclusive, to is excluded; "" = no bound.
func (s space) bounds(prefix, after string) (from string, inclusive bool, to string) {
	part, _ := s.cut(prefix)
	from, inclusive = string(s)+part, true
	to = documents.Behind(from)
	if after == "" || after < prefix {
		return from, inclusive, to
	}
	if part, long := s.cut(after); long {
		return string(s) + part + afterAll, true, to
	}
	if s == whole {
		return s.id(after), false, to
	}
	return s.id(after) + afterParts, true, to
}

// between returns the conditions for ids between two bounds.
func (p place) between(from string, inclusive bool, to string) (all []filterOf) {
	bound := func(op, id string) {
		name := p.base + id
		all = append(all, filterOf{FieldFilter: &fieldFilter{field{nameField}, op, value{Reference: &name}}})
	}
	switch {
	case from == "":
	case inclusive:
		bound("GREATER_THAN_OR_EQUAL", from)
	default:
		bound("GREATER_THAN", from)
	}
	if to != "" {
		bound("LESS_THAN", to)
	}
	return all
}

func join(first *filterOf, others ...filterOf) *filterOf {
	all := others
	if first != nil {
		all = append([]filterOf{*first}, others...)
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return &all[0]
	}
	return &filterOf{Composite: &compositeFilter{"AND", all}}
}

func equal(name string, v value) *filterOf {
	return &filterOf{FieldFilter: &fieldFilter{field{name}, "EQUAL", v}}
}

func selected(paths []string) *fields {
	all := &fields{}
	for _, path := range paths {
		all.Fields = append(all.Fields, field{path})
	}
	return all
}

func hexOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// numberOf returns a number that identifies a document.
func numberOf(name string) int64 {
	sum := sha256.Sum256([]byte(name))
	return int64(binary.BigEndian.Uint64(sum[:]) >> 1) //nolint:gosec // it has 63 bits
}
