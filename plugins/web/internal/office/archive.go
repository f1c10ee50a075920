package office

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"golang.org/x/net/html/charset"
)

// archive is a ZIP file. left is the number of bytes that may still be unpacked.
type archive struct {
	files map[string]*zip.File
	order []string
	left  int64
}

const (
	maxFiles = 20_000
	// maxXML bounds a file that is decoded as a whole, which takes many times its size
	// of memory: properties, styles, footnotes.
	maxXML = 8 << 20
)

var errTooLarge = errors.New("its unpacked content is too large")

func openArchive(body []byte, limit int64) (*archive, error) {
	r, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are only looked up
		return nil, err
	}
	if len(r.File) > maxFiles {
		return nil, fmt.Errorf("it has more than %d files", maxFiles)
	}
	a := &archive{files: map[string]*zip.File{}, left: limit}
	for _, f := range r.File {
		if a.files[f.Name] == nil {
			a.files[f.Name] = f
			a.order = append(a.order, f.Name)
		}
	}
	return a, nil
}

func (a *archive) has(name string) bool { return a.files[name] != nil }

func (a *archive) names() []string { return append([]string(nil), a.order...) }

// read unpacks a file.
func (a *archive) read(name string) ([]byte, error) { return a.readUpTo(name, a.left) }

// readUpTo unpacks a file with at most limit bytes. After a larger one, nothing else is
// unpacked, as each attempt takes as long as reading the limit.
func (a *archive) readUpTo(name string, limit int64) ([]byte, error) {
	f := a.files[name]
	if f == nil {
		return nil, fmt.Errorf("%s is missing", name)
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer r.Close()
	limit = min(limit, a.left)
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if int64(len(data)) > limit {
		a.left = 0
		return nil, errTooLarge
	}
	a.left -= int64(len(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// decode reads an XML file into v. A missing file is not an error if it is optional.
func (a *archive) decode(name string, v any, optional bool) error {
	if optional && !a.has(name) {
		return nil
	}
	data, err := a.readUpTo(name, maxXML)
	if err != nil {
		return err
	}
	if err := decoder(data).Decode(v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func decoder(data []byte) *xml.Decoder {
	d := xml.NewDecoder(bytes.NewReader(data))
	d.CharsetReader = charset.NewReaderLabel
	return d
}

// relations returns the relations of a file by id. Their internal targets are resolved.
func (a *archive) relations(name string) (map[string]relation, error) {
	var list struct {
		Relationship []relation
	}
	dir, base := path.Split(name)
	if err := a.decode(dir+"_rels/"+base+".rels", &list, true); err != nil {
		return nil, err
	}
	byID := map[string]relation{}
	for _, r := range list.Relationship {
		if r.TargetMode != "External" {
			r.Target = resolve(dir, r.Target)
		}
		byID[r.ID] = r
	}
	return byID, nil
}

// related returns the file with a type of relation. Without one, it returns fallback, the
// name that almost all programs use.
func related(links map[string]relation, kind, fallback string) string {
	name := ""
	for _, r := range links {
		if path.Base(r.Type) == kind && r.TargetMode != "External" && (name == "" || r.Target < name) {
			name = r.Target
		}
	}
	return cmp.Or(name, fallback)
}

type relation struct {
	ID         string `xml:"Id,attr"`
	Type       string `xml:",attr"`
	Target     string `xml:",attr"` // the name of a file, or an address if it is external
	TargetMode string `xml:",attr"`
}

// resolve returns the name of a file that a file in dir refers to.
func resolve(dir, target string) string {
	if rest, ok := strings.CutPrefix(target, "/"); ok {
		return path.Clean(rest)
	}
	return path.Join(dir, target)
}

// readProperties sets the metadata of an Office file.
func (f *File) readProperties(a *archive) {
	var p struct {
		Title    string `xml:"title"`
		Creator  string `xml:"creator"`
		Subject  string `xml:"subject"`
		Language string `xml:"language"`
		Created  string `xml:"created"`
		Modified string `xml:"modified"`
	}
	if err := a.decode("docProps/core.xml", &p, true); err != nil {
		f.Notes = append(f.Notes, "the properties cannot be read: "+err.Error())
	}
	f.Metadata = Metadata{Title: p.Title, Author: p.Creator, Description: p.Subject, Language: p.Language, Published: p.Created, Modified: p.Modified}
}
