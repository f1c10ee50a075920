package extract_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Elements that change the meaning of the text around them, or that are blocks
// only for a browser, keep both in Markdown and in text. text is that of both if
// markdown is empty.
func TestMeaningOfElements(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, html, text, markdown string }{
		{"power", "<p>10<sup>6</sup> m, 10<sup>-3</sup>, 10<sup>−3</sup>, 2<sup>n+1</sup></p>", "10^6 m, 10^(-3), 10^(-3), 2^(n+1)", ""},
		{"no-break space", "<p>10<sup>7</sup>&nbsp;m<b>x&nbsp;</b>y</p>", "10^7 mx y", "10^7\u00a0m**x**\u00a0y"},
		{"power of a power", "<p>2<sup>2<sup>3</sup></sup></p>", "2^(2^3)", ""},
		{"scripts before digits and letters", "<p>a<sup>2</sup>3 x<sub>i</sub>y CO<sub>2</sub>e (x)<sub>2</sub></p>", "a^(2)3 x_(i)y CO_2e (x)_2", "a^(2)3 x_(i)y CO_2e (x)\\_2"},
		{"power in a table", "<table><tr><th>n<th>m<tr><td>10<sup>6</sup><td>10<sup>−3</sup></table>", "n\tm\n10^6\t10^(-3)", "| n | m |\n|---|---|\n| 10^6 | 10^(-3) |"},
		{"power in code", "<pre>2<sup>10</sup> a<sub>i</sub></pre>", "2^10 a_i", "```\n2^10 a_i\n```"},
		{"power in inline code", "<p><code>)<sub>i</sub> 2<sup>10</sup></code></p>", ")_i 2^10", "`)_i 2^10`"},
		{"markup in a power", "<p>10<sup><b>6</b></sup></p>", "10^6", "10^**6**"},
		{"footnotes", `<p>word<sup>1</sup> 12<sup><a href="#n">[3]</a></sup> Tea<sup>®</sup></p>`, "word^1 12[3] Tea®", "word^1 12[\\[3\\]](https://site.example/dir/page#n) Tea®"},
		{"ordinals", "<p>1<sup>st</sup> 2<sup>nd</sup> 3<sup>ème</sup></p>", "1st 2nd 3ème", ""},
		{"fraction", "<p>5<sup>1</sup>/<sub>2</sub> and <sup>3</sup>⁄<sub>4</sub></p>", "5 1/2 and 3⁄4", ""},
		{"charges and isotopes", "<p>Na<sup>+</sup> Ca<sup>2+</sup> <sup>14</sup>C</p>", "Na^+ Ca^(2+) ^14C", ""},
		{"summary", "<details><summary>Sum</summary>Text <p>more</p></details>", "Sum\nText\n\nmore", "Sum\n\nText\n\nmore"},
		{"legend", "<fieldset><legend>Leg</legend>Text</fieldset>", "Leg\nText", "Leg\n\nText"},
		{"custom blocks", "<my-card><h2>a</h2></my-card><my-card>b</my-card>text", "a\n\nb\ntext", "## a\n\nb\n\ntext"},
		{"custom elements in a row", "<my-tag>a</my-tag><my-tag>b</my-tag>\n<my-tag>c</my-tag>", "a\nb\nc", "a\n\nb\n\nc"},
		{"custom element in a line", "<p>price<x-amount>5</x-amount>euros, <x-b>y</x-b>.</p>", "price 5 euros, y.", ""},
		{"spans as blocks", `<p><span style="display: block">a</span><span style="color:red; DISPLAY:flex;">b</span><b style="display:block">c</b></p>`, "a\nb\nc", "a\n\nb\n\n**c**"},
		{"spans that are not blocks", `<p>a<span style="display:inline-block">b</span></p>`, "ab", ""},
		{"links as blocks", `<a href="/x" style="display:block">a</a><a href="/y" style="display:block">b</a>`, "a\nb", "[a](https://site.example/x)\n\n[b](https://site.example/y)"},
		{"menus and others", "<menu><li>a<li>b</menu><center>x</center><center>y</center><search>s</search>t", "- a\n- b\n\nx\ny\ns\nt", "- a\n- b\n\nx\n\ny\n\ns\n\nt"},
		{"ruby and quotes", "<p><ruby>漢<rt>kan</rt></ruby> <ruby>字<rp>(</rp><rt>ji</rt><rp>)</rp></ruby> <q>said</q></p>", "漢(kan) 字(ji) “said”", ""},
		{"listing", "<listing>a\n b</listing>", "a\n b", "```\na\n b\n```"},
		{"reversed list", "<ol reversed><li>c<li>b<li>a</ol>", "3. c\n\n2. b\n\n1. a", ""},
		{"reversed list with a start", "<ol reversed start=9><li>c<li>b</ol>", "9. c\n\n8. b", ""},
		{"values", "<ol><li value=7>a<li>b<li value=20>c</ol>", "7. a\n8. b\n\n20. c", ""},
		{"start", "<ol start=5><li>a<li>b</ol>", "5. a\n6. b", ""},
		{"numbers in a table", "<table><tr><th>a<tr><td><ol start=3><li>x<li>y</ol></table>", "a\n\n3. x\n4. y", "| a |\n|---|\n| 3. x  <br />4. y |"},
	} {
		if c.markdown == "" {
			c.markdown = c.text
		}
		content := parse(t, "text/html; charset=utf-8", c.html).Content(false)
		if diff := cmp.Diff(c.text, content.Text()); diff != "" {
			t.Errorf("%s: text (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(c.markdown, content.Markdown()); diff != "" {
			t.Errorf("%s: Markdown (-want +got):\n%s", c.name, diff)
		}
	}
}

