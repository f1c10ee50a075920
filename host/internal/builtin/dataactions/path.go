package dataactions

import (
	"fmt"
	"strconv"
	"strings"
)

// step is one part of a field's path: a member's name or an item's index.
type step struct {
	name  string
	index int
	isIdx bool
}

// pathOf parses a path such as a.b[0].c; a negative index counts from the end.
func pathOf(text string) ([]step, error) {
	var steps []step
	for rest := text; rest != ""; {
		if strings.HasPrefix(rest, "[") {
			inside, after, ok := strings.Cut(rest[1:], "]")
			i, err := strconv.Atoi(inside)
			if !ok || err != nil {
				return nil, fmt.Errorf("field %q: expected a number in the brackets, as in items[0]", text)
			}
			steps = append(steps, step{index: i, isIdx: true})
			rest = after
			if rest != "" && rest[0] != '.' && rest[0] != '[' {
				return nil, fmt.Errorf("field %q: expected . or [ after a bracket", text)
			}
			continue
		}
		if len(steps) > 0 {
			rest = strings.TrimPrefix(rest, ".")
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			return nil, fmt.Errorf("field %q: a name is missing", text)
		}
		steps = append(steps, step{name: rest[:end]})
		rest = rest[end:]
		if rest == "." {
			return nil, fmt.Errorf("field %q: a name is missing", text)
		}
	}
	return steps, nil
}

// lookUp follows a path; found is false if it does not exist.
func lookUp(path []step, v any) (found any, ok bool) {
	for _, s := range path {
		if !s.isIdx {
			object, _ := v.(map[string]any)
			if v, ok = object[s.name]; !ok {
				return nil, false
			}
			continue
		}
		list, _ := v.([]any)
		i := s.index
		if i < 0 {
			i += len(list)
		}
		if i < 0 || i >= len(list) {
			return nil, false
		}
		v = list[i]
	}
	return v, true
}
