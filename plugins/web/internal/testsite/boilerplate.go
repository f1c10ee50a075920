package testsite

import (
	"fmt"
	"strings"
)

// links returns n links as list items.
func (p *prose) links(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `<li><a href="/section/%d">%s</a></li>`, i, p.heading())
	}
	return b.String()
}

// topBar is a header with a logo, navigation and search.
func (p *prose) topBar() string {
	return `<header class="site-header"><a class="logo" href="/"><img src="/logo.png" alt="Tide &amp; Turbine"></a>` +
		`<nav class="main-nav"><ul>` + p.links(7) + `</ul></nav><form action="/search"><input name="q"><button>Search</button></form></header>`
}

// sidebar has links and an advertisement with whole sentences.
func (p *prose) sidebar(class string) string {
	return `<div class="` + class + `"><h3>Most read</h3><ul>` + p.links(8) + `</ul><div class="ad-box"><p>Advertisement. ` + p.paragraph(2, 2) + `</p></div></div>`
}

// footer has links and a long legal text.
func (p *prose) footer() string {
	return `<footer class="site-footer"><ul>` + p.links(9) + `</ul><p>Copyright 2026 Tide and Turbine. All rights reserved. ` + p.paragraph(2, 3) + `</p></footer>`
}

// comments are the comments of readers.
func (p *prose) comments() string {
	var b strings.Builder
	b.WriteString(`<section id="comments" class="comments"><h3>Comments</h3>`)
	for i := range 5 {
		fmt.Fprintf(&b, `<div class="comment"><span class="author">Reader %d</span><p>%s</p><a href="#reply">Reply</a></div>`, i, p.paragraph(1, 3))
	}
	return b.String() + `</section>`
}

// cookieBanner asks for consent at length.
func (p *prose) cookieBanner() string {
	return `<div id="cookie-consent" class="cookie-banner" role="dialog"><h2>We value your privacy</h2><p>We and our 842 partners store and access information on a device. ` +
		p.paragraph(3, 4) + `</p><button>Accept all</button><a href="/privacy">Settings</a></div>`
}

// related are teasers of other pages.
func (p *prose) related(class string) string {
	var b strings.Builder
	b.WriteString(`<div class="` + class + `"><h3>You may also like</h3>`)
	for i := range 4 {
		fmt.Fprintf(&b, `<div class="teaser"><a href="/other/%d"><img src="/t%d.jpg" alt="">%s</a><p>%s</p></div>`, i, i, p.heading(), p.sentence())
	}
	return b.String() + `</div>`
}

// shareBar are links to social networks.
func shareBar() string {
	return `<div class="share-buttons"><a href="https://social.example/share">Share</a> <a href="https://photos.example/pin">Pin</a> <a href="mailto:?subject=x">Mail</a></div>`
}

// document wraps a body.
func document(language, title, head, body string) string {
	return fmt.Sprintf("<!DOCTYPE html>\n<html lang=%q><head><title>%s</title>%s</head><body>%s</body></html>", language, title, head, body)
}
