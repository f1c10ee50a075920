package testsite

import (
	"fmt"
	"strings"
	"sync"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
)

// Page is a page of the site.
type Page struct {
	// Path is its address on the site.
	Path string
	// ContentType is the Content-Type header; "" for none.
	ContentType string
	// Body is in the page's charset.
	Body []byte
	// Main is the text of the main content.
	Main string
	// Language is the language of the text.
	Language string
}

// layout writes a kind of page. It fills the draft and returns the HTML.
type layout struct {
	name  string
	write func(d *draft) string
}

// Pages returns the same pages on each call: each layout in several languages, and one
// layout in several charsets.
var Pages = sync.OnceValue(func() []Page {
	var pages []Page
	languages := []string{"en", "de", "pt", "en", "ja", "ru"}
	for i, l := range layouts {
		for j := range 2 {
			language := languages[(i+3*j)%len(languages)]
			d := newDraft(language, uint64(100*i+j))
			markup := l.write(d)
			pages = append(pages, Page{
				Path: fmt.Sprintf("/%s-%s-%d.html", l.name, language, j), ContentType: "text/html; charset=utf-8",
				Body: []byte(markup), Main: d.text.String(), Language: language,
			})
		}
	}
	return append(pages, charsetPages()...)
})

// charsetPages are pages that are not in UTF-8, or do not declare it.
func charsetPages() []Page {
	cases := []struct {
		language, name, header, meta string
		encoding                     encoding.Encoding
	}{
		{"de", "latin1-header", "iso-8859-1", "", charmap.ISO8859_1},
		{"pt", "windows1252-meta", "", "windows-1252", charmap.Windows1252},
		{"tr", "windows1254-meta", "", "windows-1254", charmap.Windows1254},
		{"ru", "koi8r-header", "koi8-r", "", charmap.KOI8R},
		{"ru", "windows1251-undeclared", "", "", charmap.Windows1251},
		{"ja", "shiftjis-meta", "", "shift_jis", japanese.ShiftJIS},
		{"ja", "eucjp-header", "euc-jp", "", japanese.EUCJP},
		{"ko", "euckr-meta", "", "euc-kr", korean.EUCKR},
		{"zh", "gb18030-header", "gb18030", "", simplifiedchinese.GB18030},
		{"en", "utf16-bom", "", "", unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)},
		{"ja", "utf8-undeclared", "", "", encoding.Nop},
		{"de", "latin1-declared-utf8", "utf-8", "", charmap.ISO8859_1},
		{"ar", "utf8-rtl", "utf-8", "", encoding.Nop},
	}
	var pages []Page
	for i, c := range cases {
		d := newDraft(c.language, uint64(9000+i))
		d.element("h1", d.heading())
		d.paragraphs(6)
		head := ""
		if c.meta != "" {
			head = `<meta http-equiv="Content-Type" content="text/html; charset=` + c.meta + `">`
		}
		markup := document(c.language, "Charset", head, d.topBar()+`<div class="content"><article>`+d.html.String()+`</article></div>`+d.footer())
		body, err := c.encoding.NewEncoder().Bytes([]byte(markup))
		if err != nil {
			panic(fmt.Sprintf("testsite: %s: %v", c.name, err))
		}
		contentType := "text/html"
		if c.header != "" {
			contentType += "; charset=" + c.header
		}
		pages = append(pages, Page{Path: "/charset-" + c.name + ".html", ContentType: contentType, Body: body, Main: d.text.String(), Language: c.language})
	}
	return pages
}

