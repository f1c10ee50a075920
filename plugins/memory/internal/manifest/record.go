package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/tokens"
)

// Kind is the kind of the documents.
const Kind = "agent_memory"

// The fields of a record that callers of this package use.
const (
	Path   = "file_path"
	URI    = "storage_uri"
	Hash   = "content_hash"
	Anchor = "anchors"
	Status = "status"
	Type   = "content_type"
)

// hashPrefix begins a content_hash.
const hashPrefix = "sha256:"

// Record is a JSON object: the fields of the file, which only this package sets,
// and the fields of the caller.
type Record map[string]any

// derived are the fields that callers cannot set.
var derived = []string{Path, URI, Hash, Type, "byte_size", "line_count", "token_estimate", "created_at", "updated_at", "synced_at"}

func isDerived(name string) bool { return slices.Contains(derived, name) }

// checks are the types of the fields that callers can set. Other fields are not
// checked.
var checks = map[string]func(v any) string{
	Anchor:            texts,
	Status:            oneOf("active", "archived", "draft"),
	"summary":         text,
	"embedding":       numbers,
	"embedding_model": text,
	"created_by":      text,
	"project_id":      text,
}

func text(v any) string {
	if _, ok := v.(string); ok {
		return ""
	}
	return "a text"
}

func texts(v any) string {
	list, ok := v.([]any)
	if !ok || slices.ContainsFunc(list, func(v any) bool { _, ok := v.(string); return !ok }) {
		return "a list of texts"
	}
	return ""
}

func numbers(v any) string {
	list, ok := v.([]any)
	if !ok || slices.ContainsFunc(list, func(v any) bool {
		n, _ := v.(json.Number)
		_, err := strconv.ParseFloat(n.String(), 32) // the range of the Parquet column
		return err != nil
	}) {
		return "a list of numbers"
	}
	return ""
}

func oneOf(words ...string) func(v any) string {
	return func(v any) string {
		if word, ok := v.(string); ok && slices.Contains(words, word) {
			return ""
		}
		return strings.Join(words, ", ")
	}
}

// Fields parses the fields that a caller sets. null removes a field, or resets it
// to its default.
func Fields(raw json.RawMessage) (Record, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return Record{}, nil
	}
	fields, err := parse(raw)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "the fields of a file must be an object, not %.40s", raw)
	}
	for name, v := range fields {
		if isDerived(name) {
			return nil, tea.Errorf(tea.ValidationError, "the field %q is computed from the file and cannot be set", name)
		}
		if check := checks[name]; check != nil && v != nil {
			if wanted := check(v); wanted != "" {
				return nil, tea.Errorf(tea.ValidationError, "the field %q must be %s", name, wanted)
			}
		}
	}
	return fields, nil
}

// parse parses an object; integers of any size stay exact.
func parse(raw []byte) (r Record, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err = d.Decode(&r); err == nil && r == nil {
		err = errors.New("null")
	}
	return r, err
}

// with returns the record with changed fields.
func (r Record) with(fields Record) Record {
	out := maps.Clone(r)
	maps.Copy(out, fields)
	maps.DeleteFunc(out, func(_ string, v any) bool { return v == nil })
	for name, value := range map[string]any{Anchor: []any{}, Status: "active", "summary": ""} {
		if out[name] == nil {
			out[name] = value
		}
	}
	return out
}

func (r Record) text(field string) string {
	s, _ := r[field].(string)
	return s
}

// hash returns the SHA-256 of the content in hex.
func (r Record) hash() string { return strings.TrimPrefix(r.text(Hash), hashPrefix) }

// describe returns the derived fields of a content.
func describe(file string, content []byte) Record {
	r := Record{Path: file, Type: typeOf(file, content), "byte_size": len(content), "line_count": 0, "token_estimate": 0}
	if IsText(content) {
		s := string(content)
		r["line_count"], r["token_estimate"] = Lines(s), tokens.Count(s)
	}
	return r
}

// Lines counts lines; the last one needs no newline.
func Lines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// IsText reports whether a content is UTF-8 without NUL.
func IsText(content []byte) bool {
	return utf8.Valid(content) && !bytes.ContainsRune(content, 0)
}

// typeOf returns the short name of a content type.
func typeOf(file string, content []byte) string {
	switch ext := strings.ToLower(strings.TrimPrefix(path.Ext(file), ".")); {
	case ext == "yml":
		return "yaml"
	case ext == "markdown":
		return "md"
	case ext != "":
		return ext
	case IsText(content):
		return "txt"
	}
	return "bin"
}
