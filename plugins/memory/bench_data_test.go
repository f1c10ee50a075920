package memory_test

import (
	"fmt"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"

	"github.com/the-edge-agent/tea/plugins/memory"
)

// eachLinked runs a benchmark for each engine inside this process.
func eachLinked(b *testing.B, run func(b *testing.B, s subject)) {
	b.Helper()
	for _, engine := range benchEngines() {
		b.Run(engine, func(b *testing.B) { run(b, openOn(b, teatest.Linked(memory.Bundle()), engine)) })
	}
}

func (s subject) table(b *testing.B) {
	b.Helper()
	s.call(b, "data.create_table", map[string]any{"name": "sensors", "schema": sensorSchema, "primary_key": "id"})
}

// fill inserts n rows in batches of a thousand.
func (s subject) fill(b *testing.B, n int) {
	b.Helper()
	for from := 0; from < n; from += 1000 {
		s.call(b, "data.insert", map[string]any{"table": "sensors", "rows": readings(from, min(1000, n-from))})
	}
}

// BenchmarkDataInsert is data.insert into a table that has 10,000 rows.
func BenchmarkDataInsert(b *testing.B) {
	for _, rows := range []int{1, 1000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			eachLinked(b, func(b *testing.B, s subject) {
				s.table(b)
				s.fill(b, 10_000)
				next := 1_000_000
				medians(b, func() {
					s.call(b, "data.insert", map[string]any{"table": "sensors", "rows": readings(next, rows)})
					next += rows
				})
			})
		})
	}
}

// BenchmarkDataQuery is data.query of means over all rows, as they were
// inserted and as one file.
func BenchmarkDataQuery(b *testing.B) {
	for _, rows := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			eachLinked(b, func(b *testing.B, s subject) {
				s.table(b)
				s.fill(b, rows)
				s.call(b, "data.update", map[string]any{"table": "sensors", "set": map[string]any{"value": 0}, "where": map[string]any{"id": []any{1, 5, 700}}})
				query := func(b *testing.B) {
					medians(b, func() {
						s.call(b, "data.query", map[string]any{"sql": "SELECT site, count(*) AS n, avg(value) AS mean FROM sensors GROUP BY site"})
					})
				}
				b.Run("inserted", query)
				s.call(b, "data.consolidate", map[string]any{"table": "sensors"})
				b.Run("consolidated", query)
			})
		})
	}
}

// BenchmarkDataConsolidate is data.consolidate of a table with one new batch of
// a thousand rows.
func BenchmarkDataConsolidate(b *testing.B) {
	for _, rows := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			eachLinked(b, func(b *testing.B, s subject) {
				s.table(b)
				s.fill(b, rows)
				s.call(b, "data.consolidate", map[string]any{"table": "sensors"})
				params := tea.ValuePayload(map[string]any{"table": "sensors"})
				b.ResetTimer()
				for b.Loop() {
					b.StopTimer()
					s.call(b, "data.insert", map[string]any{"table": "sensors", "rows": readings(0, 1000), "on_conflict": "replace"})
					b.StartTimer()
					if _, err := s.Invoke(b.Context(), &tea.Request{Action: "data.consolidate", Params: params, Host: &teatest.Host{}}); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
