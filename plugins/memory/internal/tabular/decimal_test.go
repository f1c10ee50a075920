package tabular

import (
	"encoding/json"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func TestDecimals(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"0": "0.00", "-0": "0.00", "0.00": "0.00", "1": "1.00", "-1.5": "-1.50", "12.3": "12.30", `"12.34"`: "12.34", "1e2": "100.00", "1.25E1": "12.50", "125e-1": "12.50", "5e-2": "0.05",
		"-0.05": "-0.05", "9999999999999.99": "9999999999999.99", "100.000": "100.00", "0e999": "0.00", "1000000000000e1": "10000000000000.00",
	} {
		d, ok := parseDecimal(json.RawMessage(raw), 15, 2)
		if raw == "1000000000000e1" {
			if ok {
				t.Errorf("%s has too many digits: %s", raw, d)
			}
			continue
		}
		if !ok || d.String() != want {
			t.Errorf("%s: %s, %v; want %s", raw, d, ok, want)
		}
	}
	for _, raw := range []string{"0.001", "1.005", "10000000000000", "1e13", "1e-3", "true", `"x"`, `""`, `"1,5"`, `"+1"`, `" 1"`, `"-"`, `"0x1"`, "1e99999", "[]", `"NaN"`, `"1e"`} {
		if d, ok := parseDecimal(json.RawMessage(raw), 15, 2); ok {
			t.Errorf("%s was taken for %s", raw, d)
		}
	}
	for name, want := range map[string]Type{"decimal": "decimal(15,3)", "Decimal(12, 2)": "decimal(12,2)", "decimal(5)": "decimal(5,0)"} {
		if got, err := typeOf(name); err != nil || got != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for _, name := range []string{"decimal(0)", "decimal(16)", "decimal(5,6)", "decimal(,2)", "decimal()", "decimal(5,2", "decimal(-1)"} {
		_, err := typeOf(name)
		fails(t, name, err, tea.ValidationError, "")
	}
}

func FuzzDecimal(f *testing.F) {
	for _, seed := range []string{"0", "-12.5", "1e5", `"3.25"`, "1.5e-1", "99999999999.9999"} {
		f.Add(seed, 2)
	}
	f.Fuzz(func(t *testing.T, raw string, scale int) {
		if scale < 0 || scale > 15 || !json.Valid([]byte(raw)) || strings.TrimSpace(raw) != raw {
			return
		}
		d, ok := parseDecimal(json.RawMessage(raw), 15, scale)
		if !ok {
			return
		}
		again, ok := parseDecimal(json.RawMessage(d.String()), 15, scale)
		if !ok || again != d {
			t.Errorf("%s became %s, and that %s (%v)", raw, d, again, ok)
		}
	})
}

func TestDecimalColumns(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.make(t, "bills", `[{"name": "no", "type": "decimal(6)"}, {"name": "sum", "type": "decimal(12,2)"}, {"name": "pad", "type": "string"}]`, "no")
		for _, pad := range []string{"x", strings.Repeat("x", 2000)} { // in rows, in a file
			d.insert(t, "bills", `[{"no": 1, "sum": 0.1, "pad": "`+pad+`"}, {"no": "2", "sum": "0.2"}, {"no": 3.0, "sum": -1234567890.12}, {"no": 4}]`, store.RowReplace)
			want(t, "exact sum", d.ask(t, "SELECT sum(sum) AS s FROM bills WHERE no < 3").Rows[0]["s"].(float64) < 0.3000000001, true)
			want(t, "values", d.ask(t, "SELECT no, sum FROM bills ORDER BY no").Rows, []map[string]any{
				{"no": int64(1), "sum": 0.1}, {"no": int64(2), "sum": 0.2}, {"no": int64(3), "sum": -1234567890.12}, {"no": int64(4), "sum": nil},
			})
		}
		r, err := d.Update(t.Context(), "bills", store.RowSelection{Where: store.TableRow{"sum": json.RawMessage(`["0.20", -1234567890.12]`)}}, store.TableRow{"sum": json.RawMessage("5.5")}, store.TableCall{})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "found by value", r.Updated, 2)
		r, err = d.UpdateRows(t.Context(), "bills", rowsOf(t, `[{"no": 2, "pad": "y"}, {"no": 4, "sum": 7}]`), store.TableCall{})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "updated", r.Updated, 2)
		if _, err := d.Consolidate(t.Context(), "bills"); err != nil {
			t.Fatal(err)
		}
		want(t, "rows", d.ask(t, "SELECT no, sum FROM bills WHERE sum > 5 ORDER BY no").Rows, []map[string]any{{"no": int64(2), "sum": 5.5}, {"no": int64(3), "sum": 5.5}, {"no": int64(4), "sum": 7.}})
		_, err = d.Insert(t.Context(), "bills", rowsOf(t, `[{"no": 9, "sum": 0.125}]`), store.RowFail, store.TableCall{})
		fails(t, "too many digits", err, tea.ValidationError, `row 0: column "sum" takes a number with at most 10 digits before and 2 after the point, not 0.125`)
	})
}
