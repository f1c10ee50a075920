package main

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const hooks = `
nodes: [{name: n, run: 'return {}'}]
serve:
  triggers:
    - {webhook: push, signature: github, secret: HOOK, input: {ref: "{{ event.body.ref }}", kind: "{{ event.headers['x-github-event'] }}"}}
    - {webhook: paid/now, signature: stripe, secret: HOOK}
    - {webhook: plain, secret: HOOK, header: X-Sum, key: "{{ event.body.order }}"}
    - {webhook: other, secret: HOOK, input: {from: other}}
    - {webhook: open, signature: none, input: {q: "{{ event.query.q }}", text: "{{ event.body }}"}}
`

const hookSecret = "it-is-a-secret-of-the-hook"

func sign(text string) string {
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

// await waits for the end of a run and returns its state.
func (s *service) await(r response) map[string]any {
	s.t.Helper()
	id, _ := r.body["id"].(string)
	if r.status != http.StatusAccepted {
		s.t.Fatalf("not accepted: %s\n%s", r, s.log)
	}
	s.events(id, "", func(event) bool { return true })
	return s.request("GET", "/v1/runs/"+id+"/state", "").body
}

func TestWebhookStartsRun(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"hooks.yaml": hooks})
	s := p.serve("--secrets", `{"HOOK": "`+hookSecret+`"}`)
	const push = `{"ref": "refs/heads/main", "n": 12345678901234567890}`
	first := s.request("POST", "/hooks/push", push, "X-Hub-Signature-256", "sha256="+sign(push), "X-GitHub-Event", "push")
	if diff := cmp.Diff(map[string]any{"ref": "refs/heads/main", "kind": "push"}, s.await(first)); diff != "" {
		t.Errorf("github (-want +got):\n%s", diff)
	}
	again := s.request("POST", "/hooks/push", push, "X-Hub-Signature-256", "sha256="+strings.ToUpper(sign(push)), "X-GitHub-Event", "other")
	if again.body["id"] != first.body["id"] {
		t.Errorf("the same request again: %s", again)
	}
	other := s.request("POST", "/hooks/other", push, "X-Signature", sign(push))
	if state := s.await(other); state["from"] != "other" || other.body["id"] == first.body["id"] {
		t.Errorf("the same body for another webhook: %s, %v", other, state)
	}
	now := fmt.Sprint(time.Now().Unix())
	const paid = `{"amount": 5}`
	if state := s.await(s.request("POST", "/hooks/paid/now", paid, "Stripe-Signature", "t="+now+",v1=00,v1="+sign(now+"."+paid))); state["amount"] != 5.0 {
		t.Errorf("stripe: %v", state)
	}
	order := s.request("POST", "/hooks/plain", `{"order": 1}`, "X-Sum", sign(`{"order": 1}`))
	if r := s.request("POST", "/hooks/plain", `{"order":1}`, "X-Sum", sign(`{"order":1}`)); r.body["id"] != order.body["id"] {
		t.Errorf("the same order in other words: %s, first %s", r, order)
	}
	if state := s.await(s.request("POST", "/hooks/open?q=a+b", "plain text", "Content-Type", "text/plain")); state["q"] != "a b" || state["text"] != "plain text" {
		t.Errorf("open: %v", state)
	}
}

func TestJSONWithAByteOrderMark(t *testing.T) {
	t.Parallel()
	address := broker(t).String()
	p := newProject(t, map[string]string{"sum.yaml": `nodes: [{name: n, run: 'return {twice = state.n * 2, answer = "fine"}'}]
serve: {triggers: [{webhook: sum, signature: none}, {mqtt: sum, broker: "` + address + `"}]}
`})
	s := p.serve()
	s.log.await(t, "subscribed")
	const body = "\ufeff{\"n\": 4}"
	if state := s.await(s.request("POST", "/hooks/sum", body)); state["twice"] != 8.0 {
		t.Errorf("webhook: %v", state)
	}
	publish(t, address, "sum", body)
	s.awaitStatuses("sum", map[string]int{"done": 2})
	if r := s.request("POST", "/v1/workflows/sum/runs?wait=60", "\ufeff{\"input\": {\"n\": 4}}"); r.body["status"] != "done" {
		t.Errorf("API: %s", r)
	}
	if r := s.request("POST", "/v1/chat/completions", "\ufeff{\"model\": \"sum\", \"messages\": [{\"role\": \"user\", \"content\": \"4\"}], \"stream\": \"x\"}"); !strings.Contains(r.text, "stream: expected") {
		t.Errorf("chat: %s", r)
	}
	// One limit for all bodies.
	large := `"` + strings.Repeat("x", 4<<20) + `"`
	if r := s.request("POST", "/hooks/sum", large); r.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body of a webhook: %d", r.status)
	}
	publish(t, address, "sum", large)
	s.log.await(t, `has 4194306 bytes, the limit is 4194304`)
	publish(t, address, "sum", body)
	s.awaitStatuses("sum", map[string]int{"done": 4})
}