const (
	half     = "<mfrac><mn>1</mn><mn>2</mn></mfrac>"
	halfTeX  = `<semantics><mrow>` + half + `</mrow><annotation encoding="application/x-tex">\frac{1}{2}</annotation></semantics>`
	katex    = `<span class="katex"><span class="katex-mathml"><math xmlns="http://www.w3.org/1998/Math/MathML">` + halfTeX + `</math></span><span class="katex-html" aria-hidden="true"><span class="base">1</span><span>2</span></span></span>`
	display  = `<span class="katex-display">` + katex + `</span>`
	wiki     = `<span class="mwe-math-element mwe-math-element-inline"><span class="mwe-math-mathml-inline mwe-math-mathml-a11y" style="display: none;"><math alttext="{\displaystyle \frac 12}">` + halfTeX + `</math></span><img src="x.svg" class="mwe-math-fallback-image-inline" aria-hidden="true" alt="{\displaystyle \frac 12}"></span>`
	mathJax3 = `<mjx-container class="MathJax CtxtMenu_Attached_0" jax="SVG"><svg><text>1 2</text></svg><mjx-assistive-mml unselectable="on" display="inline"><math>` + half + `</math></mjx-assistive-mml></mjx-container>`
	mathJax2 = `<span class="MathJax_Preview"></span><span class="MathJax"><nobr aria-hidden="true">12</nobr><span class="MJX_Assistive_MathML"><math>` + half + `</math></span></span><script type="math/tex">\frac12</script>`
)

// Formulas appear once, on a line that means the same.
func TestFormulas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, math, want string }{
		{"fraction", "<math>" + half + "</math>", "1/2"},
		{"KaTeX", katex, "1/2"},
		{"MediaWiki", wiki, "1/2"},
		{"MathJax 3", mathJax3, "1/2"},
		{"MathJax 2", mathJax2, "1/2"},
		{"MathJax that has not run", `<script type="math/tex; mode=display">x_1</script>`, "`x_1`"},
		{"prefix", "<m:math><m:mfrac><m:mn>1</m:mn><m:mn>2</m:mn></m:mfrac></m:math>", "1/2"},
		{"mixed number", "<math><mn>3</mn>" + half + "</math>", "3 1/2"},
		{"sum", "<math><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mrow><mn>2</mn><mi>c</mi></mrow></mfrac></math>", "(a+b)/(2c)"},
		{"scripts", "<math><msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup><mo>+</mo><msup><mn>10</mn><mrow><mo>−</mo><mn>3</mn></mrow></msup><mi>y</mi></math>", "x_i^2+10^(-3)y"},
		{"power without a mark before a digit", "<math><msup><mn>10</mn><mn>6</mn></msup><mn>5</mn></math>", "10^6 5"},
		{"root", "<math><msqrt><mi>x</mi><mo>+</mo><mn>1</mn></msqrt><mo>,</mo><mroot><mi>x</mi><mn>3</mn></mroot></math>", "√(x+1),x^(1/3)"},
		{"limits", "<math><munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover><mi>i</mi></math>", "∑_(i=1)^n i"},
		{"function", "<math><mi>sin</mi><mo>&#x2061;</mo><mi>x</mi><mo>=</mo><mn>2</mn><mo>&#x2062;</mo><mi>y</mi></math>", "sin x=2y"},
		{"accent", "<math><mover><mi>x</mi><mo>¯</mo></mover></math>", "x\u0304"},
		{"prime", "<math><msup><mi>f</mi><mo>′</mo></msup><mfenced><mi>x</mi><mi>y</mi></mfenced></math>", "f′(x,y)"},
		{"binomial", "<math><mo>(</mo><mfrac linethickness=0><mi>n</mi><mi>k</mi></mfrac><mo>)</mo></math>", "(n choose k)"},
		{"isotope", "<math><mmultiscripts><mi>C</mi><none/><none/><mprescripts/><mn>6</mn><mn>14</mn></mmultiscripts></math>", "_6^14 C"},
		{"words", "<math><mi>x</mi><mtext> if </mtext><mi>y</mi></math>", "x if y"},
		{"only TeX", `<math><semantics><mrow></mrow><annotation encoding="application/x-tex">a+b</annotation></semantics></math>`, "a+b"},
		{"only a description", `<math alttext="a+b"></math>`, "a+b"},
	} {
		content := parse(t, "text/html; charset=utf-8", "<p>so "+c.math+" is</p>").Content(true)
		want := "so " + c.want + " is"
		if got := content.Text(); got != strings.ReplaceAll(want, "`", "") {
			t.Errorf("%s: text %q, want %q", c.name, got, want)
		}
		if got := strings.ReplaceAll(content.Markdown(), `\_`, "_"); got != want {
			t.Errorf("%s: Markdown %q, want %q", c.name, got, want)
		}
	}
	for _, math := range []string{display, `<math display="block">` + half + "</math>"} {
		if got := parse(t, "text/html", "<div>so"+math+"is</div>").Content(false).Text(); got != "so\n1/2\nis" {
			t.Errorf("%s: got %q", math, got)
		}
	}
	page := "<article><h1>Halves</h1>" + strings.Repeat("<p>A paragraph with enough words to be the main content of its page: "+katex+" of it.</p>", 8) + "</article>"
	if got := parse(t, "text/html", page).Content(true).Markdown(); strings.Count(got, "page: 1/2 of it.") != 8 || strings.Contains(got, "frac") {
		t.Errorf("a page: got %q", got)
	}
}

