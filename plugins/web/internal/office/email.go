package office

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset" // decodes all charsets of HTML
	"github.com/emersion/go-message/mail"

	"github.com/the-edge-agent/tea/sdk/x/plaintext"
)

const (
	// maxMessageDepth bounds the nesting of messages and multiparts.
	maxMessageDepth = 10
	// maxName bounds the name of an attachment, in bytes.
	maxName = 255
)

// readEmail reads a message: its header and text, and the attachments as further parts.
func (f *File) readEmail(ctx context.Context, body []byte, l Limits) error {
	e, err := readEntity(bytes.NewReader(body))
	if err != nil {
		return err
	}
	if e.Header.Len() == 0 {
		return errors.New("it has no header")
	}
	h := mail.Header{Header: e.Header}
	f.Metadata.Title, _ = h.Subject()
	if from, err := h.AddressList("From"); err == nil && len(from) > 0 {
		f.Metadata.Author = strings.TrimSpace(from[0].Name + " (" + from[0].Address + ")")
	}
	if date, err := h.Date(); err == nil && !date.IsZero() {
		f.Metadata.Published = date.Format(time.RFC3339)
	}
	r := &emailReader{file: f, limits: l, left: l.Bytes}
	if err := r.read(ctx, e, 0); err != nil {
		return err
	}
	head := Part{ContentType: htmlType, Body: htmlDocument(headOf(h))}
	f.Parts = append([]Part{head}, f.Parts...)
	return nil
}

// readEntity reads the header of a message. Text in an unknown charset stays encoded.
func readEntity(r io.Reader) (*message.Entity, error) {
	e, err := message.Read(r)
	if message.IsUnknownCharset(err) || message.IsUnknownEncoding(err) {
		err = nil
	}
	return e, err
}

// headOf returns the important fields of a header as HTML.
func headOf(h mail.Header) string {
	var lines []string
	for _, field := range []string{"From", "To", "Cc", "Date", "Subject"} {
		if text, err := h.Text(field); err == nil && text != "" {
			// Markdown would escape angle brackets.
			lines = append(lines, "<b>"+field+":</b> "+escape(strings.NewReplacer("<", "(", ">", ")").Replace(text)))
		}
	}
	return "<p>" + strings.Join(lines, "<br>") + "</p>"
}

type emailReader struct {
	file     *File
	limits   Limits
	left     int64
	nameless int
}

// read adds the parts of an entity.
func (r *emailReader) read(ctx context.Context, e *message.Entity, depth int) error {
	if depth > maxMessageDepth {
		return fmt.Errorf("messages are nested deeper than %d", maxMessageDepth)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if r.file.full() {
		return nil
	}
	kind, params := mediaType(e.Header.ContentType())
	if parts := e.MultipartReader(); parts != nil {
		return r.readParts(ctx, parts, kind == "multipart/alternative", depth)
	}
	body, err := io.ReadAll(io.LimitReader(e.Body, r.left+1))
	if int64(len(body)) > r.left {
		return errTooLarge
	}
	r.left -= int64(len(body))
	if err != nil {
		r.file.Notes = append(r.file.Notes, "a part of the message is incomplete: "+err.Error())
	}
	disposition, more := mediaType(e.Header.ContentDisposition())
	name := cmp.Or(more["filename"], params["name"])
	if name != "" {
		name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	}
	switch {
	case kind == "message/rfc822":
		inner, err := readEntity(bytes.NewReader(body))
		if err != nil {
			return err
		}
		h := mail.Header{Header: inner.Header}
		r.file.Parts = append(r.file.Parts, Part{Title: name, ContentType: htmlType, Body: htmlDocument(headOf(h))})
		return r.read(ctx, inner, depth+1)
	case strings.HasPrefix(kind, "image/"):
		if name == "" {
			_, sub, _ := strings.Cut(kind, "/")
			name = fmt.Sprintf("image%d.%s", len(r.file.Images)+1, sub)
		}
		if imageType(name) != "" || slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, kind) {
			r.file.addImage(Image{name, kind, body}, r.limits)
		}
	case disposition != "attachment" && (kind == "text/plain" || kind == "text/html" || kind == ""):
		r.file.Parts = append(r.file.Parts, Part{ContentType: mime.FormatMediaType(cmp.Or(kind, "text/plain"), map[string]string{"charset": "utf-8"}), Body: body})
	default:
		if name == "" {
			r.nameless++
			name = fmt.Sprintf("attachment%d", r.nameless)
		}
		r.file.Parts = append(r.file.Parts, Part{Title: plaintext.Cut(name, maxName), ContentType: kind, Body: body})
	}
	return nil
}

// mediaType returns the value and the parameters of a header. Some programs forget the
// quotes around names, which the library then does not split off.
func mediaType(value string, params map[string]string, err error) (kind string, all map[string]string) {
	if err == nil {
		return value, params
	}
	kind, rest, _ := strings.Cut(value, ";")
	all = map[string]string{}
	for param := range strings.SplitSeq(rest, ";") {
		key, text, _ := strings.Cut(param, "=")
		if text, err := new(mime.WordDecoder).DecodeHeader(strings.Trim(strings.TrimSpace(text), `"`)); err == nil {
			all[strings.ToLower(strings.TrimSpace(key))] = text
		}
	}
	return strings.ToLower(strings.TrimSpace(kind)), all
}

// readParts reads the parts of a multipart entity. Of alternatives it keeps only the last
// one that has text.
func (r *emailReader) readParts(ctx context.Context, parts message.MultipartReader, alternative bool, depth int) error {
	before := r.file.Parts
	for {
		e, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if message.IsUnknownCharset(err) || message.IsUnknownEncoding(err) {
			err = nil
		}
		if err != nil {
			r.file.Notes = append(r.file.Notes, "the message is incomplete: "+err.Error())
			return nil
		}
		have := r.file.Parts
		if alternative {
			r.file.Parts = slices.Clip(before)
		}
		if err := r.read(ctx, e, depth+1); err != nil {
			return err
		}
		if alternative && !slices.ContainsFunc(r.file.Parts[len(before):], func(p Part) bool { return p.Title == "" }) {
			r.file.Parts = have // it has no text
		}
	}
}
