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
// reload, and the graph. Nothing is loaded from elsewhere.
func TestExample(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.mux.Handle("/example/", http.StripPrefix("/example/", http.FileServer(http.Dir("../../examples/browser"))))
	dir, err := packageDir()
	if err != nil {
		t.Fatal(err)
	}
	s.mux.Handle("/example/tea/", http.StripPrefix("/example/tea/", http.FileServer(http.Dir(dir))))
	log := filepath.Join(t.TempDir(), "net.json")
	b := startBrowser(t, t.TempDir(), chromedp.Flag("log-net-log", log), chromedp.WindowSize(390, 844))
	ctx, closeTab := chromedp.NewContext(b.ctx)
	defer closeTab()
	p := &page{t, ctx}
	const said = `const until = async (ok) => { while (!ok()) await new Promise((r) => setTimeout(r, 20)); };
		await until(() => document.documentElement.dataset.ready);
		const form = document.getElementById('form'), talk = document.getElementById('talk');
		const idle = () => until(() => !form.inert);
		const say = async (text) => { document.getElementById('text').value = text; form.requestSubmit(); await idle(); return talk.lastChild.firstChild.textContent; };`
	open := func() {
		t.Helper()
		if err := chromedp.Do(ctx, chromedp.Navigate(s.URL+"/example/")); err != nil {
			t.Fatal(err)
		}
	}
	script := func(want, body string) {
		t.Helper()
		got := p.evaluate("(async () => {" + said + body + "})().then(JSON.stringify, (e) => String(e.stack ?? e))")
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	open()
	script(`["I will remember that.","the key is under the mat","Forget all notes? ",true,true]`, `
		return [await say('remember the key is under the mat'), await say('where is the key?'), await say('forget'),
			document.getElementById('graph').srcdoc.includes('<svg'), document.documentElement.scrollWidth <= innerWidth];`)
	open()
	script(`["Forget all notes? ","I have forgotten everything.","I have no note about that. Say: remember ..."]`, `
		const question = talk.lastChild.firstChild.textContent;
		talk.querySelector('button').click();
		await idle();
		const answer = talk.lastChild.textContent;
		return [question, answer, await say('where is the key?')];`)
	b.stop()
	s.onlyOrigin(t, log)
}

// onlyOrigin fails if pages or workers have requested something of another origin.
func (s *site) onlyOrigin(t *testing.T, log string) {
	t.Helper()
	requests := requestsIn(t, log)
	if len(requests) < 8 {
		t.Errorf("the network log has %v", requests)
	}
	for _, url := range requests {
		if !strings.HasPrefix(url, s.URL+"/") && !strings.HasPrefix(url, "data:") {
			t.Errorf("the page has requested %s", url)
		}
	}
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
