//go:build !minimal || modbus

package device

import (
	"github.com/the-edge-agent/tea/plugins/device/internal/modbus"
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
)

func (build) Modbus() part.Part { return modbus.Part() }
