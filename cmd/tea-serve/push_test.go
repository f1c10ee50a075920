package main

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/chromedp"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
	"github.com/the-edge-agent/tea/test/teaproc"
)

// pushService is the push service of browsers.
type pushService struct {
	t *testing.T
	*httptest.Server
	python string
	got    chan *pushed

	mu sync.Mutex
	// statuses are the next answers to a path, 201 without one.
	statuses map[string][]int
	n        int
	// held, if not nil, blocks requests until it is closed. Each blocked request sends to
	// waiting.
	held    chan struct{}
	waiting chan struct{}
}

// pushed is a message that a push service got.
type pushed struct {
	path   string
	header http.Header
	body   []byte
}

func newPushService(t *testing.T) *pushService {
	t.Helper()
	p := startPushService(t)
	p.python = filepath.Join(peertest.Dir(t, "../..", "pywebpush"), "python/bin/python")
	return p
}

// startPushService starts a push service that does not read its messages.
func startPushService(t *testing.T) *pushService {
	t.Helper()
	p := &pushService{t: t, got: make(chan *pushed, 1000), statuses: map[string][]int{}, waiting: make(chan struct{}, 10)}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		p.mu.Lock()
		held := p.held
		p.mu.Unlock()
		if held != nil {
			p.waiting <- struct{}{}
			select {
			case <-held:
			case <-r.Context().Done():
				t.Error("the server did not wait for the push service")
			}
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		status := http.StatusCreated
		if list := p.statuses[r.URL.Path]; len(list) > 0 {
			status, p.statuses[r.URL.Path] = list[0], list[1:]
		}
		p.n++
		p.got <- &pushed{r.URL.Path, r.Header, body}
		w.Header().Set("Location", p.URL+"/elsewhere")
		w.WriteHeader(status)
	}))
	t.Cleanup(p.Close)
	return p
}

// trusted adds the certificate of the service to those of a project's server.
func (p *pushService) trusted(project *project) {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "push.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}), 0o600); err != nil {
		p.t.Fatal(err)
	}
	project.env = append(project.env, "SSL_CERT_FILE="+file)
}

// answers sets the next answers to a browser.
func (p *pushService) answers(b *pushBrowser, statuses ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.statuses["/"+b.name] = statuses
}

// pushBrowser is a browser at a push service.
type pushBrowser struct {
	name, endpoint, auth string
	key                  *ecdh.PrivateKey
}

func (p *pushService) browser(name string) *pushBrowser {
	p.t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	auth := make([]byte, 16)
	_, _ = rand.Read(auth)
	return &pushBrowser{name: name, endpoint: p.URL + "/" + name, auth: base64.RawURLEncoding.EncodeToString(auth), key: key}
}

// subscription is what the browser tells the page.
func (b *pushBrowser) subscription() string {
	return fmt.Sprintf(`{"endpoint": %q, "expirationTime": null, "keys": {"p256dh": %q, "auth": %q}}`, b.endpoint, base64.RawURLEncoding.EncodeToString(b.key.PublicKey().Bytes()), b.auth)
}

// shown is a decrypted message.
type shown struct {
	*pushed
	text                   string
	Title, Body, Tag, Path string
	sender, subject        string
}

