package office

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"mime"
	"path"
	"slices"
	"strconv"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/plaintext"
)

// File is the content of a file.
type File struct {
	Format   string // docx, pptx, xlsx, epub or email
	Metadata Metadata
	Parts    []Part
	Images   []Image
	Notes    []string // what was left out
}

// Metadata is what a file says about itself. Dates are as in the file, usually RFC 3339.
type Metadata struct {
	Title       string `json:"title,omitempty" doc:"the title, or the subject of a message"`
	Author      string `json:"author,omitempty" doc:"the author or sender"`
	Description string `json:"description,omitempty" doc:"the summary"`
	Language    string `json:"language,omitempty" doc:"language tag, such as en or pt-BR"`
	Published   string `json:"published,omitempty" doc:"date of creation or sending"`
	Modified    string `json:"modified,omitempty" doc:"date of the last change"`
}

// maxMember bounds each text of the metadata, in bytes.
const maxMember = 2000

// Cut returns the metadata with texts of a limited size.
func (m Metadata) Cut() Metadata {
	for _, text := range []*string{&m.Title, &m.Author, &m.Description, &m.Language, &m.Published, &m.Modified} {
		*text = plaintext.Cut(*text, maxMember)
	}
	return m
}

// Part is a document, a slide, a sheet, a chapter, the text of a message or an attachment.
type Part struct {
	Title       string
	ContentType string
	Body        []byte // usually HTML; an attachment can be of any type
}

// Image is a picture in a file.
type Image struct {
	Name      string
	MediaType string
	Data      []byte
}

// Limits bound what is read of a file.
type Limits struct {
	// Bytes is the maximum size of the unpacked content.
	Bytes int64
	// Images and ImageBytes are the maximum number and total size of images.
	Images     int
	ImageBytes int64
}

// Read reads a file. It recognizes the format by the content, and messages by the extension
// of name; ok is false for other formats. The errors are *tea.Error.
func Read(ctx context.Context, name string, body []byte, l Limits) (f *File, ok bool, err error) {
	defer func() {
		if fault := recover(); fault != nil { // the library for sheets panics on some files
			ok, err = true, tea.Errorf(tea.ValidationError, "%s cannot be read: %v", name, fault)
		}
	}()
	f = &File{}
	var a *archive
	switch extension := strings.ToLower(path.Ext(name)); {
	case bytes.HasPrefix(body, []byte("PK\x03\x04")):
		if a, err = openArchive(body, l.Bytes); err == nil {
			ok, err = f.readArchive(ctx, a, body, l)
		}
		if err == nil && !ok {
			return nil, false, nil
		}
	case extension == ".eml" || extension == ".mht" || extension == ".mhtml":
		f.Format = "email"
		err = f.readEmail(ctx, body, l)
	case bytes.HasPrefix(body, []byte("\xD0\xCF\x11\xE0")):
		return nil, true, tea.Errorf(tea.ValidationError, "%s has the format of Office before 2007, or is encrypted with a password; save it as DOCX, XLSX or PPTX without a password", name)
	default:
		return nil, false, nil
	}
	if ctx.Err() != nil {
		return nil, true, context.Cause(ctx)
	}
	if err != nil {
		return nil, true, tea.Errorf(tea.ValidationError, "%s cannot be read: %w", name, err)
	}
	return f, true, nil
}

// readArchive reads a file whose format is a ZIP archive; ok is false for other archives.
func (f *File) readArchive(ctx context.Context, a *archive, body []byte, l Limits) (ok bool, err error) {
	main := a.main()
	switch dir, _, _ := strings.Cut(main, "/"); {
	case dir == "word":
		f.Format = "docx"
		err = f.readDOCX(ctx, a, main)
	case dir == "ppt":
		f.Format = "pptx"
		err = f.readPPTX(ctx, a, main)
	case dir == "xl":
		f.Format = "xlsx"
		err = f.readXLSX(ctx, a, main, body, l.Bytes)
	case a.has("META-INF/container.xml"):
		f.Format = "epub"
		err = f.readEPUB(a)
	default:
		return false, nil
	}
	if err == nil {
		f.addImages(ctx, a, l)
	}
	return true, err
}

// main returns the name of the main file of an Office file; "" for other archives.
func (a *archive) main() string {
	names := []string{"word/document.xml", "ppt/presentation.xml", "xl/workbook.xml"}
	if links, err := a.relations(""); err == nil { // some programs number the file
		names = append([]string{related(links, "officeDocument", "")}, names...)
	}
	for _, name := range names {
		if a.has(name) {
			return name
		}
	}
	return ""
}

// maxParts bounds the slides, sheets, chapters or parts of a file.
const maxParts = 10_000

// full reports whether a file has too many parts, and notes it.
func (f *File) full() bool {
	if len(f.Parts) < maxParts {
		return false
	}
	f.noteOnce("everything after the first " + strconv.Itoa(maxParts) + " parts was left out")
	return true
}

func (f *File) noteOnce(note string) {
	if !slices.Contains(f.Notes, note) {
		f.Notes = append(f.Notes, note)
	}
}

// imageType returns the media type of an image that models accept; "" for other files.
func imageType(name string) string {
	switch t := mime.TypeByExtension(strings.ToLower(path.Ext(name))); t {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return t
	}
	return ""
}

// addImages adds the images of an archive in the order of their names.
func (f *File) addImages(ctx context.Context, a *archive, l Limits) {
	names := a.names()
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }) // image2 before image10
	for _, name := range names {
		kind := imageType(name)
		if kind == "" || strings.HasPrefix(name, "docProps/") || l.Images == 0 {
			continue
		}
		if ctx.Err() != nil {
			return
		}
		if len(f.Images) >= l.Images {
			f.noteOnce(imagesLeftOut)
			return
		}
		data, err := a.read(name)
		if errors.Is(err, errTooLarge) {
			f.noteOnce(imagesLeftOut)
			return
		}
		if err != nil {
			f.Notes = append(f.Notes, "image "+name+": "+err.Error())
			continue
		}
		f.addImage(Image{name, kind, data}, l)
	}
}

const imagesLeftOut = "images were left out: there are more than requested, or they are too large"

func (f *File) addImage(i Image, l Limits) {
	size := int64(len(i.Data))
	for _, have := range f.Images {
		size += int64(len(have.Data))
	}
	switch {
	case l.Images == 0:
	case len(f.Images) >= l.Images || size > l.ImageBytes:
		f.noteOnce(imagesLeftOut)
	default:
		f.Images = append(f.Images, i)
	}
}
