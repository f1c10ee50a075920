package main

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// Figure is one measured number.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Limit is the promised limit; 0 = the figure has none.
	Limit float64 `json:"limit,omitempty"`
	// Bytes and Allocs are the memory per operation, if it was measured.
	Bytes  *float64 `json:"bytes_per_op,omitempty"`
	Allocs *float64 `json:"allocs_per_op,omitempty"`
}

// verdict reports whether the figure meets its target.
func (f Figure) verdict() string {
	switch {
	case f.Limit == 0:
		return ""
	case f.Value <= f.Limit:
		return "ok"
	}
	return "MISSED"
}

func writeTable(w io.Writer, figures []Figure) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "figure\tvalue\tunit\tlimit\t\tB/op\tallocs/op\t")
	for _, f := range figures {
		limit := ""
		if f.Limit > 0 {
			limit = number(f.Limit)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", f.Name, number(f.Value), f.Unit, limit, f.verdict(), optional(f.Bytes), optional(f.Allocs))
	}
	return t.Flush()
}

func optional(v *float64) string {
	if v == nil {
		return ""
	}
	return number(*v)
}

// number prints about three significant digits without an exponent.
func number(v float64) string {
	switch {
	case v >= 100 || v == float64(int64(v)):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 4, 64)
}
