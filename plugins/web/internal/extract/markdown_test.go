package extract_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"

	"github.com/the-edge-agent/tea/plugins/web/internal/extract"
	"github.com/the-edge-agent/tea/plugins/web/internal/page"
)

func parse(t testing.TB, contentType, body string) *extract.Document {
	t.Helper()
	doc, err := extract.Parse(context.Background(), extract.Source{URL: &url.URL{Scheme: "https", Host: "site.example", Path: "/dir/page"}, ContentType: contentType, Body: []byte(body)})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, html, want string }{
		{"headings", "<h1>A</h1><h2>B <em>c</em></h2><h6>D</h6>", "# A\n\n## B *c*\n\n###### D"},
		{"paragraphs", "<p>one<br>two</p><p>three</p>", "one  \ntwo\n\nthree"},
		{"nested lists", "<ul><li>a<ul><li>b<ol><li>c</li><li>d</li></ol></li></ul></li><li>e</li></ul>", "- a\n  \n  - b\n    \n    1. c\n    2. d\n- e"},
		{"numbered from 5", `<ol start="5"><li>a</li><li>b</li></ol>`, "5. a\n6. b"},
		{"table", "<table><thead><tr><th>A</th><th>B|C</th></tr></thead><tbody><tr><td>1</td><td>x<br>y</td></tr></tbody></table>", "| A | B\\|C |\n|---|---|\n| 1 | x  <br />y |"},
		{"cell wider than its table", "<table><tr><td colspan=99>a</td></tr><tr><td>c</td><td>d</td></tr></table>", "| a | a |\n|---|---|\n| c | d |"},
		{"code in a table", "<table><tr><th>a<th>b</tr><tr><td><pre>x | y\nz</pre><td><code>p|q</code></td></tr></table>", "| a | b |\n|---|---|\n| `x \\| y`  <br />`z` | `p\\|q` |"},
		{"lists in a table", "<table><tr><th>a<th>b</tr><tr><td><ul><li>one<li>two <b>bold</b></ul><td><p>x</p><ol><li>y</ol></td></tr></table>", "| a | b |\n|---|---|\n| • one  <br />• two **bold** | x<br /><br />1. y |"},
		{"list in a list in a table", "<table><tr><th>a</tr><tr><td><ul> <li>one<ul><li>two</ul></ul></td></tr></table>", "| a |\n|---|\n| • one  <br />• two |"},
		{"table in bold", "<b><table><tr><td>a<td>b</table></b>", "**a**\n\n**b**"},
		{"table as layout", "<table><tr><td><h2>Title</h2><ul><li>one</ul></td><td><p>text</p></td></tr></table>", "## Title\n\n- one\n\ntext"},
		{"table in a table", "<table><tr><td><table><tr><td>a</td><td>b</td></tr></table></td><td>c</td></tr></table>", "| a | b |\n|---|---|\n\nc"},
		{"character references", "<p>&amp;lt; &amp;amp; &amp;#60; A &amp; B; &lt;b&gt;</p><pre>&amp;lt;</pre>", "&amp;lt; &amp;amp; &amp;#60; A & B; &lt;b&gt;\n\n```\n&lt;\n```"},
		{"table without header", "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>", "| a | b |\n|---|---|\n| c | d |"},
		{"code with language", `<pre><code class="language-go"><span class="k">func</span> main() {
	x &lt; y
}</code></pre>`, "```go\nfunc main() {\n\tx < y\n}\n```"},
		{"code by GitHub", `<div class="highlight highlight-source-shell"><pre>echo <span>$HOME</span></pre></div>`, "```shell\necho $HOME\n```"},
		{"code by Sphinx", `<div class="highlight-python notranslate"><div class="highlight"><pre><span></span>print(1)
</pre></div></div>`, "```python\nprint(1)\n```"},
		{"code in lines", `<pre data-lang="rust"><div class="line"><span class="line-number">1</span>fn a() {</div><div class="line"><span class="line-number">2</span>}</div></pre>`, "```rust\nfn a() {\n}\n```"},
		{"code with line numbers in a table", `<table class="highlighttable"><tr><td class="linenos"><pre>1
2</pre></td><td class="code"><pre><code class="lang-c">int a;
int b;</code></pre></td></tr></table>`, "```c\nint a;\nint b;\n```"},
		{"code with a fence", "<pre>```\nx\n```</pre>", "````\n```\nx\n```\n````"},
		{"inline code", "<p>Use <code>a`b</code>.</p>", "Use ``a`b``."},
		{
			"links", `<p><a href="../x">x</a> <a href="?q=1">q</a> <a href="//cdn.example/y">y</a> <a href="mailto:a@b.example">m</a> <a href="javascript:alert(1)">j</a> <a href="http://u:p@h.example/">u</a></p>`,
			"[x](https://site.example/x) [q](https://site.example/dir/page?q=1) [y](https://cdn.example/y) [m](mailto:a@b.example) j [u](http://h.example/)",
		},
		{
			"images", `<p><img src="a.png" alt="An image"> <img data-src="/b.jpg" src="data:image/gif;base64,R0" alt="late"> <img src="data:image/png;base64,AAAA" alt="inline"></p>`,
			"![An image](https://site.example/dir/a.png) ![late](https://site.example/b.jpg)",
		},
		{"base element", `<base href="https://other.example/root/"><p><a href="x">x</a></p>`, "[x](https://other.example/root/x)"},
		{"marks in text", "<p>2 * 3 * 4 and snake_case_name and # no heading</p>", "2 * 3 * 4 and snake\\_case\\_name and # no heading"},
		{"quote", "<blockquote><p>a</p><p>b</p></blockquote>", "> a\n> \n> b"},
		{"markup in text", "<p>&lt;script&gt;x&lt;/script&gt; [a](javascript:x)</p>", `&lt;script&gt;x&lt;/script&gt; \[a](javascript:x)`},
		{"deleted", "<p><del>a</del> <strong>b</strong></p>", "~~a~~ **b**"},
		{"scripts", "<p>a</p><script>x</script><style>y</style><svg><text>z</text></svg><template>w</template>", "a"},
	} {
		got := parse(t, "text/html; charset=utf-8", c.html).Content(false).Markdown()
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// The HTML of a page has no code.
func TestHTMLHasNoCode(t *testing.T) {
	t.Parallel()
	got := parse(t, "text/html", `<p onclick="a()" style="color:red" class=x>t<a href="JavaScript:b()" onmouseover=c()>u</a><img src=x onerror=d()><iframe srcdoc=e></iframe><script>f()</script></p>`).Content(false).HTML()
	if diff := cmp.Diff(`<body><p class="x">t<a href="">u</a><img src="https://site.example/dir/x"/></p></body>`, got); diff != "" {
		t.Error(diff)
	}
}

func TestTextKeepsStructure(t *testing.T) {
	t.Parallel()
	got := parse(t, "text/html", "<h1>T</h1><p>a <b>b</b>c</p><ul><li>x</li><li>y</li></ul><table><tr><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr></table><pre>l1\n  l2</pre>").Content(false).Text()
	if diff := cmp.Diff("T\n\na bc\n\n- x\n- y\n\n1\t2\n3\t4\n\nl1\n  l2", got); diff != "" {
		t.Error(diff)
	}
	got = parse(t, "text/html", "<ul><li><p>a</p><p>b</p></li><li> <input type=checkbox> c</li></ul>").Content(false).Text()
	if diff := cmp.Diff("- a\n\nb\n\n- c", got); diff != "" {
		t.Error(diff)
	}
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, html string
		want       page.Metadata
	}{
		{"title element", "<title> A \n B </title>", page.Metadata{Title: "A B"}},
		{"heading", "<h1>A</h1>", page.Metadata{Title: "A"}},
		{"heading with scripts", "<h1>H<sub>2</sub>O <i>at</i> 10<sup>6</sup><br>Pa</h1>", page.Metadata{Title: "H_2O at 10^6 Pa"}},
		{
			"previews", `<title>x</title><meta property="og:title" content="A"><meta property="og:description" content="D"><meta property="og:site_name" content="S"><meta property="og:image" content="/i.png"><meta property="og:locale" content="de_CH"><meta property="article:author" content="https://x.example/me"><meta name="author" content="N">`,
			page.Metadata{Title: "A", Description: "D", SiteName: "S", Image: "https://site.example/i.png", Language: "de-CH", Author: "N"},
		},
		{
			"JSON-LD", `<script type="application/ld+json">{"@context":"https://schema.org","@graph":[{"@type":"WebSite","name":"x"},{"@type":"NewsArticle","headline":"H","datePublished":"2026-01-02","dateModified":"2026-01-03T10:00:00+01:00","author":[{"name":"N"}],"publisher":{"name":"P"},"inLanguage":"en"}]}</script>`,
			page.Metadata{Title: "H", Published: "2026-01-02", Modified: "2026-01-03T10:00:00+01:00", Author: "N", SiteName: "P", Language: "en"},
		},
		{"broken JSON-LD", `<title>A</title><script type="application/ld+json">{"headline": </script>`, page.Metadata{Title: "A"}},
		{"time element", `<article><time datetime="2026-05-06">May</time></article>`, page.Metadata{Published: "2026-05-06"}},
		{"dates", `<meta name="date" content="2 January 2026"><meta property="article:modified_time" content="not a date">`, page.Metadata{Published: "2026-01-02"}},
		{"local time", `<meta property="article:published_time" content="2026-01-02 03:04:05">`, page.Metadata{Published: "2026-01-02T03:04:05"}},
		{"language", `<html lang="pt_BR"><body></body></html>`, page.Metadata{Language: "pt-BR"}},
		{"not a language", `<html lang="{{lang}}"><body></body></html>`, page.Metadata{}},
		{"canonical", `<link rel="canonical" href="/c?x=1">`, page.Metadata{Canonical: "https://site.example/c?x=1"}},
	} {
		got := parse(t, "text/html; charset=utf-8", c.html).Metadata
		c.want.ContentType = "text/html"
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Texts that are not HTML are returned as they are.
func TestOtherTexts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ contentType, body, want string }{
		{"text/plain", "a\r\nb\n", "a\nb"},
		{"text/markdown; charset=utf-8", "# A", "# A"},
		{"application/json", `{"a": 1}`, "```json\n{\"a\": 1}\n```"},
		{"application/ld+json", `{}`, "```json\n{}\n```"},
		{"application/x-yaml", "a: ```", "````yaml\na: ```\n````"},
		{"text/plain; charset=iso-8859-1", "\xe4", "ä"},
		{"", "plain", "plain"},
		{"", "<!DOCTYPE html><p>x", "x"},
		{"text/html", "", ""},
	} {
		if diff := cmp.Diff(c.want, parse(t, c.contentType, c.body).Content(true).Markdown()); diff != "" {
			t.Errorf("%q %q:\n%s", c.contentType, c.body, diff)
		}
	}
}

