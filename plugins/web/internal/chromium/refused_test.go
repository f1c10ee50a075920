package chromium

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/safenet"
)

// attacks tries to reach the port PORT for TCP and UDP of this machine in all
// ways that a page has.
const attacks = `<!DOCTYPE html><head>
<link rel=icon href=http://127.0.0.1:PORT/icon>
<link rel=stylesheet href=http://127.0.0.1:PORT/style>
<link rel=preload as=image href=http://127.0.0.1:PORT/preload>
<link rel=prefetch href=http://127.0.0.1:PORT/prefetch>
<link rel=preconnect href=http://127.0.0.1:PORT/>
<link rel=modulepreload href=http://127.0.0.1:PORT/module>
<link rel=manifest href=http://127.0.0.1:PORT/manifest>
<script type=speculationrules>{"prefetch":[{"urls":["http://127.0.0.1:PORT/speculated"]}],"prerender":[{"urls":["http://127.0.0.1:PORT/prerendered"]}]}</script>
<style>@import url(http://127.0.0.1:PORT/import); body { background: url(http://127.0.0.1:PORT/background) }</style>
</head><body>
<img src=http://localhost:PORT/name><img src=http://[::1]:PORT/six><img src=http://0.0.0.0:PORT/zero>
<img src=http://2130706433:PORT/decimal><img src=http://0x7f.1:PORT/hex><img src=http://0177.0.0.1:PORT/octal>
<img src="http://[::ffff:127.0.0.1]:PORT/mapped"><img src=http://127.1:PORT/short><img src=https://127.0.0.1:PORT/tls>
<img src=/redirect><iframe src=/redirect></iframe><iframe src=http://127.0.0.1:PORT/frame></iframe><iframe src=/refresh></iframe>
<object data=http://127.0.0.1:PORT/object></object><embed src=http://127.0.0.1:PORT/embed>
<video src=http://127.0.0.1:PORT/video></video><audio src=http://127.0.0.1:PORT/audio></audio>
<script src=http://127.0.0.1:PORT/script></script>
<iframe name=form></iframe><form id=f target=form method=post action=http://127.0.0.1:PORT/form></form>
<a id=a href=/none target=form ping=http://127.0.0.1:PORT/ping></a>
<script>
const tries = [
	() => document.getElementById("f").submit(),
	() => document.getElementById("a").click(),
	() => fetch("http://127.0.0.1:PORT/fetch", {mode: "no-cors", targetAddressSpace: "loopback"}),
	() => fetch("http://169.254.169.254/latest/meta-data/", {mode: "no-cors"}),
	() => { const x = new XMLHttpRequest(); x.open("GET", "http://127.0.0.1:PORT/xhr"); x.send() },
	() => new WebSocket("ws://127.0.0.1:PORT/socket"),
	() => new EventSource("http://127.0.0.1:PORT/events"),
	() => navigator.sendBeacon("http://127.0.0.1:PORT/beacon"),
	() => new Worker(URL.createObjectURL(new Blob(["importScripts('http://127.0.0.1:PORT/worker')"]))),
	() => window.open("http://127.0.0.1:PORT/window"),
	() => { const c = new RTCPeerConnection({iceServers: [{urls: "stun:127.0.0.1:PORT"}, {urls: "turn:127.0.0.1:PORT?transport=tcp", username: "a", credential: "b"}]});
		c.createDataChannel("x"); c.createOffer().then(o => c.setLocalDescription(o)) },
	() => new WebTransport("https://127.0.0.1:PORT/transport"),
	() => new PerformanceObserver(() => {}) && import("http://127.0.0.1:PORT/dynamic"),
]
let n = 0
for (const attempt of tries) { try { const p = attempt(); if (p && p.catch) p.catch(() => {}); n++ } catch (e) { console.log(e) } }
setTimeout(() => { const p = document.createElement("p"); p.id = "done"; p.textContent = n; document.body.append(p) }, 3000)
</script>`

// Nothing of a page reaches an address that is not public, whatever part of the
// browser sends the request.
func TestPrivateAddressesAreNotReached(t *testing.T) {
	t.Parallel()
	b := testBrowser(t, Settings{}, &safenet.Guard{})
	private := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the page reached %s", r.URL) }))
	t.Cleanup(private.Close)
	_, port, err := net.SplitHostPort(private.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	packets, err := net.ListenPacket("udp4", "127.0.0.1:"+port)
	if err != nil {
		t.Skip("the port is in use for UDP: ", err)
	}
	t.Cleanup(func() { packets.Close() })
	go func() {
		for buffer := make([]byte, 1500); ; {
			n, from, err := packets.ReadFrom(buffer)
			if err != nil {
				return
			}
			t.Errorf("the page sent a packet of %d bytes from %s", n, from)
		}
	}()
	there := "http://127.0.0.1:" + port
	public(b, site(t, map[string]string{
		"/":         strings.ReplaceAll(attacks, "PORT", port),
		"/redirect": there + "/redirected",
		"/refresh":  `<meta http-equiv=refresh content="0;url=` + there + `/refreshed">`,
		"/leave":    `<script>location = "` + there + `/left"</script>`,
		"/away":     `<script>setTimeout(() => location = "` + there + `/away", 1000)</script>`,
	}))
	page, failure := load(t, b, request{url: "http://public.test/", selector: "#done"})
	if failure != nil {
		t.Fatal(failure)
	}
	if page.refused < 2 {
		t.Errorf("%d hosts were refused: %s", page.refused, page.html)
	}
	if !strings.Contains(string(page.html), `<p id="done">`) {
		t.Errorf("the attacks were not made: %s", page.html)
	}
	for _, path := range []string{"/redirect", "/leave"} {
		_, failure = load(t, b, request{url: "http://public.test" + path})
		if failure == nil || failure.Type != tea.PermissionDenied || !strings.Contains(failure.Message, "127.0.0.1 is not a public address") {
			t.Errorf("%s: got %v", path, failure)
		}
	}
	_, failure = load(t, b, request{url: "http://public.test/away", selector: "#never"})
	if failure == nil || failure.Type != tea.PermissionDenied {
		t.Errorf("away: got %v", failure)
	}
	if _, failure = load(t, b, request{url: there + "/direct"}); failure == nil || failure.Type != tea.PermissionDenied {
		t.Errorf("direct: got %v", failure)
	}
}
