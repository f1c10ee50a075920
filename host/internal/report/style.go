package report

// style turns meaning into glyphs and colours.
type style struct {
	color bool
	glyphs
}

// glyphs are the signs in front of lines.
type glyphs struct {
	done, failed, skipped, waiting, retry string
	spinner                               []string
	dot, more, micro                      string
}

var unicodeGlyphs = glyphs{
	done: "✓", failed: "✗", skipped: "-", waiting: "?", retry: "↻",
	spinner: []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"},
	dot:     " · ", more: "…", micro: "µ",
}

var asciiGlyphs = glyphs{
	done: "+", failed: "x", skipped: "-", waiting: "?", retry: "~",
	spinner: []string{"|", "/", "-", "\\"},
	dot:     ", ", more: "...", micro: "u",
}

// The colours, as the numbers of SGR sequences.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
)

func newStyle(color, ascii bool) style {
	s := style{color: color, glyphs: unicodeGlyphs}
	if ascii {
		s.glyphs = asciiGlyphs
	}
	return s
}

func (s style) paint(code, text string) string {
	if !s.color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
