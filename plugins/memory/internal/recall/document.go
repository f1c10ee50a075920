package recall

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tokens"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// The sources of documents.
const (
	LTM   = "ltm"
	File  = file.Own
	Cloud = file.Cloud
)

const (
	// pageSize is the number of entries that are read at a time.
	pageSize = 500
	// pageBytes bounds their size.
	pageBytes = 16 << 20
	// maxName is the maximum length of a vector's id.
	maxName = 4096
	// embedTokens bounds the part of a text that is embedded.
	embedTokens = 8000
	// excerptTokens bounds the part of a text that a result shows.
	excerptTokens = 200
)

// The members of a vector's metadata that do not belong to the document.
const (
	sourceField = "_source"
	keyField    = "_key"
	spaceField  = "_namespace" // absent in the default one
	hashField   = "_hash"
	modelField  = "_model"
)

// Files has the files; see [file.Files].
type Files interface {
	All(ctx context.Context, q file.Query) iter.Seq2[file.File, error]
	Stat(ctx context.Context, path string) (file.File, error)
	StatShared(ctx context.Context, path string) (file.File, error)
	Content(ctx context.Context, f file.File) (io.ReadCloser, error)
	Read(ctx context.Context, path string) (file.File, []byte, error)
}

// Document is an entry or a file.
type Document struct {
	// Source is LTM, File or Cloud, and Key is the key or the path.
	Source, Key string
	// Namespace is the namespace of an entry.
	Namespace string
	// Hash is the hash of the content.
	Hash string
	// Metadata is an object, or nil.
	Metadata map[string]any

	value json.RawMessage // of an entry
}

// ID returns the id of the document's vector in a collection.
func (d Document) ID() string {
	id := d.Source + ":" + d.Key
	if d.Namespace != "" { // the length separates it from the key
		id = fmt.Sprintf("%s@%d:%s:%s", d.Source, len(d.Namespace), d.Namespace, d.Key)
	}
	if len(id) <= maxName {
		return id
	}
	if d.Namespace == "" {
		id = d.Key
	}
	sum := sha256.Sum256([]byte(id))
	return d.Source + "#" + hex.EncodeToString(sum[:])
}

// item returns the document's vector.
func (d Document) item(text string, embedding []float32, model string) store.VectorItem {
	metadata := maps.Clone(d.Metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata[sourceField], metadata[keyField], metadata[hashField], metadata[modelField] = d.Source, d.Key, d.Hash, model
	if d.Namespace != "" {
		metadata[spaceField] = d.Namespace
	}
	excerpt, _ := tokens.Cut(text, excerptTokens)
	return store.VectorItem{ID: d.ID(), Text: excerpt, Embedding: embedding, Metadata: metadata}
}

func (d Document) of(item store.VectorItem, model string) bool {
	return item.Metadata[hashField] == d.Hash && (model == "" || item.Metadata[modelField] == model)
}

// Documented returns the document of a vector, with the hash of its content at
// that time; ok is false for a vector without a document.
func Documented(item store.VectorItem) (d Document, ok bool) {
	source, _ := item.Metadata[sourceField].(string)
	key, _ := item.Metadata[keyField].(string)
	hash, _ := item.Metadata[hashField].(string)
	namespace, _ := item.Metadata[spaceField].(string)
	d = Document{Source: source, Key: key, Namespace: namespace, Hash: hash, Metadata: own(item.Metadata)}
	return d, (source == LTM || source == File || source == Cloud) && key != "" && hash != ""
}

// own returns the members of a vector's metadata that belong to the document.
func own(metadata map[string]any) map[string]any {
	rest := maps.Clone(metadata)
	for _, name := range []string{sourceField, keyField, spaceField, hashField, modelField} {
		delete(rest, name)
	}
	if len(rest) == 0 {
		return nil
	}
	return rest
}

func entryDocument(e store.Memory) (Document, error) {
	metadata, err := object(e.Metadata)
	return Document{Source: LTM, Namespace: e.Namespace, Key: e.Key, Hash: e.ContentHash, Metadata: metadata, value: e.Value}, err
}

func fileDocument(f file.File) (Document, error) {
	metadata, err := object(f.Metadata)
	return Document{Source: f.Source(), Key: f.Path, Hash: f.Hash, Metadata: metadata}, err
}

func object(raw json.RawMessage) (map[string]any, error) {
	if raw == nil {
		return nil, nil
	}
	v, err := value.Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("read the metadata: %w", err)
	}
	o, _ := v.(map[string]any)
	return o, nil
}

