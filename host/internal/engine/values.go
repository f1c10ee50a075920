package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/secret"
)

// values returns the fields of a [flow.EventValues]; none if nobody receives the event, or
// if there are neither parameters nor a result.
func (r *run) values(params, result any) (fields []flow.Field) {
	if r.o.Values == nil {
		return nil
	}
	if !isEmpty(params) {
		fields = append(fields, field("params", r.bounded(params)))
	}
	if !isEmpty(result) {
		fields = append(fields, field("result", r.bounded(result)))
	}
	return fields
}

func isEmpty(v any) bool {
	object, is := v.(map[string]any)
	return v == nil || is && len(object) == 0
}

// bounded returns a value with masked secrets, cut to about ValueBytes.
func (r *run) bounded(v any) any {
	if SizeOf(v, r.o.ValueBytes) <= r.o.ValueBytes {
		return r.o.Secrets.Redact(v)
	}
	c := cutter{r.o.Secrets, r.o.ValueBytes}
	return c.value(v)
}

// SizeOf returns the approximate size of a value as JSON. It stops counting above limit.
func SizeOf(v any, limit int) int {
	size := 8
	switch v := v.(type) {
	case string:
		size += len(v)
	case json.Number:
		size += len(v)
	case []any:
		for _, e := range v {
			if size > limit {
				break
			}
			size += SizeOf(e, limit-size)
		}
	case map[string]any:
		for k, e := range v {
			if size > limit {
				break
			}
			size += len(k) + SizeOf(e, limit-size)
		}
	}
	return size
}

// minShare is the size that each of many values may use while room is left.
const minShare = 256

// cutter copies values, masks their secrets, and stops when no size is left. A text that
// begins with "[cut:" replaces what it leaves out.
type cutter struct {
	mask *secret.Set
	left int
}

func (c *cutter) value(v any) any {
	c.left -= 8
	switch v := v.(type) {
	case string:
		return c.text(v)
	case []any:
		var out []any
		for i, e := range v {
			if c.left <= 0 {
				return append(out, fmt.Sprintf("[cut: %d of %d elements]", len(v)-i, len(v)))
			}
			out = append(out, c.share(e, len(v)-i))
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if c.left <= 0 {
				out["…"] = fmt.Sprintf("[cut: %d of %d members]", len(v)-i, len(v))
				break
			}
			c.left -= len(k)
			out[c.mask.Text(k)] = c.share(v[k], len(v)-i)
		}
		return out
	}
	return c.mask.Redact(v)
}

// share copies the first of n values that share the remaining size.
func (c *cutter) share(v any, n int) any {
	part := cutter{c.mask, min(c.left, max(c.left/n, minShare))}
	c.left -= part.left
	out := part.value(v)
	c.left += part.left
	return out
}

func (c *cutter) text(text string) string {
	masked := c.mask.Text(text) // before the cut, which could split a secret
	if room := max(c.left, 0); len(masked) > room {
		masked = fmt.Sprintf("%s… [cut: %d of %d bytes]", strings.ToValidUTF8(masked[:room], ""), len(masked)-room, len(masked))
	}
	c.left -= len(masked)
	return masked
}
