package runview

import (
	"fmt"
	"strings"
	"time"
)

// Filter selects runs of a list; a zero field selects all.
type Filter struct {
	Workflow, Status string
	// Search has words that the texts of a run must contain.
	Search string
	// Since and Until limit the time of the run; Until is exclusive.
	Since, Until time.Time
}

// In reports whether a time is selected.
func (f *Filter) In(at time.Time) bool {
	return !at.Before(f.Since) && (f.Until.IsZero() || at.Before(f.Until))
}

// Has reports whether a run is selected, apart from its time. Search looks into texts.
func (f *Filter) Has(workflow, status string, texts ...string) bool {
	if f.Workflow != "" && f.Workflow != workflow || f.Status != "" && f.Status != status {
		return false
	}
	if f.Search == "" {
		return true
	}
	text := strings.ToLower(strings.Join(texts, " "))
	for word := range strings.FieldsSeq(strings.ToLower(f.Search)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// ParseTime returns the time that a filter names, zero for "".
func ParseTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.ParseInLocation(time.DateOnly, text, time.Local)
	if err != nil {
		at, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		return at, fmt.Errorf("expected a day such as 2026-11-28, or a time such as 2026-11-28T06:00:00Z, got %.40q", text)
	}
	return at, nil
}