// find returns the current document, or an error that wraps store.ErrNotFound.
func (r *Recall) find(ctx context.Context, source, namespace, key string) (Document, error) {
	if source != LTM {
		if r.o.Files == nil {
			return Document{}, store.ErrNotFound
		}
		stat := r.o.Files.Stat
		if source == Cloud {
			stat = r.o.Files.StatShared
		}
		f, err := stat(ctx, key)
		if err == nil && (f.Path != key || f.Archived()) {
			err = store.ErrNotFound
		}
		if err != nil {
			return Document{}, err
		}
		return fileDocument(f)
	}
	e, err := r.o.LTM.Retrieve(ctx, namespace, key)
	if err != nil {
		return Document{}, err
	}
	return entryDocument(e)
}

// text returns the text of the document.
func (r *Recall) text(ctx context.Context, d Document) (string, error) {
	var text string
	switch d.Source {
	case LTM:
		var err error
		if text, err = Text(d.value); err != nil {
			return "", err
		}
	case Cloud:
		data, err := r.shared(ctx, d.Key)
		if err != nil {
			return "", err
		}
		text = string(data)
	default:
		_, data, err := r.o.Files.Read(ctx, d.Key)
		if err != nil {
			return "", err
		}
		text = string(data)
	}
	if strings.TrimSpace(text) == "" {
		return "", nil
	}
	return text, nil
}

// shared returns the content of a shared file.
func (r *Recall) shared(ctx context.Context, path string) ([]byte, error) {
	f, err := r.o.Files.StatShared(ctx, path)
	if err != nil {
		return nil, err
	}
	from, err := r.o.Files.Content(ctx, f)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	return io.ReadAll(from)
}

// documents returns the entries of a namespace whose keys begin with prefix and,
// for the default namespace, the text files whose paths begin with it.
func (r *Recall) documents(ctx context.Context, namespace, prefix string) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		for after := ""; ; {
			page, err := r.o.LTM.List(ctx, store.List{Namespace: namespace, Prefix: prefix, After: after, Limit: pageSize, MaxBytes: pageBytes})
			if err != nil {
				yield(Document{}, err)
				return
			}
			for _, e := range page.Entries {
				after = e.Key
				if e.Damaged {
					continue
				}
				if !yield(entryDocument(e)) {
					return
				}
			}
			if !page.More {
				break
			}
		}
		if r.o.Files == nil || namespace != "" {
			return
		}
		for f, err := range r.o.Files.All(ctx, file.Query{Prefix: prefix, Shared: true}) {
			if err != nil {
				yield(Document{}, err)
				return
			}
			if f.Text && !yield(fileDocument(f)) {
				return
			}
		}
	}
}

// Text returns the text of a JSON value: a string unchanged, and for other values
// a line for each leaf, with its path.
func Text(raw json.RawMessage) (string, error) {
	v, err := value.Decode(raw)
	if err != nil {
		return "", err
	}
	if text, ok := v.(string); ok {
		return text, nil
	}
	return strings.Join(lines(nil, "", v), "\n"), nil
}

func lines(all []string, name string, v any) []string {
	switch v := v.(type) {
	case nil:
		return all
	case map[string]any:
		for _, member := range slices.Sorted(maps.Keys(v)) {
			path := member
			if name != "" {
				path = name + "." + member
			}
			all = lines(all, path, v[member])
		}
		return all
	case []any:
		for _, item := range v {
			all = lines(all, name, item)
		}
		return all
	case string:
		return append(all, line(name, v))
	}
	text, err := value.Encode(v)
	if err != nil {
		return all // it was decoded from JSON, so encoding cannot fail
	}
	return append(all, line(name, string(text)))
}

func line(name, text string) string {
	if name == "" {
		return text
	}
	return name + ": " + text
}

func gone(err error) bool { return errors.Is(err, store.ErrNotFound) }
