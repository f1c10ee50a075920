package modbus

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/plugins/device/internal/guard"
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

const (
	settingsKey = "modbus"
	serversPath = "settings.modbus.servers"
	pointsPath  = "settings.modbus.points"
)

// Settings are the settings under settings.modbus.
type Settings struct {
	Servers map[string]Server `json:"servers,omitempty" doc:"the Modbus servers by name"`
	Points  map[string]Point  `json:"points,omitempty" doc:"named values; only those with write can be written"`
}

// Server is a Modbus server, or the line to several.
type Server struct {
	URL            string  `json:"url" pattern:"^(tcp|rtuovertcp)://([^\\]\\[/?#@: ]+|\\[[^\\]\\[/?#@ ]+\\])(:[0-9]{1,5})?/?$|^rtu://." doc:"tcp://HOST:PORT, rtuovertcp://HOST:PORT for frames of the serial line over TCP, or rtu:///dev/ttyUSB0 for a serial line"`
	Unit           *int    `json:"unit,omitempty" minimum:"0" maximum:"255" doc:"unit identifier of points that have none; default 1"`
	TimeoutSeconds float64 `json:"timeout_seconds,omitempty" default:"2" minimum:"0.01" maximum:"60" doc:"limit for an answer"`
	WordOrder      string  `json:"word_order,omitempty" enum:"big,little" doc:"order of the registers of a value; default big, the high word first"`
	ByteOrder      string  `json:"byte_order,omitempty" enum:"big,little" doc:"order of the bytes of a register; default big, as the standard says"`

	Baud     int    `json:"baud,omitempty" default:"19200" minimum:"300" maximum:"4000000" doc:"speed of a serial line"`
	Parity   string `json:"parity,omitempty" enum:"none,even,odd" default:"none" doc:"parity of a serial line"`
	StopBits int    `json:"stop_bits,omitempty" minimum:"1" maximum:"2" doc:"stop bits of a serial line; default 2 without parity, otherwise 1"`
	DataBits int    `json:"data_bits,omitempty" default:"8" minimum:"7" maximum:"8" doc:"data bits of a serial line"`
}

// Location is the place and the encoding of a value.
type Location struct {
	Server    string   `json:"server,omitempty" doc:"name of the server in settings.modbus.servers; can be left out if there is one"`
	Unit      *int     `json:"unit,omitempty" minimum:"0" maximum:"255" doc:"unit identifier; default: the server's"`
	Table     string   `json:"table,omitempty" enum:"coil,discrete,input,holding" doc:"kind of register; default holding"`
	Address   *int     `json:"address,omitempty" minimum:"0" maximum:"65535" doc:"address in the protocol, which counts from 0: 40001 of a manual is usually address 0 of holding"`
	Count     int      `json:"count,omitempty" minimum:"1" maximum:"2000" doc:"number of values; more than one is a list; default 1"`
	Type      string   `json:"type,omitempty" enum:"int16,uint16,int32,uint32,int64,uint64,float32,float64" doc:"type of a value in registers; default uint16"`
	WordOrder string   `json:"word_order,omitempty" enum:"big,little" doc:"order of the registers of a value; default: the server's"`
	ByteOrder string   `json:"byte_order,omitempty" enum:"big,little" doc:"order of the bytes of a register; default: the server's"`
	Bit       *int     `json:"bit,omitempty" minimum:"0" maximum:"15" doc:"one bit of a register, 0 is the lowest; the value is true or false"`
	Scale     *float64 `json:"scale,omitempty" doc:"what the stored number is multiplied with; default 1"`
	Offset    float64  `json:"offset,omitempty" doc:"what is added to it then"`
}

// Point is a named value.
type Point struct {
	Location
	Write    *guard.Rule `json:"write,omitempty" doc:"allows modbus.write and limits it; {} allows any value"`
	Multiple bool        `json:"multiple,omitempty" doc:"writes one register or coil with the function for several (15 or 16), for servers that have only that"`
}

