package host

import (
	"io"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/report"
)

type (
	// Report shows the progress of a run to a person: set its Event method as
	// RunOptions.Events, and log through it so that lines do not mix.
	Report = report.Report
	// ReportOptions say how a report writes.
	ReportOptions = report.Options
)

// Deadline says until when an interrupt can be answered and what counts then;
// "" where it waits for ever.
func Deadline(i flow.Interrupt) string { return report.Deadline(i) }

// Printable makes a text from outside harmless to a terminal: control
// characters become spaces; line breaks and tabs stay.
func Printable(text string) string { return report.Printable(text) }

// Harmful reports whether [Printable] replaces a character.
func Harmful(r rune) bool { return report.Harmful(r) }

// WriteTable prints rows with aligned columns that fit a width in cells, 0 =
// any width; a nil header prints none.
func WriteTable(w io.Writer, columns int, header []string, rows [][]string) error {
	return report.Table(w, columns, header, rows)
}

// NewReport makes a report that writes to w, usually stderr. Close it.
func NewReport(w io.Writer, o ReportOptions) *Report { return report.New(w, o) }
