// Package page has the web page of tea serve: HTML, CSS and JavaScript modules that
// use the API of the server. Start with [New].
//
// assets/app.js shows one view per path after the #. A view is a module that returns
// its content and a function that ends it. The modules build the page from elements
// and texts, never from markup. Code shared with reports of runs is in
// cmd/internal/runpage.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/cmd/internal/runpage"
)

//go:embed assets
var assets embed.FS

// index is served at /, and worker at /worker.js: a service worker controls the paths
// below its own.
const (
	index  = "index.html"
	worker = "worker.js"
)

// policy allows the files of the page and the API of its server. Scripts set styles,
// which the policy does not limit. A single function parses markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; manifest-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types tea"

// Page serves / and the files that it uses at /page/VERSION/FILE. It is immutable.
type Page struct {
	files map[string]*file
	// folder is the path of the files. It depends on their content, so that browsers
	// can cache them.
	folder string
}

// file is a file of the page, as it is sent.
type file struct {
	kind, tag string
	text      []byte
	// packed returns the compressed text. It compresses on the first request, so that
	// an idle server needs less memory.
	packed func() []byte
}

// New prepares the page.
func New() (*Page, error) {
	texts := map[string][]byte{}
	for _, files := range []embed.FS{assets, runpage.Assets} {
		list, err := files.ReadDir("assets")
		if err != nil {
			return nil, fmt.Errorf("read the files of the page: %w", err)
		}
		for _, entry := range list {
			if texts[entry.Name()], err = files.ReadFile("assets/" + entry.Name()); err != nil {
				return nil, fmt.Errorf("read the files of the page: %w", err)
			}
		}
	}
	delete(texts, "report.js") // only for reports
	all := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		_, _ = all.Write(texts[name]) // a hash does not fail
	}
	p := &Page{files: map[string]*file{}, folder: "/page/" + hex.EncodeToString(all.Sum(nil)[:8]) + "/"}
	texts[index] = bytes.ReplaceAll(texts[index], []byte("/page/"), []byte(p.folder))
	for name, text := range texts {
		sum := sha256.Sum256(text)
		f := &file{kind: KindOf(name), tag: `"` + hex.EncodeToString(sum[:8]) + `"`, text: text}
		f.packed = sync.OnceValue(f.pack)
		p.files[name] = f
	}
	return p, nil
}

// KindOf returns the media type of a file. The system's database may lack these
// types or differ.
func KindOf(name string) string {
	switch ext := path.Ext(name); ext {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".webmanifest":
		return "application/manifest+json"
	default:
		return mime.TypeByExtension(ext)
	}
}

func (f *file) pack() []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // fails for unknown levels only
	_, _ = z.Write(f.text)                                // a buffer cannot fail
	_ = z.Close()
	return b.Bytes()
}

// Has reports whether a request is for a file of the page.
func (p *Page) Has(r *http.Request) bool { return p.files[p.nameOf(r)] != nil }

func (p *Page) nameOf(r *http.Request) string {
	if r.URL.Path == "/" {
		return index
	}
	if r.URL.Path == "/"+worker {
		return worker
	}
	name, _ := strings.CutPrefix(r.URL.Path, p.folder)
	return name
}

// ServeHTTP serves a file if [Page.Has] is true. Files have no secrets and need no
// token.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := p.nameOf(r)
	f := p.files[name]
	header := w.Header()
	header.Set("Content-Type", f.kind)
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cache-Control", "private, max-age=31536000, immutable")
	if name == index || name == worker {
		header.Set("Cache-Control", "no-cache")
	}
	header.Set("Vary", "Accept-Encoding")
	header.Set("ETag", f.tag)
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	text := f.text
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		text = f.packed()
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text) // the client is gone
}
