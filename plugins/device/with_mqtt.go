//go:build !minimal || mqtt

package device

import (
	"github.com/the-edge-agent/tea/plugins/device/internal/mqtt"
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
)

func mqttPart() []part.Part { return []part.Part{mqtt.Part()} }
