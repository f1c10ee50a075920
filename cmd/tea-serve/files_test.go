package main

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wrote is a workflow that writes files of several kinds, directly and from Lua.
const wrote = `
name: wrote
nodes:
  - {name: report, uses: file.write, with: {path: out/report.md, create_dirs: true, content: "# Orders\n\n- three **late** orders\n\n<script>alert(1)</script>\n"}}
  - {name: table, uses: file.write, with: {path: orders.csv, content: "id,part\n1,\"ball, large\"\n2,\"a \"\"b\"\"\"\n"}}
  - {name: picture, uses: file.write, with: {path: pixel.png, encoding: base64, content: iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg==}}
  - {name: drawing, uses: file.write, with: {path: drawing.svg, content: '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="alert(2)"><script>alert(3)</script></svg>'}}
  - {name: html, uses: file.write, with: {path: page.html, content: "<script>alert(4)</script>"}}
  - {name: key, uses: file.write, with: {path: key.txt, content: "it is {{ secrets.key }}"}}
  - {name: lua, run: 'tea.action("file.append", {path = "log.txt", content = "one"}) tea.action("file.append", {path = "log.txt", content = "two"}) tea.action("file.write", {path = "gone.txt", content = "x"}) return {summary = "# Result\n\n*three* orders"}'}
  - {name: remove, uses: file.delete, with: {path: gone.txt}}
`

func TestFilesOfARun(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"wrote.yaml": wrote})
	s := p.serve("--secrets", `{"key": "hidden-key"}`)
	id := s.run("wrote", "{}")["id"].(string)
	r := s.request("GET", "/v1/runs/"+id+"/files", "")
	files := map[string]map[string]any{}
	for _, f := range r.body["files"].([]any) {
		files[f.(map[string]any)["file"].(string)] = f.(map[string]any)
	}
	if len(files) != 8 || files["log.txt"]["size"] != 6.0 || files["log.txt"]["call"] != "file.append" || files["log.txt"]["path"] != "lua" || files["gone.txt"]["size"] != nil || !strings.Contains(files["gone.txt"]["note"].(string), "not exist") || files["key.txt"]["secrets"] != true || files["log.txt"]["secrets"] != nil {
		t.Errorf("files: %s", r)
	}
	content := func(file string) response {
		return s.request("GET", "/v1/runs/"+id+"/files/content?file="+url.QueryEscape(file), "")
	}
	r = content("drawing.svg")
	if r.status != http.StatusOK || r.header.Get("Content-Type") != "application/octet-stream" || r.header.Get("Content-Disposition") != "attachment; filename=drawing.svg" || r.header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(r.header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("drawing: %s %v", r, r.header)
	}
	if r := content("key.txt"); r.text != "it is ***" || r.header.Get("Tea-Masked") != "true" {
		t.Errorf("a file with a secret: %s %v", r, r.header)
	}
	data := filepath.Dir(p.find("key.txt"))
	for name, text := range map[string]string{"other.txt": "not of the run", "log.txt": "changed"} {
		if err := os.WriteFile(filepath.Join(data, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(data, "page.html")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(data, "page.html")); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"other.txt", "../wrote.yaml", "/etc/hostname", "gone.txt", "page.html", ""} {
		if r := content(file); r.status != http.StatusNotFound {
			t.Errorf("%s: %s", file, r)
		}
	}
	for path, want := range map[string]int{"/files?a=1": http.StatusBadRequest, "/files/content?a=1": http.StatusBadRequest} {
		if r := s.request("GET", "/v1/runs/"+id+path, ""); r.status != want {
			t.Errorf("%s: %s", path, r)
		}
	}
	if r := s.request("GET", "/v1/runs/nosuch/files", ""); r.status != http.StatusNotFound {
		t.Errorf("no run: %s", r)
	}
	for _, args := range [][]string{{"runs", "show", id}, {"--host", s.url, "runs", "show", id}} {
		if got := p.tea(nil, args...); !strings.Contains(got.out, "log.txt (3 bytes, written by lua)") {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

// A report has no file with secrets, also if a later call has appended to it, or has used
// another name.
func TestReportOmitsFilesToWhichSecretsWereWrittenBefore(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"wrote.yaml": `
nodes:
  - {name: a, uses: file.write, with: {path: a.txt, content: "it is {{ secrets.key }}"}}
  - {name: b, uses: file.append, with: {path: a.txt, content: more}}
  - {name: c, uses: file.append, with: {path: ./a.txt, content: and more}}
`})
	s := p.serve("--secrets", `{"key": "hidden-key"}`)
	id := s.run("wrote", "{}")["id"].(string)
	text, err := os.ReadFile(strings.TrimPrefix(p.report(id), "file://"))
	if err != nil || strings.Contains(string(text), "hidden-key") || strings.Contains(string(text), base64.StdEncoding.EncodeToString([]byte("it is hidden-key"))[:16]) || !strings.Contains(string(text), "The file has secrets") {
		t.Errorf("report: %v %.3000s", err, text)
	}
}

// If the file root depends on a secret, a report lists the files without their content.
func TestReportNamesFilesOfASecretDirectory(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"wrote.yaml": `
settings: {file: {root: "{{ secrets.root }}"}}
nodes: [{name: a, uses: file.write, with: {path: a.txt, content: plain-content}}]
`})
	s := p.serve("--secrets", `{"root": "`+p.home+`"}`)
	id := s.run("wrote", "{}")["id"].(string)
	if r := s.request("GET", "/v1/runs/"+id+"/files/content?file=a.txt", ""); r.text != "plain-content" {
		t.Errorf("content: %s", r)
	}
	text, err := os.ReadFile(strings.TrimPrefix(p.report(id), "file://"))
	if err != nil || !strings.Contains(string(text), "The settings of the workflow need secrets, so the file is not in the report.") {
		t.Errorf("report: %v %.3000s", err, text)
	}
}

