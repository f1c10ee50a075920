package transfer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/sdk/x/diag"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// record is a line: an entity or a relation.
type record struct {
	Kind       string          `json:"kind"`
	ID         string          `json:"id,omitempty"`
	From       string          `json:"from,omitempty"`
	To         string          `json:"to,omitempty"`
	Type       string          `json:"type"`
	Properties json.RawMessage `json:"properties,omitempty"`
	Text       string          `json:"text,omitempty"`
	Embedding  []float32       `json:"embedding,omitempty"`
	Facts      json.RawMessage `json:"facts,omitempty"`
	Weight     *float64        `json:"weight,omitempty"`
	ValidFrom  string          `json:"valid_from,omitempty"`
	ValidTo    string          `json:"valid_to,omitempty"`
	Source     string          `json:"source,omitempty"`
	CreatedAt  string          `json:"created_at,omitempty"`
	UpdatedAt  string          `json:"updated_at,omitempty"`
}

func fromEntity(e *store.Entity) *record {
	return &record{
		Kind: store.KindEntity, ID: e.ID, Type: e.Type, Properties: e.Properties, Text: e.Text, Embedding: e.Embedding,
		Facts: json.RawMessage(e.Facts), Source: e.Source, CreatedAt: store.FormatInstant(e.CreatedAt), UpdatedAt: store.FormatInstant(e.UpdatedAt),
	}
}

func fromRelation(r *store.Relation) *record {
	return &record{
		Kind: store.KindRelation, From: r.From, To: r.To, Type: r.Type, Properties: r.Properties, Weight: &r.Weight, Source: r.Source,
		ValidFrom: store.FormatInstant(r.ValidFrom), ValidTo: store.FormatInstant(r.ValidTo), CreatedAt: store.FormatInstant(r.CreatedAt), UpdatedAt: store.FormatInstant(r.UpdatedAt),
	}
}

// send passes a record to the sink.
func (r *record) send(into Sink) error {
	created, err := store.ParseInstant(r.CreatedAt, 0)
	if err != nil {
		return fmt.Errorf("created_at: %w", err)
	}
	updated, err := store.ParseInstant(r.UpdatedAt, 0)
	if err != nil {
		return fmt.Errorf("updated_at: %w", err)
	}
	switch {
	case r.Kind == store.KindEntity || r.Kind == "" && r.ID != "":
		return into.Entity(&store.Entity{
			ID: r.ID, Type: r.Type, Properties: r.Properties, Text: r.Text, Embedding: r.Embedding, Facts: string(r.Facts), Source: r.Source, CreatedAt: created, UpdatedAt: updated,
		})
	case r.Kind != store.KindRelation && (r.Kind != "" || r.From == ""):
		return fmt.Errorf("the kind %q is neither entity nor relation", r.Kind)
	}
	relation := &store.Relation{RelationKey: store.RelationKey{From: r.From, Type: r.Type, To: r.To}, Properties: r.Properties, Weight: 1, Source: r.Source, CreatedAt: created, UpdatedAt: updated}
	if r.Weight != nil {
		relation.Weight = *r.Weight
	}
	if relation.ValidFrom, err = store.ParseInstant(r.ValidFrom, store.Always); err != nil {
		return fmt.Errorf("valid_from: %w", err)
	}
	if relation.ValidTo, err = store.ParseInstant(r.ValidTo, store.Forever); err != nil {
		return fmt.Errorf("valid_to: %w", err)
	}
	return into.Relation(relation)
}

// jsonl writes a line for each entity and relation. It loses nothing.
type jsonl struct{ encoder *json.Encoder }

func newJSONL(w io.Writer) *jsonl {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return &jsonl{encoder: encoder}
}

func (w *jsonl) Entity(e *store.Entity) error     { return w.encoder.Encode(fromEntity(e)) }
func (w *jsonl) Relation(r *store.Relation) error { return w.encoder.Encode(fromRelation(r)) }
func (w *jsonl) Close() error                     { return nil }

// maxLine is the maximum size of a line.
const maxLine = 64 << 20

func readJSONL(r io.Reader, into Sink) error {
	lines := bufio.NewScanner(decoded(r))
	lines.Buffer(make([]byte, 0, 1<<16), maxLine)
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		line, err := parseLine(lines.Bytes())
		if err == nil {
			err = line.send(into)
		}
		if err != nil {
			return at(fmt.Sprintf("line %d", n), err)
		}
	}
	if err := lines.Err(); err != nil {
		return at(fmt.Sprintf("line %d", n+1), err)
	}
	return nil
}

