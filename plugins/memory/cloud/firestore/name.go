package firestore

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	jsonvalue "github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
)

// The ids of documents are the keys, so that a listing is in the order of the keys'
// bytes. What an id cannot contain is escaped in a way that keeps this order.
const (
	// maxID is the length of an id without the hash of a long key. Firestore allows
	// 1,500 bytes.
	maxID = 1380
	// behindAll follows the part of a long key in its id: it sorts after all keys that
	// go on otherwise.
	behindAll = "\U0010FFFF"
	// partMark begins the end of the id of a part. No escaped key contains it.
	partMark = "\x01\x01"
	// afterParts is the first end of an id behind those of parts.
	afterParts = "\x01\x02"
	// reservedMark ends an id that Firestore would refuse, as __a__.
	reservedMark = "\x01"
)

var (
	escaper   = strings.NewReplacer("\x00", "\x01\x02", "\x01", "\x01\x03", ".", ".d", "/", ".s")
	unescaper = strings.NewReplacer("\x01\x02", "\x00", "\x01\x03", "\x01", ".d", ".", ".s", "/")
)

// escape returns a key without the characters that an id cannot contain. A prefix
// of a key is escaped to a prefix.
func escape(key string) string { return escaper.Replace(key) }

func unescape(id string) string { return unescaper.Replace(id) }

// space is a part of a collection, whose ids begin with the same text.
type space string

// spaceOf is that of a namespace.
func spaceOf(namespace string) space {
	return space(strings.ReplaceAll(escape(namespace), ":", ".c") + ":")
}

// whole is all of a collection.
const whole space = ""

// cut returns the part of a key that is in its id, and whether it is only a part.
// Keys with the same part are a group: their ids lie together.
func (s space) cut(key string) (part string, long bool) {
	part = escape(key)
	if limit := maxID - len(s); len(part) >= limit {
		return part[:jsonvalue.WholeRunes(part[:limit])], true
	}
	return part, false
}

// id returns the id of a key.
func (s space) id(key string) string {
	part, long := s.cut(key)
	if long {
		hash := sha256.Sum256([]byte(key))
		return string(s) + part + behindAll + hex.EncodeToString(hash[:])
	}
	if s == whole && !storableName(part) {
		part += reservedMark
	}
	return string(s) + part
}

// bounds returns the ids between which those of the keys lie that begin with prefix
// and come after a key: from is one of them if inclusive, to is not; "" = no bound.
func (s space) bounds(prefix, after string) (from string, inclusive bool, to string) {
	part, _ := s.cut(prefix)
	from, inclusive = string(s)+part, true
	to = documents.Behind(from)
	if after == "" || after < prefix {
		return from, inclusive, to
	}
	if part, long := s.cut(after); long {
		return string(s) + part + behindAll, true, to
	}
	return s.id(after), false, to
}
