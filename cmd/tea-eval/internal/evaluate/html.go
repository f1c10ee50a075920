package evaluate

import (
	_ "embed"
	"html/template"
	"io"
	"maps"
	"slices"

	"github.com/the-edge-agent/tea/sdk/value"
)

//go:embed report.html
var page string

func sortedNames(grades map[string]verdict) []string { return slices.Sorted(maps.Keys(grades)) }

// writeHTML writes the report as a page that loads nothing.
func writeHTML(w io.Writer, r *Report) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"percent": percent, "cells": cells, "brief": value.Brief, "text": func(a Agreement) string { return a.text() },
		"reasons": func(t Trial) []string { return t.reasons() },
	}).Parse(page)
	if err != nil {
		return err
	}
	return t.Execute(w, r)
}