var layouts = []layout{
	{"article", func(d *draft) string { // semantic elements
		d.element("h1", d.heading())
		d.paragraphs(4)
		d.section(2, 3)
		d.section(2, 3)
		return document(d.grammar.language, "Article", `<meta name="description" content="A page">`, d.cookieBanner()+d.topBar()+
			`<main><article>`+d.html.String()+`</article></main><aside>`+d.sidebar("links")+`</aside>`+d.footer())
	}},
	{"divs", func(d *draft) string { // only div elements with classes
		d.element("h1", d.heading())
		d.paragraphs(8)
		return document(d.grammar.language, "Divs", "", `<div id="header"><div class="menu"><ul>`+d.links(9)+`</ul></div></div><div class="wrapper"><div class="col-left">`+
			d.sidebar("sidebar")+`</div><div class="col-main"><div class="post-body">`+d.html.String()+`</div>`+shareBar()+d.related("related-posts")+`</div></div><div id="footer">`+d.footer()+`</div>`)
	}},
	{"tables", func(d *draft) string { // laid out with tables
		d.raw(`<font size="5"><b>`+d.heading()+`</b></font>`, "")
		d.paragraphs(7)
		return document(d.grammar.language, "Tables", "", `<table width="100%"><tr><td colspan="2"><a href="/">Home</a> | <a href="/news">News</a> | <a href="/contact">Contact</a></td></tr><tr><td width="150" valign="top"><ul>`+
			d.links(10)+`</ul></td><td valign="top">`+d.html.String()+`</td></tr><tr><td colspan="2"><small>Copyright 1999. Best viewed at 800x600.</small></td></tr></table>`)
	}},
	{"plain", func(d *draft) string { // no classes at all
		d.element("h1", d.heading())
		d.paragraphs(9)
		return document(d.grammar.language, "Plain", "", `<ul>`+d.links(6)+`</ul>`+d.html.String()+`<p><a href="/prev">Previous</a> <a href="/next">Next</a></p>`)
	}},
	{"docs", func(d *draft) string { // documentation with code
		d.element("h1", d.heading())
		d.paragraphs(2)
		d.code("go", true)
		d.section(2, 2)
		d.code("go", false)
		d.section(2, 2)
		d.table(4)
		d.section(3, 1)
		d.code("lua", true)
		return document(d.grammar.language, "Docs", "", d.topBar()+`<div class="docs"><nav class="docs-sidebar"><ul>`+d.links(25)+`</ul></nav><main class="docs-content"><div class="markdown">`+
			d.html.String()+`</div></main><div class="table-of-contents toc"><ul>`+d.links(6)+`</ul></div></div>`+d.footer())
	}},
	{"product", func(d *draft) string { // data in a table
		d.element("h1", d.heading())
		d.paragraphs(2)
		d.table(12)
		d.paragraphs(2)
		return document(d.grammar.language, "Product", "", d.topBar()+`<div class="breadcrumbs"><a href="/">Home</a> &gt; <a href="/p">Products</a></div><div id="content">`+d.html.String()+`</div>`+d.related("recommended-products")+d.footer())
	}},
	{"thread", func(d *draft) string { // question and answers
		d.element("h1", d.heading())
		for i := range 4 {
			fmt.Fprintf(&d.html, `<div class="post" id="p%d"><div class="post-content">`, i)
			d.paragraphs(3)
			d.html.WriteString(`</div></div>`)
		}
		return document(d.grammar.language, "Thread", "", d.topBar()+`<div class="thread">`+d.html.String()+`</div><div class="sidebar">`+d.sidebar("widget")+`</div>`+d.footer())
	}},
	{"lists", func(d *draft) string { // nested lists
		d.element("h1", d.heading())
		d.paragraphs(2)
		d.list("ul", 6, 3)
		d.paragraphs(1)
		d.list("ol", 5, 2)
		return document(d.grammar.language, "Lists", "", d.topBar()+`<article class="entry">`+d.html.String()+`</article>`+d.sidebar("sidebar")+d.footer())
	}},
	{"news", func(d *draft) string { // interrupted by other things
		d.element("h1", d.heading())
		d.paragraphs(3)
		d.html.WriteString(`<aside class="inline-related"><h4>Related</h4><ul>` + d.links(3) + `</ul></aside>`)
		d.paragraphs(3)
		d.html.WriteString(`<div class="newsletter-signup"><h3>Subscribe</h3><p>` + d.sentence() + `</p><form><input type="email"><button>Go</button></form></div>`)
		d.paragraphs(3)
		return document(d.grammar.language, "News", "", d.cookieBanner()+d.topBar()+`<div class="layout"><div class="story">`+d.html.String()+shareBar()+`</div><div class="rail">`+d.sidebar("sidebar")+`</div></div>`+d.comments()+d.related("more-stories related")+d.footer())
	}},
	{"wiki", func(d *draft) string { // infobox, contents, references
		d.element("h1", d.heading())
		d.paragraphs(2)
		d.html.WriteString(`<div id="toc" class="toc"><h2>Contents</h2><ul>` + d.links(5) + `</ul></div>`)
		for range 4 {
			d.section(2, 3)
		}
		return document(d.grammar.language, "Wiki", "", `<div id="mw-page-base"></div><div id="content" role="main">`+d.html.String()+`</div><div id="mw-navigation"><h2>Navigation</h2><div role="navigation"><ul>`+d.links(20)+`</ul></div></div><div id="footer" role="contentinfo"><ul>`+d.links(4)+`</ul></div>`)
	}},
	{"broken", func(d *draft) string { // tags that are not closed or overlap
		d.element("h1", d.heading())
		d.paragraphs(8)
		markup := strings.NewReplacer("</p>", "", "</a>", "</a></b>", "<h1>", "<b><h1>").Replace(d.html.String())
		return `<html><head><title>Broken</title><body><div class=nav><ul>` + d.links(6) + `</ul></div><div class=main><div class=text>` + markup + `</div><div class=foot><a href=/x>Imprint</a></div><table><tr><td>`
	}},
	{"deep", func(d *draft) string { // nested deeply
		d.element("h1", d.heading())
		d.paragraphs(8)
		return document(d.grammar.language, "Deep", "", `<ul>`+d.links(5)+`</ul>`+strings.Repeat(`<div>`, 400)+d.html.String()+strings.Repeat(`</div>`, 400))
	}},
	{"breaks", func(d *draft) string { // paragraphs are separated by br elements
		d.element("h1", d.heading())
		for range 7 {
			text := d.paragraph(3, 5)
			d.raw(text+"<br><br>", text)
		}
		return document(d.grammar.language, "Breaks", "", `<div class="navi">`+d.links(6)+`</div><div class="inhalt">`+d.html.String()+`</div><div class="fuss"><a href="/i">Imprint</a></div>`)
	}},
	{"short", func(d *draft) string { // less text than around it
		d.element("h1", d.heading())
		d.paragraphs(3)
		return document(d.grammar.language, "Short", "", d.cookieBanner()+d.topBar()+`<main><div class="text">`+d.html.String()+`</div></main>`+d.sidebar("sidebar")+d.related("related")+d.footer()+d.footer())
	}},
	{"long", func(d *draft) string { // a book
		d.element("h1", d.heading())
		for range 40 {
			d.section(2, 8)
		}
		return document(d.grammar.language, "Long", "", d.topBar()+`<section class="chapter">`+d.html.String()+`</section>`+d.footer())
	}},
	{"press", func(d *draft) string { // content management system, numbered classes
		d.element("h1", d.heading())
		d.paragraphs(4)
		d.html.WriteString(`<figure><img src="/img/a.jpg" alt="A turbine"><figcaption>` + d.heading() + `</figcaption></figure>`)
		d.paragraphs(4)
		d.raw(`<blockquote><p>`+d.sentence()+`</p></blockquote>`, "")
		return document(d.grammar.language, "Press", "", `<div class="c1 c2"><div class="x17 topnav"><ul>`+d.links(8)+`</ul></div><div class="x22"><div class="x23">`+d.html.String()+`</div></div><div class="x99"><ul>`+d.links(15)+`</ul></div></div>`)
	}},
	{"terms", func(d *draft) string { // numbered lists with headings
		d.element("h1", d.heading())
		for range 5 {
			d.element("h2", d.heading())
			d.list("ol", 4, 1)
		}
		return document(d.grammar.language, "Terms", "", d.topBar()+`<div class="page"><div class="page-content">`+d.html.String()+`</div></div>`+d.footer())
	}},
	{"faq", func(d *draft) string { // folded answers
		d.element("h1", d.heading())
		for range 6 {
			d.html.WriteString("<details>")
			d.element("summary", d.heading()+"?")
			d.paragraphs(1)
			d.html.WriteString("</details>")
		}
		return document(d.grammar.language, "FAQ", "", d.topBar()+`<main class="faq">`+d.html.String()+`</main>`+d.footer())
	}},
	{"definitions", func(d *draft) string { // definition lists
		d.element("h1", d.heading())
		d.paragraphs(2)
		d.html.WriteString("<dl>")
		for range 8 {
			d.element("dt", d.heading())
			d.element("dd", d.paragraph(2, 3))
		}
		d.html.WriteString("</dl>")
		return document(d.grammar.language, "Glossary", "", `<nav><ul>`+d.links(6)+`</ul></nav><div class="glossary">`+d.html.String()+`</div>`+d.footer())
	}},
	{"xhtml", func(d *draft) string { // XML declaration and namespaces
		d.element("h1", d.heading())
		d.paragraphs(7)
		return `<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">` +
			`<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="` + d.grammar.language + `"><head><title>XHTML</title></head><body><div id="nav"><ul>` + d.links(8) + `</ul></div><div id="text">` + d.html.String() + `</div><div id="bottom"><p>Valid XHTML</p></div></body></html>`
	}},
	{"wordpress", func(d *draft) string { // the classes of a blog system
		d.element(`h1 class="entry-title"`, d.heading())
		d.html.WriteString(`<div class="entry-content">`)
		d.paragraphs(6)
		d.section(2, 2)
		d.html.WriteString(`<div class="sharedaddy">` + shareBar() + `</div></div>`)
		return document(d.grammar.language, "Blog", "", `<div id="page" class="hfeed site"><header id="masthead" class="site-header"><nav id="site-navigation">`+d.links(5)+`</nav></header><div id="content" class="site-content"><div id="primary" class="content-area"><main id="main"><article class="post type-post hentry">`+
			d.html.String()+`</article>`+d.comments()+`</main></div><div id="secondary" class="widget-area"><aside class="widget">`+d.sidebar("widget")+`</aside></div></div><footer id="colophon" class="site-footer">`+d.footer()+`</footer></div>`)
	}},
	{"generated", func(d *draft) string { // classes made by a program
		d.element("h1", d.heading())
		d.paragraphs(9)
		return document(d.grammar.language, "App", `<script>window.__STATE__={"a":"`+d.sentence()+`"}</script><style>.css-1{color:red}</style>`, `<div id="__next"><div class="css-1x"><div class="css-9q"><ul>`+d.links(12)+`</ul></div><div class="css-7z"><div class="css-3k">`+d.html.String()+`</div></div><div class="css-2b"><ul>`+d.links(12)+`</ul><p>Copyright 2026</p></div></div></div><noscript>Enable JavaScript</noscript>`)
	}},
	{"hidden", func(d *draft) string { // text that is not shown
		d.element("h1", d.heading())
		d.paragraphs(5)
		d.html.WriteString(`<p style="display: none">` + d.paragraph(3, 3) + `</p><div hidden><p>` + d.paragraph(3, 3) + `</p></div>`)
		d.paragraphs(2)
		return document(d.grammar.language, "Hidden", "", d.topBar()+`<div class="article-body">`+d.html.String()+`</div><div class="modal popup" style="display:none"><p>`+d.paragraph(4, 4)+`</p></div>`+d.footer())
	}},
	{"sections", func(d *draft) string { // a page of sections
		d.element("h1", d.heading())
		for range 5 {
			d.html.WriteString(`<section><div class="inner">`)
			d.section(2, 2)
			d.html.WriteString(`</div></section>`)
		}
		return document(d.grammar.language, "Sections", "", `<div role="banner"><div role="navigation"><ul>`+d.links(8)+`</ul></div></div><div role="main">`+d.html.String()+`</div><div role="complementary">`+d.sidebar("box")+`</div><div role="contentinfo"><p>`+d.paragraph(2, 3)+`</p></div>`)
	}},
}