// JSONSchema returns the schema, which excludes members that the table does not support.
func (Point) JSONSchema() *schema.Schema {
	type plain Point
	return schema.With[plain](`{"required": ["address"], "allOf": [
		{"properties": {"server": {"type": "string", "x-tea-keyOf": "/servers"}}},
		{"if": {"properties": {"table": {"enum": ["coil", "discrete"]}}, "required": ["table"]},
		 "then": {"properties": {"type": false, "bit": false, "scale": false, "offset": false, "word_order": false, "byte_order": false}}},
		{"if": {"properties": {"table": {"enum": ["discrete", "input"]}}, "required": ["table"]}, "then": {"properties": {"write": false}}},
		{"if": {"required": ["bit"]}, "then": {"properties": {"type": {"enum": ["uint16"]}, "count": {"enum": [1]}, "scale": false, "offset": false}}},
		{"if": {"properties": {"type": {"enum": ["int32", "uint32", "float32"]}}, "required": ["type"]}, "then": {"properties": {"count": {"maximum": 62}}}},
		{"if": {"properties": {"type": {"enum": ["int64", "uint64", "float64"]}}, "required": ["type"]}, "then": {"properties": {"count": {"maximum": 31}}}}]}`)
}

// serialScheme begins the address of a serial line.
const serialScheme = "rtu://"

// Check returns a mistake in the settings that the schema cannot express.
func (s Settings) Check() error {
	for name, server := range s.Servers {
		if strings.HasPrefix(server.URL, serialScheme) {
			continue
		}
		u, err := part.Address(server.URL, "tcp://192.0.2.7 or rtu:///dev/ttyUSB0", map[string]string{"tcp": "502", "rtuovertcp": "502"})
		if err != nil {
			return tea.Errorf(tea.ValidationError, "%s.url: %w", diag.Key(serversPath, name), err)
		}
		server.URL = u.Scheme + "://" + u.Host
		s.Servers[name] = server
	}
	return part.Check(pointsPath, s.Points, func(_ string, p Point) error {
		return p.check(s)
	})
}

// The tables of a server.
const (
	coil     = "coil"
	discrete = "discrete"
	input    = "input"
	holding  = "holding"
)

func (l Location) table() string { return cmp.Or(l.Table, holding) }
func (l Location) count() int    { return cmp.Or(l.Count, 1) }
func (l Location) bits() bool    { return l.table() == coil || l.table() == discrete }

// width returns the number of registers of a value.
func (l Location) width() int {
	switch {
	case strings.HasSuffix(l.Type, "64"):
		return 4
	case strings.HasSuffix(l.Type, "32"):
		return 2
	}
	return 1
}

// The largest numbers of registers in a request of the protocol.
const (
	maxRead  = 125
	maxWrite = 123
)

// check returns a mistake in a location that the schema cannot express.
func (l Location) check(s Settings) error {
	if _, err := part.Name(serversPath, "server", s.Servers, l.Server); err != nil {
		return errors.New(tea.AsError(err).Message)
	}
	size, largest := l.count()*l.width(), maxRead
	if l.bits() {
		size, largest = l.count(), 2000
	}
	switch {
	case l.Address == nil:
		return fmt.Errorf("address is missing")
	case l.bits() && (l.Type != "" || l.Bit != nil || l.Scale != nil || l.Offset != 0 || l.WordOrder != "" || l.ByteOrder != ""):
		return fmt.Errorf("the table %s has single bits: remove type, bit, scale, offset, word_order and byte_order", l.table())
	case l.Bit != nil && (l.width() > 1 || l.Type == "int16" || l.count() > 1 || l.Scale != nil || l.Offset != 0):
		return fmt.Errorf("bit is for one register: remove type, count, scale and offset")
	case l.Scale != nil && *l.Scale == 0:
		return fmt.Errorf("scale is 0")
	case size > largest:
		return fmt.Errorf("too many values for one request: %d (limit %d)", l.count(), largest*l.count()/size)
	case *l.Address+size > 1<<16:
		return fmt.Errorf("the last register is %d, which is beyond 65535", *l.Address+size-1)
	}
	return nil
}