// A declared charset that the bytes contradict is not used.
func TestWrongCharsetDeclaration(t *testing.T) {
	t.Parallel()
	const text = "grün café 日本"
	for name, c := range map[string]struct{ contentType, body string }{
		"header": {"text/html; charset=iso-8859-1", "<p>" + text},
		"meta":   {"text/html", "<meta charset=windows-1252><p>" + text},
		"utf-16": {"text/html", "<meta charset=utf-16><p>" + text},
		"mark":   {"text/html; charset=windows-1251", "\ufeff<p>" + text},
		"broken": {"text/html; charset=utf-8", "<p>" + text + "\xff\xe3<!--" + strings.Repeat("é", 20) + "-->"},
		"both":   {"text/html; charset=utf-8", "<meta charset=shift_jis><p>" + text},
	} {
		got := parse(t, c.contentType, c.body).Content(true).Text()
		if got = strings.ReplaceAll(got, "\ufffd", ""); got != text {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// UTF-8 that is declared as a charset of East Asia is UTF-8, and text in such a
// charset is still decoded.
func TestUTF8DeclaredAsEastAsianCharset(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]encoding.Encoding{
		"gb2312": simplifiedchinese.GBK, "gbk": simplifiedchinese.GBK, "gb18030": simplifiedchinese.GB18030, "big5": traditionalchinese.Big5,
		"shift_jis": japanese.ShiftJIS, "euc-jp": japanese.EUCJP, "iso-2022-jp": japanese.ISO2022JP, "euc-kr": korean.EUCKR,
		"x-user-defined": nil, "hz-gb-2312": nil, "iso-2022-kr": nil, "utf-16": nil, "utf-16le": nil,
	} {
		text := "日本 一二三 中文"
		if name == "euc-kr" {
			text = "한국어 문서"
		}
		bodies := []string{text}
		if e != nil {
			encoded, err := e.NewEncoder().String(text)
			if err != nil {
				t.Fatal(name, err)
			}
			bodies = append(bodies, encoded)
		}
		for _, body := range bodies {
			for _, page := range []struct{ contentType, body string }{
				{"text/html; charset=" + name, "<p>" + body},
				{"text/html", "<meta charset=" + name + "><p>" + body},
				{"text/plain; charset=" + name, body},
			} {
				if got := parse(t, page.contentType, page.body).Content(true).Text(); got != text {
					t.Errorf("%s %q: got %q, want %q", page.contentType, page.body, got, text)
				}
			}
		}
	}
}

// A page that its scripts make is read, with a note that says what is missing.
func TestPageOfScripts(t *testing.T) {
	t.Parallel()
	want := []string{"the page has almost no text without its scripts; render: true runs them"}
	for body, notes := range map[string][]string{
		`<title>App</title><div id="root"></div><noscript>You need to enable JavaScript to run this app, which is a pity for everyone without it.</noscript><script src="/app.js"></script>`: want,
		`<div id="root"></div>`: nil,
		`<p>` + strings.Repeat("text ", 50) + `</p><script>x()</script>`:           nil,
		`<p>short</p><script type="application/ld+json">{"headline":"x"}</script>`: nil,
	} {
		if diff := cmp.Diff(notes, parse(t, "text/html", body).Notes); diff != "" {
			t.Errorf("%s:\n%s", body, diff)
		}
	}
}

// Elements that are nested beyond the parser's limit keep their text.
func TestDeepNesting(t *testing.T) {
	t.Parallel()
	for _, tag := range []string{"div", "b", "ul><li", "table><tr><td", "blockquote"} {
		body := strings.Repeat("<"+tag+">", 5_000) + "<p>the bottom</p>"
		doc := parse(t, "text/html", body)
		content := doc.Content(true)
		if got := content.Text(); !strings.Contains(got, "the bottom") {
			t.Errorf("<%s>: got %.100q", tag, got)
		}
		if !strings.Contains(content.Markdown(), "the bottom") || len(doc.Notes) == 0 {
			t.Errorf("<%s>: Markdown without the text, notes %q", tag, doc.Notes)
		}
	}
}

// A page of many elements is read in time that grows with its size.
func TestHugePage(t *testing.T) {
	t.Parallel()
	doc := parse(t, "text/html", "<main>"+strings.Repeat("<div><p>A paragraph, with <a href=/x>a link</a>.</p></div>\n", 10_000)+"</main>")
	if got := strings.Count(doc.Content(true).Markdown(), "A paragraph"); got != 10_000 {
		t.Errorf("%d paragraphs", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("text/html", []byte("<html><body><article><h1>A</h1><table><tr><td><pre>x</pre></table>"))
	f.Add("text/html; charset=shift_jis", []byte("\x83\x65\x83\x58\x83\x67<p>"))
	f.Add("application/pdf", []byte("%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\nstartxref\n9\n%%EOF"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		doc, err := extract.Parse(t.Context(), extract.Source{URL: &url.URL{Scheme: "http", Host: "a.example"}, ContentType: contentType, Body: body})
		if err != nil {
			return
		}
		content := doc.Content(true)
		_, _, _ = content.HTML(), content.Text(), content.Markdown()
		_ = doc.Links()
	})
}
