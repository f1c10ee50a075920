package engine_test

import "testing"

// BenchmarkSelect compares a query from outside, which was asked before, with
// the same one of this module.
func BenchmarkSelect(b *testing.B) {
	const query = "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders WHERE customer IS NOT NULL GROUP BY customer ORDER BY total DESC"
	for _, driver := range drivers(b) {
		e := stocked(b, driver, b.TempDir())
		b.Run(string(driver.Dialect())+"/outside", func(b *testing.B) {
			for b.Loop() {
				if _, err := e.Select(b.Context(), query, outside()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(string(driver.Dialect())+"/inside", func(b *testing.B) {
			for b.Loop() {
				rows, err := e.Query(b.Context(), query)
				if err != nil {
					b.Fatal(err)
				}
				for rows.Next() {
				}
				if err := rows.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
