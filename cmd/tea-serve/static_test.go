package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestStaticFiles(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet})
	site := t.TempDir()
	files := &project{t: t, dir: site}
	for name, text := range map[string]string{
		"pages/index.html": "<!doctype html>index", "pages/app.js": "export {}", "pages/tea.wasm": "\x00asm wasm", "pages/tea.wasm.br": "brotli", "pages/tea.wasm.gz": "gzip",
		"pages/data.bin": "<html>", "pages/.env": "secret", "pages/.git/config": "secret", "pages/old.js": "new", "pages/old.js.gz": "old", "pages/flow.yaml": "nodes: []", "outside.txt": "outside",
	} {
		files.write(name, text)
	}
	dir := filepath.Join(site, "pages")
	if err := os.Chtimes(filepath.Join(dir, "old.js.gz"), time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link.txt": "../outside.txt", "absolute.txt": filepath.Join(site, "outside.txt"), "inside.js": "app.js"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	token := filepath.Join(p.home, "tokens")
	if err := os.WriteFile(token, []byte("admin "+strings.Repeat("t", 40)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := p.serve("--static", dir, "--token-file", token)
	for _, c := range []struct {
		path, accept string
		status       int
		kind, text   string
	}{
		{"/static/", "", 200, "text/html; charset=utf-8", "<!doctype html>index"},
		{"/static/app.js", "", 200, "text/javascript; charset=utf-8", "export {}"},
		{"/static/tea.wasm", "", 200, "application/wasm", "\x00asm wasm"},
		{"/static/tea.wasm", "gzip, deflate, br", 200, "application/wasm", "brotli"},
		{"/static/tea.wasm", "gzip", 200, "application/wasm", "gzip"},
		{"/static/old.js", "gzip", 200, "text/javascript; charset=utf-8", "new"},
		{"/static/data.bin", "", 200, "application/octet-stream", "<html>"},
		{"/static/inside.js", "", 200, "text/javascript; charset=utf-8", "export {}"},
		{"/static/none.js", "", 404, "application/problem+json", "there is nothing"},
		{"/static/.env", "", 404, "application/problem+json", "there is nothing"},
		{"/static/.git/config", "", 404, "application/problem+json", "there is nothing"},
		{"/static/link.txt", "", 404, "application/problem+json", ""},
		{"/static/absolute.txt", "", 404, "application/problem+json", ""},
		{"/static/..%2foutside.txt", "", 404, "application/problem+json", ""},
		{"/static/%2e%2e/outside.txt", "", 404, "application/problem+json", ""},
		{"/static//etc/passwd", "", 404, "application/problem+json", ""},
		{"/static/app.js%00", "", 404, "application/problem+json", ""},
		{"/static/app.js/", "", 404, "application/problem+json", ""},
	} {
		r := s.request("GET", c.path, "", "Accept-Encoding", c.accept)
		if r.status != c.status || r.header.Get("Content-Type") != c.kind || !strings.Contains(r.text, c.text) || strings.Contains(r.text, "secret") || r.text == "outside" {
			t.Errorf("%s (%s): %s, want %d %s %q", c.path, c.accept, r, c.status, c.kind, c.text)
		}
	}
	if r := s.request("GET", "/static/app.js", "", "Range", "bytes=0-5"); r.status != http.StatusPartialContent || r.text != "export" {
		t.Errorf("a range: %s", r)
	}
	if r := s.request("POST", "/static/app.js", ""); r.status != http.StatusMethodNotAllowed {
		t.Errorf("POST: %s", r)
	}
	// Another directory takes the place of the first one.
	if err := os.Rename(dir, filepath.Join(site, "before")); err != nil {
		t.Fatal(err)
	}
	if r := s.request("GET", "/static/app.js", ""); r.status != http.StatusNotFound {
		t.Errorf("without a directory: %s", r)
	}
	files.write("pages/app.js", "second")
	if r := s.request("GET", "/static/app.js", ""); r.text != "second" {
		t.Errorf("another directory: %s", r)
	}
	// The path is not cleaned by a client here.
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /static/../outside.txt HTTP/1.0\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if raw, err := io.ReadAll(conn); err != nil || strings.Contains(string(raw), "\r\n\r\noutside") {
		t.Errorf("a path that is not clean: %v %s", err, raw)
	}
}

func TestStaticFilesOfNoDirectory(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet})
	log := newLogs()
	err := p.command(log, "serve", p.dir, "--static", filepath.Join(p.dir, "greet.yaml")).Run()
	if err == nil || !strings.Contains(log.String(), "--static") {
		t.Errorf("%v: %s", err, log)
	}
}
