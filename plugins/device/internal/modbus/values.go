package modbus

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"

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

// decodeOne returns the number in the registers of one value, without scale.
func (l Location) decodeOne(registers []uint16) any {
	data := l.arrange(registers)
	switch l.Type {
	case "int16":
		return int64(int16(binary.BigEndian.Uint16(data)))
	case "int32":
		return int64(int32(binary.BigEndian.Uint32(data)))
	case "uint32":
		return int64(binary.BigEndian.Uint32(data))
	case "int64":
		return int64(binary.BigEndian.Uint64(data))
	case "uint64":
		return value.FromBig(new(big.Int).SetUint64(binary.BigEndian.Uint64(data)))
	case "float32":
		return float64(math.Float32frombits(binary.BigEndian.Uint32(data)))
	case "float64":
		return math.Float64frombits(binary.BigEndian.Uint64(data))
	}
	return int64(binary.BigEndian.Uint16(data))
}

// scaled applies scale and offset. A float that is not finite becomes nil.
func (l Location) scaled(raw any) any {
	f, _ := value.Float(raw)
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil
	case l.Scale == nil && l.Offset == 0:
		if l.Type == "float32" {
			return part.Shortest(f)
		}
		return raw
	case l.Type == "float32":
		f = part.Shortest(f)
	}
	return toFloat(new(big.Rat).Add(new(big.Rat).Mul(decimal(f), l.scale()), decimal(l.Offset)))
}

// scale returns the scale as a fraction, so that 402 times 0.1 less 50 is -9.8.
func (l Location) scale() *big.Rat {
	if l.Scale == nil {
		return big.NewRat(1, 1)
	}
	return decimal(*l.Scale)
}

// decimal returns the number that the shortest decimal form of a finite float means.
func decimal(f float64) *big.Rat {
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return r
}

// toFloat returns the nearest float, or nil if there is none.
func toFloat(r *big.Rat) any {
	if f, _ := r.Float64(); !math.IsInf(f, 0) {
		return f
	}
	return nil
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
	f, ok := value.Float(v)
	if !ok {
		return nil, fmt.Errorf("%s is not a number", value.Brief(v))
	}
	switch l.Type {
	case "float32":
		raw := l.unscaled(f)
		if math.IsInf(float64(float32(raw)), 0) {
			return nil, fmt.Errorf("%s is out of the range of float32", value.Brief(v))
		}
		return binary.BigEndian.AppendUint32(nil, math.Float32bits(float32(raw))), nil
	case "float64":
		raw := l.unscaled(f)
		if math.IsInf(raw, 0) {
			return nil, fmt.Errorf("%s is out of the range of float64", value.Brief(v))
		}
		return binary.BigEndian.AppendUint64(nil, math.Float64bits(raw)), nil
	}
	raw, err := l.whole(v, f)
	if err != nil {
		return nil, err
	}
	width, signed := 16*l.width(), l.Type == "int16" || l.Type == "int32" || l.Type == "int64"
	lowest, highest := new(big.Int), new(big.Int).Lsh(big.NewInt(1), uint(width))
	if signed {
		lowest.Rsh(highest, 1).Neg(lowest)
		highest.Rsh(highest, 1)
	}
	if raw.Cmp(lowest) < 0 || raw.Cmp(highest) >= 0 {
		return nil, fmt.Errorf("%s is out of the range of %s", value.Brief(v), l.typeName())
	}
	bits := raw.Uint64()
	if raw.Sign() < 0 {
		bits = uint64(raw.Int64())
	}
	return binary.BigEndian.AppendUint64(nil, bits)[8-2*l.width():], nil
}

func (l Location) typeName() string {
	if l.Type == "" {
		return "uint16"
	}
	return l.Type
}

// unscaled reverses scale and offset.
func (l Location) unscaled(f float64) float64 {
	raw, _ := new(big.Rat).Quo(new(big.Rat).Sub(decimal(f), decimal(l.Offset)), l.scale()).Float64()
	return raw
}

// whole converts a number to an integer. With a scale, the number must be a multiple of it, within the error of floats.
func (l Location) whole(v any, f float64) (*big.Int, error) {
	if l.Scale == nil && l.Offset == 0 {
		if integer, ok := value.Integer(v); ok {
			if whole, ok := value.Big(integer); ok {
				return whole, nil
			}
		}
		return nil, fmt.Errorf("%s is not an integer, and the point has no scale", value.Brief(v))
	}
	raw := l.unscaled(f)
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
