package host

import (
	"io"

	"github.com/the-edge-agent/tea/host/internal/report"
)

type (
	// Report tells a person how a run goes: give its Event method to
	// RunOptions.Events, and log through it so that lines do not mix.
	Report = report.Report
	// ReportOptions say how a report writes.
	ReportOptions = report.Options
)

// Deadline says until when an interrupt can be answered and what counts then;
// "" where it waits for ever.
func Deadline(i Interrupt) string { return report.Deadline(i) }

// NewReport makes a report that writes to w, usually stderr. Close it.
func NewReport(w io.Writer, o ReportOptions) *Report { return report.New(w, o) }
