package server

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/cmd/tea-serve/internal/page"
)

// static is the directory of --static, which is served under /static/. It is opened
// for each request, so that it can be replaced.
type static string

// check returns an error if the directory cannot be read.
func (d static) check() error {
	if d == "" {
		return nil
	}
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return teacmd.UsageErrorf("--static: %w", err)
	}
	return root.Close()
}

// packings are the compressed copies that may be next to a file, smallest first.
var packings = []struct{ encoding, extension string }{{"br", ".br"}, {"gzip", ".gz"}}

// maxOlder is how much older than its file a compressed copy may be: copying a
// directory writes the files in any order.
const maxOlder = time.Minute

func (d static) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("path")
	if name == "" || strings.HasSuffix(name, "/") {
		name += "index.html"
	}
	file, info, err := d.open(name)
	switch {
	case errors.Is(err, fs.ErrPermission):
		refuse(w, fmt.Sprintf("the server is not allowed to read %.200s", r.URL.Path), http.StatusForbidden)
		return
	case err != nil:
		refuse(w, fmt.Sprintf("there is nothing at %s %.200s", r.Method, r.URL.Path), http.StatusNotFound)
		return
	}
	defer func() { _ = file.Close() }()
	if info.IsDir() {
		http.Redirect(w, r, path.Base(name)+"/", http.StatusFound)
		return
	}
	header := w.Header()
	header.Set("Content-Type", cmp.Or(page.KindOf(name), "application/octet-stream"))
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-cache")
	header.Set("Vary", "Accept-Encoding")
	for _, p := range packings {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), p.encoding) {
			continue
		}
		packed, its, err := d.open(name + p.extension)
		if err != nil {
			continue
		}
		defer func() { _ = packed.Close() }()
		if !its.IsDir() && info.ModTime().Sub(its.ModTime()) < maxOlder {
			header.Set("Content-Encoding", p.encoding)
			file, info = packed, its
			break
		}
	}
	http.ServeContent(w, r, "", info.ModTime(), file)
}

// open opens a regular file or a directory. Names that begin with a dot, and links
// that lead out of the directory, do not exist.
func (d static) open(name string) (*os.File, fs.FileInfo, error) {
	if !fs.ValidPath(name) || strings.Contains("/"+name, "/.") {
		return nil, nil, fs.ErrNotExist
	}
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = root.Close() }() // it was read only
	info, err := root.Stat(name)
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() { // opening a pipe would block
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, nil, err
	}
	file, err := root.Open(name)
	return file, info, err
}
