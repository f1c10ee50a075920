//go:build !js

package main_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// serveExample starts tea serve with the page of examples/browser, and returns its
// origin.
func serveExample(t *testing.T) (origin string, stop func()) {
	t.Helper()
	dir, err := packageDir()
	if err != nil {
		t.Fatal(err)
	}
	site := t.TempDir()
	if err := errors.Join(os.CopyFS(site, os.DirFS("../../examples/browser")), os.CopyFS(filepath.Join(site, "tea"), os.DirFS(dir))); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "tea-serve")
	if out, err := exec.Command("go", "build", "-o", program, "../tea-serve").CombinedOutput(); err != nil {
		t.Fatalf("build tea-serve: %v\n%s", err, out)
	}
	cmd := exec.Command(program, "serve", t.TempDir(), "--listen", "127.0.0.1:0", "--static", site)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	t.Cleanup(stop)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if _, at, ok := strings.Cut(lines.Text(), "serving at "); ok {
			go func() { _, _ = io.Copy(io.Discard, stderr) }()
			return at, stop
		}
	}
	t.Fatal("tea serve has ended")
	return "", nil
}

// The page of examples/browser on a phone: notes, a question that survives a
// reload, the graph, and a restart of the browser without a server. Nothing is
// loaded from elsewhere.
func TestExample(t *testing.T) {
	t.Parallel()
	origin, stop := serveExample(t)
	log, profile := filepath.Join(t.TempDir(), "net.json"), t.TempDir()
	start := func() (b *browser, script func(want, body string), open func()) {
		b = startBrowser(t, profile, chromedp.Flag("log-net-log", log), chromedp.WindowSize(390, 844))
		ctx, closeTab := chromedp.NewContext(b.ctx)
		t.Cleanup(closeTab)
		p := &page{t, ctx}
		open = func() {
			t.Helper()
			if err := chromedp.Do(ctx, chromedp.Navigate(origin+"/static/")); err != nil {
				t.Fatal(err)
			}
		}
		script = func(want, body string) {
			t.Helper()
			got := p.evaluate("(async () => {" + said + body + "})().then(JSON.stringify, (e) => String(e.stack ?? e))")
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		}
		open()
		return b, script, open
	}
	b, script, open := start()
	script(`["I will remember that.","I will remember that.","the key is under the mat","Forget \"the key is under the mat\"? ","2",true,true]`, `
		return [await say('remember the key is under the mat'), await say('Remember to water the plants'), await say('where is the key?'), await say('forget the key'),
			document.getElementById('count').textContent, document.getElementById('graph').srcdoc.includes('<svg'), document.documentElement.scrollWidth <= innerWidth];`)
	open()
	script(`["Forget \"the key is under the mat\"? ","I have forgotten it.","I have no note about that. Say: remember ...","1"]`, `
		const question = talk.lastChild.firstChild.textContent;
		talk.querySelector('button').click();
		await idle();
		const answer = talk.lastChild.textContent;
		return [question, answer, await say('where is the key?'), document.getElementById('count').textContent];`)
	b.stop()
	if n := onlyOrigin(t, origin, log); n < 8 {
		t.Errorf("the network log has %d requests", n)
	}

	stop()
	b, script, _ = start()
	script(`["1","to water the plants","Forget all notes? ","Notes that I have forgotten: 1."]`, `
		const first = [document.getElementById('count').textContent, await say('what about the plants?'), await say('forget')];
		talk.querySelector('button').click();
		await idle();
		return [...first, talk.lastChild.textContent];`)
	b.stop()
	onlyOrigin(t, origin, log)
}

// said waits for the page of the example, and defines what tests do with it.
const said = `const until = async (ok) => { while (!ok()) await new Promise((r) => setTimeout(r, 20)); };
	await until(() => document.documentElement.dataset.ready || document.getElementById('state').textContent === 'failed');
	const form = document.getElementById('form'), talk = document.getElementById('talk');
	const idle = () => until(() => !form.inert);
	const say = async (text) => { document.getElementById('text').value = text; form.requestSubmit(); await idle(); return talk.lastChild.firstChild.textContent; };`

// onlyOrigin fails if pages or workers have requested something of another origin,
// and returns the number of requests.
func onlyOrigin(t *testing.T, origin, log string) int {
	t.Helper()
	requests := requestsIn(t, log)
	for _, url := range requests {
		if !strings.HasPrefix(url, origin+"/") && !strings.HasPrefix(url, "data:") {
			t.Errorf("the page has requested %s", url)
		}
	}
	return len(requests)
}

// requestsIn returns the URLs that pages and workers have requested.
func requestsIn(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var log struct {
		Events []struct {
			Params struct {
				URL       string `json:"url"`
				Initiator string `json:"initiator"`
			} `json:"params"`
		} `json:"events"`
	}
	text = []byte(strings.TrimSuffix(strings.TrimSpace(string(text)), ","))
	if err := json.Unmarshal(text, &log); err != nil {
		if err := json.Unmarshal(append(text, "]}"...), &log); err != nil { // the browser was killed
			t.Fatal(err)
		}
	}
	var urls []string
	for _, e := range log.Events {
		if e.Params.Initiator != "" && e.Params.Initiator != "not an origin" {
			urls = append(urls, e.Params.URL)
		}
	}
	return urls
}
