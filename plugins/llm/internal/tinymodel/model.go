package tinymodel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Spec describes the answers of a model.
type Spec struct {
	// Answer is the answer to every prompt, at any temperature.
	Answer string
	// After are answers to prompts whose last character is the key, such as one
	// that a chat template writes after a tool's result.
	After map[rune]string
}

// Sizes of the model. The first dimensions hold one fact each; the last ones
// are noise that makes embeddings differ by text.
const (
	width      = 64
	feed       = 128
	layers     = 2
	heads      = 4
	noiseFrom  = 52
	contextLen = 4096
)

// Every model has these tokens first, as sentencepiece models do.
const (
	tokenUnknown = iota
	tokenBegin
	tokenEnd
)

// The kinds of tokens in GGUF.
const (
	kindNormal  = 1
	kindUnknown = 2
	kindControl = 3
	kindByte    = 6
)

// wordBreak marks a space before a word.
const wordBreak = "\u2581"

// plainCharacters have separate tokens, so that prompts are not all bytes.
const plainCharacters = wordBreak + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;!?'\"(){}[]_-/"

// Encode returns the model as a GGUF file. A word may occur only once in all answers,
// because the word alone determines the next one; there can be about 50 words.
func (s Spec) Encode() ([]byte, error) {
	m := newModel()
	first, err := m.addAnswer(s.Answer)
	if err != nil {
		return nil, err
	}
	m.follow(0, first)
	var ends []rune
	for end := range s.After {
		ends = append(ends, end)
	}
	slices.Sort(ends)
	for _, end := range ends {
		first, err := m.addAnswer(s.After[end])
		if err != nil {
			return nil, err
		}
		trigger, err := m.addToken(string(end))
		if err != nil {
			return nil, err
		}
		m.follow(m.fact[trigger], first)
	}
	for _, c := range plainCharacters {
		if !slices.Contains(m.tokens, string(c)) {
			m.tokens, m.kinds = append(m.tokens, string(c)), append(m.kinds, kindNormal)
		}
	}
	if m.facts > noiseFrom {
		return nil, fmt.Errorf("the answers have %d words and ends; at most %d fit", m.facts-1, noiseFrom-1)
	}
	return m.encode(), nil
}

// model is a vocabulary and the facts about it. Fact 0 is "any other token".
type model struct {
	tokens []string
	kinds  []int32
	fact   map[int]int // token -> its dimension
	facts  int
	next   map[int]int // dimension -> the token that follows
}

func newModel() *model {
	m := &model{
		tokens: []string{"<unk>", "<s>", "</s>"},
		kinds:  []int32{kindUnknown, kindControl, kindControl},
		fact:   map[int]int{}, facts: 1, next: map[int]int{},
	}
	for b := range 256 {
		m.tokens = append(m.tokens, fmt.Sprintf("<0x%02X>", b))
		m.kinds = append(m.kinds, kindByte)
	}
	return m
}

// addToken adds a token with a separate dimension.
func (m *model) addToken(text string) (token int, err error) {
	if slices.Contains(m.tokens, text) {
		return 0, fmt.Errorf("duplicate word %q in the answers", strings.ReplaceAll(text, wordBreak, " "))
	}
	token = len(m.tokens)
	m.tokens, m.kinds = append(m.tokens, text), append(m.kinds, kindNormal)
	m.fact[token] = m.facts
	m.facts++
	return token, nil
}

// addAnswer adds the words of an answer in sequence, and returns the token of the
// first word.
func (m *model) addAnswer(answer string) (first int, err error) {
	words := strings.Fields(answer)
	if len(words) == 0 {
		return 0, fmt.Errorf("an answer needs at least one word")
	}
	before := 0
	for i, word := range words {
		if i > 0 {
			word = wordBreak + word
		}
		token, err := m.addToken(word)
		if err != nil {
			return 0, err
		}
		if i == 0 {
			first = token
		} else {
			m.follow(before, token)
		}
		before = m.fact[token]
	}
	m.follow(before, tokenEnd)
	return first, nil
}

func (m *model) follow(fact, token int) { m.next[fact] = token }

// certainty is the weight that makes one token overwhelmingly likely.
const certainty = 10

// tensors returns the weights. The layers are zero and add nothing to their input, so
// the output depends only on the last token's embedding.
func (m *model) tensors() []tensor {
	noise := rand.New(rand.NewPCG(1, 2))
	embedding := make([]float32, len(m.tokens)*width)
	for token := range m.tokens {
		row := embedding[token*width:][:width]
		row[m.fact[token]] = 1
		for i := noiseFrom; i < width; i++ {
			row[i] = float32(noise.NormFloat64() * 0.2)
		}
	}
	output := make([]float32, len(m.tokens)*width)
	for fact, token := range m.next {
		output[token*width+fact] = certainty
	}
	all := []tensor{
		{"token_embd.weight", []uint64{width, uint64(len(m.tokens))}, embedding},
		{"output_norm.weight", []uint64{width}, ones(width)},
		{"output.weight", []uint64{width, uint64(len(m.tokens))}, output},
	}
	for layer := range layers {
		name := func(part string) string { return fmt.Sprintf("blk.%d.%s.weight", layer, part) }
		zero := func(part string, in, out int) tensor {
			return tensor{name(part), []uint64{uint64(in), uint64(out)}, make([]float32, in*out)}
		}
		all = append(all,
			tensor{name("attn_norm"), []uint64{width}, ones(width)},
			zero("attn_q", width, width), zero("attn_k", width, width),
			zero("attn_v", width, width), zero("attn_output", width, width),
			tensor{name("ffn_norm"), []uint64{width}, ones(width)},
			zero("ffn_gate", width, feed), zero("ffn_up", width, feed), zero("ffn_down", feed, width))
	}
	return all
}

func ones(n int) []float32 { return slices.Repeat([]float32{1}, n) }

// encode writes the model.
func (m *model) encode() []byte {
	scores := make([]float32, len(m.tokens))
	for i := range scores {
		scores[i] = float32(-i)
	}
	return encodeGGUF([]entry{
		{"general.architecture", "llama"},
		{"general.name", "tiny"},
		{"general.file_type", uint32(0)}, // all weights are float32
		{"general.alignment", uint32(alignment)},
		{"llama.context_length", uint32(contextLen)},
		{"llama.embedding_length", uint32(width)},
		{"llama.block_count", uint32(layers)},
		{"llama.feed_forward_length", uint32(feed)},
		{"llama.rope.dimension_count", uint32(width / heads)},
		{"llama.attention.head_count", uint32(heads)},
		{"llama.attention.head_count_kv", uint32(heads)},
		{"llama.attention.layer_norm_rms_epsilon", float32(1e-5)},
		{"llama.vocab_size", uint32(len(m.tokens))},
		{"tokenizer.ggml.model", "llama"},
		{"tokenizer.ggml.tokens", m.tokens},
		{"tokenizer.ggml.scores", scores},
		{"tokenizer.ggml.token_type", m.kinds},
		{"tokenizer.ggml.bos_token_id", uint32(tokenBegin)},
		{"tokenizer.ggml.eos_token_id", uint32(tokenEnd)},
		{"tokenizer.ggml.unknown_token_id", uint32(tokenUnknown)},
		{"tokenizer.ggml.add_bos_token", true},
		{"tokenizer.ggml.add_space_prefix", false},
	}, m.tensors())
}
