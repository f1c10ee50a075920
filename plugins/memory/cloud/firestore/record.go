package firestore

import (
	"context"
	"encoding/base64"
	"maps"
	"regexp"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// The collections besides the collections of documents.
const (
	entriesName = "ltm"
	vectorsName = "embeddings"
	opsName     = "tea-ops"
	// itemsName is the collection of vectors below the document of a vector collection.
	itemsName = "items"
	// otherKinds begins the names of the other collections of documents.
	otherKinds = "tea_"
)

// kinds maps kinds to collections whose names other programs expect.
var kinds = map[string]string{
	"agent_memory": "agent_memory", "session": "sessions",
	"catalog_table": "ducklake_tables", "catalog_file": "ducklake_files", "catalog_snapshot": "ducklake_snapshots",
}

func collectionOf(kind string) string {
	if name, ok := kinds[kind]; ok {
		return name
	}
	return otherKinds + escape(kind)
}

// kindOf returns the kind of the documents in a collection, "" for another collection.
func kindOf(collection string) string {
	for kind, name := range kinds {
		if name == collection {
			return kind
		}
	}
	if kind, ok := strings.CutPrefix(collection, otherKinds); ok {
		return unescape(kind)
	}
	return ""
}

// The fields of records.
const (
	valueField    = "value"
	metadataField = "metadata"
	// contentField and partsField are the name and number of the parts of a large value.
	contentField = "content"
	partsField   = "parts"
	// uploadedField is the time of the upload of a part without an entry.
	uploadedField = "uploaded_at"

	// The fields of a document that are not members of its body: the original body, the version, the position among the
	// documents of its commit, and the id if Firestore's document id has only its beginning.
	bodyField    = ownFields + "body"
	versionField = ownFields + "version"
	placeField   = ownFields + "place"
	idField      = ownFields + "id"

	// The number of the last change of a vector collection or item. A removed item remains as a document with its
	// number and deletedField. bornField has the same random number in a collection and its items, so items of a dropped
	// collection are recognized.
	seqField     = "seq"
	bornField    = "born"
	deletedField = "gone"
)

// The fields that are read of a record without its body, and the fields that a write reads.
var (
	withoutBody = map[store.Feed][]string{
		store.EntryFeed:    {"id", "namespace", "key", "content_hash", "size", metadataField, "created_at", "updated_at", "expires_at"},
		store.VectorFeed:   {"name", "dimension", "id", "text", metadataField, seqField, bornField, deletedField},
		store.DocumentFeed: {versionField, placeField, idField},
	}
	forWrites = map[store.Feed][]string{
		store.EntryFeed:    {"id", "namespace", "key", "content_hash", metadataField, "created_at", "expires_at", contentField, partsField},
		store.VectorFeed:   {"name", "dimension", bornField, seqField, "count", deletedField},
		store.DocumentFeed: {versionField},
	}
)

// place locates the rows of a space: the documents of a collection whose names begin with base.
type place struct {
	feed               store.Feed
	space              string
	parent, collection string
	base               string
	ids                space
}

func (d *db) place(feed store.Feed, name string) place {
	p := place{feed: feed, space: name}
	switch feed {
	case store.EntryFeed:
		p.collection, p.ids = d.prefix+entriesName, spaceOf(name)
	case store.VectorFeed:
		id := name
		if !plainName.MatchString(name) {
			id = "~" + base64.RawURLEncoding.EncodeToString([]byte(name))
		}
		p.parent, p.collection = d.name(vectorsName, id), itemsName
		p.base = p.parent + "/" + itemsName + "/"
		return p
	default:
		p.collection = d.prefix + collectionOf(name)
	}
	p.base = d.root + "/" + p.collection + "/"
	return p
}

// plainName matches the names of vector collections and tables that are used as ids. Ids become part of addresses, in
// which some servers do not keep all characters.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

func (p place) document(key string) string { return p.base + p.ids.id(key) }

func (d *db) recordDocument(r store.RecordName) string {
	return d.place(r.Feed, r.Space).document(r.Key)
}

// feedOf returns the feed and space of a document's record, "" if it is not a record. The space of an entry is in the
// document.
func (d *db) feedOf(name string) (feed store.Feed, space string) {
	path, ok := strings.CutPrefix(name, d.root+"/"+d.prefix)
	collection, id, _ := strings.Cut(path, "/")
	switch kind := kindOf(collection); {
	case !ok:
	case kind != "":
		return store.DocumentFeed, kind
	case collection == entriesName && !isPart(name):
		return store.EntryFeed, ""
	case collection == vectorsName:
		space, _, ok := strings.Cut(id, "/"+itemsName+"/")
		if encoded, other := strings.CutPrefix(space, "~"); other {
			decoded, _ := base64.RawURLEncoding.DecodeString(encoded) // encoded by place
			space = string(decoded)
		}
		if ok {
			return store.VectorFeed, space
		}
	}
	return "", ""
}

func collectionOfItem(name string) string {
	return name[:strings.LastIndex(name, "/"+itemsName+"/")]
}

// withHead returns the name of a record's document and, for an item, of its collection's document.
func (d *db) withHead(name string) []string {
	if feed, _ := d.feedOf(name); feed == store.VectorFeed {
		return []string{name, collectionOfItem(name)}
	}
	return []string{name}
}

// existing returns the document of a record that exists.
func existing(found map[string]document, name string, feed store.Feed) (document, bool) {
	record, ok := found[name]
	if ok && feed == store.VectorFeed {
		var head document
		head, ok = found[collectionOfItem(name)]
		ok = ok && toSetting(head).has(record)
	}
	return record, ok
}

// toRow returns the row of a document. Only documents have a number; large values are not read.
func toRow(feed store.Feed, space string, one document) store.Row {
	f := one.Fields
	r := store.Row{RecordName: store.RecordName{Feed: feed, Space: space}}
	switch feed {
	case store.EntryFeed:
		r.ID, r.Space, r.Key, r.Hash, r.Size, r.Metadata = f["id"].int(), f["namespace"].text(), f["key"].text(), f["content_hash"].text(), f["size"].int(), f[metadataField].text()
		r.Created, r.Updated, r.Expires = f["created_at"].micro(), f["updated_at"].micro(), f["expires_at"].micro()
		if value, ok := f[valueField]; ok {
			r.Body = []byte(value.text())
		}
	case store.VectorFeed:
		r.Key, r.Text, r.Metadata = f["id"].text(), f["text"].text(), f[metadataField].text()
		if r.Body = f["embedding"].Bytes; len(r.Body)%4 != 0 {
			r.Damaged = tea.Errorf(tea.InternalError, "the embedding of %q in %q is damaged", r.Key, r.Space)
		}
	default:
		if r.Key = f[idField].text(); r.Key == "" {
			r.Key = unescape(strings.TrimSuffix(one.Name[strings.LastIndexByte(one.Name, '/')+1:], reservedMark))
		}
		r.Version, r.Seq = max(1, f[versionField].int()), placeInTime(one) // another program writes no version
		if body := f[bodyField]; body.String != nil {
			r.Body = []byte(body.text())
		} else {
			r.Body = toBody(f)
		}
	}
	return r
}

// placeInTime orders changes: by the time of the commit, then by the position in it. It is valid until 2091.
func placeInTime(one document) int64 {
	const epoch, places = 1_577_836_800_000_000, 1 << 12 // 2020
	return (micros(one.UpdateTime)-epoch)*places + min(one.Fields[placeField].int(), places-1)
}

// setting is the document of a vector collection.
type setting struct {
	name       string
	dimension  int
	born, last int64
	count      int64
}

func toSetting(d document) setting {
	f := d.Fields
	return setting{name: f["name"].text(), dimension: int(f["dimension"].int()), born: f[bornField].int(), last: f[seqField].int(), count: f["count"].int()}
}

func (s setting) toSpace() store.Space {
	return store.Space{Name: s.name, Dimension: s.dimension, Born: s.born, Count: int(s.count)}
}

func (s setting) write(name, updateTime string) write {
	return write{CurrentDocument: unchanged(updateTime), Update: &document{Name: name, Fields: map[string]value{
		"name": text(s.name), "dimension": integer(int64(s.dimension)), bornField: integer(s.born), seqField: integer(s.last), "count": integer(s.count),
	}}}
}

// has reports whether an item exists in the collection. Removed items do not, nor do items of a dropped collection with
// the same name.
func (s setting) has(d document) bool { return !isDeleted(d) && d.Fields[bornField].int() == s.born }

func isDeleted(d document) bool { b := d.Fields[deletedField].Boolean; return b != nil && *b }

func isPart(name string) bool {
	return strings.Contains(name[strings.LastIndexByte(name, '/')+1:], partMark)
}

func partsOf(one document) (names []string) {
	for i := range one.Fields[partsField].int() {
		names = append(names, partName(one.Name, one.Fields[contentField].text(), i))
	}
	return names
}

// partsAtOnce is the number of parts that are read together.
const partsAtOnce = 8

// fill reads the values that are stored in parts. heads are the documents of the rows; known are parts that were read
// with them.
func (d *db) fill(ctx context.Context, rows []store.Row, heads []document, known map[string]document) error {
	if known == nil {
		known = map[string]document{}
	}
	var missing []string
	for _, head := range heads {
		for _, name := range partsOf(head) {
			if _, ok := known[name]; !ok {
				missing = append(missing, name)
			}
		}
	}
	for len(missing) > 0 {
		n := min(len(missing), partsAtOnce)
		found, err := d.get(ctx, []string{"data"}, missing[:n]...)
		if err != nil {
			return err
		}
		maps.Copy(known, found)
		missing = missing[n:]
	}
	for i, head := range heads {
		for _, name := range partsOf(head) { // the hash shows whether all were found
			rows[i].Body = append(rows[i].Body, known[name].Fields["data"].text()...)
		}
	}
	return nil
}