func TestWebhookIsRefused(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"hooks.yaml": hooks})
	s := p.serve("--secrets", `{"HOOK": "`+hookSecret+`"}`)
	old := fmt.Sprint(time.Now().Add(-time.Hour).Unix())
	for _, c := range []struct {
		path, body, header, value string
		status                    int
	}{
		{"push", "{}", "X-None", "", 401},
		{"push", "{}", "X-Hub-Signature-256", "sha256=" + sign("{} "), 401},
		{"push", "{}", "X-Hub-Signature-256", "sha256=", 401},
		{"push", "{}", "X-Hub-Signature-256", "sha256=" + sign("{}")[:62], 401},
		{"push", "{}", "X-Hub-Signature-256", "not hexadecimal", 401},
		{"paid/now", "{}", "Stripe-Signature", "t=" + old + ",v1=" + sign(old+".{}"), 401},
		{"paid/now", "{}", "Stripe-Signature", "v1=" + sign("{}"), 401},
		{"paid/now", "{}", "X-Hub-Signature-256", "sha256=" + sign("{}"), 401},
		{"gone", "{}", "X-None", "", 404},
	} {
		if r := s.request("POST", "/hooks/"+c.path, c.body, c.header, c.value); r.status != c.status {
			t.Errorf("%s %s: %s: %s", c.path, c.header, c.value, r)
		}
	}
	if list := s.request("GET", "/v1/runs", "").body["runs"].([]any); len(list) != 0 {
		t.Errorf("runs began: %v", list)
	}
	if strings.Contains(s.log.String(), hookSecret) {
		t.Errorf("the log has the secret:\n%s", s.log)
	}
}

func TestBodiesOfWebhooks(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"hook.yaml": `
nodes: [{name: n}]
serve: {triggers: [{webhook: in, signature: none, input: {body: "{{ event.body }}", encoding: "{{ event.encoding }}"}}]}
`})
	s := p.serve()
	for body, want := range map[string]map[string]any{
		"\xff\xfe\x00": {"body": "//4A", "encoding": "base64"},
		"grüße":        {"body": "grüße", "encoding": nil},
		"":             {"body": "", "encoding": nil},
	} {
		if diff := cmp.Diff(want, s.await(s.request("POST", "/hooks/in", body, "Content-Type", "application/octet-stream"))); diff != "" {
			t.Errorf("body %q (-want +got):\n%s", body, diff)
		}
	}
	if r := s.request("POST", "/hooks/in", `{"a":`); r.status != http.StatusBadRequest {
		t.Errorf("broken JSON: %s", r)
	}
}

