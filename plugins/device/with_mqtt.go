//go:build !minimal || mqtt

package device

import (
	"github.com/the-edge-agent/tea/plugins/device/internal/mqtt"
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
)

func (build) MQTT() part.Part { return mqtt.Part() }
