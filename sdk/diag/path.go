package diag

import "strconv"

// Key is the path of a member of an object: nodes.fetch, headers["x y"]. A name
// that is not a plain word is quoted in brackets.
func Key(path, key string) string {
	if !plainWord(key) {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// Index is the path of an element of a list: nodes[3].
func Index(path string, i int) string {
	return path + "[" + strconv.Itoa(i) + "]"
}

func plainWord(s string) bool {
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
		default:
			return false
		}
	}
	return s != ""
}
