package plugproc

// For benchmarks that need a complete host, which this package does not import.
var (
	BareEcho   = bareEcho
	Executable = ownPath
)
