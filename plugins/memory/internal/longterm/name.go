package longterm

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	maxKey       = 4096
	maxNamespace = 256
)

// Storable reports whether an entry can have the key.
func Storable(key string) bool { return key != "" && len(key) <= maxKey && utf8.ValidString(key) }

// isText reports whether s is valid UTF-8 without U+FFFD, which JSON encoders write for
// invalid bytes, so that different keys would become equal.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, utf8.RuneError) }

// CheckNamespace returns a validation_error for an invalid namespace.
func CheckNamespace(namespace string) error {
	switch {
	case len(namespace) > maxNamespace:
		return tea.Errorf(tea.ValidationError, "the namespace is too long: %d bytes (limit %d)", len(namespace), maxNamespace)
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
		return tea.Errorf(tea.ValidationError, "the key is too long: %d bytes (limit %d)", len(e.Key), maxKey)
	case !isText(e.Key):
		return tea.Errorf(tea.ValidationError, "the key %q is not valid UTF-8", e.Key)
	case e.TTL < 0:
		return tea.Errorf(tea.ValidationError, "key %q: the ttl is negative", e.Key)
	}
	return CheckNamespace(e.Namespace)
}

// CheckPrefix returns a validation_error for an invalid namespace or prefix.
func CheckPrefix(namespace, prefix string) error {
	if !utf8.ValidString(prefix) {
		return tea.Errorf(tea.ValidationError, "the prefix %q is not valid UTF-8", prefix)
	}
	return CheckNamespace(namespace)
}

// CheckName returns a validation_error for an invalid namespace or key.
func CheckName(namespace, key string) error {
	return checkEntry(store.Entry{Namespace: namespace, Key: key})
}

// Missing returns the not_found error of a key.
func Missing(key string) error { return fmt.Errorf("key %q: %w", key, store.ErrNotFound) }

// Damaged returns the error of a damaged entry, which must differ from not_found.
func Damaged(key string) error {
	return tea.Errorf(tea.InternalError, "the value of key %q is damaged; store it again or delete it: %w", key, content.ErrDamaged)
}
