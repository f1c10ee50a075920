package value

import "math"

// Whole converts numbers without a fraction, such as 7.0, to integers, if they have at most
// 53 bits. Use it for values from a program whose JSON has only one type of number. Lists
// and objects are changed in place.
func Whole(v any) any {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	case []any:
		for i := range v {
			v[i] = Whole(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = Whole(v[key])
		}
	}
	return v
}