// A page in the syntax of XML is read in that syntax.
func TestXHTMLWithoutEndTags(t *testing.T) {
	t.Parallel()
	const head = `<html xmlns="http://www.w3.org/1999/xhtml"><head><title>T</title><script src="a.js"/><style/></head>`
	for name, c := range map[string]struct{ contentType, body, want string }{
		"script":          {"application/xhtml+xml", head + `<body><p>text</p></body></html>`, "text"},
		"declaration":     {"text/html", `<?xml version="1.0"?>` + head + `<body><p>text</p></body></html>`, "text"},
		"namespace":       {"text/html", "<!DOCTYPE html>\n<!-- x -->\n" + head + `<body><p>text</p></body></html>`, "text"},
		"other elements":  {"application/xhtml+xml", head + `<body><p>a<a id="x"/>b<textarea/>c<iframe src="y"/>d</p><p/><title/><br/><p>e</p></body></html>`, "abcd\n\ne"},
		"CDATA":           {"application/xhtml+xml", head + `<body><p><![CDATA[a < b & c]]></p></body></html>`, "a < b & c"},
		"value at an end": {"text/html", head + `<body><a href=/x/>link</a> text</body></html>`, "link text"},
		"not XML":         {"text/html", `<p>a<span/>b</p>`, "ab"},
	} {
		if got := parse(t, c.contentType, c.body).Content(false).Text(); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// Declarative shadow roots are read as a browser shows them.
func TestDeclarativeShadowRoot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ html, want string }{
		"content":       {`<x-a><template shadowrootmode="open"><p>inside</p></template></x-a>`, "inside"},
		"closed":        {`<div><template shadowrootmode="closed"><p>inside</p></template></div>`, "inside"},
		"slots":         {`<x-a><template shadowrootmode="open"><h2><slot name="t">none</slot></h2><slot></slot><p><slot name="u">default</slot></p></template><p>text</p><b slot="t">Title</b></x-a>`, "Title\n\ntext\n\ndefault"},
		"without slots": {`<x-a><template shadowrootmode="open"><p>inside</p></template>hidden</x-a>`, "inside"},
		"nested":        {`<x-a><template shadowrootmode="open"><x-b><template shadowrootmode="open"><p>b:</p><slot></slot></template><p><slot></slot></p></x-b></template>text</x-a>`, "b:\n\ntext"},
		"template":      {`<p>a</p><template><p>not shown</p></template>`, "a"},
	} {
		doc := parse(t, "text/html", c.html)
		if got := doc.Content(false).Text(); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	doc := parse(t, "text/html", `<x-a><template shadowrootmode="open"><a href="/in">in</a></template></x-a>`)
	if links := doc.Links(); len(links) != 1 || links[0].URL != "https://site.example/in" {
		t.Errorf("links %v", links)
	}
}

// Pages made to be slow are read in time that grows with their size.
func TestHostileStructure(t *testing.T) {
	t.Parallel()
	const n = 20_000
	for name, body := range map[string]string{
		"values":       "<ol>" + strings.Repeat("<li value=9>x", n) + "</ol>",
		"reversed":     "<ol reversed>" + strings.Repeat("<li>x", n) + "</ol>",
		"scripts":      strings.Repeat("<sup>", 300) + strings.Repeat("x ", 20*n),
		"ruby":         "<ruby>" + strings.Repeat("<rt>x</rt>", n) + "</ruby>",
		"formulas":     `<div class="katex">` + strings.Repeat("<math><mi>x</mi></math>", n) + "</div>",
		"deep formula": "<math>" + strings.Repeat("<msup>", 300) + strings.Repeat("x ", 20*n) + "</math>",
		"custom":       strings.Repeat("<x-a>", 300) + strings.Repeat("x <b>y</b>", n),
		"slots":        "<x-a><template shadowrootmode=open>" + strings.Repeat("<slot></slot>", n) + "</template>" + strings.Repeat("<i>x</i>", n) + "</x-a>",
	} {
		begin := time.Now()
		content := parse(t, "text/html", body).Content(false)
		_, _ = content.Text(), content.Markdown()
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("%s: %s", name, took)
		}
		t.Log(name, fmt.Sprint(time.Since(begin).Round(time.Millisecond)))
	}
}
