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
	// ReportOptions configure a [Report].
	ReportOptions = report.Options
)

// Deadline describes until when an interrupt can be answered and what happens afterwards; "" if it has no deadline.
func Deadline(i flow.Interrupt) string { return report.Deadline(i) }

// Printable makes untrusted text safe for a terminal: control characters become
// spaces; line breaks and tabs stay.
func Printable(text string) string { return report.Printable(text) }

// Harmful reports whether [Printable] replaces a character.
func Harmful(r rune) bool { return report.Harmful(r) }

// WriteTable writes rows with aligned columns that fit a width in cells, 0 =
// any width. A nil header is not written.
func WriteTable(w io.Writer, columns int, header []string, rows [][]string) error {
	return report.Table(w, columns, header, rows)
}

// NewReport returns a report that writes to w, usually stderr. The caller must
// close it.
func NewReport(w io.Writer, o ReportOptions) *Report { return report.New(w, o) }
