//go:build !js

package main_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The page of examples/browser on a phone: notes, a question that survives a
// reload, the graph, and a restart of the browser without a server. Nothing is
// loaded from elsewhere.
func TestExample(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.mux.Handle("/example/", http.StripPrefix("/example/", http.FileServer(http.Dir("../../examples/browser"))))
	dir, err := packageDir()
	if err != nil {
		t.Fatal(err)
	}
	s.mux.Handle("/example/tea/", http.StripPrefix("/example/tea/", http.FileServer(http.Dir(dir))))
	log, profile := filepath.Join(t.TempDir(), "net.json"), t.TempDir()
	start := func() (b *browser, script func(want, body string), open func()) {
		b = startBrowser(t, profile, chromedp.Flag("log-net-log", log), chromedp.WindowSize(390, 844))
		ctx, closeTab := chromedp.NewContext(b.ctx)
		t.Cleanup(closeTab)
		p := &page{t, ctx}
		open = func() {
			t.Helper()
			if err := chromedp.Do(ctx, chromedp.Navigate(s.URL+"/example/")); err != nil {
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
	if n := s.onlyOrigin(t, log); n < 8 {
		t.Errorf("the network log has %d requests", n)
	}

	s.Close()
	b, script, _ = start()
	script(`["1","to water the plants","Forget all notes? ","Notes that I have forgotten: 1."]`, `
		const first = [document.getElementById('count').textContent, await say('what about the plants?'), await say('forget')];
		talk.querySelector('button').click();
		await idle();
		return [...first, talk.lastChild.textContent];`)
	b.stop()
	s.onlyOrigin(t, log)
}

// said waits for the page of the example, and defines what tests do with it.
const said = `const until = async (ok) => { while (!ok()) await new Promise((r) => setTimeout(r, 20)); };
	await until(() => document.documentElement.dataset.ready || document.getElementById('state').textContent === 'failed');
	const form = document.getElementById('form'), talk = document.getElementById('talk');
	const idle = () => until(() => !form.inert);
	const say = async (text) => { document.getElementById('text').value = text; form.requestSubmit(); await idle(); return talk.lastChild.firstChild.textContent; };`

// onlyOrigin fails if pages or workers have requested something of another origin,
// and returns the number of requests.
func (s *site) onlyOrigin(t *testing.T, log string) int {
	t.Helper()
	requests := requestsIn(t, log)
	for _, url := range requests {
		if !strings.HasPrefix(url, s.URL+"/") && !strings.HasPrefix(url, "data:") {
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
