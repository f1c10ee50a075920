package main

import (
	"bytes"
	"context"
	"fmt"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/the-edge-agent/tea/client"
	"github.com/the-edge-agent/tea/host/bundles"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/serve"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

// asPlugin makes the test binary a version of the plugin echo.
const asPlugin = "TEA_SERVE_TEST_PLUGIN"

// echoBundle is a version of a plugin. Version 3.0.0 does not have its action.
func echoBundle(version string) tea.Bundle {
	name := "echo.version"
	if version == "3.0.0" {
		name = "echo.other"
	}
	answer := func(context.Context, *tea.Request, struct{}) (map[string]any, error) {
		return map[string]any{"version": version}, nil
	}
	return tea.Bundle{Name: "echo", Version: version, Actions: []tea.Action{
		tea.NewAction(name, "Returns the version.", answer),
		tea.NewAction("echo.lines", "Passes on the lines of a file, and those that are appended.", func(ctx context.Context, req *tea.Request, p linesParams) (struct{}, error) {
			return struct{}{}, passLines(ctx, req, p.File, version)
		}, tea.Streaming()),
		tea.NewAction("echo.slow", "Takes 0.1 s and returns how many calls there were at the same time.", slow),
		tea.NewAction("echo.die", "Ends the process if there is a file, which it removes.", die, tea.Idempotent()),
		tea.NewAction("echo.act", "Has an effect.", answer, tea.Once()),
	}}
}

type linesParams struct {
	File string `json:"file" doc:"the file"`
}

// passLines ends with an error when the file is removed.
func passLines(ctx context.Context, req *tea.Request, file, version string) error {
	for sent := 0; ; {
		text, err := os.ReadFile(file)
		if err != nil {
			return tea.Errorf(tea.ConnectionError, "no source")
		}
		lines := strings.Split(string(text), "\n")
		for _, line := range lines[min(sent, len(lines)-1) : len(lines)-1] {
			req.Host.Token(ctx, fmt.Sprintf(`{"line": %s, "version": %q}`, line, version))
		}
		sent = len(lines) - 1
		if err := backoff.Sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

var slowCalls atomic.Int64

func slow(ctx context.Context, _ *tea.Request, _ struct{}) (map[string]any, error) {
	n := slowCalls.Add(1)
	defer slowCalls.Add(-1)
	return map[string]any{"calls": n}, backoff.Sleep(ctx, 100*time.Millisecond)
}

func die(_ context.Context, _ *tea.Request, p linesParams) (map[string]any, error) {
	if os.Remove(p.File) == nil {
		os.Exit(1)
	}
	return map[string]any{"alive": true}, nil
}

func servePlugin() { serve.Main(echoBundle(os.Getenv(asPlugin))) }

const echoing = `
nodes: [{name: n, uses: echo.version, output: {version: "{{ result.version }}"}}]
`

// pack returns the file of a bundle of the plugin, which is a script around the test
// binary. A broken one does not start.
func pack(t testing.TB, version string, broken bool) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := "#!/bin/sh\nexport " + asPlugin + "=" + version + "\nexec '" + self + "' \"$@\"\n"
	if broken {
		script = "#!/bin/sh\nexit 1\n"
	}
	binary := filepath.Join(dir, "tea-plugin-echo")
	if err := os.WriteFile(binary, []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	var packed bytes.Buffer
	b := echoBundle(version)
	if _, err := bundles.Pack(&packed, bundles.Contents{Manifest: b.Manifest(), Binaries: []string{binary}}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "echo-"+version+bundles.Suffix)
	if err := os.WriteFile(file, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// formOf returns a form and its content type. The parts are names and texts in turns.
func formOf(t testing.TB, parts ...string) (text, kind string) {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i+1 < len(parts); i += 2 {
		part, err := form.CreateFormFile(parts[i], "upload.teab")
		if err == nil {
			_, err = part.Write([]byte(parts[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	return body.String(), form.FormDataContentType()
}

// upload sends a form.
func (s *service) upload(parts ...string) response {
	s.t.Helper()
	text, kind := formOf(s.t, parts...)
	return s.request("POST", "/v1/plugins", text, "Content-Type", kind)
}

// install installs a bundle of the plugin.
func (s *service) install(file string) response {
	s.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.upload("bundle", string(text))
}

// echoes checks the version that answers.
func (s *service) echoes(want string) {
	s.t.Helper()
	run := s.run("echo", "{}")
	if state, _ := run["state"].(map[string]any); state["version"] != want {
		s.t.Errorf("the run %v, expected version %s\n%s", run, want, s.log)
	}
}

// installedEcho returns a project in whose home version 1.0.0 is installed.
func installedEcho(t testing.TB) *project {
	t.Helper()
	p := newProject(t, map[string]string{"echo.yaml": echoing})
	log := newLogs()
	if err := p.command(log, "plugin", "install", pack(t, "1.0.0", false)).Run(); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	return p
}

// serveAdmin serves with the token of an admin, which the requests have.
func (p *project) serveAdmin(args ...string) *service {
	p.t.Helper()
	s := p.serve(append(args, "--token-file", p.adminToken())...)
	s.token = adminToken
	return s
}

const adminToken = "abcdef01234567890123"

// adminToken writes a file with the tokens of the roles run and admin.
func (p *project) adminToken() string {
	p.t.Helper()
	file := filepath.Join(p.home, "tokens")
	if err := os.WriteFile(file, []byte("run 0123456789abcdef0123\nadmin "+adminToken+"\n"), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return file
}

func TestWorkflowIsServedWhenItsPluginIsInstalled(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"echo.yaml": echoing})
	s := p.serveAdmin()
	s.log.await(t, "echo.yaml: it is not offered")
	if r := s.install(pack(t, "1.0.0", false)); r.status != http.StatusOK {
		t.Fatal(r)
	}
	s.log.await(t, "workflow offered")
	s.echoes("1.0.0")
}

func TestWorkflowIsServedWhenItsPluginIsInstalledByTheCommand(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"echo.yaml": echoing})
	s := p.serveAdmin()
	s.log.await(t, "echo.yaml: it is not offered")
	log := newLogs()
	if err := p.command(log, "plugin", "install", pack(t, "1.0.0", false)).Run(); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	s.log.await(t, "workflow offered")
	s.echoes("1.0.0")
}

func TestPluginsAreReplacedByTheAPI(t *testing.T) {
	t.Parallel()
	s := installedEcho(t).serveAdmin()
	s.echoes("1.0.0")
	if r := s.request("POST", "/v1/plugins/echo/rollback", ""); r.status != http.StatusConflict {
		t.Errorf("without an earlier version: %s", r)
	}
	if r := s.request("POST", "/v1/plugins/gone/rollback", ""); r.status != http.StatusNotFound {
		t.Errorf("an unknown plugin: %s", r)
	}
	if r := s.install(pack(t, "2.0.0", false)); r.status != http.StatusOK || r.body["version"] != "2.0.0" || r.body["before"] != "1.0.0" {
		t.Fatalf("install: %s\n%s", r, s.log)
	}
	s.echoes("2.0.0")
	if r := s.request("GET", "/v1/plugins", ""); !strings.Contains(r.text, `"earlier":["1.0.0"]`) || !strings.Contains(r.text, `"generation":2`) {
		t.Errorf("plugins: %s", r)
	}
	if r := s.request("POST", "/v1/plugins/echo/rollback", ""); r.status != http.StatusOK || r.body["version"] != "1.0.0" {
		t.Fatalf("rollback: %s\n%s", r, s.log)
	}
	s.echoes("1.0.0")
}

// A plugin that was not installed is used by workflows that are loaded later.
func TestNewPluginIsInstalledByTheAPI(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	s := p.serveAdmin()
	if r := s.install(pack(t, "1.0.0", false)); r.status != http.StatusOK || r.body["before"] != nil {
		t.Fatalf("install: %s\n%s", r, s.log)
	}
	p.write("echo.yaml", echoing)
	s.log.await(t, "workflow offered")
	s.echoes("1.0.0")
}

// Whatever is wrong with an upload, the version before answers, also after a restart.
func TestRefusedPluginsAreNotUsed(t *testing.T) {
	t.Parallel()
	p := installedEcho(t)
	s := p.serveAdmin()
	s.echoes("1.0.0")
	broken, incompatible := pack(t, "2.0.0", true), pack(t, "3.0.0", false)
	for name, do := range map[string]func() response{
		"broken":       func() response { return s.install(broken) },
		"incompatible": func() response { return s.install(incompatible) },
		"not a bundle": func() response { return s.upload("bundle", "no") },
		"truncated": func() response {
			text, err := os.ReadFile(incompatible)
			if err != nil {
				t.Fatal(err)
			}
			return s.upload("bundle", string(text[:len(text)/2]))
		},
	} {
		if r := do(); r.status != http.StatusUnprocessableEntity || strings.Contains(r.text, p.home) && name != "broken" {
			t.Errorf("%s: %s", name, r)
		}
		s.echoes("1.0.0")
	}
	for name, r := range map[string]response{
		"no bundle":    s.upload(),
		"unknown part": s.upload("plugin", "x"),
		"twice":        s.upload("bundle", "x", "bundle", "y"),
	} {
		if r.status != http.StatusBadRequest {
			t.Errorf("%s: %s", name, r)
		}
	}
	if r := s.request("POST", "/v1/plugins", "{}"); r.status != http.StatusUnsupportedMediaType {
		t.Errorf("JSON: %s", r)
	}
	if left, err := filepath.Glob(filepath.Join(p.home, "*/*/serve/upload-*")); err != nil || len(left) > 0 {
		t.Errorf("uploads are left: %v, %v", left, err)
	}
	s.interrupt()
	p.serve().echoes("1.0.0")
}

// The lock of the directory decides which version can be installed.
func TestLockAppliesToUploads(t *testing.T) {
	t.Parallel()
	p := installedEcho(t)
	log := newLogs()
	lock := p.command(log, "plugin", "lock")
	if lock.Dir = p.dir; lock.Run() != nil {
		t.Fatal(log)
	}
	s := p.serveAdmin()
	if r := s.install(pack(t, "2.0.0", false)); r.status != http.StatusForbidden {
		t.Errorf("a version that the lock does not list: %s", r)
	}
	s.echoes("1.0.0")
}

// An upload needs a signature where the configuration requires one.
func TestUploadsAreSigned(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	run := func(args ...string) {
		t.Helper()
		log := newLogs()
		if err := p.command(log, args...).Run(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, log)
		}
	}
	run("plugin", "keygen", "--no-password", "-o", "owner")
	public, err := os.ReadFile(filepath.Join(p.home, "owner.pub"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(public)), "\n")
	if err := os.MkdirAll(filepath.Join(p.home, "tea"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.home, "tea", "config.yaml"), []byte("plugins:\n  keys: ["+lines[len(lines)-1]+"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := p.serveAdmin()
	file := pack(t, "1.0.0", false)
	if r := s.install(file); r.status != http.StatusUnprocessableEntity || !strings.Contains(r.text, "signed") {
		t.Errorf("without a signature: %s", r)
	}
	run("plugin", "sign", file, "--key", "owner.key")
	var texts []string
	for _, path := range []string{file, file + bundles.SignatureSuffix} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	if r := s.upload("bundle", texts[0], "signature", texts[1]); r.status != http.StatusOK || r.body["signed_by"] == nil {
		t.Errorf("with a signature: %s", r)
	}
}

// Only the role admin installs. Nothing is read from others.
func TestPluginsNeedTheRoleAdmin(t *testing.T) {
	t.Parallel()
	p := installedEcho(t)
	s := p.serveAdmin()
	for token, want := range map[string]int{"": http.StatusUnauthorized, "0123456789abcdef0123": http.StatusForbidden, adminToken: http.StatusOK} {
		s.token = token
		if r := s.install(pack(t, "2.0.0", false)); r.status != want {
			t.Errorf("%q: %s", token, r)
		}
	}
	if r := s.request("POST", "/v1/plugins/echo/rollback", "", "Origin", "https://example.com"); r.status != http.StatusForbidden {
		t.Errorf("a page of another origin: %s", r)
	}
}

// All users of a machine can reach a loopback address, so without tokens it grants
// no admin role. Only the server's user can open its Unix socket.
func TestPluginsNeedATokenOnLoopback(t *testing.T) {
	t.Parallel()
	p := installedEcho(t)
	s := p.serve()
	if r := s.install(pack(t, "2.0.0", false)); r.status != http.StatusForbidden || !strings.Contains(r.text, "--token-file") {
		t.Errorf("install: %s", r)
	}
	if r := s.request("POST", "/v1/plugins/echo/rollback", ""); r.status != http.StatusForbidden {
		t.Errorf("rollback: %s", r)
	}
	s.echoes("1.0.0")
}

// No run fails while versions change under load.
func TestRunsDuringSwaps(t *testing.T) {
	t.Parallel()
	s := installedEcho(t).serveAdmin()
	s.echoes("1.0.0")
	next := pack(t, "2.0.0", false)
	stop := make(chan struct{})
	var load sync.WaitGroup
	failed := make(chan string, 4)
	for range 4 {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				r, err := s.try("POST", "/v1/workflows/echo/runs?wait=600", "{}")
				if err != nil || r.body["status"] != "done" {
					failed <- fmt.Sprint(err, r)
					return
				}
			}
		})
	}
	for range 3 {
		if r := s.install(next); r.status != http.StatusOK {
			t.Errorf("install: %s", r)
		}
		if r := s.request("POST", "/v1/plugins/echo/rollback", ""); r.status != http.StatusOK {
			t.Errorf("rollback: %s", r)
		}
	}
	close(stop)
	load.Wait()
	close(failed)
	for text := range failed {
		t.Errorf("a run failed: %s\n%s", text, s.log)
	}
}

func TestGoClientReplacesPlugins(t *testing.T) {
	t.Parallel()
	p := installedEcho(t)
	s := p.serveAdmin()
	s.echoes("1.0.0")
	token := filepath.Join(p.home, "token")
	if err := os.WriteFile(token, []byte(adminToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newGoClient(t, s, client.Options{TokenFile: token})
	for version, want := range map[string]string{"2.0.0": "", "3.0.0": "is not used"} {
		text, err := os.ReadFile(pack(t, version, false))
		if err != nil {
			t.Fatal(err)
		}
		done, err := c.InstallPlugin(t.Context(), "echo.teab", bytes.NewReader(text), nil)
		if want == "" && (err != nil || done.Version != version) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %+v, %v", version, done, err)
		}
	}
	running, list, err := c.Plugins(t.Context())
	if err != nil || len(running) != 1 || running[0].Version != "2.0.0" || len(list) != 1 || len(list[0].Earlier) != 1 {
		t.Errorf("plugins: %+v, %+v, %v", running, list, err)
	}
	if done, err := c.RollbackPlugin(t.Context(), "echo"); err != nil || done.Version != "1.0.0" || done.Before != "2.0.0" {
		t.Errorf("rollback: %+v, %v", done, err)
	}
	s.echoes("1.0.0")
}

func pagePlugins(t *testing.T, c *chromium) {
	s := installedEcho(t).serveAdmin()
	b := c.open(t, s.url+"/#/plugins")
	b.fill("Token", adminToken)
	b.click("dialog button", "Use")
	row := func(cells ...string) {
		t.Helper()
		b.await("[...document.querySelectorAll('main tbody td')].map(e => e.textContent).join('|').startsWith(" + quote(strings.Join(cells, "|")) + ")")
	}
	row("echo", "1.0.0", "not started")
	s.echoes("1.0.0")
	row("echo", "1.0.0", "running", "1")
	b.await("document.querySelectorAll('main tbody td')[4].textContent.endsWith(' MiB')")
	choose := func(file string) {
		t.Helper()
		b.click("button", "Install or replace")
		b.await("document.querySelector('dialog #bundle')")
		if err := chromedp.Do(b.ctx, chromedp.SetUploadFiles("#bundle", []string{file})); err != nil {
			t.Fatal(err)
		}
		b.click("dialog button", "Install")
	}
	choose(pack(t, "2.0.0", false))
	b.has("echo 2.0.0 is active (before: 1.0.0).")
	row("echo", "2.0.0", "running", "2")
	s.echoes("2.0.0")
	choose(pack(t, "3.0.0", false))
	b.has("echo 3.0.0 is not used")
	b.click("dialog button", "Close")
	s.echoes("2.0.0")
	b.click("button", "Roll back")
	b.has("Return from version 2.0.0 to version 1.0.0?")
	b.click("dialog button", "Roll back")
	b.has("echo 1.0.0 is active (before: 2.0.0).")
	row("echo", "1.0.0", "running", "3")
	s.echoes("1.0.0")
}
