package web

import (
	"cmp"
	"context"
	"encoding/base64"
	"mime"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/plugins/web/internal/extract"
	"github.com/the-edge-agent/tea/plugins/web/internal/office"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/confine"
	"github.com/the-edge-agent/tea/sdk/x/plaintext"
)

// fileKey is the top-level key of the settings for files.
const fileKey = "file"

// FileSettings are the settings under settings.file. The host sets the defaults.
type FileSettings struct {
	Root     string `json:"root,omitempty" format:"path" default:"." doc:"the directory that text.extract reads from; default the workflow file's, under tea serve the workflow's data directory"`
	MaxBytes int64  `json:"max_bytes,omitempty" default:"16777216" minimum:"1" doc:"the maximum size of a file"`
	Fallback string `json:"fallback,omitempty" format:"path" doc:"a directory that is read if the root does not have the file"`
	// Read and Write are used only by the file actions.
	Read  []string `json:"read,omitempty" doc:"further directories of the file actions"`
	Write []string `json:"write,omitempty" doc:"further directories of the file actions"`
}

const (
	defaultMaxFileBytes = 16 << 20
	// maxUnpacked bounds the unpacked content of a file.
	maxUnpacked = 128 << 20
	// maxImageBytes bounds the images of a result.
	maxImageBytes = 16 << 20
	// maxAttachments and maxAttachmentDepth bound the files in a message.
	maxAttachments     = 50
	maxAttachmentDepth = 2
	// maxText bounds the text of a result, in bytes.
	maxText = 16 << 20
	// maxNotes bounds the notes, maxNote each of them, in bytes.
	maxNotes = 100
	maxNote  = 1000
)

// TextParams are the parameters of text.extract.
type TextParams struct {
	Path   string `json:"path" doc:"the file, relative to the file root (settings.file.root)"`
	Split  bool   `json:"split,omitempty" doc:"return the pages, slides, sheets, chapters or attachments as parts instead of one text"`
	Images int    `json:"images,omitempty" minimum:"0" maximum:"100" doc:"maximum number of images to return; default none"`
}

// TextResult is the result of text.extract.
type TextResult struct {
	Success  bool            `json:"success" doc:"always true"`
	Format   string          `json:"format" doc:"pdf, docx, pptx, xlsx, epub, email, html, markdown or text"`
	Text     string          `json:"text,omitempty" doc:"the text as Markdown, without split"`
	Parts    []TextPart      `json:"parts,omitempty" doc:"with split: the pages, slides, sheets, chapters, or the text and attachments of a message"`
	Metadata office.Metadata `json:"metadata" doc:"what the file says about itself"`
	Images   []TextImage     `json:"images,omitempty" doc:"the images"`
	Notes    []string        `json:"notes,omitempty" doc:"what was cut or could not be read"`
}

// TextPart is a part of a file.
type TextPart struct {
	Number int    `json:"number" doc:"position in the file, from 1: of a page, slide, sheet or chapter"`
	Title  string `json:"title,omitempty" doc:"name of the sheet, chapter or attachment, or a title such as Slide 2"`
	Text   string `json:"text" doc:"the text as Markdown"`
}

// TextImage is an image in a file.
type TextImage struct {
	Name      string `json:"name" doc:"its name in the file"`
	MediaType string `json:"media_type" doc:"image/png, image/jpeg, image/gif or image/webp"`
	Data      string `json:"data" doc:"the image in Base64, as for an image of a message"`
}

// Text implements text.extract.
func (c *Client) Text(ctx context.Context, _ *tea.Request, p TextParams) (*TextResult, error) {
	body, err := c.file.read(p.Path)
	if err != nil {
		return nil, err
	}
	t := &textReader{client: c, params: p, result: &TextResult{Success: true}, left: maxAttachments, room: maxText, imageRoom: maxImageBytes}
	if err := t.read(ctx, p.Path, "", body, 0); err != nil {
		return nil, err
	}
	if !p.Split {
		var texts []string
		for _, part := range t.result.Parts {
			if part.Text != "" {
				texts = append(texts, part.Text)
			}
		}
		t.result.Text, t.result.Parts = strings.Join(texts, "\n\n"), nil
	}
	return t.result, nil
}

// read reads a file below the root, or the fallback.
func (s FileSettings) read(name string) ([]byte, error) {
	limit := s.MaxBytes
	if limit == 0 {
		limit = defaultMaxFileBytes
	}
	var failed error
	for _, dir := range []string{s.Root, s.Fallback} {
		if dir == "" {
			continue
		}
		root, err := confine.Open(dir)
		if err != nil {
			return nil, err
		}
		body, err := root.ReadFile(name, limit)
		_ = root.Close() // only read
		if err == nil {
			return body, nil
		}
		if failed == nil {
			failed = err
		}
		if tea.AsError(err).Type != tea.NotFound {
			return nil, failed
		}
	}
	return nil, failed
}

// textReader reads a file and the files in it.
type textReader struct {
	client *Client
	params TextParams
	result *TextResult
	left   int // attachments that may still be read
	room   int // bytes of text that may still be added
	// imageRoom is for the images of all files, in bytes.
	imageRoom int64
}

