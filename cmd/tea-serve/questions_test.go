package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// pluginsDir is the directory of the plugins, which TestMain removes.
func pluginsDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("tea-serve-plugins-%d", os.Getpid()))
}

// The plugins are built into directories of their own.
var (
	notifyPlugin = sync.OnceValues(func() (string, error) { return buildPlugin("notify", "") })
	devicePlugin = sync.OnceValues(func() (string, error) { return buildPlugin("device", "minimal,mqtt") })
)

func buildPlugin(name, tags string) (string, error) {
	dir := filepath.Join(pluginsDir(), name)
	out, err := exec.Command("go", "build", "-tags", tags, "-o", filepath.Join(dir, "tea-plugin-"+name), "github.com/the-edge-agent/tea/plugins/"+name+"/cmd/tea-plugin-"+name).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return dir, err
}

// inbox is a webhook that gets the messages of notify.send.
type inbox struct {
	t *testing.T
	*httptest.Server
	got chan message
	// fails is how many requests are answered with status 500.
	fails int
}

type message struct {
	ID, Target, Title, Message, Priority string
	Actions                              []struct {
		Label, URL string
		Post       bool
	}
}

func newInbox(t *testing.T, fails int) *inbox {
	t.Helper()
	b := &inbox{t: t, got: make(chan message, 100), fails: fails}
	var mu sync.Mutex
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		b.got <- m
		mu.Lock()
		defer mu.Unlock()
		if b.fails > 0 {
			b.fails--
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *inbox) next(s *service) message {
	b.t.Helper()
	select {
	case m := <-b.got:
		return m
	case <-time.After(5 * time.Minute):
		b.t.Fatalf("no message\n%s", s.log)
	}
	return message{}
}

// asking returns a project with a workflow that asks, and announces its questions.
func (b *inbox) asking(question, settings string) *project {
	b.t.Helper()
	p := newProject(b.t, map[string]string{"ask.yaml": fmt.Sprintf(`
settings:
  notify:
    targets: {ann: {webhook: {url: %[1]q}}, bob: {webhook: {url: %[1]q}}, sleeper: {webhook: {url: %[1]q}, quiet: {from: "00:00", to: "23:59", timezone: UTC}}}
    questions: %[3]s
nodes:
  - {name: q, uses: human.ask, with: %[2]s, output: {answer: "{{ result.answer }}"}}
`, b.URL, question, settings)})
	dir, err := notifyPlugin()
	if err != nil {
		b.t.Fatal(err)
	}
	p.env = append(p.env, "TEA_PLUGINS="+dir)
	return p
}

func TestQuestionsWithoutATargetKeepTheWorkflowAsItWas(t *testing.T) {
	t.Parallel()
	p := newInbox(t, 0).asking(goOn, `{to: [ann]}`)
	s := p.serve()
	text, err := os.ReadFile(filepath.Join(p.dir, "ask.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p.write("ask.yaml", strings.Replace(string(text), "to: [ann]", "to: [anne]", 1))
	s.log.await(t, "ask.yaml: the workflow ask remains as it was before")
	s.run("ask", "{}")
	p.write("ask.yaml", "name: other/name\nnodes: [{name: n}]\n")
	s.log.await(t, "contains a slash")
	if r := s.request("POST", "/v1/workflows/ask/runs", "{}"); r.status != http.StatusNotFound {
		t.Errorf("start of a workflow that no file has: %s", r)
	}
}

const goOn = `{question: "Go on?", choices: ["yes", "no"]}`

// link returns the path of a link on a server.
func (s *service) link(address string) string {
	s.t.Helper()
	u, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(address, s.url+"/answer/") {
		s.t.Fatalf("link %s of %s: %v", address, s.url, err)
	}
	return u.RequestURI()
}

// post sends a form as a browser does.
func (s *service) post(path string, form url.Values) response {
	s.t.Helper()
	return s.request("POST", path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Origin", s.url, "Sec-Fetch-Site", "same-origin")
}

func (s *service) ends(run string) map[string]any {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		r := s.request("GET", "/v1/runs/"+run+"?state=true", "")
		if r.body["status"] == "done" {
			return r.body
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("run %s: %s\n%s", run, r, s.log)
		}
		s.events(run, "", func(event) bool { return true })
	}
}

func TestQuestionIsAnsweredByALink(t *testing.T) {
	t.Parallel()
	b := newInbox(t, 1) // the first message has an unknown outcome
	p := b.asking(goOn, "{to: [ann], priority: urgent}")
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("run 0123456789abcdef-run\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := p.serve("--token-file", tokens)
	s.token = "0123456789abcdef-run"
	run := s.run("ask", "{}")["id"].(string)
	m, again := b.next(s), b.next(s)
	if m.ID != again.ID || m.Target != "ann" || m.Message != "Go on?" || m.Priority != "urgent" || !strings.Contains(m.Title, "ask") || len(m.Actions) != 2 || m.Actions[1].Label != "no" || !m.Actions[1].Post {
		t.Fatalf("message %+v, repeated %+v", m, again)
	}
	s.token = "" // who has the link needs none
	yes, no := s.link(m.Actions[0].URL), s.link(m.Actions[1].URL)
	page := s.request("GET", no, "")
	if page.status != http.StatusOK || !strings.Contains(page.text, "Go on?") || !strings.Contains(page.text, `value="2">no<`) || strings.Contains(page.text, `value="1"`) {
		t.Errorf("page %s", page)
	}
	if csp := page.header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") {
		t.Errorf("policy %q", csp)
	}
	for path, status := range map[string]int{
		strings.Replace(no, ".ann.", ".bob.", 1): http.StatusGone, strings.Replace(no, "/answer/", "/answer/x", 1): http.StatusGone, "/answer/x": http.StatusGone, "/answer/..%2f.a.b.c": http.StatusGone,
		strings.TrimSuffix(no, "2") + "3": http.StatusUnprocessableEntity, strings.TrimSuffix(no, "?choice=2"): http.StatusUnprocessableEntity,
	} {
		if r := s.request("POST", path, ""); r.status != status {
			t.Errorf("%s: %s, want %d", path, r, status)
		}
	}
	if r := s.request("POST", no, "", "Origin", "http://evil.example"); r.status != http.StatusForbidden {
		t.Errorf("from another page: %s", r)
	}
	s.token = "0123456789abcdef-run"
	if r := s.request("GET", "/v1/runs/"+run, ""); r.body["status"] != "waiting" {
		t.Fatalf("GET has answered: %s", r)
	}
	if r := s.request("POST", no, ""); r.status != http.StatusOK || !strings.Contains(r.text, "Thank you") { // the button of ntfy
		t.Fatalf("answer: %s", r)
	}
	got := s.ends(run)
	if state := got["state"].(map[string]any); state["answer"] != "no" || fmt.Sprint(got["answered_by"]) != "map[q:ask:ann]" {
		t.Errorf("run %v", got)
	}
	for _, path := range []string{yes, no} {
		if r := s.request("POST", path, ""); r.status != http.StatusGone {
			t.Errorf("a second answer: %s", r)
		}
	}
	if strings.Contains(s.log.String(), strings.Split(no, ".")[3]) {
		t.Error("the log has a link")
	}
}

// Answers are typed on the page, and checked.
func TestQuestionIsAnsweredOnThePage(t *testing.T) {
	t.Parallel()
	b := newInbox(t, 0)
	s := b.asking(`{question: "How <many>?\nA number.", schema: {type: integer, minimum: 1}}`, "{to: [ann]}").serve("--public-url", "https://tea.example/sub/")
	run := s.run("ask", "{}")["id"].(string)
	m := b.next(s)
	path, ok := strings.CutPrefix(m.Actions[0].URL, "https://tea.example/sub")
	if len(m.Actions) != 1 || !ok {
		t.Fatalf("message %+v", m)
	}
	if r := s.request("GET", path, ""); !strings.Contains(r.text, "How &lt;many&gt;?<br>A number.") || !strings.Contains(r.text, "<textarea") {
		t.Errorf("page %s", r)
	}
	for answer, status := range map[string]int{"": 422, "0": 422, "many": 422, strings.Repeat("1", 70000): 413} {
		if r := s.post(path, url.Values{"answer": {answer}}); r.status != status {
			t.Errorf("answer %.10q: %s", answer, r)
		}
	}
	if r := s.post(path, url.Values{"answer": {" 7 "}}); r.status != http.StatusOK {
		t.Fatalf("answer: %s", r)
	}
	if state := s.ends(run)["state"].(map[string]any); state["answer"] != 7.0 {
		t.Errorf("state %v", state)
	}
}

// A question is announced once, over restarts, and then to the next person. The links of
// earlier messages stay valid.
func TestAnnouncementsSurviveRestarts(t *testing.T) {
	t.Parallel()
	b := newInbox(t, 0)
	p := b.asking(goOn, "{to: [sleeper, ann], escalate: [{after_seconds: 5, to: [bob]}]}")
	s := p.serve()
	run := s.run("ask", "{}")["id"].(string)
	first := b.next(s)
	s.log.await(t, "announced to ann") // a kill before it repeats the message
	s.kill()
	listen := strings.TrimPrefix(s.url, "http://")
	s = p.serve("--listen", listen)
	second := b.next(s)
	s.log.await(t, "announced to bob")
	s.interrupt()
	s = p.serve("--listen", listen)
	if first.Target != "ann" || second.Target != "bob" || first.ID == second.ID {
		t.Fatalf("messages %+v, %+v", first, second)
	}
	if r := s.request("POST", s.link(first.Actions[0].URL), ""); r.status != http.StatusOK {
		t.Fatalf("answer: %s", r)
	}
	if got := s.ends(run); fmt.Sprint(got["answered_by"]) != "map[q:ask:ann]" {
		t.Errorf("run %v", got)
	}
	if r := s.request("POST", s.link(second.Actions[0].URL), ""); r.status != http.StatusGone {
		t.Errorf("the other link: %s", r)
	}
	s.interrupt()
	if n := len(b.got); n > 0 {
		t.Errorf("%d further messages", n)
	}
}

// A link answers one question, and none after its time limit.
func TestLinkAnswersNoLaterQuestion(t *testing.T) {
	t.Parallel()
	b := newInbox(t, 0)
	p := b.asking(goOn, "{to: [ann]}")
	text, err := os.ReadFile(filepath.Join(p.dir, "ask.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p.write("ask.yaml", strings.Replace(string(text), "  - {name: q,", "  - {name: q, goto: [{if: state.answer == 'no', to: q}, {to: END}],", 1))
	s := p.serve()
	run := s.run("ask", "{}")["id"].(string)
	first := b.next(s)
	if r := s.request("POST", s.link(first.Actions[1].URL), ""); r.status != http.StatusOK {
		t.Fatalf("answer: %s", r)
	}
	second := b.next(s)
	if r := s.request("POST", s.link(first.Actions[0].URL), ""); r.status != http.StatusGone || first.ID == second.ID {
		t.Errorf("the link of the first question: %s", r)
	}
	if r := s.request("POST", s.link(second.Actions[0].URL), ""); r.status != http.StatusOK {
		t.Fatalf("answer: %s", r)
	}
	s.ends(run)
}

// The question of a cancelled run is not asked again, and its link does not continue the
// run.
func TestQuestionOfACancelledRunIsGone(t *testing.T) {
	t.Parallel()
	b := newInbox(t, 0)
	s := b.asking(goOn, "{to: [ann], escalate: [{after_seconds: 1, to: [bob]}]}").serve()
	canceled := s.run("ask", "{}")["id"].(string)
	link := s.link(b.next(s).Actions[0].URL)
	if r := s.request("POST", "/v1/runs/"+canceled+"/cancel", "{}"); r.status != http.StatusOK {
		t.Fatalf("cancel: %s", r)
	}
	for _, method := range []string{"GET", "POST"} {
		if r := s.request(method, link, ""); r.status != http.StatusGone || !strings.Contains(r.text, "its run has ended") {
			t.Errorf("%s of the link: %s", method, r)
		}
	}
	if r := s.request("GET", "/v1/runs/"+canceled, ""); r.body["status"] != "stopped" {
		t.Errorf("the run continues: %s", r)
	}
	run := s.run("ask", "{}")["id"].(string)
	for _, target := range []string{"ann", "bob"} {
		if m := b.next(s); m.Target != target || !strings.Contains(m.Actions[0].URL, run) {
			t.Errorf("message %+v, want that of run %s to %s", m, run, target)
		}
	}
}

func TestPublicURLIsChecked(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"ask.yaml": ask})
	for _, address := range []string{"tea.example", "ftp://tea.example", "https://a:b@tea.example", "https://tea.example/?x=1"} {
		log := newLogs()
		if err := p.command(log, "serve", p.dir, "--listen", "127.0.0.1:0", "--public-url", address).Run(); err == nil || !strings.Contains(log.String(), "--public-url") {
			t.Errorf("%s: %v\n%s", address, err, log)
		}
	}
}
