package longterm

import (
	"strings"
	"unicode"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	maxKey       = 4096
	maxNamespace = 256
)

// Namespace and key share a column, since DuckDB uses only indexes on one column. A key
// of the default namespace is stored unchanged. Other keys are preceded by the last code
// point of Unicode, the namespace, and a character that no namespace contains. This
// keeps a namespace's entries together, in the order of their keys, with the default
// namespace first.
const (
	beyond    = "\U0010FFFF"
	separator = "\x01"
)

// rowKey returns the value of the key column.
func rowKey(namespace, key string) string {
	if namespace == "" && !strings.HasPrefix(key, beyond) {
		return key
	}
	return beyond + namespace + separator + key
}

// splitRowKey returns the namespace and the key of an entry.
func splitRowKey(row string) (namespace, key string) {
	rest, ok := strings.CutPrefix(row, beyond)
	if !ok {
		return "", row
	}
	namespace, key, _ = strings.Cut(rest, separator)
	return namespace, key
}

// tag returns the tag of a namespace's entries in the text index.
func tag(namespace string) string { return "/" + namespace }

// storable reports whether an entry can have the key.
func storable(key string) bool { return key != "" && len(key) <= maxKey && utf8.ValidString(key) }

// isText reports whether s is valid UTF-8 without U+FFFD, which JSON encoders write for
// invalid bytes, so that different keys would become equal.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, utf8.RuneError) }

func checkNamespace(namespace string) error {
	switch {
	case len(namespace) > maxNamespace:
		return tea.Errorf(tea.ValidationError, "the namespace has %d bytes, more than %d", len(namespace), maxNamespace)
	case !isText(namespace):
		return tea.Errorf(tea.ValidationError, "the namespace %q is not valid UTF-8", namespace)
	case strings.ContainsFunc(namespace, unicode.IsControl):
		return tea.Errorf(tea.ValidationError, "the namespace %q contains a control character", namespace)
	}
	return nil
}

func checkEntry(e store.Entry) error {
	switch {
	case e.Key == "":
		return tea.Errorf(tea.ValidationError, "the key is empty")
	case len(e.Key) > maxKey:
		return tea.Errorf(tea.ValidationError, "the key has %d bytes, more than %d", len(e.Key), maxKey)
	case !isText(e.Key):
		return tea.Errorf(tea.ValidationError, "the key %q is not valid UTF-8", e.Key)
	case e.TTL < 0:
		return tea.Errorf(tea.ValidationError, "key %q: the ttl is negative", e.Key)
	}
	return checkNamespace(e.Namespace)
}

func checkPrefix(namespace, prefix string) error {
	if !utf8.ValidString(prefix) {
		return tea.Errorf(tea.ValidationError, "the prefix %q is not valid UTF-8", prefix)
	}
	return checkNamespace(namespace)
}
