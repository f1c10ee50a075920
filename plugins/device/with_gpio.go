//go:build linux && (!minimal || gpio)

package device

import (
	"github.com/the-edge-agent/tea/plugins/device/internal/gpio"
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
)

func (build) GPIO() part.Part { return gpio.Part() }
