package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writePage writes docs/reference/performance.md from the figures of the last
// `make bench`.
func writePage() error {
	data, err := os.ReadFile(filepath.Join("bin", "bench.json"))
	if err != nil {
		return fmt.Errorf("run make bench first: %w", err)
	}
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		return fmt.Errorf("read bin/bench.json: %w", err)
	}
	var page strings.Builder
	fmt.Fprintf(&page, "# Performance\n\nWritten by `make performance` from the figures of `make bench`, on %s/%s with %d CPUs and %s. Times are medians unless the name says otherwise.\n"+
		"A limit is what tea promises for a machine with 2 CPUs; `MISSED` marks one that this run did not meet. Measure your own machine with `make bench`.\n\n", r.OS, r.Arch, r.CPUs, r.Go)
	page.WriteString("| figure | value | unit | limit | |\n| --- | ---: | --- | ---: | --- |\n")
	for _, f := range r.Figures {
		limit := ""
		if f.Limit > 0 {
			limit = number(f.Limit)
		}
		fmt.Fprintf(&page, "| %s | %s | %s | %s | %s |\n", f.Name, number(f.Value), f.Unit, limit, f.verdict())
	}
	return os.WriteFile(filepath.Join("docs", "reference", "performance.md"), []byte(page.String()), 0o600)
}
