package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// maxAnimation is the maximum size of the README's animation, in bytes.
const maxAnimation = 1 << 20

// The size of a frame in pixels.
const filmWidth, filmHeight = 1000, 640

// film is a WebP animation.
type film struct{ frames []byte }

// add adds a screenshot of a tab as a frame, which is shown for ms milliseconds.
func (f *film) add(b *tab, ms int) {
	b.t.Helper()
	b.eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
	picture, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatWebp, Quality: new(int64(70))})
	if err != nil {
		b.t.Fatal(err)
	}
	frame := []byte{0, 0, 0, 0, 0, 0} // the position
	for _, n := range []int{filmWidth - 1, filmHeight - 1, ms} {
		frame = append(frame, byte(n), byte(n>>8), byte(n>>16))
	}
	frame = append(frame, 2) // replaces the previous frame
	for rest := picture.Data[12:]; len(rest) >= 8; {
		size := 8 + int(binary.LittleEndian.Uint32(rest[4:]))
		size += size % 2
		if kind := string(rest[:4]); kind == "VP8 " || kind == "VP8L" || kind == "ALPH" {
			frame = append(frame, rest[:size]...)
		}
		rest = rest[size:]
	}
	f.frames = append(f.frames, riffChunk("ANMF", frame)...)
}

func riffChunk(kind string, data []byte) []byte {
	out := binary.LittleEndian.AppendUint32([]byte(kind), uint32(len(data)))
	return append(append(out, data...), make([]byte, len(data)%2)...)
}

// bytes returns the animation as a WebP file.
func (f *film) bytes() []byte {
	size := []byte{2, 0, 0, 0} // the flag for an animation
	for _, n := range []int{filmWidth - 1, filmHeight - 1} {
		size = append(size, byte(n), byte(n>>8), byte(n>>16))
	}
	return riffChunk("RIFF", bytes.Join([][]byte{[]byte("WEBP"), riffChunk("VP8X", size), riffChunk("ANIM", make([]byte, 6)), f.frames}, nil))
}

// TestAnimation stores the animation of the README in the directory TEA_GUIDE_SCREENSHOTS:
// what the programs print and the page shows. scripts/screenshots runs it.
func TestAnimation(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("TEA_GUIDE_SCREENSHOTS")
	if dir == "" {
		t.Skip("run scripts/screenshots")
	}
	c := startChromium(t)
	p := newProject(t, map[string]string{"orders.yaml": shownOrders})
	f, text := &film{}, ""
	terminal := c.open(t, "about:blank")
	size := chromedp.EmulateViewport(filmWidth, filmHeight)
	if err := chromedp.Do(terminal.ctx, size); err != nil {
		t.Fatal(err)
	}
	show := func(more string, ms int) {
		text += strings.NewReplacer(p.dir, "/srv/flows", p.home, "/var/lib").Replace(more) // instead of temporary directories
		terminal.eval(`{document.body.style = "margin:0;background:#11151c"
			const screen = document.body.firstChild ?? document.body.appendChild(document.createElement("pre"))
			screen.style = "margin:0;padding:1.5rem;color:#e8ecf3;font:15px/1.6 monospace;white-space:pre-wrap;overflow-wrap:anywhere"
			screen.textContent = ` + quote(text) + `}`)
		f.add(terminal, ms)
	}
	run := func(args ...string) {
		log := newLogs()
		cmd := p.command(log, args...)
		cmd.Dir = p.dir
		var out bytes.Buffer
		cmd.Stdout = &out
		_ = cmd.Run() // the exit code of a waiting run is not 0, either
		show(log.String()+out.String()+"$ ", 2500)
	}
	show("$ ", 500)
	show("tea validate orders.yaml", 700)
	show("\n", 200)
	run("validate", "orders.yaml")
	show("tea serve .", 900)
	s := p.serve()
	show("\n"+s.log.String(), 1500)
	b := c.open(t, s.url+"/#/workflows/orders")
	if err := chromedp.Do(b.ctx, size); err != nil {
		t.Fatal(err)
	}
	b.await("document.querySelector('.graph svg')")
	b.eval("document.querySelector('.about code').textContent = '/srv/flows/orders.yaml'")
	f.add(b, 1500)
	b.fill("orders", "[12, 7, 30, 4, 18]")
	f.add(b, 1000)
	b.click("button", "Start")
	id := b.run()
	b.status("waiting")
	b.await("document.querySelector('.graph g.waiting')")
	f.add(b, 2500)
	b.click("section[aria-label=Timeline] .row", "total")
	b.await("document.querySelector('.node h3').innerText.includes('total')")
	b.eval("document.querySelector('section[aria-label=Node]').scrollIntoView()")
	f.add(b, 2000)
	b.eval("scrollTo(0, 0)")
	b.click(".questions button", "yes")
	b.status("done")
	b.await("document.querySelector('.artefacts strong')")
	f.add(b, 1500)
	b.eval("document.querySelector('section[aria-label=Result]').scrollIntoView()")
	f.add(b, 3000)
	text = ""
	show("$ tea runs show "+id+"\n", 700)
	run("runs", "show", id)
	file := f.bytes()
	if len(file) > maxAnimation {
		t.Errorf("the animation has %d bytes (limit %d)", len(file), maxAnimation)
	}
	if err := os.WriteFile(filepath.Join(dir, "tea.webp"), file, 0o600); err != nil {
		t.Fatal(err)
	}
}
