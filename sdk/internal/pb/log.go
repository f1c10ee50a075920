package pb

import (
	"log/slog"
	"strings"
)

// FromLog puts a log record on the wire.
func FromLog(level slog.Level, message string, fields map[string]any) *Log {
	out := &Log{Level: strings.ToLower(level.String()), Message: Text(message)}
	if len(fields) > 0 {
		out.FieldsJson = fromFields(fields)
	}
	return out
}

// ToLog takes a log record off the wire. An unknown level counts as info.
func ToLog(l *Log) (slog.Level, string, map[string]any) {
	return ToLevel(l.GetLevel()), l.GetMessage(), toFields(l.GetFieldsJson())
}

// ToLevel reads the name of a log level; an unknown one counts as info.
func ToLevel(name string) slog.Level {
	var level slog.Level
	if level.UnmarshalText([]byte(name)) != nil {
		if strings.EqualFold(name, "trace") {
			return slog.LevelDebug
		}
		return slog.LevelInfo
	}
	return level
}

// Text makes s fit a protobuf string, which must be UTF-8: a token may end in
// half a character, an error may quote any bytes.
func Text(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