func TestRevokedTokenStopsWorking(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	gate := filepath.Join(p.home, "gate")
	p.write("block.yaml", block(gate))
	p.write("tokens", "run first-token-0123456\nview second-token-012345\n")
	file := filepath.Join(p.dir, "tokens")
	s := p.serve("--token-file", file)
	s.token = "first-token-0123456"
	id := s.started()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/runs/"+id+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	stream, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	p.write("tokens", "nobody x\n")
	s.log.await(t, "the tokens remain as they were before")
	if r := s.request("GET", "/v1/runs", ""); r.status != http.StatusOK {
		t.Errorf("with a file that is not valid: %s", r)
	}
	p.write("tokens", "view second-token-012345\n")
	s.log.await(t, "1 tokens are valid now")
	_, _ = io.Copy(io.Discard, stream.Body) // the run does not end
	if r := s.request("GET", "/v1/runs", ""); r.status != http.StatusUnauthorized {
		t.Errorf("with the revoked token: %s", r)
	}
	s.token = "second-token-012345"
	if r := s.request("GET", "/v1/runs", ""); r.status != http.StatusOK {
		t.Errorf("with the other token: %s", r)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s.log.await(t, "no token is valid")
	if r := s.request("GET", "/v1/runs", ""); r.status != http.StatusUnauthorized {
		t.Errorf("without the file: %s", r)
	}
}

func TestTokensHaveRoles(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"ask.yaml": ask})
	tokens := map[string]string{}
	var file strings.Builder
	file.WriteString("# tokens of the test\n\n")
	for _, role := range []string{"view", "answer", "run", "admin"} {
		tokens[role] = strings.Repeat(role, 8)
		fmt.Fprintf(&file, "%s %s\n", role, tokens[role])
	}
	path := filepath.Join(p.home, "tokens")
	if err := os.WriteFile(path, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s := p.serve("--token-file", path)
	as := func(role, method, path, body string) response {
		return s.request(method, path, body, "Authorization", "Bearer "+tokens[role])
	}
	if r := s.request("GET", "/v1/runs", ""); r.status != http.StatusUnauthorized {
		t.Errorf("without a token: %s", r)
	}
	if r := s.request("GET", "/healthz", ""); r.status != http.StatusOK {
		t.Errorf("health: %s", r)
	}
	run := as("run", "POST", "/v1/workflows/ask/runs?wait=600", "{}")
	id, _ := run.body["id"].(string)
	for _, c := range []struct {
		role, method, path string
		status             int
	}{
		{"view", "GET", "/v1/runs", 200},
		{"view", "POST", "/v1/runs/" + id + "/resume", 403},
		{"view", "POST", "/v1/workflows/ask/runs", 403},
		{"answer", "POST", "/v1/workflows/ask/runs", 403},
		{"answer", "POST", "/v1/runs/" + id + "/cancel", 403},
		{"run", "POST", "/v1/runs/" + id + "/cancel", 200},
		{"admin", "GET", "/v1/actions", 200},
	} {
		if r := as(c.role, c.method, c.path, "{}"); r.status != c.status {
			t.Errorf("%s: %s %s: %s", c.role, c.method, c.path, r)
		}
	}
	if r := as("answer", "POST", "/v1/runs/"+id+"/resume?wait=600", `{"answers": {"q": "no"}}`); r.body["status"] != "done" {
		t.Errorf("answer: %s", r)
	}
	last := 0
	for range 11 {
		last = s.request("GET", "/v1/runs", "", "Authorization", "Bearer "+strings.Repeat("x", 20)).status
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("after many wrong tokens: %d", last)
	}
	if r := as("view", "GET", "/v1/runs", ""); r.status != http.StatusOK { // other clients of a proxy have the same address
		t.Errorf("a right token after wrong ones: %s", r)
	}
}

func TestSocketOfSystemdIsCheckedLikeAnAddress(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet})
	tokens := filepath.Join(p.home, "tokens")
	if err := os.WriteFile(tokens, []byte("run 0123456789abcdef0123\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	log := newLogs()
	cmd := p.activated(log, listener)
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(log.String(), "other machines can reach this address") {
		t.Errorf("without tokens: %v\n%s", err, log)
	}
	log = newLogs()
	cmd = p.activated(log, listener, "--token-file", tokens, "--listen", "localhost:1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	log.await(t, "--listen localhost:1 has no effect")
	log.await(t, "serving at")
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, url: "http://127.0.0.1:" + port, cmd: cmd, log: log}
	if r := s.request("GET", "/v1/runs", ""); r.status != http.StatusUnauthorized {
		t.Errorf("without a token: %s", r)
	}
	if r := s.request("GET", "/v1/runs", "", "Authorization", "Bearer 0123456789abcdef0123", "Host", "device.example"); r.status != http.StatusOK {
		t.Errorf("with a token: %s", r)
	}
}

func TestRequestsOfPagesAreRefused(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"greet.yaml": greet}).serve("--allow-host", "device.example")
	for _, c := range []struct {
		name, header, value string
		status              int
	}{
		{"rebound name", "Host", "evil.example", 403},
		{"page", "Origin", "https://evil.example", 403},
		{"page without an origin", "Origin", "null", 403},
		{"allowed name", "Host", "device.example", 202},
		{"own page", "Origin", s.url, 202},
	} {
		r := s.request("POST", "/v1/workflows/greet/runs", `{"input": {"name": "x"}}`, c.header, c.value)
		if r.status != c.status {
			t.Errorf("%s: %s", c.name, r)
		}
	}
}

