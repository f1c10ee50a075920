package longterm

import "fmt"

// text and number are columns that may be NULL. Those of database/sql would link
// that package into a program for a browser.
type text struct {
	String string
	Valid  bool
}

// Scan takes the value of a column.
func (t *text) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*t = text{}
	case string:
		*t = text{v, true}
	case []byte:
		*t = text{string(v), true}
	default:
		return fmt.Errorf("read a text: it is a %T", v)
	}
	return nil
}

type number struct{ Int64 int64 }

// Scan takes the value of a column, 0 for NULL.
func (n *number) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		n.Int64 = 0
	case int64:
		n.Int64 = v
	case int32:
		n.Int64 = int64(v)
	default:
		return fmt.Errorf("read a number: it is a %T", v)
	}
	return nil
}