// read adds the parts of a file. If the media type kind is "", the name determines it.
func (t *textReader) read(ctx context.Context, name, kind string, body []byte, depth int) error {
	limits := office.Limits{Bytes: maxUnpacked, Images: t.params.Images - len(t.result.Images), ImageBytes: t.imageRoom}
	var f *office.File
	var ok bool
	var fault error
	err := t.client.local.Run(ctx, func() { f, ok, fault = office.Read(ctx, name, body, limits) })
	if err := cmp.Or(err, fault); err != nil {
		return err
	}
	if !ok {
		return t.readDocument(ctx, name, kind, body, depth)
	}
	if depth == 0 {
		t.result.Format, t.result.Metadata = f.Format, f.Metadata.Cut()
	}
	for _, note := range f.Notes {
		t.note(name, note, depth)
	}
	for _, i := range f.Images {
		t.imageRoom -= int64(len(i.Data))
		t.result.Images = append(t.result.Images, TextImage{i.Name, i.MediaType, base64.StdEncoding.EncodeToString(i.Data)})
	}
	for _, part := range f.Parts {
		if f.Format == "email" && part.Title != "" && !strings.HasPrefix(part.ContentType, "text/html;") {
			t.readAttachment(ctx, part, depth+1)
			continue
		}
		doc, text, err := t.parse(ctx, name, part.ContentType, part.Body)
		if err != nil {
			return err
		}
		title := part.Title
		if f.Format == "epub" && doc.Metadata.Title != "" {
			title = doc.Metadata.Title
		}
		if f.Format == "xlsx" && text != "" {
			text = "## " + title + "\n\n" + text
		}
		t.add(title, text)
	}
	return ctx.Err()
}

// readAttachment adds the parts of an attachment, or a note if it cannot be read.
func (t *textReader) readAttachment(ctx context.Context, part office.Part, depth int) {
	if t.left--; t.left < 0 || depth > maxAttachmentDepth {
		t.note("", "the attachment "+part.Title+" was left out: too many attachments, or nested too deeply", 0)
		return
	}
	before := len(t.result.Parts)
	if err := t.read(ctx, part.Title, part.ContentType, part.Body, depth); err != nil {
		t.result.Parts = t.result.Parts[:before]
		t.note("", "the attachment "+tea.AsError(err).Message, 0)
		return
	}
	for i := range t.result.Parts[before:] {
		t.result.Parts[before+i].Title = part.Title
	}
}

// readDocument adds a file that the reader of web pages supports.
func (t *textReader) readDocument(ctx context.Context, name, kind string, body []byte, depth int) error {
	switch extension := strings.ToLower(path.Ext(name)); extension {
	case ".md", ".markdown":
		kind = "text/markdown"
	default:
		if kind == "" || kind == "application/octet-stream" {
			kind = mime.TypeByExtension(extension)
		}
	}
	doc, text, err := t.parse(ctx, name, kind, body)
	if err != nil {
		return err
	}
	if depth == 0 {
		m := doc.Metadata
		t.result.Metadata = office.Metadata{Title: m.Title, Author: m.Author, Description: m.Description, Language: m.Language, Published: m.Published, Modified: m.Modified}.Cut()
		switch _, format, _ := strings.Cut(doc.Metadata.ContentType, "/"); format {
		case "pdf", "html", "markdown":
			t.result.Format = format
		case "xhtml+xml":
			t.result.Format = "html"
		default:
			t.result.Format = "text"
		}
	}
	for _, note := range doc.Notes {
		t.note(name, note, depth)
	}
	if pages := doc.Pages(); pages != nil {
		for i, text := range pages {
			t.add("Page "+strconv.Itoa(i+1), text)
		}
		return nil
	}
	t.add("", text)
	return nil
}

// parse parses a document. Relative links in it become file: addresses that lead nowhere.
func (t *textReader) parse(ctx context.Context, name, kind string, body []byte) (*extract.Document, string, error) {
	address := &url.URL{Scheme: "file", Path: "/" + name}
	doc, text, err := t.client.local.Parse(ctx, extract.Source{URL: address, ContentType: kind, Body: body, Rendered: true})
	if err != nil {
		e := *tea.AsError(err)
		e.Message, e.Source = strings.Replace(e.Message, "GET "+address.String(), name, 1), ""
		return nil, "", &e
	}
	return doc, text, nil
}

func (t *textReader) add(title, text string) {
	text = strings.TrimSpace(text)
	if len(text) > t.room {
		text = strings.ToValidUTF8(text[:t.room], "")
		t.note("", "the text was cut off after "+strconv.Itoa(maxText>>20)+" MiB", 0)
	}
	t.room -= len(text)
	t.result.Parts = append(t.result.Parts, TextPart{len(t.result.Parts) + 1, title, text})
}

func (t *textReader) note(name, text string, depth int) {
	if depth > 0 {
		text = name + ": " + text
	}
	if len(t.result.Notes) == maxNotes {
		t.result.Notes[maxNotes-1] = "there are more notes"
		return
	}
	t.result.Notes = append(t.result.Notes, plaintext.Cut(text, maxNote))
}