func TestAddressNeedsTokens(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet})
	open := filepath.Join(p.home, "open")
	if err := os.WriteFile(open, []byte("run 0123456789abcdef0123\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	short := filepath.Join(p.home, "short")
	if err := os.WriteFile(short, []byte("run abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	twice := filepath.Join(p.home, "twice")
	if err := os.WriteFile(twice, []byte("run 0123456789abcdef0123\nview 0123456789abcdef0123\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--listen", ":0"}, "other machines can reach this address"},
		{[]string{"--listen", "0.0.0.0:0"}, "other machines can reach this address"},
		{[]string{"--listen", "nonsense"}, "expected HOST:PORT or unix:PATH"},
		{[]string{"--token-file", open}, "can be read by every user"},
		{[]string{"--token-file", short}, "short:1: expected view, answer, run or admin"},
		{[]string{"--token-file", filepath.Join(p.home, "gone")}, "gone"},
		{[]string{"--token-file", twice}, "twice:2: the token appears twice"},
		{[]string{"--max-running", "0"}, "expected 1 or more"},
	} {
		log := newLogs()
		cmd := p.command(log, append([]string{"serve", p.dir, "-v"}, c.args...)...)
		if err := untilServing(cmd, log); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(log.String(), c.want) {
			t.Errorf("%v: %v\n%s", c.args, err, log)
		}
	}
}

// untilServing runs a server that should refuse to start. It kills one that serves.
func untilServing(cmd *exec.Cmd, log *logs) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			return err
		case <-log.More():
			if strings.Contains(log.String(), "serving at ") {
				_ = cmd.Process.Kill()
			}
		}
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet})
	dir, err := os.MkdirTemp("", "tea") //nolint:usetesting // t.TempDir is too deep for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	for range 2 { // the second server finds the socket of the first
		log := newLogs()
		cmd := p.command(log, "serve", p.dir, "--listen", "unix:"+socket)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		log.await(t, "serving at unix:"+socket)
		if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("socket: %v, %v", info, err)
		}
		client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}}
		res, err := client.Post("http://tea/v1/workflows/greet/runs?wait=600", "application/json", strings.NewReader(`{"input": {"name": "x"}}`))
		if err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("run: %v, %v\n%s", res, err, log)
		}
		if err == nil {
			res.Body.Close()
		}
		client.CloseIdleConnections()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// A client without a role cannot fill the memory with bodies.
func TestBodyIsReadAfterTheRole(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet})
	s := p.serveAdmin()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /v1/workflows/greet/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\n")
	if err == nil {
		err = conn.SetReadDeadline(time.Now().Add(25 * time.Second)) // less than a body has
	}
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d", res.StatusCode)
	}
}

// systemd makes sockets that each user can open, unless its unit says otherwise.
func TestSocketThatOthersCanOpenIsNotAdmin(t *testing.T) {
	t.Parallel()
	for mode, status := range map[os.FileMode]int{0o600: http.StatusNotFound, 0o666: http.StatusForbidden} {
		p := newProject(t, map[string]string{"greet.yaml": greet})
		dir, err := os.MkdirTemp("", "tea") //nolint:usetesting // t.TempDir is too deep for a socket's path
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		socket := filepath.Join(dir, "s")
		listener, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		if err := os.Chmod(socket, mode); err != nil {
			t.Fatal(err)
		}
		log := newLogs()
		cmd := p.activated(log, listener)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		log.await(t, "serving at unix:")
		s := &service{t: t, url: "http://localhost", cmd: cmd, log: log, client: &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}}}
		if r := s.request("POST", "/v1/plugins/none/rollback", ""); r.status != status {
			t.Errorf("mode %o: %s", mode, r)
		}
		s.client.CloseIdleConnections()
	}
}
