//go:build minimal && !modbus

package device

import "github.com/the-edge-agent/tea/plugins/device/internal/part"

func modbusPart() []part.Part { return nil }
