package embedded

import "fmt"

// text and number are nullable columns. The types of database/sql would link that
// package into the build for browsers.
type text struct {
	String string
	Valid  bool
}

// Scan implements [database/sql.Scanner].
func (t *text) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*t = text{}
	case string:
		*t = text{v, true}
	case []byte:
		*t = text{string(v), true}
	default:
		return fmt.Errorf("read a text: unexpected type %T", v)
	}
	return nil
}

type number struct{ Int64 int64 }

// Scan implements [database/sql.Scanner]. NULL is 0.
func (n *number) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		n.Int64 = 0
	case int64:
		n.Int64 = v
	case int32:
		n.Int64 = int64(v)
	default:
		return fmt.Errorf("read a number: unexpected type %T", v)
	}
	return nil
}