// The members of a line that belong to one kind only.
var (
	entityMembers   = []string{"id", "text", "embedding", "facts"}
	relationMembers = []string{"from", "to", "weight", "valid_from", "valid_to"}
	commonMembers   = []string{"kind", "type", "properties", "source", "created_at", "updated_at"}
)

// parseLine reads a line. A member that does not belong to its kind is an error.
func parseLine(text []byte) (*record, error) {
	if !utf8.Valid(text) {
		return nil, errNotUTF8
	}
	if err := checkJSON(text); err != nil {
		return nil, err
	}
	r := &record{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(r)
	var mismatch *json.UnmarshalTypeError
	switch {
	case err == nil:
	case !json.Valid(text):
		return nil, fmt.Errorf("not valid JSON: %w", err)
	case errors.As(err, &mismatch) && mismatch.Field == "":
		return nil, fmt.Errorf("a JSON %s is not an entity or a relation, which are objects", mismatch.Value)
	case errors.As(err, &mismatch):
		return nil, fmt.Errorf("%s: a JSON %s is not a valid value", mismatch.Field, mismatch.Value)
	}
	if _, rest := decoder.Token(); err == nil && rest != io.EOF {
		return nil, errors.New("the line has more than one JSON value")
	}
	kind, allowed := "an entity", slices.Concat(entityMembers, commonMembers)
	switch {
	case r.Kind == store.KindRelation, r.Kind == "" && r.ID == "":
		kind, allowed = "a relation", slices.Concat(relationMembers, commonMembers)
	case err == nil && r.From == "" && r.To == "" && r.Weight == nil && r.ValidFrom == "" && r.ValidTo == "":
		return r, nil
	}
	if err == nil && kind == "a relation" && r.ID == "" && r.Text == "" && r.Embedding == nil && r.Facts == nil {
		return r, nil
	}
	if err := checkMembers(text, kind, allowed); err != nil {
		return nil, err
	}
	return r, err
}

func checkMembers(object []byte, kind string, allowed []string) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(allowed, name) {
			text := fmt.Sprintf("%s does not have a member %q", kind, name)
			if hint := diag.Suggest(name, allowed); hint != "" {
				text += "; " + hint
			}
			return errors.New(text)
		}
	}
	return nil
}

// checkJSON returns an error for valid JSON that other programs read differently: a
// duplicate member of an object, and an escape of half a character. It does not report
// invalid JSON.
func checkJSON(text []byte) error {
	var names []map[string]bool // of the open objects; nil for a list
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			names = append(names, map[string]bool{})
		case '[':
			names = append(names, nil)
		case '}', ']':
			if len(names) > 0 {
				names = names[:len(names)-1]
			}
		case '"':
			end := endOfString(text, i)
			literal := text[i:end]
			if i = end - 1; bytes.IndexByte(literal, '\\') >= 0 {
				if err := checkSurrogates(literal); err != nil {
					return err
				}
			}
			rest := bytes.TrimLeft(text[end:], " \t\r\n")
			if len(names) == 0 || names[len(names)-1] == nil || len(rest) == 0 || rest[0] != ':' {
				continue
			}
			var name string
			if json.Unmarshal(literal, &name) != nil {
				continue
			}
			if names[len(names)-1][name] {
				return fmt.Errorf("an object has the member %q twice", name)
			}
			names[len(names)-1][name] = true
		}
	}
	return nil
}

// endOfString returns the end of the string that begins at i.
func endOfString(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// checkSurrogates returns an error for the escape of an unpaired surrogate.
func checkSurrogates(literal []byte) error {
	unit := func(i int) (rune, bool) {
		if i+6 > len(literal) || literal[i] != '\\' || literal[i+1] != 'u' {
			return 0, false
		}
		n, err := strconv.ParseUint(string(literal[i+2:i+6]), 16, 32)
		return rune(n), err == nil
	}
	for i := 0; i < len(literal); i++ {
		if literal[i] != '\\' {
			continue
		}
		first, ok := unit(i)
		if !ok || !utf16.IsSurrogate(first) {
			i++ // skip the escaped character
			continue
		}
		second, _ := unit(i + 6)
		if utf16.DecodeRune(first, second) == utf8.RuneError {
			return fmt.Errorf("the escape %s is half of a character", literal[i:i+6])
		}
		i += 11
	}
	return nil
}
