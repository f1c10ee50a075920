package plugproc

// For benchmarks that need a whole host, which this package knows nothing of.
var (
	BareEcho   = bareEcho
	Executable = executable
)