// find returns the path of a file below the home of the project.
func (p *project) find(name string) (found string) {
	p.t.Helper()
	err := filepath.WalkDir(p.home, func(path string, _ os.DirEntry, err error) error {
		if filepath.Base(path) == name {
			found = path
		}
		return err
	})
	if err != nil || found == "" {
		p.t.Fatalf("%s: %v", name, err)
	}
	return found
}

// pageResult opens a run with files. The page and the report show the files, and execute
// nothing in them.
func pageResult(t *testing.T, c *chromium) {
	p := newProject(t, map[string]string{"wrote.yaml": wrote})
	s := p.serve("--secrets", `{"key": "hidden-key"}`)
	id := s.run("wrote", "{}")["id"].(string)
	for _, report := range []bool{false, true} {
		address := s.url + "/#/runs/" + id
		if report {
			address = p.report(id)
		}
		b := c.open(t, address)
		b.status("done")
		b.await("document.querySelectorAll('.artefacts>li').length === 8")
		open := func(file string) {
			b.eval("[...document.querySelectorAll('.artefacts details')].find(e => e.textContent.startsWith(" + quote(file) + ")).open = true")
		}
		b.await("document.querySelector('.artefacts strong').textContent === 'Orders' && document.querySelector('.artefacts .context li strong').textContent === 'late'")
		for _, file := range []string{"orders.csv", "pixel.png", "drawing.svg", "page.html", "key.txt", "gone.txt"} {
			open(file)
		}
		b.await("document.querySelectorAll('.sheet td')[1].textContent === 'ball, large' && document.querySelectorAll('.sheet td')[3].textContent === 'a \"b\"'")
		b.await("[...document.querySelectorAll('.artefacts img')].filter(e => e.complete && e.naturalWidth > 0).length === 2")
		b.has("<script>alert(4)</script>")
		b.has("The file does not exist any more")
		if report {
			b.has("The file has secrets, so its content is not in the report.")
		} else {
			b.has("it is ***")
			b.has("Secrets in the file are masked.")
		}
		b.await("document.querySelector('.members .context strong').textContent === 'Result'")
		b.await("!document.documentElement.outerHTML.includes('hidden-key')")
		b.accessible("result")
		b.eval(`{window.saved = []; HTMLAnchorElement.prototype.click = function () { saved.push(this.download) }}`)
		b.click(".artefacts button[aria-label='Download out/report.md']", "Download")
		b.await("saved[0] === 'report.md'")
	}
}
