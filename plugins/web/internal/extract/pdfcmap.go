package extract

import (
	"encoding/hex"
	"io"
	"regexp"
	"strings"
	"unicode/utf16"

	"github.com/ledongthuc/pdf"
)

const (
	// maxCharacterMap limits the size of a font's character map, and maxMappedCodes the
	// codes in its ranges.
	maxCharacterMap = 1 << 20
	maxMappedCodes  = 1 << 16
)

// cmapToken finds strings, brackets and operators in a character map.
var cmapToken = regexp.MustCompile(`%[^\r\n]*|<[0-9a-fA-F\s]*>|[\[\]]|[a-z]+`)

// readCharacterMap returns the text of the codes of a font according to its ToUnicode
// map. Invalid parts are left out.
func readCharacterMap(v pdf.Value) map[int]string {
	if v.Kind() != pdf.Stream {
		return nil
	}
	data, _ := io.ReadAll(io.LimitReader(v.Reader(), maxCharacterMap+1)) // as much as can be read
	if len(data) > maxCharacterMap {
		panic(errCharacterMap)
	}
	codes := map[int]string{}
	var args []string
	for _, token := range cmapToken.FindAllString(string(data), -1) {
		switch {
		case token[0] == '<' || token[0] == '[' || token[0] == ']':
			args = append(args, token)
		case token == "beginbfchar" || token == "beginbfrange":
			args = args[:0]
		case token == "endbfchar":
			for ; len(args) >= 2; args = args[2:] {
				setCode(codes, hexCode(args[0]), hexText(args[1]))
			}
		case token == "endbfrange":
			readRanges(codes, args)
		}
	}
	return codes
}

// readRanges reads ranges: <first> <last> <text>, or <first> <last> [<text>...].
func readRanges(codes map[int]string, args []string) {
	for len(args) >= 3 {
		first, last := hexCode(args[0]), hexCode(args[1])
		if args[2] != "[" {
			text := []rune(hexText(args[2]))
			for code := first; code <= last && len(text) > 0 && len(codes) < maxMappedCodes; code++ {
				setCode(codes, code, string(text))
				text[len(text)-1]++
			}
			args = args[3:]
			continue
		}
		args = args[3:]
		for code := first; len(args) > 0 && args[0] != "]"; code++ {
			if code <= last {
				setCode(codes, code, hexText(args[0]))
			}
			args = args[1:]
		}
		args = args[min(1, len(args)):]
	}
}

// setCode stores the text of a code, unless the map says that it is unknown.
func setCode(codes map[int]string, code int, text string) {
	if strings.Trim(text, "\x00\ufffd") != "" && len(codes) < maxMappedCodes {
		codes[code] = text
	}
}

func hexBytes(token string) []byte {
	digits := strings.Join(strings.Fields(strings.Trim(token, "<>[]")), "")
	if len(digits)%2 == 1 {
		digits += "0"
	}
	b, _ := hex.DecodeString(digits) // has only digits
	return b
}

// hexCode returns the number of a code of up to four bytes.
func hexCode(token string) int {
	n := 0
	for i, b := range hexBytes(token) {
		if i < 4 {
			n = n<<8 | int(b)
		}
	}
	return n
}

// hexText decodes a string of UTF-16. A single byte is a character too.
func hexText(token string) string {
	b := hexBytes(token)
	if len(b) == 1 {
		return string(rune(b[0]))
	}
	return utf16Text(string(b))
}

func utf16Text(s string) string {
	var units []uint16
	for i := 0; i+1 < len(s); i += 2 {
		units = append(units, uint16(s[i])<<8|uint16(s[i+1]))
	}
	return string(utf16.Decode(units))
}
