//go:build !minimal || serial

package device

import (
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
	"github.com/the-edge-agent/tea/plugins/device/internal/serial"
)

func (build) Serial() part.Part { return serial.Part() }