// next returns the next message to a browser, as another implementation reads it.
func (p *pushService) next(s *service, b *pushBrowser) *shown {
	p.t.Helper()
	var m *pushed
	for m == nil || m.path != "/"+b.name {
		if m != nil {
			p.got <- m // of another browser
		}
		select {
		case m = <-p.got:
		case <-time.After(5 * time.Minute):
			p.t.Fatalf("no message to %s\n%s", b.name, s.log)
		}
	}
	private, err := x509.MarshalPKCS8PrivateKey(b.key)
	if err != nil {
		p.t.Fatal(err)
	}
	given, err := json.Marshal(map[string]string{
		"key": base64.RawURLEncoding.EncodeToString(private), "auth": b.auth, "endpoint": b.endpoint,
		"authorization": m.header.Get("Authorization"), "body": base64.StdEncoding.EncodeToString(m.body),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.CommandContext(p.t.Context(), p.python, "../../test/pywebpush/read.py")
	cmd.Stdin, cmd.WaitDelay = bytes.NewReader(append(given, '\n')), time.Minute
	out, err := cmd.CombinedOutput()
	var read struct {
		Text, Key string
		Claims    struct {
			Exp int64
			Sub string
		}
	}
	if err == nil {
		err = json.Unmarshal(out, &read)
	}
	got := &shown{pushed: m, text: read.Text, sender: read.Key, subject: read.Claims.Sub}
	if err == nil {
		err = json.Unmarshal([]byte(read.Text), got)
	}
	if err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
	if left := time.Until(time.Unix(read.Claims.Exp, 0)); left < time.Hour || left > 24*time.Hour {
		p.t.Errorf("the token is valid for %s", left)
	}
	return got
}

// subscribe subscribes a browser, which gets a message.
func (s *service) subscribe(p *pushService, b *pushBrowser) {
	s.t.Helper()
	if r := s.request("POST", "/v1/push/subscribe", b.subscription()); r.status != http.StatusCreated {
		s.t.Fatalf("subscribe %s: %s", b.name, r)
	}
	m := p.next(s, b)
	if m.Tag != "welcome" || m.header.Get("TTL") != "59" && m.header.Get("TTL") != "60" {
		s.t.Errorf("message %+v %v", m, m.header)
	}
}

const (
	annToken  = "0123456789abcdef-ann"
	bobToken  = "0123456789abcdef-bob"
	viewToken = "0123456789abcdef-view"
)

func TestQuestionIsPushed(t *testing.T) {
	t.Parallel()
	push := newPushService(t)
	p := newProject(t, map[string]string{"ask.yaml": "nodes:\n- {name: q, uses: human.ask, with: " + goOn + ", output: {answer: '{{ result.answer }}'}}\n"})
	push.trusted(p)
	tokens := filepath.Join(t.TempDir(), "tokens")
	setTokens := func(text string) {
		t.Helper()
		if err := os.WriteFile(tokens, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ann, bob := "run "+annToken+" ann\n", "answer "+bobToken+" bob\n"
	setTokens("view " + viewToken + "\n" + ann + bob)
	args := []string{"--token-file", tokens, "--allow-private-push", "--public-url", "https://pump7.example"}
	s := p.serve(args...)
	s.token = viewToken
	if r := s.request("GET", "/v1/push", ""); r.status != http.StatusForbidden {
		t.Errorf("the role view: %s", r)
	}
	s.token = bobToken
	bobs := push.browser("bob")
	s.subscribe(push, bobs)
	s.token = annToken
	anns := push.browser("ann")
	s.subscribe(push, anns)
	key := s.request("GET", "/v1/push", "").body["key"]
	if r := s.request("POST", "/v1/push/subscribe", anns.subscription()); r.status != http.StatusOK {
		t.Errorf("a second visit of the page: %s", r)
	}
	push.answers(bobs, http.StatusInternalServerError)
	run := s.run("ask", "{}")["id"].(string)
	toAnn, toBob := push.next(s, anns), push.next(s, bobs)
	again := push.next(s, bobs)
	if again.Tag != toBob.Tag || again.header.Get("Topic") != again.Tag || toAnn.Tag == toBob.Tag {
		t.Errorf("messages to bob %+v, %+v", toBob, again)
	}
	if toAnn.Title != "Question of ask" || toAnn.Body != "Go on?" || !strings.HasPrefix(toAnn.Path, "/answer/") || toAnn.sender != key || toAnn.subject != "https://pump7.example" {
		t.Errorf("message to ann %+v, the key is %s", toAnn, key)
	}
	if ttl, _ := strconv.Atoi(toAnn.header.Get("TTL")); ttl < 6*86400 || ttl > 7*86400 || toAnn.header.Get("Urgency") != "high" || toAnn.header.Get("Content-Encoding") != "aes128gcm" {
		t.Errorf("headers %v", toAnn.header)
	}
	setTokens(ann)
	s.log.await(t, "1 tokens are valid now")
	s.token = ""
	if r := s.request("POST", toBob.Path+"?choice=1", ""); r.status != http.StatusGone {
		t.Errorf("the link of bob, whose token is gone: %s", r)
	}
	if r := s.request("GET", toAnn.Path, ""); r.status != http.StatusOK || !strings.Contains(r.text, "Go on?") {
		t.Errorf("the link of ann: %s", r)
	}
	if r := s.post(toAnn.Path, map[string][]string{"choice": {"2"}}); r.status != http.StatusOK {
		t.Fatalf("answer: %s", r)
	}
	s.token = annToken
	if got := s.ends(run); fmt.Sprint(got["answered_by"]) != "map[q:ask:ann]" || got["state"].(map[string]any)["answer"] != "no" {
		t.Errorf("run %v", got)
	}

	s.interrupt() // subscriptions and the key survive it
	s = p.serve(args...)
	s.token = annToken
	if r := s.request("GET", "/v1/push", ""); r.body["key"] != key {
		t.Errorf("the key was %s: %s", key, r)
	}
	push.answers(anns, http.StatusGone)
	s.run("ask", "{}")
	if m := push.next(s, anns); m.Title != "Question of ask" {
		t.Errorf("message %+v", m)
	}
	s.log.await(t, "a browser is no longer subscribed")
	s.run("ask", "{}")
	s.interrupt()
	if push.n != 6 {
		t.Errorf("%d messages; want 2 of welcome, 3 and 1 with questions", push.n)
	}
	if info, err := os.Stat(filepath.Join(p.home, "tea", "runs", "serve", "state.jsonl")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the state with the key: %v, %v", info, err)
	}
	for _, secret := range []string{anns.endpoint, toAnn.Path} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log has %s", secret)
		}
	}
}

func TestPushServiceThatDoesNotAnswerDelaysNobody(t *testing.T) {
	t.Parallel()
	push := startPushService(t)
	inbox := newInbox(t, 0)
	p := inbox.asking(goOn, "{to: [ann, bob]}")
	push.trusted(p)
	s := p.serve("--allow-private-push")
	if r := s.request("POST", "/v1/push/subscribe", push.browser("slow").subscription()); r.status != http.StatusCreated {
		t.Fatalf("subscribe: %s", r)
	}
	held := make(chan struct{})
	push.mu.Lock()
	push.held = held
	push.mu.Unlock()
	s.run("ask", "{}")
	<-push.waiting
	inbox.next(s)
	inbox.next(s)
	close(held)
	s.interrupt()
}

// A browser that gets no message is not subscribed, and the page says why.
func TestSubscriptionThatDoesNotWorkIsRefused(t *testing.T) {
	t.Parallel()
	push := newPushService(t)
	p := newProject(t, map[string]string{"ask.yaml": ask})
	push.trusted(p)
	s := p.serve()
	local := push.browser("local")
	named := *local
	named.endpoint = strings.Replace(local.endpoint, "127.0.0.1", "localhost", 1)
	for b, want := range map[*pushBrowser]string{local: "endpoint: 127.0.0.1 is not a public address; start the server with --allow-private-push", &named: "localhost has the address"} {
		if r := s.request("POST", "/v1/push/subscribe", b.subscription()); r.status != http.StatusUnprocessableEntity && r.status != http.StatusBadGateway || !strings.Contains(r.text, want) {
			t.Errorf("%s: %s", b.endpoint, r)
		}
	}
	s.interrupt()
	s = p.serve("--allow-private-push")
	for _, body := range []string{"{}", "[]", `{"endpoint": 1}`, `{"endpoint": "https://push.example", "keys": 1}`, `{"endpoint": "https://push.example", "more": 1}`} {
		if r := s.request("POST", "/v1/push/subscribe", body); r.status != http.StatusBadRequest && r.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %s", body, r)
		}
	}
	for status, want := range map[int]string{http.StatusTemporaryRedirect: "answered with status 307", http.StatusForbidden: "answered with status 403", http.StatusGone: "the subscription has ended", http.StatusInternalServerError: "answered with status 500"} {
		push.answers(local, status)
		if r := s.request("POST", "/v1/push/subscribe", local.subscription()); r.status != http.StatusBadGateway || !strings.Contains(r.text, want) {
			t.Errorf("a service that answers with %d: %s", status, r)
		}
	}
	far := *local
	far.endpoint = "https://127.0.0.1:1/secret-path"
	if r := s.request("POST", "/v1/push/subscribe", far.subscription()); r.status != http.StatusBadGateway || !strings.Contains(r.text, "the push service 127.0.0.1:1 cannot be reached") || strings.Contains(r.text, "secret-path") {
		t.Errorf("a service that is down: %s", r)
	}
	for i := range 100 {
		if r := s.request("POST", "/v1/push/subscribe", push.browser(fmt.Sprint(i)).subscription()); r.status != http.StatusCreated {
			t.Fatalf("browser %d: %s", i, r)
		}
	}
	last := push.browser("last")
	if r := s.request("POST", "/v1/push/subscribe", last.subscription()); r.status != http.StatusTooManyRequests {
		t.Errorf("too many browsers: %s", r)
	}
	size := func() int64 {
		t.Helper()
		info, err := os.Stat(filepath.Join(p.home, "tea", "runs", "serve", "state.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := size()
	if r := s.request("POST", "/v1/push/unsubscribe", `{"endpoint": "https://push.example/unknown"}`); r.status != http.StatusOK || size() != before {
		t.Errorf("unsubscribe an unknown browser: %s; the state grew by %d bytes", r, size()-before)
	}
	if r := s.request("POST", "/v1/push/unsubscribe", fmt.Sprintf(`{"endpoint": %q}`, push.URL+"/7")); r.status != http.StatusOK {
		t.Errorf("unsubscribe: %s", r)
	}
	if r := s.request("POST", "/v1/push/subscribe", last.subscription()); r.status != http.StatusCreated {
		t.Errorf("a browser in the place of another one: %s", r)
	}
}

// registered is the id of the worker of a page.
type registered struct {
	mu sync.Mutex
	id serviceworker.RegistrationID
}

func (r *registered) listen(event any) {
	if e, ok := event.(*serviceworker.EventWorkerRegistrationUpdated); ok && len(e.Registrations) > 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.id = e.Registrations[0].RegistrationID
	}
}

// The browser of the tests has no push service. Its part is played by a script, which
// subscribes at the service of the test, and by the command that delivers a message to the
// worker.
func pagePush(t *testing.T, c *chromium) {
	push := newPushService(t)
	p := newProject(t, map[string]string{"ask.yaml": "nodes:\n- {name: q, uses: human.ask, with: " + goOn + ", output: {answer: '{{ result.answer }}'}}\n"})
	push.trusted(p)
	s := p.serve("--allow-private-push")
	b := c.open(t, "about:blank")
	pc := push.browser("page")
	call := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `
		const filled = made => made && {...made, toJSON: () => made, unsubscribe: async () => (delete sessionStorage.made, true),
			options: {applicationServerKey: Uint8Array.from(atob(sessionStorage.serverKey.replaceAll("-", "+").replaceAll("_", "/")), c => c.charCodeAt(0)).buffer}}
		PushManager.prototype.getSubscription = async () => filled(sessionStorage.made ? JSON.parse(sessionStorage.made) : null)
		PushManager.prototype.subscribe = async ({userVisibleOnly, applicationServerKey}) => {
			if (!userVisibleOnly) throw new Error("the browser wants to see a notification for each message")
			sessionStorage.serverKey = applicationServerKey
			sessionStorage.made = ` + quote(pc.subscription()) + `
			return filled(JSON.parse(sessionStorage.made))
		}`})
	call(err)
	call(chromedp.Do(b.ctx, chromedp.Navigate(s.url)))
	b.click("#push", "Notify me")
	b.has("can show the questions of runs")
	b.click("dialog button", "Turn on")
	b.has("The browser does not allow notifications")
	_, err = chromedp.CallBrowser(b.ctx, browser.SetPermission, browser.SetPermissionParams{Permission: &browser.PermissionDescriptor{Name: "notifications"}, Setting: browser.PermissionSettingGranted, Origin: s.url, BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID})
	call(err)
	b.click("dialog button", "Turn on")
	if welcome := push.next(s, pc); welcome.Tag != "welcome" {
		t.Errorf("message %+v", welcome)
	}
	b.click("#push", "Notifications are on")
	b.has("This browser shows the questions of runs")
	b.click("dialog button", "Close")

	run := s.run("ask", "{}")["id"].(string)
	m := push.next(s, pc)
	worker := new(registered)
	chromedp.Listen(b.ctx, worker.listen)
	_, err = chromedp.Call(b.ctx, serviceworker.Enable, cdp.Empty{})
	call(err)
	teaproc.Poll(t, func() (bool, any) {
		worker.mu.Lock()
		defer worker.mu.Unlock()
		return worker.id != "", "the worker is not registered"
	})
	teaproc.Poll(t, func() (bool, any) { // on a busy machine the browser drops messages for a worker that does not run
		_, err := chromedp.Call(b.ctx, serviceworker.DeliverPushMessage, serviceworker.DeliverPushMessageParams{Origin: s.url, RegistrationID: worker.id, Data: m.text})
		call(err)
		shown := b.eval(`{
			const worker = await navigator.serviceWorker.ready
			for (const end = Date.now() + 20000; Date.now() < end; await new Promise(done => setTimeout(done, 20))) {
				if ((await worker.getNotifications()).length > 0) return true
			}
			return false
		}`)
		return shown == "true", shown
	})
	if got := b.eval(`{const [n] = await (await navigator.serviceWorker.ready).getNotifications(); return [n.title, n.body, n.tag]}`); got != fmt.Sprintf(`["Question of ask","Go on?",%q]`, m.Tag) {
		t.Errorf("notification %s", got)
	}
	if opened := clickNotification(b, s.url); opened != m.Path {
		t.Errorf("a click opens %s, want %s", opened, m.Path)
	}
	b.await("(await (await navigator.serviceWorker.ready).getNotifications()).length === 0")
	call(chromedp.Do(b.ctx, chromedp.Navigate(s.url+m.Path)))
	b.has("Go on?")
	b.eval(`document.querySelector("button[value='1']").click()`)
	if got := s.ends(run); fmt.Sprint(got["answered_by"]) != "map[q:ask:browser]" {
		t.Errorf("run %v", got)
	}

	call(chromedp.Do(b.ctx, chromedp.Navigate(s.url)))
	b.click("#push", "Notifications are on")
	b.click("dialog button", "Turn off")
	b.click("#push", "Notify me")
	n := push.n
	s.run("ask", "{}")
	s.interrupt()
	if push.n != n {
		t.Error("a message was sent to a browser that is not subscribed")
	}
}

// clickNotification clicks on the notification of a worker, and returns what it opens. A
// real click lets the worker open a window.
func clickNotification(b *tab, origin string) string {
	b.t.Helper()
	targets, err := chromedp.Targets(b.ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, one := range targets {
		if one.Type != "service_worker" || !strings.HasPrefix(one.URL, origin) {
			continue
		}
		ctx, stop := chromedp.NewContext(b.ctx, chromedp.WithTargetID(one.TargetID))
		defer stop()
		opened, err := chromedp.Run(ctx, chromedp.Evaluate[string](`(async () => {
			let opened
			clients.openWindow = async path => { opened = path }
			const [notification] = await registration.getNotifications()
			dispatchEvent(new NotificationEvent("notificationclick", {notification}))
			return opened
		})()`, chromedp.EvalAwaitPromise))
		if err != nil {
			b.t.Fatal(err)
		}
		return opened
	}
	b.t.Fatalf("there is no worker among %v", targets)
	return ""
}
