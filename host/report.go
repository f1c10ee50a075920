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

// NewReport makes a report that writes to w, usually stderr. Close it.
func NewReport(w io.Writer, o ReportOptions) *Report { return report.New(w, o) }
