package modbus

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	lib "github.com/simonvetter/modbus"

	"github.com/the-edge-agent/tea/plugins/device/internal/guard"
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Part returns the part of the bundle.
func Part() part.Part {
	return part.New(settingsKey, func(s Settings, guards *guard.Guards) any {
		return &client{part.Connect(serversPath, s.Servers, newServer), s, guards}
	},
		part.Action(settingsKey, "read", "Reads registers or coils of a Modbus server.", (*client).Read, tea.Idempotent(), tea.Reads()),
		part.Action(settingsKey, "write", "Writes a point of a Modbus server.", (*client).Write, tea.Once(), tea.DryRun()),
	)
}

// client makes the requests of a workflow.
type client struct {
	part.Servers[*server]
	settings Settings
	guards   *guard.Guards
}

type readParams struct {
	Point string `json:"point,omitempty" doc:"name of a point in settings.modbus.points, instead of all other parameters"`
	Location
}

type readResult struct {
	Success bool `json:"success" doc:"always true"`
	Value   any  `json:"value" doc:"the value, or the list of values; a float that is not finite is null"`
	Raw     any  `json:"raw" doc:"the registers or bits as they were read, a list"`
}

func (c *client) Read(ctx context.Context, _ *tea.Request, p readParams) (*readResult, error) {
	l := p.Location
	if p.Point != "" {
		if l != (Location{}) {
			return nil, tea.Errorf(tea.ValidationError, "point says where the value is: remove the other parameters, or point")
		}
		point, err := c.point(p.Point)
		if err != nil {
			return nil, err
		}
		l = point.Location
	} else if _, err := c.Server(l.Server); err != nil {
		return nil, err
	} else if err := l.check(c.settings); err != nil {
		return nil, tea.Errorf(tea.ValidationError, "modbus.read: %w", err)
	}
	s, l, err := c.resolve(l)
	if err != nil {
		return nil, err
	}
	return s.read(ctx, l)
}

func (c *client) point(name string) (Point, error) {
	return part.Entry(pointsPath, "point", c.settings.Points, name)
}

// resolve returns the server of a location, and the location with the server's
// defaults.
func (c *client) resolve(l Location) (*server, Location, error) {
	s, err := c.Server(l.Server)
	if err != nil {
		return nil, l, err
	}
	l.WordOrder = cmp.Or(l.WordOrder, s.config.WordOrder)
	l.ByteOrder = cmp.Or(l.ByteOrder, s.config.ByteOrder)
	unit := 1
	if l.Unit = cmp.Or(l.Unit, s.config.Unit); l.Unit == nil {
		l.Unit = &unit
	}
	if *l.Unit == 0 && strings.HasPrefix(s.config.URL, "rtu") {
		return nil, l, tea.Errorf(tea.ValidationError, "unit 0 addresses all units of a serial line, and none answers: name a unit from 1 to 247")
	}
	return s, l, nil
}

// read reads a location that resolve has returned.
func (s *server) read(ctx context.Context, l Location) (*readResult, error) {
	result := &readResult{Success: true}
	err := s.run(ctx, &request{unit: *l.Unit, do: func(c *lib.ModbusClient) error {
		if l.bits() {
			bits, err := readBits(c, l)
			if err != nil {
				return err
			}
			list, _ := value.From(bits)
			result.Raw, result.Value = list, one(list.([]any))
			return nil
		}
		registers, err := readRegisters(c, l)
		if err != nil {
			return err
		}
		result.Raw, result.Value = registers, l.decode(registers)
		return nil
	}})
	return result, err
}

func readBits(c *lib.ModbusClient, l Location) ([]bool, error) {
	if l.table() == discrete {
		return c.ReadDiscreteInputs(uint16(*l.Address), uint16(l.count()))
	}
	return c.ReadCoils(uint16(*l.Address), uint16(l.count()))
}

func readRegisters(c *lib.ModbusClient, l Location) ([]uint16, error) {
	kind := lib.HOLDING_REGISTER
	if l.table() == input {
		kind = lib.INPUT_REGISTER
	}
	return c.ReadRegisters(uint16(*l.Address), uint16(l.count()*l.width()), kind)
}

type writeParams struct {
	Point string `json:"point" doc:"name of a point in settings.modbus.points that has write"`
	Value any    `json:"value" doc:"the value: a number, true or false, or a list for a point with count"`
}

type writeResult struct {
	Success bool   `json:"success" doc:"always true"`
	Point   string `json:"point"`
	Value   any    `json:"value" doc:"the value"`
	DryRun  bool   `json:"dry_run" doc:"true if nothing was sent because of dry_run in the settings"`
}

func (c *client) Write(ctx context.Context, req *tea.Request, p writeParams) (*writeResult, error) {
	point, err := c.point(p.Point)
	if err != nil {
		return nil, guard.NotSent(err)
	}
	s, l, err := c.resolve(point.Location)
	if err != nil {
		return nil, guard.NotSent(err)
	}
	change, err := point.change(l, p.Value)
	if err != nil {
		return nil, guard.Invalid(fmt.Sprintf("point %q", p.Point), err)
	}
	w := guard.Write{
		Setting: diag.Key(pointsPath, p.Point) + ".write", Machine: s.config.URL,
		Target: fmt.Sprintf("the point %q", p.Point), Rule: point.Write, Value: p.Value,
		Current: func(ctx context.Context) (any, error) {
			got, err := s.read(ctx, l)
			if err != nil {
				return nil, err
			}
			return got.Value, nil
		},
	}
	result := &writeResult{Success: true, Point: p.Point, Value: p.Value}
	result.DryRun, err = c.guards.Permit(ctx, req, w, func(ctx context.Context) error {
		return s.run(ctx, change)
	})
	return result, err
}

// change returns the request that writes a value.
func (p Point) change(l Location, v any) (r *request, err error) {
	r = &request{unit: *l.Unit, write: true}
	address := uint16(*l.Address)
	if l.bits() {
		bits, err := l.truths(v)
		r.do = func(c *lib.ModbusClient) error {
			if len(bits) == 1 && !p.Multiple {
				return c.WriteCoil(address, bits[0])
			}
			return c.WriteCoils(address, bits)
		}
		return r, err
	}
	var registers []uint16
	r.do = func(c *lib.ModbusClient) error {
		if len(registers) == 1 && !p.Multiple {
			return c.WriteRegister(address, registers[0])
		}
		return c.WriteRegisters(address, registers)
	}
	if l.Bit != nil {
		set, err := truth(v)
		// Few servers have the function that changes bits. A change of another bit by the machine
		// in between is lost.
		r.prepare = func(c *lib.ModbusClient) (err error) {
			if registers, err = readRegisters(c, l); err != nil {
				return err
			}
			registers[0] &^= 1 << l.bit()
			if set {
				registers[0] |= 1 << l.bit()
			}
			return nil
		}
		return r, err
	}
	if registers, err = l.encode(v); len(registers) > maxWrite {
		err = fmt.Errorf("too many registers for one write: %d (limit %d)", len(registers), maxWrite)
	}
	return r, err
}
