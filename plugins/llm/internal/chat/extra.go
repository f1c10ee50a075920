package chat

import (
	"strings"

	"github.com/the-edge-agent/tea/plugins/llm/internal/stream"
)

// Extra assembles the members of a turn that the protocol does not define from the
// pieces of a stream: texts are concatenated, objects merged, and the items of lists
// matched by index. The zero value is empty.
type Extra map[string]any // leaves are *strings.Builder for text

// maxLookBack is how many items of a list are compared with the next piece.
const maxLookBack = 16

// Add merges a piece of the members into e.
func (o *Extra) Add(members map[string]any) {
	if *o == nil && len(members) > 0 {
		*o = Extra{}
	}
	for name, v := range members {
		(*o)[name] = merge(name, (*o)[name], v)
	}
}

// merge continues old with v, a piece of the same member.
func merge(name string, old, v any) any {
	switch v := v.(type) {
	case nil:
		return old
	case string:
		return mergeText(name, old, v)
	case map[string]any:
		object, ok := old.(Extra)
		if !ok {
			object = Extra{}
		}
		object.Add(v)
		return object
	case []any:
		list, ok := old.(*[]any)
		if !ok {
			list = new([]any)
		}
		for _, item := range v {
			addItem(list, item)
		}
		return list
	}
	return v
}

// mergeText continues a text. Names and signatures are sent as a whole, by some servers
// in every piece.
func mergeText(name string, old any, text string) any {
	b, ok := old.(*strings.Builder)
	switch {
	case !ok:
		b = new(strings.Builder)
	case isName(name) || strings.HasSuffix(name, "signature") && b.String() == text:
		b.Reset()
	}
	b.WriteString(text)
	return b
}

func isName(member string) bool {
	switch member {
	case "id", "type", "format", "role", "name", "status", "media_type", "mime_type":
		return true
	}
	return false
}

// addItem merges an item of a list into the item with its index, and appends it if
// there is none. Without indexes, consecutive items of one type without a signature are
// one item.
func addItem(list *[]any, item any) {
	piece, ok := item.(map[string]any)
	if !ok {
		*list = append(*list, merge("", nil, item))
		return
	}
	index, numbered := piece["index"].(int64)
	for i := len(*list) - 1; i >= max(0, len(*list)-maxLookBack); i-- {
		object, ok := (*list)[i].(Extra)
		if !ok {
			continue
		}
		at, known := object["index"].(int64)
		same := numbered && known && at == index
		if !numbered && !known && i == len(*list)-1 {
			same = object["signature"] == nil && sameType(object["type"], piece["type"])
		}
		if same {
			object.Add(piece)
			return
		}
	}
	*list = append(*list, merge("", nil, item))
}

func sameType(old, v any) bool {
	b, ok := old.(*strings.Builder)
	text, isText := v.(string)
	return ok && isText && b.String() == text
}

// Members returns the assembled members without empty ones; nil if there are none.
func (o Extra) Members() map[string]any {
	var out map[string]any
	for name, v := range o {
		if v := assembled(v); v != nil {
			if out == nil {
				out = map[string]any{}
			}
			out[name] = v
		}
	}
	return out
}

// assembled returns a value without builders; nil if it is empty.
func assembled(v any) any {
	switch v := v.(type) {
	case *strings.Builder:
		if v.Len() > 0 {
			return stream.Join(v.String())
		}
		return nil
	case Extra:
		if members := v.Members(); members != nil {
			return members
		}
		return nil
	case *[]any:
		var list []any
		for _, item := range *v {
			if item = assembled(item); item != nil {
				list = append(list, item)
			}
		}
		if list == nil {
			return nil
		}
		return list
	}
	return v
}
