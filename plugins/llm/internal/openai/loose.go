package openai

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
)

// place is an index. Some servers send it as a string.
type place int

func (p *place) UnmarshalJSON(data []byte) error {
	if *p = 0; string(data) == "null" {
		return nil
	}
	n, err := strconv.Atoi(strings.Trim(string(data), `"`))
	*p = place(n)
	return err
}

// vector is an embedding: a list of numbers, or the Base64 of 32-bit floats, which
// some servers send without being asked.
type vector []float64

func (v *vector) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		return json.Unmarshal(data, (*chat.Vector)(v))
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	if len(raw)%4 != 0 {
		return errors.New("a vector in base64 is cut off")
	}
	*v = make(vector, len(raw)/4)
	for i := range *v {
		f := float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return errors.New("a vector contains a value that is not a number")
		}
		(*v)[i] = f
	}
	return nil
}
