package modbus

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/plugins/device/internal/part"
	"github.com/the-edge-agent/tea/sdk/value"
)

// decode returns the values in registers.
func (l Location) decode(registers []uint16) any {
	if l.Bit != nil {
		return registers[0]>>l.bit()&1 == 1
	}
	list := make([]any, l.count())
	for i := range list {
		list[i] = l.scaled(l.decodeOne(registers[i*l.width() : (i+1)*l.width()]))
	}
	return one(list)
}

// bit returns the number of the bit in a register as the library returns it, which has
// the bytes in the order of the standard.
func (l Location) bit() int {
	if l.ByteOrder == "little" {
		return (*l.Bit + 8) % 16
	}
	return *l.Bit
}

// one returns the only value of a list, or the list.
func one(list []any) any {
	if len(list) == 1 {
		return list[0]
	}
	return list
}

// arrange converts between the registers of a value and its bytes in network order.
func (l Location) arrange(registers []uint16) []byte {
	registers = slices.Clone(registers)
	if l.WordOrder == "little" {
		slices.Reverse(registers)
	}
	order := binary.AppendByteOrder(binary.BigEndian)
	if l.ByteOrder == "little" {
		order = binary.LittleEndian
	}
	var data []byte
	for _, r := range registers {
		data = order.AppendUint16(data, r)
	}
	return data
}

// decodeOne returns the number in the registers of one value, without scale; nil for a
// float that is not finite.
func (l Location) decodeOne(registers []uint16) any {
	var bits uint64
	for _, b := range l.arrange(registers) {
		bits = bits<<8 | uint64(b)
	}
	switch {
	case l.Type == "float32":
		return part.Float(float64(math.Float32frombits(uint32(bits))), 32)
	case l.Type == "float64":
		return part.Float(math.Float64frombits(bits), 64)
	case l.signed():
		return int64(bits<<l.unused()) >> l.unused()
	}
	return value.FromBig(new(big.Int).SetUint64(bits))
}

// signed reports whether a value is a signed integer.
func (l Location) signed() bool { return strings.HasPrefix(l.Type, "int") }

// unused returns the number of bits in 64 that a value does not have.
func (l Location) unused() int { return 64 - 16*l.width() }

// scaled applies scale and offset.
func (l Location) scaled(raw any) any {
	if raw == nil || l.Scale == nil && l.Offset == 0 {
		return raw
	}
	f, _ := new(big.Rat).Add(new(big.Rat).Mul(decimal(raw), l.scale()), decimal(l.Offset)).Float64()
	return part.Float(f, 64)
}

// scale returns the scale as a fraction, so that 402 times 0.1 less 50 is -9.8.
func (l Location) scale() *big.Rat {
	if l.Scale == nil {
		return big.NewRat(1, 1)
	}
	return decimal(*l.Scale)
}

// decimal returns a finite number exactly as it is written.
func decimal(v any) *big.Rat {
	r, _ := value.Decimal(v)
	return r
}

// encode returns the registers for a value, or for a list of as many as the location
// has.
func (l Location) encode(v any) (registers []uint16, err error) {
	list, err := l.list(v)
	if err != nil {
		return nil, err
	}
	for _, v := range list {
		data, err := l.encodeOne(v)
		if err != nil {
			return nil, err
		}
		words := make([]uint16, l.width())
		for i := range words {
			words[i] = binary.BigEndian.Uint16(data[2*i:])
		}
		// Both changes of order are their own inverse.
		for i, data := 0, l.arrange(words); i < len(words); i++ {
			registers = append(registers, binary.BigEndian.Uint16(data[2*i:]))
		}
	}
	return registers, nil
}

// list returns the values for a write.
func (l Location) list(v any) ([]any, error) {
	if l.count() == 1 {
		return []any{v}, nil
	}
	if list, ok := v.([]any); ok && len(list) == l.count() {
		return list, nil
	}
	return nil, fmt.Errorf("the value must be a list of %d values", l.count())
}

// encodeOne returns the bytes of a value in network order.
func (l Location) encodeOne(v any) ([]byte, error) {
	if _, ok := value.Float(v); !ok {
		return nil, fmt.Errorf("%s is not a number", value.Brief(v))
	}
	var bits uint64
	var ok bool
	switch raw := l.unscaled(v); l.Type {
	case "float32":
		bits, ok = uint64(math.Float32bits(float32(raw))), !math.IsInf(float64(float32(raw)), 0)
	case "float64":
		bits, ok = math.Float64bits(raw), !math.IsInf(raw, 0)
	default:
		whole, err := l.whole(v, raw)
		if err != nil {
			return nil, err
		}
		n := whole.Int64()
		if bits, ok = uint64(n), whole.IsInt64() && n<<l.unused()>>l.unused() == n; !l.signed() {
			bits = whole.Uint64()
			ok = whole.IsUint64() && bits<<l.unused()>>l.unused() == bits
		}
	}
	if !ok {
		return nil, fmt.Errorf("%s is out of the range of %s", value.Brief(v), cmp.Or(l.Type, "uint16"))
	}
	return binary.BigEndian.AppendUint64(nil, bits)[8-2*l.width():], nil
}

// unscaled reverses scale and offset.
func (l Location) unscaled(v any) float64 {
	raw, _ := new(big.Rat).Quo(new(big.Rat).Sub(decimal(v), decimal(l.Offset)), l.scale()).Float64()
	return raw
}

// whole converts a number to an integer. With a scale, the number must be a multiple of it, within the error of floats.
func (l Location) whole(v any, raw float64) (*big.Int, error) {
	if l.Scale == nil && l.Offset == 0 {
		integer, _ := value.Integer(v)
		if whole, ok := value.Big(integer); ok {
			return whole, nil
		}
		return nil, fmt.Errorf("%s is not an integer, and the point has no scale", value.Brief(v))
	}
	if math.IsInf(raw, 0) || math.Abs(raw-math.Round(raw)) > 1e-9*math.Max(1, math.Abs(raw)) {
		return nil, fmt.Errorf("%s cannot be stored: with scale and offset it is %v, which is not an integer", value.Brief(v), raw)
	}
	whole, _ := big.NewFloat(math.Round(raw)).Int(nil)
	return whole, nil
}

// truth returns a truth value; 0 and 1 count as one.
func truth(v any) (bool, error) {
	if b, ok := v.(bool); ok {
		return b, nil
	}
	if n, ok := value.Int(v); ok && (n == 0 || n == 1) {
		return n == 1, nil
	}
	return false, fmt.Errorf("%s is not true or false", value.Brief(v))
}

// truths returns the truth values for the bits of a location.
func (l Location) truths(v any) (bits []bool, err error) {
	list, err := l.list(v)
	if err != nil {
		return nil, err
	}
	for _, v := range list {
		b, err := truth(v)
		if err != nil {
			return nil, err
		}
		bits = append(bits, b)
	}
	return bits, nil
}
