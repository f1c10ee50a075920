package extract

import (
	"regexp"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/strikethrough"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
)

// Markdown returns the content as CommonMark with tables and strikethrough.
func (c *Content) Markdown() string {
	if c.node == nil {
		return c.markdown
	}
	conv := converter.NewConverter(converter.WithPlugins(
		base.NewBasePlugin(),
		commonmark.NewCommonmarkPlugin(commonmark.WithLinkEmptyHrefBehavior(commonmark.LinkBehaviorSkip), commonmark.WithLinkEmptyContentBehavior(commonmark.LinkBehaviorSkip),
			commonmark.WithListEndComment(false)),
		table.NewTablePlugin(table.WithSpanCellBehavior(table.SpanBehaviorMirror), table.WithNewlineBehavior(table.NewlineBehaviorPreserve), table.WithHeaderPromotion(true),
			table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal)), // padding to the width of a column may make a table many times larger
		strikethrough.NewStrikethroughPlugin(),
	))
	conv.Register.TextTransformer(escapeEntities, converter.PriorityEarly)
	c.plainStructure()
	simplifyTables(c.node)
	boundNesting(c.node, 0)
	markdown, err := conv.ConvertNode(c.node)
	if err != nil {
		return c.Text()
	}
	text := wordSubscript.ReplaceAllString(strings.ReplaceAll(string(markdown), cellPipe, `\|`), "${1}_")
	return strings.TrimSpace(strings.NewReplacer(subscriptMark, `\_`, cellDot, ".").Replace(text))
}

// wordSubscript matches the mark of a subscript after a letter or digit, where it
// cannot begin emphasis.
var wordSubscript = regexp.MustCompile(`([\p{L}\p{N}])` + subscriptMark)

// HTML returns the content as HTML.
func (c *Content) HTML() string {
	var b strings.Builder
	if c.node == nil {
		b.WriteString("<pre>" + html.EscapeString(c.text) + "</pre>")
		return b.String()
	}
	if err := html.Render(&b, c.node); err != nil {
		return ""
	}
	return b.String()
}

// entity matches text that Markdown would read as a character reference.
var entity = regexp.MustCompile(`&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{0,31});`)

// escapeEntities escapes the & of text that looks like a character reference. The
// converter only escapes < and >.
func escapeEntities(_ converter.Context, text string) string {
	return entity.ReplaceAllString(text, "&amp;$1;")
}
