//go:build !wasm

package tokens

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"sync"

	"github.com/dlclark/regexp2/v2"
	"github.com/tiktoken-go/tokenizer/codec"
)

// split is the expression of cl100k_base that divides a text into words. The additional group makes regexp2 compile it.
// Without the group, the tokenizer uses generated code with a fault: of several line breaks with blanks between them,
// it ends the word at the first (tokenizer 0.10.0, regexp2 2.5.1).
const split = `(?:(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)`

// The expression of o200k_base, and the digest and the size of its vocabulary as OpenAI publishes it. The tokenizer
// has both too, but linking its vocabulary adds 5.7 MB.
const (
	o200kSplit = `(?:[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)`
	o200kDigest = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
	o200kSize   = 3613922
)

// Encoding counts tokens by a vocabulary. Nil is cl100k_base.
type Encoding struct{ codec *codec.Codec }

// base is cl100k_base.
var base = sync.OnceValue(func() *codec.Codec {
	c := codec.NewCl100kBase()
	set(c, "splitRegexp", regexp2.MustCompile(split, regexp2.None))
	return c
})

// set sets an unexported field of the tokenizer, and reports whether it exists.
func set(c *codec.Codec, name string, v any) bool {
	f := reflect.ValueOf(c).Elem().FieldByName(name)
	if !f.IsValid() || !reflect.TypeOf(v).ConvertibleTo(f.Type()) {
		return false
	}
	reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem().Set(reflect.ValueOf(v).Convert(f.Type()))
	return true
}

// Load reads the vocabulary of o200k_base from a file in the format of tiktoken.
func Load(path string) (*Encoding, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, o200kSize+1))
	if err != nil {
		return nil, err
	}
	if digest := sha256.Sum256(text); hex.EncodeToString(digest[:]) != o200kDigest {
		return nil, fmt.Errorf("%s is not o200k_base.tiktoken, whose SHA-256 is %s", path, o200kDigest)
	}
	ranks := make(map[string]uint, bytes.Count(text, []byte("\n")))
	for line := range bytes.Lines(text) {
		token, rank, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		decoded, err := base64.StdEncoding.AppendDecode(nil, token)
		n, wrong := strconv.ParseUint(string(rank), 10, 32)
		if err = errors.Join(err, wrong); err != nil {
			return nil, err
		}
		ranks[string(decoded)] = uint(n)
	}
	c := new(codec.Codec)
	if !set(c, "vocabulary", ranks) || !set(c, "splitRegexp", regexp2.MustCompile(o200kSplit, regexp2.None)) {
		return nil, errors.New("the tokenizer of this build does not accept a vocabulary")
	}
	return &Encoding{codec: c}, nil
}

func (e *Encoding) tokenizer() *codec.Codec {
	if e == nil {
		return base()
	}
	return e.codec
}

// countSegment returns the number of tokens of a segment.
func (e *Encoding) countSegment(text string) int {
	n, err := e.tokenizer().Count(text)
	if err != nil {
		return len(text) // no token is shorter than a byte
	}
	return n
}

// tokensEnd returns the end of the first n tokens of a segment.
func (e *Encoding) tokensEnd(text string, n int) int {
	_, parts, err := e.tokenizer().Encode(text)
	if err != nil {
		return runeStart(text, min(n, len(text)))
	}
	end := 0
	for _, part := range parts[:min(n, len(parts))] {
		end += len(part)
	}
	return runeStart(text, end) // invalid UTF-8 is longer in the tokens than in the text
}
