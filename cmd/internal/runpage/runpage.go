// Package runpage shows a run in a browser. The page of tea serve and the reports of
// `tea runs show --html` share its modules: view.js shows what model.js computes from
// the events of a run. [Write] writes a report.
package runpage

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"regexp"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host"
)

// Assets are the modules and the style sheet, below assets.
//
//go:embed assets
var Assets embed.FS

// modules are the modules of a report, in the order of their imports.
var modules = []string{"dom", "list", "markdown", "trace", "model", "graph", "node", "source", "result", "view", "report"}

// Report is a run as a page shows it.
type Report struct {
	// Run describes the run. It is encoded as JSON.
	Run any `json:"run"`
	// Events are the events of the run, as JSON with masked secrets.
	Events []json.RawMessage `json:"events"`
	// Graph is the drawing of the workflow, as SVG. If it is "", Note has the reason.
	Graph string `json:"graph"`
	Note  string `json:"note"`
	// Drawings are the variants of the drawing: -horizontal, -collapsed, -horizontal-collapsed.
	Drawings map[string]string `json:"drawings,omitempty"`
	// State is the last state of the run, nil if it is not known.
	State map[string]any `json:"state,omitempty"`
	Files []File         `json:"files,omitempty"`
	// Source is the text of the workflow, nil if it is not known.
	Source *host.Listing `json:"source,omitempty"`
}

// File is a file that the run has written.
type File struct {
	runview.File
	Content []byte `json:"content,omitempty"`
	// Omitted is the reason why the report leaves out the content; "" if it does not.
	Omitted string `json:"omitted,omitempty"`
}

// Write writes a report as a self-contained HTML file. Its content security policy
// allows only the scripts and styles of this package.
func Write(w io.Writer, r Report) error {
	script, err := script()
	if err != nil {
		return err
	}
	style, err := Assets.ReadFile("assets/style.css")
	if err != nil {
		return fmt.Errorf("read the style sheet: %w", err)
	}
	data, err := json.Marshal(r) // contains no <, so it cannot end its element
	if err != nil {
		return fmt.Errorf("encode the run: %w", err)
	}
	policy := fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types tea", hash(script), hash(style))
	_, err = fmt.Fprintf(w, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>tea</title>
<style>%s</style>
</head>
<body>
<main id="main"><noscript>The report needs JavaScript.</noscript></main>
<script type="application/json" id="run">%s</script>
<script type="module">%s</script>
</body>
</html>
`, html.EscapeString(policy), style, printable(data), script)
	return err
}

// script returns all modules as one script.
func script() ([]byte, error) {
	links := regexp.MustCompile(`(?m)^import .*$|^export `)
	var b bytes.Buffer
	for _, name := range modules {
		text, err := Assets.ReadFile("assets/" + name + ".js")
		if err != nil {
			return nil, fmt.Errorf("read the scripts: %w", err)
		}
		b.Write(links.ReplaceAll(text, nil))
	}
	return b.Bytes(), nil
}

// hash returns the hash of a text in the syntax of the policy.
func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// printable escapes the control characters in JSON, which a terminal would interpret.
func printable(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if !unicode.In(r, unicode.Cc, unicode.Cf) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return out
}
