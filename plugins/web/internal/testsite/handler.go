package testsite

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Handler serves the pages, an index of them with robots.txt and sitemap.xml,
// and the addresses below, at which it misbehaves:
//
//	/redirect/N           N redirects, then a page
//	/loop                 a redirect to itself
//	/away?to=URL          a redirect to an address
//	/encoded/NAME         a page in the content encoding NAME
//	/bomb/NAME            a page of 4 MiB in the content encoding NAME, a few KiB
//	/empty-bomb           gzip members without content, without end
//	/stall                headers and some bytes, then nothing
//	/silent               nothing
//	/endless              a page without end
//	/status/N             the status N
//	/etag                 a page with an ETag, which it confirms
//	/trap/...             pages that link to ever more pages
//	/calendar?m=N         a calendar without end
//	/file.bin             bytes without text
func Handler() http.Handler {
	mux := http.NewServeMux()
	pages := map[string]Page{}
	for _, p := range Pages() {
		pages[p.Path] = p
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		p, ok := pages[r.URL.Path]
		switch {
		case r.URL.Path == "/" || r.URL.Path == "/index.html":
			writeHTML(w, index())
		case ok:
			w.Header().Set("Content-Type", p.ContentType)
			w.Write(p.Body)
		default:
			http.NotFound(w, r)
		}
	})
	mux.HandleFunc("/robots.txt", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "User-agent: *\nDisallow: /private/\nDisallow: /trap/\nAllow: /private/open.html\nBroken line\nSitemap: http://%s/sitemap.xml\n", r.Host)
	})
	mux.HandleFunc("/sitemap.xml", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://%s/only-in-sitemap.html</loc></url><url><loc>http://elsewhere.example/x</loc></url></urlset>`, r.Host)
	})
	for _, path := range []string{"/only-in-sitemap.html", "/private/open.html", "/private/secret.html"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { writeHTML(w, simplePage(path)) })
	}
	redirects(mux)
	encodings(mux)
	failures(mux)
	endless(mux)
	mux.HandleFunc("/etag", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		if r.Header.Get("If-None-Match") == `"v1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		writeHTML(w, simplePage("etag"))
	})
	mux.HandleFunc("/file.bin", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Write([]byte{0, 1, 2, 3, 0xff, 0xfe, 0, 0})
	})
	return mux
}

func writeHTML(w http.ResponseWriter, markup string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	io.WriteString(w, markup)
}

// simplePage is a page with a title and three paragraphs.
func simplePage(title string) string {
	d := newDraft("en", uint64(len(title)))
	d.element("h1", title)
	d.paragraphs(3)
	return document("en", title, "", "<main>"+d.html.String()+"</main>")
}

// index links to all pages, and to addresses that a crawl must not follow.
func index() string {
	var b strings.Builder
	b.WriteString("<h1>Index</h1><ul>")
	for _, p := range Pages() {
		fmt.Fprintf(&b, `<li><a href="%s">%s</a></li>`, p.Path, p.Path)
	}
	b.WriteString(`<li><a href="/private/secret.html">private</a></li><li><a href="/private/open.html">open</a></li><li><a href="/trap/1">trap</a></li>` +
		`<li><a href="http://elsewhere.example/">elsewhere</a></li><li><a href="/picture.png">picture</a></li><li><a href="mailto:a@b.example">mail</a></li>` +
		`<li><a href="/status/404">missing</a></li><li><a href="/?utm_source=x#top">this page</a></li></ul>`)
	return document("en", "Index", "", b.String())
}

func redirects(mux *http.ServeMux) {
	mux.HandleFunc("/redirect/{n}", func(w http.ResponseWriter, r *http.Request) {
		if n, _ := strconv.Atoi(r.PathValue("n")); n > 0 {
			http.Redirect(w, r, fmt.Sprintf("/redirect/%d", n-1), http.StatusFound)
			return
		}
		writeHTML(w, simplePage("arrived"))
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/loop", http.StatusMovedPermanently)
	})
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "s3cret"})
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
}

// encoder returns a writer that encodes.
func encoder(name string, w io.Writer) io.WriteCloser {
	switch name {
	case "gzip":
		return gzip.NewWriter(w)
	case "deflate":
		return zlib.NewWriter(w)
	case "br":
		return brotli.NewWriterLevel(w, 1)
	}
	e, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	return e
}

func encodings(mux *http.ServeMux) {
	mux.HandleFunc("/encoded/{name}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		body := []byte(simplePage("encoded with " + name))
		w.Header().Set("Content-Type", "text/html")
		for _, part := range strings.Split(name, "+") {
			var b bytes.Buffer
			e := encoder(part, &b)
			e.Write(body)
			e.Close()
			body = b.Bytes()
			w.Header().Add("Content-Encoding", part)
		}
		w.Write(body)
	})
	mux.HandleFunc("/bomb/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Encoding", r.PathValue("name"))
		e := encoder(r.PathValue("name"), w)
		zeros := make([]byte, 1<<20)
		for range 4 {
			if _, err := e.Write(zeros); err != nil {
				return
			}
		}
		e.Close()
	})
	mux.HandleFunc("/empty-bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		var member bytes.Buffer
		gzip.NewWriter(&member).Close()
		members := bytes.Repeat(member.Bytes(), 1000)
		for {
			if _, err := w.Write(members); err != nil {
				return
			}
		}
	})
}

func failures(mux *http.ServeMux) {
	mux.HandleFunc("/stall", func(w http.ResponseWriter, r *http.Request) {
		writeHTML(w, "<html><body><p>The beginning")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/status/{n}", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.PathValue("n"))
		if n == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "7")
		}
		http.Error(w, http.StatusText(n), n)
	})
}

func endless(mux *http.ServeMux) {
	mux.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := io.WriteString(w, strings.Repeat("<p>More and more.</p>\n", 100)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/trap/", func(w http.ResponseWriter, r *http.Request) {
		writeHTML(w, document("en", "Trap", "", fmt.Sprintf(`<p>%s</p><a href="%s/again">deeper</a>`, r.URL.Path, r.URL.Path)))
	})
	mux.HandleFunc("/calendar", func(w http.ResponseWriter, r *http.Request) {
		m, _ := strconv.Atoi(r.URL.Query().Get("m"))
		writeHTML(w, document("en", "Calendar", "", fmt.Sprintf(`<p>Month %d</p><a href="/calendar?m=%d">next</a> <a href="calendar/calendar/calendar/calendar/">odd</a>`, m, m+1)))
	})
}
